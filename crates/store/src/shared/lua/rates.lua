-- Rates: windows cut into slots, and buckets. The same counts as in core::policy::rate.
--
-- A window is kept as the number of its newest slot and the counts of all slots; a bucket as its level and its time.

local SLOTS = 32
local WINDOW = '<d' .. string.rep('I4', SLOTS)
local WINDOW_BYTES = 8 + 4 * SLOTS
local MOST = 4294967295

local function slot_ms(window)
  return math.max(1, math.ceil(window / (SLOTS - 1)))
end

local function index(slot)
  return slot % SLOTS + 1
end

-- The window at this moment; for a correction as it was left.
local function load_window(key, window, is_still)
  local slot = math.floor(now / slot_ms(window))
  local value = redis.call('GET', key)
  local counter = { key = key, window = window, newest = slot, counts = {} }
  if not value then
    counter.is_gone = true
    for at = 1, SLOTS do counter.counts[at] = 0 end
    return counter
  end
  if #value ~= WINDOW_BYTES then broken(key) end
  local v = { struct.unpack(WINDOW, value) }
  local newest = v[1]
  for at = 1, SLOTS do counter.counts[at] = v[at + 1] end
  local passed = is_still and 0 or slot - newest
  -- Looking moves it on, as in memory: a clock that goes back finds it there.
  counter.is_changed = passed ~= 0
  if passed > 0 then
    for left = 1, math.min(passed, SLOTS) do counter.counts[index(newest + left)] = 0 end
  elseif passed <= -SLOTS then
    -- The clock went back. What was counted stays for one more window.
    local shift, turned = (newest - slot) % SLOTS, {}
    for at = 0, SLOTS - 1 do turned[at + 1] = counter.counts[(at + shift) % SLOTS + 1] end
    counter.counts = turned
  else
    counter.newest = newest
  end
  return counter
end

local function save_window(counter)
  redis.call('SET', counter.key, struct.pack(WINDOW, counter.newest, unpack(counter.counts)), 'PX', int(2 * counter.window + 1000))
end

local function change_slot(counter, slot, difference)
  local at = index(slot)
  counter.counts[at] = math.min(MOST, math.max(0, counter.counts[at] + difference))
end

local function total(counter)
  local sum = 0
  for at = 1, SLOTS do sum = sum + counter.counts[at] end
  return sum
end

-- When so much has left the window, the oldest first.
local function leaves_after(counter, amount)
  local left, last = 0, counter.newest
  for slot = counter.newest - SLOTS + 1, counter.newest do
    left = left + counter.counts[index(slot)]
    if left >= amount then
      last = slot
      break
    end
  end
  return math.max(1, (last + SLOTS) * slot_ms(counter.window) - now)
end

local function load_bucket(key, rps, burst)
  local value = redis.call('GET', key)
  local bucket = { key = key, level = burst, at = now, rps = rps, burst = burst }
  if not value then return bucket end
  if #value ~= 16 then broken(key) end
  bucket.level, bucket.at = struct.unpack('<dd', value)
  local to_fill = burst / rps * 1000
  if bucket.at - now > math.max(to_fill, 1000) then bucket.at = now end
  local passed = now - bucket.at
  if passed > 0 then
    bucket.level = math.min(burst, bucket.level + passed / 1000 * rps)
    bucket.at = now
    bucket.is_changed = true
  end
  return bucket
end

local function save_bucket(bucket)
  local ttl = math.ceil(bucket.burst / bucket.rps * 1000) + 60000
  redis.call('SET', bucket.key, struct.pack('<dd', bucket.level, bucket.at), 'PX', int(ttl))
end

local counters = {}

local function counter_of(ask, is_still)
  local counter = counters[ask.k]
  if not counter then
    counter = ask.w and load_window(ask.k, ask.w, is_still) or load_bucket(ask.k, ask.rps, ask.burst)
    counters[ask.k] = counter
  end
  return counter
end

-- Nothing where there is room; else what is counted and when there could be.
local function check_rate(ask)
  local counter = counter_of(ask)
  if ask.w then
    local current = total(counter)
    if current + ask.a <= ask.l then return nil end
    return { ask.i, string.format('%.17g', current), leaves_after(counter, current + ask.a - ask.l) }
  end
  local missing = ask.a - counter.level
  if missing <= 1e-9 then return nil end
  return { ask.i, string.format('%.17g', ask.burst - counter.level), math.ceil(missing / ask.rps * 1000) }
end

-- Counts in memory of this script; what was taken is noted for the end of the call.
local function add_rate(ask, taken)
  local counter = counter_of(ask)
  counter.is_changed = true
  if ask.w then
    change_slot(counter, counter.newest, ask.a)
    local slot = math.floor(now / slot_ms(ask.w))
    taken[#taken + 1] = { k = ask.k, w = ask.w, slot = slot, a = ask.a, tokens = ask.tokens }
  else
    counter.level = math.max(0, counter.level - ask.a)
    taken[#taken + 1] = { k = ask.k, rps = ask.rps, burst = ask.burst, a = ask.a }
  end
end

-- All in force or none; those in shadow for themselves.
local function take_rates(asks)
  local refused, would, taken = false, {}, {}
  for _, ask in ipairs(asks) do
    if not ask.shadow then
      local no = check_rate(ask)
      if no then
        refused = no
        break
      end
    end
  end
  for _, ask in ipairs(asks) do
    if ask.shadow then
      local no = check_rate(ask)
      if no then would[#would + 1] = no elseif not refused then add_rate(ask, taken) end
    end
  end
  if not refused then
    for _, ask in ipairs(asks) do
      if not ask.shadow then add_rate(ask, taken) end
    end
  end
  return refused, would, taken
end

local function save_rates()
  for _, counter in pairs(counters) do
    if counter.is_changed then
      if counter.window then save_window(counter) else save_bucket(counter) end
    end
  end
end

-- Corrects what was taken by what was used; `used` is nothing where all of it is given back.
local function correct_rates(taken, used)
  for _, one in ipairs(taken) do
    if one.w and (one.tokens or not used) then
      local counter = counter_of(one, true)
      local slot = math.min(one.slot, counter.newest)
      -- One that is gone counted nothing any more.
      if not counter.is_gone and counter.newest - slot < SLOTS then
        change_slot(counter, slot, (used or 0) - one.a)
        counter.is_changed = true
      end
    elseif one.rps and not used then
      local counter = counter_of(one)
      counter.level = math.min(one.burst, counter.level + one.a)
      counter.is_changed = true
    end
  end
  save_rates()
end
