-- A call ends in its run.

-- Ends a call of a run, and of those above it. `had` is what began; without it only the money is added.
local function settle_run(run, how, had)
  local function settle(above)
    above.tc = above.tc + how.cost
    if how.is_refused then above.tr = above.tr + 1 end
    if how.is_withdrawn and had then above.ts = math.max(0, above.ts - 1) end
    touch(above)
  end
  if not how.is_withdrawn then
    run.c = run.c + how.cost
    run.u, run.f = run.u + (how.unpriced or 0), run.f + (how.failed or 0)
    run.i, run.o = run.i + how.input, run.o + how.output
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
  return run
end
