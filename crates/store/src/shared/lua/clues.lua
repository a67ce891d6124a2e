-- Clues to runs: a key each, which holds the run's id, or nothing when several runs left it behind. Offers: a packed list
-- of runs each, of which a claim takes the newest. What a call leaves are hashes of sixteen digits, one after the other.

-- Runs that are offered, the newest last. A key that holds something else offers nothing.
local function offers_at(key)
  local value = value_at(key)
  if not value then return {} end
  local is_read, offers = pcall(cmsgpack.unpack, value)
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

local function remember(clues, unless, withdrawn, offers, id)
  for at = 1, #clues, 16 do put(P .. ':c:' .. string.sub(clues, at, at + 15), id, 'PX', CLUE_TTL) end
  for at = 1, #unless, 16 do
    local key = P .. ':c:' .. string.sub(unless, at, at + 15)
    local known = value_at(key)
    put(key, (not known or known == id) and id or '', 'PX', CLUE_TTL)
  end
  for at = 1, #withdrawn, 16 do
    local key = P .. ':o:' .. string.sub(withdrawn, at, at + 15)
    if value_at(key) then put_offers(key, without(offers_at(key), id)) end
  end
  for at = 1, #offers, 16 do
    local key = P .. ':o:' .. string.sub(offers, at, at + 15)
    local offered = without(offers_at(key), id)
    if #offered >= OFFERS then table.remove(offered, 1) end
    offered[#offered + 1] = id
    put_offers(key, offered)
  end
end
