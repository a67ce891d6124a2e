-- Clues that a call brings: how each is looked up, in one letter (`k`nown, `c`laim, `r`etry), and its key among the arguments.

-- The run that the first clue leads to, the clue's place, and offers that are claimed by that: written later.
local function follow()
  local claimed = {}
  for place = 1, #HOWS do
    local how, key = string.sub(HOWS, place, place), ARGV[CLUES_AT + place - 1]
    if how == 'k' then
      local id = value_at(key)
      if id and id ~= '' then return id, place, claimed end
    elseif value_at(key) then
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
