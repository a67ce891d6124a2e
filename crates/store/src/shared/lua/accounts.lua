-- Looks at an account, corrects it, or lets it begin anew.

local a = load_account(A.k)
if not a then return false end
if A.what ~= 'look' then
  local amount = A.what == 'reset' and -a.s or A.amount
  a.s = math.max(0, a.s + amount)
  -- Nodes remember what they heard: that it is less now is no loss.
  if amount < 0 then a.v, a.is_changed = a.v + 1, true end
  save_account(a)
end
return told(0, a)
