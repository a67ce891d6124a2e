-- This node is still there: what it holds stays held.

local still = 0
for _, key in ipairs(A.keys) do
  if redis.call('HEXISTS', key, 'n:' .. NODE) == 1 then
    redis.call('HSET', key, 't:' .. NODE, int(now))
    if redis.call('PTTL', key) < RUN_TTL then redis.call('PEXPIRE', key, RUN_TTL) end
    still = still + 1
  end
end
return still
