-- What detection keeps of a run or an agent: sixteen digits of version, then the packed value, which no script reads.

local function watch_key(id)
  if id then return P .. ':watch:' .. id end
  return P .. ':agent-watch'
end

-- The value, unless it has the version that the node has already.
local function watch_unless(key, version)
  local value = redis.call('GET', key)
  if not value or string.sub(value, 1, 16) == version then return false end
  return value
end

-- Writes, unless somebody else has written meanwhile: then gives what that was.
local function put_watch(key, new)
  if new.based then
    local value = redis.call('GET', key)
    if value and string.sub(value, 1, 16) ~= new.based then return value end
  end
  redis.call('SET', key, new.version .. ARGV[new.bytes], 'PX', RUN_TTL)
  return false
end
