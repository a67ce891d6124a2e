-- A call begins: its run is found, it is counted, its rates are taken, its money is set aside.

local asked, clue, chain, is_new, before, claimed = A.run, 0, nil, false, nil, {}

-- What is known to be needed is read at once; a run that must be found first, and what belongs to it, after that.
local needed = { call_key() }
if A.agent then needed[#needed + 1] = agent_key end
if A.agent_watch then needed[#needed + 1] = watch_key() end
if A.habits then needed[#needed + 1] = habits_key(A.habits) end
for _, ask in ipairs(A.rates) do needed[#needed + 1] = ask.k end
if A['repeat'] then needed[#needed + 1] = A['repeat'].k end
if A.money then add_accounts(needed, A.money) end
local function add_run(keys)
  keys[#keys + 1] = run_key(asked.id)
  keys[#keys + 1] = watch_key(asked.id)
  if A.money then add_accounts(keys, A.money, asked.id) end
end
if asked then
  add_left(needed, asked.left)
  if asked.clues then add_brought(needed, asked.clues) else add_run(needed) end
end
fetch(needed)

if value_at(call_key()) then
  return redis.error_reply('SPRAG: this call has begun, or was given up, before')
end

-- Reading.

local agent = A.agent and load_agent(agent_key) or false
local run_watch, agent_watch, agent_habits = false, false, false
if asked then
  if asked.clues then
    local id, place
    id, place, claimed = follow(asked.clues)
    if id then
      if id ~= asked.id then asked.seed, asked.lineage = nil, nil end
      asked.id, asked.origin, clue = id, asked.clues[place][2], place
    end
    local of_run = {}
    add_run(of_run)
    fetch(of_run)
  end
  is_new, before, chain = open_run(asked)
  local have = asked.have and asked.have.id == asked.id and asked.have.version or nil
  run_watch = watch_unless(watch_key(asked.id), have)
end
if A.agent_watch then agent_watch = watch_unless(watch_key(), A.agent_watch) end
if A.habits then agent_habits = value_at(habits_key(A.habits)) end

local refused, would, taken, save_rates = false, {}, {}, nil
if #A.rates > 0 then
  local take_rates
  take_rates, save_rates = rates_here()
  refused, would, taken = take_rates(A.rates)
end
local in_force, shadow = false, false
if A.money and not refused then in_force, shadow = take_money(A.money, chain) end

-- Writing.

for _, one in ipairs(claimed) do put_offers(one[1], one[2]) end
local noted = { at = now, taken = taken, node = NODE }
local repeats = false
if A['repeat'] and not refused then
  repeats = repeats_here()(A['repeat'])
  noted['repeat'] = A['repeat']
end
if save_rates then save_rates() end
if in_force then noted.force = hold_money(in_force) end
if shadow then noted.shadow = hold_money(shadow) end
if agent then
  if not agent.born then agent.born = A.fresh end
  hold(agent, 1)
  save_agent(agent)
end
local run_reply = false
if chain then
  local run, tree = chain[1], {}
  hold(run, 1)
  for depth, one in ipairs(chain) do
    save_run(one)
    tree[depth] = { one.id, one.origin, math.max(0, one.ts - one.tr), one.fa, one.tc }
  end
  remember(asked.left, asked.id)
  noted.run, noted.is_new = asked.id, is_new
  run_reply = { asked.id, run.origin, clue, is_new and 1 or 0, run.st, run.r, before, run.habits, run_watch, tree }
end
put(call_key(), cmsgpack.pack(noted), 'PX', CALL_TTL)
return {
  now, agent and agent.born or false, agent and agent.r or 0, run_reply, agent_watch, agent_habits, refused, would,
  money_reply(in_force), money_reply(shadow), repeats,
}
