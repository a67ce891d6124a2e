-- A call is over: what it held is given back, what it cost is added, what it learned is kept. Once.

local key = call_key()
local how = A.how

local needed = { key }
if A.agent then needed[#needed + 1] = agent_key end
if A.run then
  needed[#needed + 1] = run_key(A.run)
  if A.watch then needed[#needed + 1] = watch_key(A.run) end
  add_left(needed, A.left)
end
if A.agent_watch then needed[#needed + 1] = watch_key() end
for _, drawn in ipairs(A.drawn) do needed[#needed + 1] = drawn end
for _, late in ipairs(A.late) do needed[#needed + 1] = late end
fetch(needed)

local value = value_at(key)
local had = value and value ~= '' and cmsgpack.unpack(value) or nil
local id = A.run or had and had.run or nil

-- Told before, or given up before it began. A call that was never heard of because everything was lost is another thing.
local is_over = value == ''
if not had and A.born then
  is_over = is_over or load_agent(agent_key).born == A.born
elseif not had then
  is_over = is_over or A.again
end
if not had and how.is_withdrawn then
  -- Should it still arrive, it must not begin.
  put(key, '', 'PX', 600000)
end
if is_over or (not had and how.is_withdrawn) then
  local run = id and load_run(id) or nil
  return { run and run.is_known and totals_of(run) or false, {}, false, false }
end

local run = id and load_run(id) or nil
local agent = A.agent and had and load_agent(agent_key) or nil
local drawn_on = { had and had.force or {}, had and had.shadow or {}, not had and cmsgpack.unpack(ARGV[A.accounts]) or {} }
for _, list in ipairs(drawn_on) do
  for _, note in ipairs(list) do load_account(note.k) end
end

-- Writing.

if had then
  -- Requests stay counted; tokens are corrected, and what is given back.
  local is_corrected = not A.used and #had.taken > 0
  for _, one in ipairs(had.taken) do is_corrected = is_corrected or one.tokens end
  if is_corrected then
    local _, _, correct_rates = rates_here()
    correct_rates(had.taken, A.used)
  end
  if had['repeat'] and A.uncounts then
    local _, uncount_repeat = repeats_here()
    uncount_repeat(had['repeat'])
  end
end
local settled = {}
for _, list in ipairs(drawn_on) do
  for _, note in ipairs(list) do
    -- Everything was lost, and this node knows what it had heard of the account.
    if not had and note.heard and not load_account(note.k) then open_account(note) end
    local one = settle_account(note, how.cost)
    if one then settled[#settled + 1] = one end
  end
end
for _, late in ipairs(A.late) do
  -- Most of them are not there.
  local a = value_at(late) and load_account(late)
  local at = had and had.at or now
  if a and a.f <= at and at < a.e and how.cost ~= 0 then
    local before = a.s
    a.s = a.s + how.cost
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
  if A.habits then run.habits = ARGV[A.habits] end
  settle_run(run, how, had)
  if how.is_withdrawn and had.is_new and run.st == 0 and run.ts == 0 then
    redis.call('DEL', run.key)
  else
    totals = totals_of(run)
    remember(A.left, id)
    if A.watch then run_watch = put_watch(watch_key(id), A.watch) end
  end
end
if A.agent_watch then agent_watch = put_watch(watch_key(), A.agent_watch) end
if A.of_model then put(habits_key(A.of_model.k), ARGV[A.of_model.bytes], 'PX', RUN_TTL) end
-- What was lost leaves a mark: there is nothing else to know by that it was told.
if had then redis.call('DEL', key) else put(key, '', 'PX', 600000) end
return { totals, settled, run_watch, agent_watch }
