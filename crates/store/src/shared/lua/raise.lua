-- More money for a call under way, on all its accounts in force or on none.

local value = redis.call('GET', call_key)
local had = value and value ~= '' and cmsgpack.unpack(value) or nil
-- Everything was lost since: its cost is booked when it ends.
if not had then return { 1 } end
local limits, rises = {}, {}
for _, d in ipairs(A.draws) do
  limits[d.k] = math.min(limits[d.k] or d.l, d.l)
end
for _, note in ipairs(had.force or {}) do
  local more = A.amount - note.a
  local a = load_account(note.k)
  if a and a.g == note.g and more > 0 then
    if limits[note.k] and more > limits[note.k] - a.s - a.r then
      return { 2, note.k, a.s, math.max(0, a.r - note.a), a.f, a.e }
    end
    rises[#rises + 1] = { a = a, note = note, more = more }
  end
end
for _, rise in ipairs(rises) do
  hold(rise.a, rise.more)
  save_account(rise.a)
  rise.note.a = A.amount
end
redis.call('SET', call_key, cmsgpack.pack(had), 'PX', CALL_TTL)
return { 1 }
