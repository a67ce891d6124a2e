-- Accounts of money: s is spent, r is set aside, g the generation, v how often s was lowered by hand, b what it was
-- opened with, f and e the time it covers. The same sums as in core::policy::budget::ledger.

local accounts = {}

local function load_account(key)
  if accounts[key] ~= nil then return accounts[key] end
  local v = redis.call('HMGET', key, 's', 'r', 'g', 'v', 'b', 'f', 'e', 'due', 'n:' .. NODE)
  if not v[1] or not v[3] then
    if redis.call('EXISTS', key) == 1 then broken(key) end
    accounts[key] = false
    return false
  end
  local a = {
    key = key, s = number(v[1], key), r = count(v[2], key), g = v[3], v = count(v[4], key),
    b = number(v[5], key), f = number(v[6], key), e = number(v[7], key), due = tonumber(v[8] or nil), own = count(v[9], key),
  }
  local lost = lose(key, a, true)
  if lost > 0 then
    a.s = a.s + lost
    redis.call('HSET', key, 's', int(a.s))
  end
  accounts[key] = a
  return a
end

local function save_account(a)
  if a.begins_anew then redis.call('DEL', a.key) end
  local fields = { 's', int(a.s) }
  if a.is_changed then
    fields = { 's', int(a.s), 'g', a.g, 'v', int(a.v), 'b', int(a.b), 'f', int(a.f), 'e', int(a.e) }
  end
  add_held(a, fields)
  redis.call('HSET', a.key, unpack(fields))
  -- A run's account lives as long as its run; others until their time is over, and a while longer.
  if a.e - a.f >= 400 * DAY then
    redis.call('PEXPIRE', a.key, RUN_TTL)
  elseif a.is_changed then
    redis.call('PEXPIRE', a.key, int(math.min(math.max(a.e - now, 0), 62 * DAY) + 2 * DAY))
  end
  a.begins_anew, a.is_changed = nil, nil
end

-- The account of a draw; or why there is none: 'unseeded', or 'later' when it covers a later time.
local function open_account(d)
  local a = load_account(d.k)
  local heard = d.heard and d.heard.f == d.f and d.heard.s or nil
  local seed = d.seed
  if heard and (not seed or heard > seed) then seed = heard end
  if not a then
    if not seed then return 'unseeded' end
    a = { key = d.k, s = seed, r = 0, own = 0, g = A.fresh, v = 0, b = seed, f = d.f, e = d.e, is_changed = true }
    accounts[d.k] = a
    return a
  end
  if d.f ~= a.f or d.e ~= a.e then
    if d.f < a.e and d.e <= a.f then
      -- A clock that went back must not give a day back: then the call counts in the day that is open.
      if now >= a.f then return 'later' end
      return a
    end
    if not seed then return 'unseeded' end
    if d.f >= a.e then
      a.r, a.own, a.g, a.v, a.due, a.begins_anew = 0, 0, A.fresh, 0, nil, true
    end
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

-- Sets money aside on all accounts, or on none. Nothing is written for what is set aside before `hold_money`.
local function reserve_money(draws, amount, least)
  local granted, unseeded, held, opened = amount, {}, {}, {}
  for _, d in ipairs(draws) do
    local a = open_account(d)
    if a == 'unseeded' then
      unseeded[#unseeded + 1] = d.i
    elseif a ~= 'later' then
      opened[#opened + 1] = { d = d, a = a }
      -- An account before it may be the one to blame.
      if #unseeded == 0 then
        local left = d.l - a.s - a.r
        local grant
        if amount <= left or amount <= 0 then
          grant = amount
        elseif a.r == 0 and left > 0 and least <= left then
          grant = left
        end
        if not grant then return { what = 2, opened = opened, short = told(d.i, a) } end
        granted = math.min(granted, grant)
        held[#held + 1] = { d = d, a = a }
      end
    end
  end
  if #unseeded > 0 then return { what = 3, opened = opened, unseeded = unseeded } end
  return { what = 1, granted = granted, opened = opened, held = held }
end

-- Writes what came of it. Gives what the call notes: the accounts that are settled when it is over.
local function hold_money(outcome)
  local notes, seen = {}, {}
  local amount = outcome.what == 1 and outcome.granted or 0
  for _, one in ipairs(outcome.opened) do
    local a = one.a
    if not seen[a.key] then
      seen[a.key] = true
      if outcome.what == 1 then hold(a, amount) end
      if outcome.what == 1 or a.is_changed then save_account(a) end
      notes[#notes + 1] = { k = a.key, g = a.g, f = a.f, a = amount }
    end
  end
  return notes
end

local function money_reply(outcome)
  if not outcome then return { 0 } end
  if outcome.what == 2 then return { 2, outcome.short } end
  if outcome.what == 3 then return { 3, outcome.unseeded } end
  local list = {}
  for place, one in ipairs(outcome.held) do list[place] = told(one.d.i, one.a) end
  return { 1, outcome.granted, list }
end

-- The draws of a purse: the limit of runs for each run of the chain, then the others. Runs have the places -1, -2, ….
local function draws_of(purse, chain)
  local draws = {}
  if purse.runs and chain then
    for depth, run in ipairs(chain) do
      local d = { i = -depth, k = P .. ':money:' .. purse.runs.kind .. ':' .. run.id, l = purse.runs.l, f = 0, e = purse.runs.e }
      local correction = (A.corrections or {})[run.id] or 0
      d.seed = math.max(0, run.spent + correction)
      draws[#draws + 1] = d
    end
  end
  for _, d in ipairs(purse.draws) do draws[#draws + 1] = d end
  return draws
end

-- Those in force first; those in shadow only where these had room.
local function take_money(money, chain)
  local in_force, shadow = false, false
  local draws = draws_of(money.force, chain)
  if #draws > 0 then in_force = reserve_money(draws, money.amount, money.least) end
  if not in_force or in_force.what == 1 then
    draws = draws_of(money.shadow, chain)
    if #draws > 0 then shadow = reserve_money(draws, money.amount, money.least) end
  end
  return in_force, shadow
end

-- Gives back what a call held of an account and adds what it cost. What was booked for this node while it was quiet
-- counts towards that.
local function settle_account(note, cost)
  local a = load_account(note.k)
  if not a then return nil end
  local before = a.s
  if a.g == note.g then
    local missing = note.a - (note.a > 0 and release(a.key, a, note.a) or 0)
    local booked = 0
    if missing > 0 then
      booked = math.min(missing, count(redis.call('HGET', a.key, 'k:' .. NODE), a.key))
      if booked > 0 then redis.call('HINCRBY', a.key, 'k:' .. NODE, int(-booked)) end
    end
    a.s = math.max(0, a.s + cost - booked)
  elseif a.f == note.f then
    -- It was lost and opened again: there is nothing to give back.
    a.s = a.s + cost
  else
    return nil
  end
  save_account(a)
  return { note.k, before, a.s, a.r, a.g, a.v, a.f }
end
