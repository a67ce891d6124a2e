-- A call is over: what it held is given back, what it cost is added, what it learned is kept. Once.

do
  local found = redis.call('MGET', unpack(ARGV, KEYS_AT, KEYS_AT + READS - 1))
  for at = 1, READS do values[ARGV[KEYS_AT + at - 1]] = found[at] end
end

local value = value_at(call_key)
local had = value and value ~= '' and cmsgpack.unpack(value) or nil
local id = RUN_ID or had and had.run or nil

-- Told before, or given up before it began. A call that was never heard of because everything was lost is another thing.
local is_over = value == ''
if not had and BORN then
  is_over = is_over or load_agent(agent_key).born == BORN
elseif not had then
  is_over = is_over or IS_AGAIN
end
if not had and IS_WITHDRAWN then
  -- Should it still arrive, it must not begin.
  put(call_key, '', 'PX', 600000)
end
if is_over or (not had and IS_WITHDRAWN) then
  local run = id and load_run(id) or nil
  return cmsgpack.pack(run and run.is_known and totals_of(run) or false, {}, false, false)
end

local run = id and load_run(id) or nil
local agent = IS_OF_AGENT and had and load_agent(agent_key) or nil
local drawn_on = { had and had.force or {}, had and had.shadow or {}, not had and cmsgpack.unpack(ARGV[ACCOUNTS]) or {} }
for _, list in ipairs(drawn_on) do
  for _, note in ipairs(list) do load_account(note.k) end
end

-- Writing.

if had then
  -- Requests stay counted; tokens are corrected, and what is given back.
  local is_corrected = not USED and #had.taken > 0
  for _, one in ipairs(had.taken) do is_corrected = is_corrected or one.tokens end
  if is_corrected then
    local _, _, correct_rates = rates_here()
    correct_rates(had.taken, USED)
  end
  if had['repeat'] and UNCOUNTS then
    local _, uncount_repeat = repeats_here()
    uncount_repeat(had['repeat'])
  end
end
local settled = {}
for _, list in ipairs(drawn_on) do
  for _, note in ipairs(list) do
    -- Everything was lost, and this node knows what it had heard of the account.
    if not had and note.heard and not load_account(note.k) then open_account(note) end
    local one = settle_account(note, COST)
    if one then settled[#settled + 1] = one end
  end
end
for at = KEYS_AT + READS - LATES, KEYS_AT + READS - 1 do
  -- Most of them are not there.
  local late = ARGV[at]
  local a = value_at(late) and load_account(late)
  local begun = had and had.at or now
  if a and a.f <= begun and begun < a.e and COST ~= 0 then
    local before = a.s
    a.s = a.s + COST
    save_account(a)
    settled[#settled + 1] = { late, before, a.s, a.r, a.g, a.v, a.f }
  end
end
if agent then
  release(agent, 1)
  save_agent(agent)
end
local run_watch, agent_watch, totals = false, false, false
if run and run.is_known then
  if HABITS then run.habits = ARGV[HABITS] end
  settle_run(run, had)
  if IS_WITHDRAWN and had.is_new and run.st == 0 and run.ts == 0 then
    redis.call('DEL', run.key)
  else
    totals = totals_of(run)
    remember(LEFT_CLUES, LEFT_UNLESS, LEFT_WITHDRAWN, LEFT_OFFERS, id)
    if WATCH then run_watch = put_watch(watch_key(id), BASED, WATCH) end
  end
end
if AGENT_WATCH then agent_watch = put_watch(watch_key(), AGENT_BASED, AGENT_WATCH) end
if MODEL then redis.call('SET', MODEL, ARGV[OF_MODEL], 'PX', RUN_TTL) end
-- What was lost leaves a mark: there is nothing else to know by that it was told.
if had then redis.call('DEL', call_key) else put(call_key, '', 'PX', 600000) end
return cmsgpack.pack(totals, settled, run_watch, agent_watch)
