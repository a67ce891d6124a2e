-- Clues to runs: a key each, which holds the run's id, or nothing when several runs left it behind. Offers: a packed list
-- of runs each, of which a claim takes the newest.

local function clue_key(clue)
  return P .. ':c:' .. clue
end

local function offer_key(clue)
  return P .. ':o:' .. clue
end

-- Adds the keys of what a call leaves, as far as that depends on what is there, to be read with others.
local function add_left(keys, left)
  for _, clue in ipairs(left.unless or {}) do keys[#keys + 1] = clue_key(clue) end
  for _, clue in ipairs(left.withdrawn or {}) do keys[#keys + 1] = offer_key(clue) end
  for _, clue in ipairs(left.offers or {}) do keys[#keys + 1] = offer_key(clue) end
end

-- Runs that are offered, the newest last. A key that holds something else offers nothing.
local function offers_at(key)
  local value = value_at(key)
  local is_read, offers = pcall(cmsgpack.unpack, value or '\144')
  return is_read and type(offers) == 'table' and offers or {}
end

local function put_offers(key, offers)
  if #offers > 0 then
    put(key, cmsgpack.pack(offers), 'PX', CLUE_TTL)
  else
    redis.call('DEL', key)
    values[key] = false
  end
end

local function without(offers, id)
  local others = {}
  for _, offered in ipairs(offers) do
    if offered ~= id then others[#others + 1] = offered end
  end
  return others
end

local function remember(left, id)
  for _, clue in ipairs(left.clues or {}) do
    put(clue_key(clue), id, 'PX', CLUE_TTL)
  end
  for _, clue in ipairs(left.unless or {}) do
    local key = clue_key(clue)
    local known = value_at(key)
    put(key, (not known or known == id) and id or '', 'PX', CLUE_TTL)
  end
  for _, clue in ipairs(left.withdrawn or {}) do
    local key = offer_key(clue)
    if value_at(key) then put_offers(key, without(offers_at(key), id)) end
  end
  for _, clue in ipairs(left.offers or {}) do
    local key = offer_key(clue)
    local offers = without(offers_at(key), id)
    if #offers >= OFFERS then table.remove(offers, 1) end
    offers[#offers + 1] = id
    put_offers(key, offers)
  end
end
