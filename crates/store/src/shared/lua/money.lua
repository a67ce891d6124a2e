-- Accounts of money: s is spent, r is set aside, g the generation, v how often s was lowered by hand, b what it was
-- opened with, f and e the time it covers; due, n and k as in held.lua. The same sums as in core::policy::budget::ledger.

local ACCOUNT = '<c2dddddddI2c0I2c0I2c0'

local accounts = {}

local function load_account(key)
  if accounts[key] ~= nil then return accounts[key] end
  if not is_there(key) then
    accounts[key] = false
    return false
  end
  local value = value_at(key)
  local is_read, mark, s, r, v, b, f, e, due, g, n, k, next = pcall(struct.unpack, ACCOUNT, value)
  if not is_read or mark ~= 'm1' then broken(key) end
  local a = {
    key = key, s = s, r = r, v = v, b = b, f = f, e = e, due = due, g = g, n = n, k = k, more = string.sub(value, next),
    is_changed = false,
  }
  local lost = lose(a)
  if lost > 0 then a.s, a.is_changed = a.s + lost, true end
  accounts[key] = a
  return a
end

-- An account that begins.
local function new_account(key, seed, from, till)
  local a = {
    key = key, s = seed, r = 0, v = 0, b = seed, f = from, e = till, due = 0, g = FRESH, n = '', k = '', more = '',
    is_changed = true,
  }
  accounts[key] = a
  return a
end

-- A run's account lives as long as its run; others until their time is over, and a while longer.
local function save_account(a)
  local value = struct.pack(ACCOUNT, 'm1', a.s, a.r, a.v, a.b, a.f, a.e, a.due, #a.g, a.g, #a.n, a.n, #a.k, a.k) .. a.more
  if a.e - a.f >= 400 * DAY then
    put(a.key, value, 'PX', RUN_TTL)
  elseif a.is_changed then
    put(a.key, value, 'PX', int(math.min(math.max(a.e - now, 0), 62 * DAY) + 2 * DAY))
  else
    put(a.key, value, 'KEEPTTL')
  end
  a.is_changed = false
end

-- The account of a draw; or why there is none: 'unseeded', or 'later' when it covers a later time.
local function open_account(d)
  local a = load_account(d.k)
  local heard = d.heard and d.heard.f == d.f and d.heard.s or nil
  local seed = d.seed
  if heard and (not seed or heard > seed) then seed = heard end
  if not a then
    if not seed then return 'unseeded' end
    return new_account(d.k, seed, d.f, d.e)
  end
  if d.f ~= a.f or d.e ~= a.e then
    if d.f < a.e and d.e <= a.f then
      -- A clock that went back must not give a day back: then the call counts in the day that is open.
      if now >= a.f then return 'later' end
      return a
    end
    if not seed then return 'unseeded' end
    if d.f >= a.e then return new_account(d.k, seed, d.f, d.e) end
    a.s, a.b, a.f, a.e, a.is_changed = seed, seed, d.f, d.e, true
    return a
  end
  if heard then
    if d.heard.g == a.g then
      -- Within a generation it only grows, unless somebody lowers it: less than before was lost.
      if d.heard.v == a.v and heard > a.s then a.s, a.is_changed = heard, true end
    elseif heard > a.b then
      a.s, a.b, a.is_changed = a.s + heard - a.b, heard, true
    end
  end
  return a
end

local function told(place, a)
  return { place, a.s, a.r, a.g, a.v, a.f, a.e }
end
