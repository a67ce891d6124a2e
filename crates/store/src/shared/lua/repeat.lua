-- Identical requests. The same counts as in core::loops::repeat. Kept as the count, the moment and the number of the
-- latest, and, for sliding windows, the moments.
-- Its functions are made only where a call needs them.

local function repeats_here()
  local function load_repeat(key)
    local value = value_at(key)
    if not value then return { count = 0, at = 0, hit = 0, moments = {} } end
    if #value < 24 or #value % 8 ~= 0 then broken(key) end
    local v = { struct.unpack('<' .. string.rep('d', #value / 8), value) }
    local counter = { count = v[1], at = v[2], hit = v[3], moments = {} }
    for at = 4, #value / 8 do counter.moments[at - 3] = v[at] end
    return counter
  end

  local function save_repeat(ask, counter)
    local form = '<ddd' .. string.rep('d', #counter.moments)
    local value = struct.pack(form, counter.count, counter.at, counter.hit, unpack(counter.moments))
    local ttl = DAY
    if ask.seconds > 0 then ttl = 2000 * ask.seconds end
    put(ask.k, value, 'PX', int(ttl))
  end

  local function reaches(ask, at)
    local span = ask.seconds * 1000
    if span == 0 then return true end
    if ask.mode == 'fixed' then return math.floor(now / span) == math.floor(at / span) end
    return now - at < span
  end

  local function count_repeat(ask)
    local counter = load_repeat(ask.k)
    local hit = 0
    if ask.requests > 0 then
      hit = redis.call('INCR', ask.hits)
      redis.call('PEXPIRE', ask.hits, DAY)
      if counter.count > 0 and hit - counter.hit > ask.requests then
        counter = { count = 0, at = 0, hit = 0, moments = {} }
      end
    end
    if ask.seconds > 0 and ask.mode == 'sliding' then
      local kept = {}
      for _, at in ipairs(counter.moments) do
        if reaches(ask, at) then kept[#kept + 1] = at end
      end
      while #kept >= MOMENTS do table.remove(kept, 1) end
      kept[#kept + 1] = now
      counter.moments, counter.count = kept, #kept
    else
      if counter.count > 0 and not reaches(ask, counter.at) then counter.count = 0 end
      counter.count = counter.count + 1
    end
    counter.at, counter.hit = now, hit
    save_repeat(ask, counter)
    return counter.count
  end

  -- The call does not count after all.
  local function uncount_repeat(ask)
    local counter = load_repeat(ask.k)
    if counter.count < 1 then return end
    counter.count = counter.count - 1
    table.remove(counter.moments)
    save_repeat(ask, counter)
  end

  return count_repeat, uncount_repeat
end
