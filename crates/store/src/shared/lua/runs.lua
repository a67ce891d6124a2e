-- Runs: their totals, the runs above them, their calls in flight. The same sums as in memory.

local function run_key(id)
  return P .. ':run:' .. id
end

local RUN = '<c2ddddddddddddddI2c0I2c0I2c0I2c0'

-- A run as it is kept; one that nobody knows is empty. `spent` is what its account begins with, should it not be open.
local function load_run(id, elsewhere)
  local key = elsewhere or run_key(id)
  if not is_there(key) then
    return {
      id = id, key = key, is_known = false, is_opened = false, st = 0, c = 0, ts = 0, tc = 0, tr = 0, i = 0, o = 0,
      u = 0, f = 0, fa = 0, la = 0, r = 0, due = 0, parent = nil, origin = nil, habits = false, n = '', more = '', spent = 0,
    }
  end
  local value = value_at(key)
  local is_read, mark, st, c, ts, tc, tr, i, o, u, f, fa, la, r, due, op, p, og, h, n, next = pcall(struct.unpack, RUN, value)
  if not is_read or mark ~= 'r1' then broken(key) end
  local run = {
    id = id, key = key, is_known = true, is_opened = op == 1, st = st, c = c, ts = ts, tc = tc, tr = tr, i = i, o = o,
    u = u, f = f, fa = fa, la = la, r = r, due = due, parent = p ~= '' and p or nil, origin = og ~= '' and og or nil,
    habits = h ~= '' and h, n = n, more = string.sub(value, next), spent = tc,
  }
  lose(run)
  return run
end

local function save_run(run)
  local p, og, h = run.parent or '', run.origin or '', run.habits or ''
  local value = struct.pack(
    RUN, 'r1', run.st, run.c, run.ts, run.tc, run.tr, run.i, run.o, run.u, run.f, run.fa, run.la, run.r, run.due,
    run.is_opened and 1 or 0, #p, p, #og, og, #h, h, #run.n, run.n
  )
  put(run.key, value .. run.more, 'PX', RUN_TTL)
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
