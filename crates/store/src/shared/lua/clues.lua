-- Clues to runs: a key each, which holds the run's id, or nothing when several runs left it behind. Offers: a list of
-- runs each, of which a claim takes the newest.

local function clue_key(clue)
  return P .. ':c:' .. clue
end

local function offer_key(clue)
  return P .. ':o:' .. clue
end

-- The run that the first clue leads to, and the clue's place.
local function follow(clues)
  for place, clue in ipairs(clues) do
    if clue.l == 'k' then
      local id = redis.call('GET', clue_key(clue.h))
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
    redis.call('SET', clue_key(clue), id, 'PX', CLUE_TTL)
  end
  for _, clue in ipairs(left.unless or {}) do
    local known = redis.pcall('GET', clue_key(clue))
    if not known or known == id then known = id else known = '' end
    redis.call('SET', clue_key(clue), known, 'PX', CLUE_TTL)
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
