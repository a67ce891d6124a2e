-- Gives back what a call held of an account and adds what it cost. What was booked for this node while it was quiet
-- counts towards that.
local function settle_account(note, cost)
  local a = load_account(note.k)
  if not a then return nil end
  local before = a.s
  if a.g == note.g then
    local missing = note.a - (note.a > 0 and release(a, note.a) or 0)
    local booked = 0
    if missing > 0 then
      booked = math.min(missing, (booked_for(a, NODE)))
      if booked > 0 then book(a, NODE, -booked) end
    end
    a.s = math.max(0, a.s + cost - booked)
  elseif a.f == note.f then
    -- It was lost and opened again: there is nothing to give back.
    a.s = a.s + cost
  else
    return nil
  end
  save_account(a)
  return { note.k, before, a.s, a.r, a.g, a.v, a.f }
end
