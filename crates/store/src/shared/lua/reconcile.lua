-- What a node did by itself while it could not be heard. Counts once.

local mark = P .. ':missed:' .. CALL
if redis.call('EXISTS', mark) == 1 then return 0 end
for _, missed in ipairs(A.runs) do
  local run = load_run(missed.id)
  local t = missed.added
  if not run.is_known then
    take_totals(run, missed.known)
    run.is_opened, run.parent, run.origin = true, missed.parent, missed.origin
  else
    run.st, run.c, run.ts, run.tc, run.tr = run.st + t[1], run.c + t[2], run.ts + t[3], run.tc + t[4], run.tr + t[5]
    run.i, run.o, run.u, run.f = run.i + t[6], run.o + t[7], run.u + t[8], run.f + t[9]
    run.la = math.max(run.la, t[11])
    if not run.parent and missed.parent ~= missed.id then run.parent = missed.parent end
    run.origin, run.is_opened = run.origin or missed.origin, true
  end
  save_run(run)
  each_above(run, function(above)
    if not above.is_known then return false end
    above.ts, above.tc, above.tr = above.ts + t[3], above.tc + t[4], above.tr + t[5]
    above.la = math.max(above.la, t[11])
    save_run(above)
  end)
end
local heard = {}
for _, missed in ipairs(A.accounts) do
  local a = load_account(missed.k)
  if not a or missed.f >= a.e then a = open_account(missed) end
  if a and a ~= 'unseeded' and a ~= 'later' and a.f == missed.f then
    if not a.is_changed then a = open_account(missed) end
    a.s = a.s + (missed.spent or 0)
    save_account(a)
    heard[#heard + 1] = { missed.k, 0, a.s, a.r, a.g, a.v, a.f }
  end
end
redis.call('SET', mark, '1', 'PX', DAY)
return heard
