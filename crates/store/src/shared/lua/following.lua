-- Clues that a call brings: how each is looked up, in one letter before its hash, and how a run that it leads to was
-- recognised.

-- Adds the keys of what a call brings, to be read with others.
local function add_brought(keys, clues)
  for _, clue in ipairs(clues) do
    local how, hash = string.sub(clue[1], 1, 1), string.sub(clue[1], 2)
    keys[#keys + 1] = how == 'k' and clue_key(hash) or offer_key(hash)
  end
end

-- The run that the first clue leads to, the clue's place, and offers that are claimed by that: written later.
local function follow(clues)
  local claimed = {}
  for place, clue in ipairs(clues) do
    local how, hash = string.sub(clue[1], 1, 1), string.sub(clue[1], 2)
    if how == 'k' then
      local id = value_at(clue_key(hash))
      if id and id ~= '' then return id, place, claimed end
    else
      local key = offer_key(hash)
      local offers = offers_at(key)
      local id = table.remove(offers)
      if id then claimed[#claimed + 1] = { key, offers } end
      if id and how == 'r' then
        -- A retry comes soon.
        local last = load_run(id).la
        if now - last > RETRY_MS then id = nil end
      end
      if id then return id, place, claimed end
    end
  end
  return nil, nil, claimed
end
