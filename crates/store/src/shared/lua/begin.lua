-- A call begins: its run is found, it is counted, its rates are taken, its money is set aside.

if redis.call('GET', call_key()) then
  return redis.error_reply('SPRAG: this call has begun, or was given up, before')
end

-- Reading.

local agent = A.agent and load_agent() or false

local asked, clue, chain, is_new, before = A.run, 0, nil, false, nil
local run_watch, agent_watch, agent_habits = false, false, false
if asked then
  if asked.clues then
    local id, place = follow(asked.clues)
    if id then
      if id ~= asked.id then asked.seed, asked.lineage = nil, nil end
      asked.id, asked.origin, clue = id, asked.clues[place].o, place
    end
  end
  is_new, before, chain = open_run(asked)
  local have = asked.have and asked.have.id == asked.id and asked.have.version or nil
  run_watch = watch_unless(watch_key(asked.id), have)
end
if A.agent_watch then agent_watch = watch_unless(watch_key(), A.agent_watch) end
if A.habits then agent_habits = redis.call('GET', P .. ':habits:' .. A.habits) end

local refused, would, taken = take_rates(A.rates)
local in_force, shadow = false, false
if A.money and not refused then in_force, shadow = take_money(A.money, chain) end

-- Writing.

local noted = { at = now, taken = taken, node = NODE }
local repeats = false
if A['repeat'] and not refused then
  repeats = count_repeat(A['repeat'])
  noted['repeat'] = A['repeat']
end
save_rates()
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
  remember(asked.left, run.id)
  noted.run, noted.is_new = run.id, is_new
  run_reply = { run.id, run.origin, clue, is_new and 1 or 0, run.st, run.r, before, run.habits, run_watch, tree }
end
redis.call('SET', call_key(), cmsgpack.pack(noted), 'PX', CALL_TTL)
return {
  now, agent and agent.born or false, agent and agent.r or 0, run_reply, agent_watch, agent_habits, refused, would,
  money_reply(in_force), money_reply(shadow), repeats,
}
