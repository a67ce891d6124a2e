-- Writes, unless somebody else has written meanwhile: then gives what that was. `at` is the place of the value among the arguments.
local function put_watch(key, based, at)
  if based then
    local value = value_at(key)
    if value and string.sub(value, 1, 16) ~= based then return value end
  end
  redis.call('SET', key, ARGV[at], 'PX', RUN_TTL)
  return false
end
