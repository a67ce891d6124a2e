-- Looks at an account, corrects it, or lets it begin anew. A correction counts once, however often it is told.

local a = load_account(A.k)
if A.what == 'look' then return a and told(0, a) end
local mark = P .. ':corrected:' .. CALL
local is_told = redis.call('EXISTS', mark) == 1
-- Everything was lost, and this node knows what it had heard of the account.
if not a and A.heard then a = open_account(A) end
if not a or a == 'unseeded' or a.f ~= A.f then return false end
if not is_told then
  local amount = A.what == 'reset' and -a.s or A.amount
  a.s = math.max(0, a.s + amount)
  -- Nodes remember what they heard: that it is less now is no loss.
  if amount < 0 then a.v, a.is_changed = a.v + 1, true end
  save_account(a)
  redis.call('SET', mark, '1', 'PX', DAY)
end
return told(0, a)
