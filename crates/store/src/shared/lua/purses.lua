-- Money that a call asks for, of several accounts together.

-- Sets money aside on all accounts, or on none. Nothing is written for what is set aside before `hold_money`.
local function reserve_money(draws, amount, least)
  local granted, unseeded, held, opened = amount, {}, {}, {}
  for _, d in ipairs(draws) do
    local a = open_account(d)
    if a == 'unseeded' then
      unseeded[#unseeded + 1] = d.i
    elseif a ~= 'later' then
      local one = { d = d, a = a }
      opened[#opened + 1] = one
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
        held[#held + 1] = one
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

local function run_account_key(kind, id)
  return P .. ':money:' .. kind .. ':' .. id
end

-- The draws of a purse: the limit of runs for each run of the chain, then the others. Runs have the places -1, -2, ….
local function draws_of(purse, chain, corrections)
  local draws = {}
  if not purse then return draws end
  if purse.runs and chain then
    for depth, run in ipairs(chain) do
      local d = { i = -depth, k = run_account_key(purse.runs.kind, run.id), l = purse.runs.l, f = 0, e = purse.runs.e }
      local correction = corrections and corrections[run.id] or 0
      d.seed = math.max(0, run.spent + correction)
      draws[#draws + 1] = d
    end
  end
  for _, d in ipairs(purse.draws) do draws[#draws + 1] = d end
  return draws
end

-- Those in force first; those in shadow only where these had room. `corrections` are by how much accounts of runs begin higher, by run.
local function take_money(force, shadow, amount, least, corrections, chain)
  local in_force, in_shadow = false, false
  local draws = draws_of(force, chain, corrections)
  if #draws > 0 then in_force = reserve_money(draws, amount, least) end
  if not in_force or in_force.what == 1 then
    draws = draws_of(shadow, chain, corrections)
    if #draws > 0 then in_shadow = reserve_money(draws, amount, least) end
  end
  return in_force, in_shadow
end
