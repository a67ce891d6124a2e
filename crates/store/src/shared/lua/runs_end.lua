-- A call ends in its run.

-- Ends the call in its run, and in those above it. `had` is what began; without it only the money is added.
local function settle_run(run, had)
  local function settle(above)
    above.tc = above.tc + COST
    if IS_REFUSED then above.tr = above.tr + 1 end
    if IS_WITHDRAWN and had then above.ts = math.max(0, above.ts - 1) end
    touch(above)
  end
  if not IS_WITHDRAWN then
    run.c = run.c + COST
    run.u, run.f = run.u + UNPRICED, run.f + FAILED
    run.i, run.o = run.i + INPUT, run.o + OUTPUT
  elseif had then
    run.st = math.max(0, run.st - 1)
  end
  settle(run)
  if had then release(run, 1) end
  each_above(run, function(above)
    if not above.is_known then return false end
    settle(above)
    save_run(above)
  end)
  save_run(run)
end
