-- A call begins: its run is found, it is counted, its rates are taken, its money is set aside.

-- What is known to be needed is read at once; a run that must be found first, and what belongs to it, after that.
do
  local found = redis.call('MGET', unpack(ARGV, 2, READS + 1))
  for at = 1, READS do values[ARGV[at + 1]] = found[at] end
end
if value_at(call_key) then
  return redis.error_reply('SPRAG: this call has begun, or was given up, before')
end

-- Reading.

local asked, clue, chain, is_new, before, claimed = nil, 0, nil, false, nil, nil
local agent = IS_OF_AGENT and load_agent(agent_key) or false
local run_watch, agent_watch = false, false
if RUN_ID then
  asked = { id = RUN_ID, origin = ORIGIN, parent = PARENT, seed = SEED, lineage = LINEAGE }
  if HOWS then
    local id, place
    id, place, claimed = follow()
    if id then
      if id ~= RUN_ID then asked.seed, asked.lineage = nil, nil end
      asked.id, asked.origin, clue = id, select(place, cmsgpack.unpack(ARGV[ORIGINS])), place
    end
    local of_run = { run_key(asked.id), watch_key(asked.id) }
    if FORCE and FORCE.runs then of_run[3] = run_account_key(FORCE.runs.kind, asked.id) end
    if SHADOW and SHADOW.runs then of_run[#of_run + 1] = run_account_key(SHADOW.runs.kind, asked.id) end
    fetch(of_run)
  end
  is_new, before, chain = open_run(asked)
  run_watch = watch_unless(watch_key(asked.id), HAVE_ID == asked.id and HAVE_VERSION or nil)
end
if FOLLOWS and chain and not (FOLLOWS ~= '' and value_at(FOLLOWS)) then
  -- The answer that it goes on from may have come from a node whose word is still on its way. In a run that nobody knows that is one of any call
  -- of the agent.
  local under_way = chain[1].r
  if HOWS and clue == 0 then under_way = agent and agent.r or 0 end
  if under_way > 0 then return false end
end
if AGENT_WATCH then agent_watch = watch_unless(watch_key(), AGENT_WATCH) end

local refused, would, taken, save_rates = false, {}, {}, nil
if RATES then
  local take_rates
  take_rates, save_rates = rates_here()
  refused, would, taken = take_rates(RATES)
end
local in_force, in_shadow = false, false
if AMOUNT and not refused then in_force, in_shadow = take_money(FORCE, SHADOW, AMOUNT, LEAST, CORRECTIONS, chain) end

-- Writing.

if claimed then
  for _, one in ipairs(claimed) do put_offers(one[1], one[2]) end
end
local noted = { at = now, taken = taken }
local repeats = false
if REPEATED and not refused then
  repeats = repeats_here()(REPEATED)
  noted['repeat'] = REPEATED
end
if save_rates then save_rates() end
if in_force then noted.force = hold_money(in_force) end
if in_shadow then noted.shadow = hold_money(in_shadow) end
if agent then
  if not agent.born then agent.born = FRESH end
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
  remember(LEFT_CLUES, '', '', LEFT_OFFERS, asked.id)
  noted.run, noted.is_new = asked.id, is_new
  run_reply = { asked.id, run.origin, clue, is_new and 1 or 0, run.st, run.r, before, run.habits, run_watch, tree }
end
redis.call('SET', call_key, cmsgpack.pack(noted), 'PX', CALL_TTL)
return cmsgpack.pack(
  now, agent and agent.born or false, agent and agent.r or 0, run_reply, agent_watch, HABITS and value_at(HABITS) or false,
  refused, would, money_reply(in_force), money_reply(in_shadow), repeats
)
