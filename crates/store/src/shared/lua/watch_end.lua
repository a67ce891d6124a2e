-- Writes, unless somebody else has written meanwhile: then gives what that was.
local function put_watch(key, new)
  if new.based then
    local value = value_at(key)
    if value and string.sub(value, 1, 16) ~= new.based then return value end
  end
  put(key, new.version .. ARGV[new.bytes], 'PX', RUN_TTL)
  return false
end
