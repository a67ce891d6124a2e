-- Money for a call that has begun.

local value = redis.call('GET', call_key)
local had = value and value ~= '' and cmsgpack.unpack(value) or { at = now, taken = {}, run = A.run }
-- What was set aside before is asked for anew.
local function give_up(purse, notes)
  if not purse or not purse.runs and #purse.draws == 0 then return end
  for _, note in ipairs(notes or {}) do
    if note.a > 0 then settle_account(note, 0) end
  end
end
give_up(A.money.force, had.force)
give_up(A.money.shadow, had.shadow)
local chain = had.run and chain_of(had.run) or nil
local in_force, shadow = take_money(A.money.force, A.money.shadow, A.money.amount, A.money.least, A.corrections, chain)
-- What was only noted in order to be charged is noted again.
if in_force then had.force = hold_money(in_force) end
if shadow then had.shadow = hold_money(shadow) end
redis.call('SET', call_key, cmsgpack.pack(had), 'PX', CALL_TTL)
return { money_reply(in_force), money_reply(shadow) }
