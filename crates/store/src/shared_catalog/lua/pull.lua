-- Gives what was changed since a place in the log, as it is now.
-- KEYS: state, log, one hash for each kind of row.
-- ARGV: the epoch and the place that are known, where to begin, how many at most; then the kinds, in the order of their hashes.
local state = redis.call('HMGET', KEYS[1], 'epoch', 'seq')
local epoch, seq = state[1] or '', state[2] or '0'
local answer = {epoch, seq}
if epoch ~= ARGV[1] or seq == ARGV[2] then return answer end

local hashes = {}
for place = 5, #ARGV do hashes[ARGV[place]] = KEYS[place - 2] end
for _, entry in ipairs(redis.call('XRANGE', KEYS[2], ARGV[3], '+', 'COUNT', ARGV[4])) do
  local kind, name = entry[2][2], entry[2][4]
  local hash = hashes[kind]
  local row = hash and redis.call('HGET', hash, name)
  answer[#answer + 1] = {entry[1], kind, name, row or ''}
end
return answer
