-- Rates: windows cut into slots, and buckets. The same counts as in core::policy::rate.
--
-- A window is kept as the number of its newest slot, the sum of all, and the counts of all slots; a bucket as its level
-- and its time. Most calls come in the newest slot, so the others are only read where they are needed.
-- Its functions are made only where a call needs them.

local function rates_here()
  local SLOTS = 32
  local HEAD = 16
  local WINDOW_BYTES = HEAD + 4 * SLOTS
  local MOST = 4294967295
  -- No counter is kept for longer than this without a call, however slowly it fills or empties.
  local LONGEST = 400 * DAY

  local function slot_ms(window)
    return math.max(1, math.ceil(window / (SLOTS - 1)))
  end

  local function index(slot)
    return slot % SLOTS
  end

  -- Reads all slots.
  local function spread(counter)
    if counter.counts then return end
    local read = { struct.unpack('<' .. string.rep('I4', SLOTS), counter.slots) }
    counter.counts = {}
    for at = 0, SLOTS - 1 do counter.counts[at] = read[at + 1] end
  end

  local function change_count(counter, at, count)
    if counter.counts then
      counter.sum = counter.sum + count - counter.counts[at]
      counter.counts[at] = count
      return
    end
    counter.sum = counter.sum + count - struct.unpack('<I4', counter.slots, 4 * at + 1)
    local before, after = string.sub(counter.slots, 1, 4 * at), string.sub(counter.slots, 4 * at + 5)
    counter.slots = before .. struct.pack('<I4', count) .. after
  end

  -- The window at this moment; for a correction as it was left.
  local function load_window(key, window, is_still)
    local slot = math.floor(now / slot_ms(window))
    local value = value_at(key)
    if not value then
      return { key = key, window = window, newest = slot, sum = 0, slots = string.rep('\0', 4 * SLOTS), is_gone = true }
    end
    if #value ~= WINDOW_BYTES then broken(key) end
    local newest, sum = struct.unpack('<dd', value)
    local counter = { key = key, window = window, newest = newest, sum = sum, slots = string.sub(value, HEAD + 1) }
    local passed = is_still and 0 or slot - newest
    -- Looking moves it on, as in memory: a clock that goes back finds it there.
    counter.is_changed = passed > 0 or passed <= -SLOTS
    if passed > 0 then
      if passed > 3 then spread(counter) end
      for left = 1, math.min(passed, SLOTS) do change_count(counter, index(newest + left), 0) end
      counter.newest = slot
    elseif passed <= -SLOTS then
      -- The clock went back. What was counted stays for one more window.
      spread(counter)
      local shift, turned = index(newest - slot), {}
      for at = 0, SLOTS - 1 do turned[at] = counter.counts[(at + shift) % SLOTS] end
      counter.counts, counter.newest = turned, slot
    end
    return counter
  end

  local function save_window(counter)
    local slots = counter.slots
    if counter.counts then slots = struct.pack('<' .. string.rep('I4', SLOTS), counter.counts[0], unpack(counter.counts)) end
    local value = struct.pack('<dd', counter.newest, counter.sum) .. slots
    put(counter.key, value, 'PX', int(math.min(2 * counter.window + 1000, LONGEST)))
  end

  local function change_slot(counter, slot, difference)
    local at = index(slot)
    local count = counter.counts and counter.counts[at] or struct.unpack('<I4', counter.slots, 4 * at + 1)
    change_count(counter, at, math.min(MOST, math.max(0, count + difference)))
  end

  -- When so much has left the window, the oldest first.
  local function leaves_after(counter, amount)
    spread(counter)
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
    local value = value_at(key)
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
    local ttl = math.min(math.ceil(bucket.burst / bucket.rps * 1000) + 60000, LONGEST)
    put(bucket.key, struct.pack('<dd', bucket.level, bucket.at), 'PX', int(ttl))
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
      local current = counter.sum
      if current + ask.a <= ask.l then return nil end
      return { ask.i, string.format('%.17g', current), leaves_after(counter, current + ask.a - ask.l) }
    end
    local missing = ask.a - counter.level
    if missing <= 1e-9 then return nil end
    local wait = math.min(math.ceil(missing / ask.rps * 1000), LONGEST)
    return { ask.i, string.format('%.17g', ask.burst - counter.level), wait }
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

  return take_rates, save_rates, correct_rates
end
