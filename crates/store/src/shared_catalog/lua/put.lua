-- Writes rows that are later than those that are there, and tells of each.
-- KEYS: state, log, one hash for each kind of row.
-- ARGV: seconds that keys live, length of the log, a new epoch, the channel; then for each row the place of its hash among
-- KEYS, its kind, its name and the row. Without rows every key lives on.
local state, log = KEYS[1], KEYS[2]

-- What is of another type was not written by any version of this script.
local function keep(key, kind)
  local found = redis.call('TYPE', key).ok
  if found ~= kind and found ~= 'none' then redis.call('DEL', key) end
end

local function stamp(row)
  local at, node, gone = string.match(row, '^%[%d+,(%d+),"(%w+)",(%d+),')
  return tonumber(at), node, gone and gone ~= '0'
end

local function is_later(row, known)
  local at, node, gone = stamp(row)
  local known_at, known_node, known_gone = stamp(known)
  if not known_at then return true end
  if at ~= known_at then return at > known_at end
  if node ~= known_node then return node > known_node end
  return gone and not known_gone
end

keep(state, 'hash')
keep(log, 'stream')
-- A new epoch: whatever was here before is lost, and nodes compare everything.
if redis.call('HSETNX', state, 'epoch', ARGV[3]) == 1 then redis.call('DEL', log) end

local seq
for place = 5, #ARGV, 4 do
  local hash, kind, name, row = KEYS[tonumber(ARGV[place])], ARGV[place + 1], ARGV[place + 2], ARGV[place + 3]
  keep(hash, 'hash')
  local known = redis.call('HGET', hash, name)
  if not known or is_later(row, known) then
    redis.call('HSET', hash, name, row)
    seq = redis.call('HINCRBY', state, 'seq', 1)
    redis.call('XADD', log, 'MAXLEN', '~', ARGV[2], string.format('%d-0', seq), 'kind', kind, 'name', name)
    redis.call('EXPIRE', hash, ARGV[1])
  end
end
if #ARGV == 4 then
  for place = 3, #KEYS do redis.call('EXPIRE', KEYS[place], ARGV[1]) end
end
redis.call('EXPIRE', state, ARGV[1])
redis.call('EXPIRE', log, ARGV[1])
-- Who may not publish is heard nevertheless, only later.
if seq then redis.pcall('PUBLISH', ARGV[4], seq) end
local now = redis.call('HMGET', state, 'epoch', 'seq')
return {now[1], now[2] or '0'}
