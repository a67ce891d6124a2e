-- What every script has: the time, how keys are read and written, and how numbers are checked.
--
-- Before it stand bounds: TREE_DEPTH, OFFERS, RETRY_MS and MOMENTS, which the program has too, BOOKED_NODES, and how long
-- things are kept that nobody uses: RUN_TTL, CLUE_TTL, CALL_TTL. Then what the script is given (given*.lua). P is the beginning of all keys
-- with this call's tag. Numbers stay below 2^53.
-- A script reads and checks everything before it writes anything: a key that holds what nobody understands ends the
-- script with an error while nothing is changed.
-- Each command costs more than what it does, so every key holds one value, and one command reads many of them. So do tables and functions,
-- which are made anew with every call: `begin` and `end`, which every call waits for, are given keys and values rather than tables of them.

local DAY = 86400000

local now = NOW
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function int(number)
  return string.format('%d', number)
end

local function broken(key)
  error('SPRAG: the key ' .. key .. ' does not hold what it should; delete it if nobody needs it')
end

-- What keys hold, as far as it was read or written; false for nothing.
local values = {}

local function fetch(keys)
  if #keys == 0 then return end
  local found = redis.call('MGET', unpack(keys))
  for at, key in ipairs(keys) do values[key] = found[at] end
end

local function value_at(key)
  if values[key] == nil then fetch({ key }) end
  return values[key]
end

-- Writes a value; what follows it says how long it stays.
local function put(key, value, ...)
  redis.call('SET', key, value, ...)
  values[key] = value
end

-- Records are numbers and texts, one after the other by a form that begins with a mark of its kind. Bytes behind them were
-- added by a later version, and are written back as they are. Of a key that is not there, nothing is read.
local function is_there(key)
  if value_at(key) then return true end
  if redis.call('EXISTS', key) == 1 then broken(key) end
  return false
end

local call_key = P .. ':call:' .. CALL
