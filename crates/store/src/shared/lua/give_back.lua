-- A part of what a call took is given back while it goes on: another part, elsewhere, was refused.

local value = redis.call('GET', call_key)
local had = value and value ~= '' and cmsgpack.unpack(value) or nil
if not had then return 0 end
if A.rates then
  local _, _, correct_rates = rates_here()
  correct_rates(had.taken, nil)
  had.taken = {}
  if had['repeat'] then
    local _, uncount_repeat = repeats_here()
    uncount_repeat(had['repeat'])
  end
  had['repeat'] = nil
end
for name, is_given in pairs({ force = A.force, shadow = A.shadow }) do
  for _, note in ipairs(is_given and had[name] or {}) do
    settle_account(note, 0)
    note.a = 0
  end
end
redis.call('SET', call_key, cmsgpack.pack(had), 'PX', CALL_TTL)
return 1
