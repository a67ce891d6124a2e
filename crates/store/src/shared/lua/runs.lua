-- Runs: their totals, the runs above them, their calls in flight. The same sums as in memory.

local function run_key(id)
  return P .. ':run:' .. id
end

-- A run as it is kept; one that nobody knows is empty.
local function load_run(id)
  local key = run_key(id)
  local v = redis.call('HMGET', key, 'st', 'c', 'ts', 'tc', 'tr', 'i', 'o', 'u', 'f', 'fa', 'la', 'p', 'og', 'op', 'r', 'due', 'h', 'n:' .. NODE)
  local run = { id = id, key = key }
  if not v[3] and redis.call('EXISTS', key) == 1 then broken(key) end
  run.is_known = v[3] and true or false
  run.st, run.c, run.ts, run.tc = count(v[1], key), count(v[2], key), count(v[3], key), count(v[4], key)
  run.tr, run.i, run.o, run.u = count(v[5], key), count(v[6], key), count(v[7], key), count(v[8], key)
  run.f, run.fa, run.la = count(v[9], key), count(v[10], key), count(v[11], key)
  run.parent, run.origin, run.is_opened = v[12] or nil, v[13] or nil, v[14] == '1'
  run.r, run.due, run.habits, run.own = count(v[15], key), tonumber(v[16] or nil), v[17], count(v[18], key)
  lose(key, run, false)
  return run
end

local function save_run(run)
  local fields = {
    'st', int(run.st), 'c', int(run.c), 'ts', int(run.ts), 'tc', int(run.tc), 'tr', int(run.tr), 'i', int(run.i),
    'o', int(run.o), 'u', int(run.u), 'f', int(run.f), 'fa', int(run.fa), 'la', int(run.la),
    'op', run.is_opened and '1' or '0',
  }
  for name, value in pairs({ p = run.parent, og = run.origin, h = run.new_habits }) do
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  add_held(run, fields)
  redis.call('HSET', run.key, unpack(fields))
  redis.call('PEXPIRE', run.key, RUN_TTL)
end

local function take_totals(run, t)
  run.st, run.c, run.ts, run.tc, run.tr = t[1], t[2], t[3], t[4], t[5]
  run.i, run.o, run.u, run.f, run.fa, run.la = t[6], t[7], t[8], t[9], t[10], t[11]
end

local function totals_of(run)
  return { run.st, run.c, run.ts, run.tc, run.tr, run.i, run.o, run.u, run.f, run.fa, run.la }
end

local function touch(run)
  run.la = math.max(run.la, now)
end

-- Works on the runs above one, nearest first. Whoever is the parent of itself is none.
local function each_above(run, work)
  local seen, depth, parent = { [run.id] = true }, 0, run.parent
  while parent and not seen[parent] and depth < TREE_DEPTH do
    seen[parent] = true
    depth = depth + 1
    local above = load_run(parent)
    if work(above) == false then return end
    parent = above.parent
  end
end

-- Counts a call in a run and in those above it. Writes nothing. Gives what it was before, and the chain.
local function open_run(asked)
  local run = load_run(asked.id)
  local is_new = not run.is_opened and not asked.seed
  if not run.is_opened then
    run.is_opened = true
    if asked.seed then
      local below = { run.ts, run.tc, run.tr, run.la }
      take_totals(run, asked.seed)
      run.ts, run.tc = math.max(run.ts, below[1]), math.max(run.tc, below[2])
      run.tr, run.la = math.max(run.tr, below[3]), math.max(run.la, below[4])
    elseif not run.origin then
      run.fa = now
    end
  end
  if not run.parent and asked.parent and asked.parent ~= asked.id then run.parent = asked.parent end
  run.origin = asked.origin
  local before = totals_of(run)
  local chain = { run }
  -- What its account begins with, should it not be open: this call is not in it.
  run.spent = run.tc
  run.st, run.ts = run.st + 1, run.ts + 1
  touch(run)
  each_above(run, function(above)
    if not above.origin and asked.lineage then
      for place, known in ipairs(asked.lineage) do
        if known.id == above.id then
          if known.totals then take_totals(above, known.totals) end
          local next = asked.lineage[place + 1]
          above.parent = next and next.id or nil
          break
        end
      end
    end
    if not above.origin and above.fa == 0 then above.fa = now end
    above.origin = above.origin or asked.origin
    above.spent = above.tc
    above.ts = above.ts + 1
    touch(above)
    chain[#chain + 1] = above
  end)
  return is_new, before, chain
end

-- Ends a call of a run, and of those above it. `had` is what began; without it only the money is added.
local function settle_run(run, how, had)
  local function settle(above)
    above.tc = above.tc + how.cost
    if how.is_refused then above.tr = above.tr + 1 end
    if how.is_withdrawn and had then above.ts = math.max(0, above.ts - 1) end
    touch(above)
  end
  if not how.is_withdrawn then
    run.c = run.c + how.cost
    run.u, run.f = run.u + how.unpriced, run.f + how.failed
    run.i, run.o = run.i + how.input, run.o + how.output
  elseif had then
    run.st = math.max(0, run.st - 1)
  end
  settle(run)
  if had then release(run.key, run, 1) end
  each_above(run, function(above)
    if not above.is_known then return false end
    settle(above)
    save_run(above)
  end)
  save_run(run)
  return run
end

-- The runs of a call, from it upwards, for accounts.
local function chain_of(id)
  local run = load_run(id)
  run.spent = run.tc
  local chain = { run }
  each_above(run, function(above)
    above.spent = above.tc
    chain[#chain + 1] = above
  end)
  return chain
end
