-- The value, unless it has the version that the node has already.
local function watch_unless(key, version)
  local value = value_at(key)
  if not value or string.sub(value, 1, 16) == version then return false end
  return value
end
