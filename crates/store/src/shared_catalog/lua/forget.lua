-- Deletes a row, unless it was changed meanwhile.
-- KEYS: its hash. ARGV: its name, the row as it was read.
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then return redis.call('HDEL', KEYS[1], ARGV[1]) end
return 0
