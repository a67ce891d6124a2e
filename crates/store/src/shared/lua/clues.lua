-- Clues to runs: a field each, which holds the run's id, or nothing when several runs left it behind. Those that begin
-- alike lie together, because a key of its own would take five times the room; by the hour in which they were left, so
-- that they go together. Offers: a list of runs each, of which a claim takes the newest.

local function clue_place(clue, age)
  local hour = math.floor(now / CLUE_TTL) - age
  return P .. ':c:' .. int(hour) .. ':' .. string.sub(clue, 1, 3), string.sub(clue, 4)
end

-- The run of a clue that was left in this hour or in the one before.
local function known_clue(clue)
  local id = redis.call('HGET', clue_place(clue, 0))
  return id or redis.call('HGET', clue_place(clue, 1))
end

local function keep_clue(clue, id)
  local key, field = clue_place(clue, 0)
  redis.pcall('HSET', key, field, id)
  redis.pcall('PEXPIRE', key, 2 * CLUE_TTL)
end

local function offer_key(clue)
  return P .. ':o:' .. clue
end

-- The run that the first clue leads to, and the clue's place.
local function follow(clues)
  for place, clue in ipairs(clues) do
    if clue.l == 'k' then
      local id = known_clue(clue.h)
      if id and id ~= '' then return id, place end
    else
      local id = redis.call('RPOP', offer_key(clue.h))
      if id and clue.l == 'r' then
        -- A retry comes soon.
        local last = tonumber(redis.call('HGET', run_key(id), 'la') or nil)
        if not last or now - last > RETRY_MS then id = false end
      end
      if id then return id, place end
    end
  end
  return nil
end

-- A clue whose key holds something else is lost; it is no reason to stop halfway.
local function remember(left, id)
  for _, clue in ipairs(left.clues or {}) do
    keep_clue(clue, id)
  end
  for _, clue in ipairs(left.unless or {}) do
    local known = known_clue(clue)
    keep_clue(clue, (not known or known == id) and id or '')
  end
  for _, clue in ipairs(left.withdrawn or {}) do
    redis.pcall('LREM', offer_key(clue), 0, id)
  end
  for _, clue in ipairs(left.offers or {}) do
    local key = offer_key(clue)
    redis.pcall('LREM', key, 0, id)
    local offers = redis.pcall('RPUSH', key, id)
    if type(offers) == 'number' and offers > OFFERS then redis.pcall('LTRIM', key, -OFFERS, -1) end
    redis.pcall('PEXPIRE', key, CLUE_TTL)
  end
end
