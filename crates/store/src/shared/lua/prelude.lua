-- What every script begins with: its argument, the time, and how numbers are read and written.
--
-- Bounds stand before it: TREE_DEPTH, OFFERS, RETRY_MS and MOMENTS, which the program has too, and how long things are
-- kept that nobody uses: RUN_TTL, CLUE_TTL, CALL_TTL.
-- A is the first argument, a packed table; others are what no script reads. P is the beginning of all keys with this call's tag. Numbers stay below 2^53.
-- A script reads and checks everything before it writes anything: a key that holds what nobody understands ends the
-- script with an error while nothing is changed.

local A = cmsgpack.unpack(ARGV[1])
local P = A.p
local NODE = A.node
local DAY = 86400000

local now = A.now
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

local function number(value, key)
  local read = tonumber(value)
  if not read then broken(key) end
  return read
end

-- A number that may be missing.
local function count(value, key)
  if not value then return 0 end
  return number(value, key)
end

local function call_key()
  return P .. ':call:' .. A.call
end
