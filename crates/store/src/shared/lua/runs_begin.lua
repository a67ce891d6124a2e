-- A call begins in its run.

-- Counts a call in a run and in those above it. Writes nothing. Gives what it was before, and the chain.
local function open_run(asked)
  local run = load_run(asked.id)
  local is_new = not run.is_opened and not asked.seed
  if not run.is_opened then
    run.is_opened = true
    if asked.seed then
      local below = { run.ts, run.tc, run.tr, run.la }
      take_totals(run, asked.seed)
      run.ts, run.tc = math.max(run.ts, below[1]), math.max(run.tc, below[2])
      run.tr, run.la = math.max(run.tr, below[3]), math.max(run.la, below[4])
    elseif not run.origin then
      run.fa = now
    end
  end
  if not run.parent and asked.parent and asked.parent ~= asked.id then run.parent = asked.parent end
  run.origin = asked.origin
  local before = totals_of(run)
  local chain = { run }
  -- What its account begins with, should it not be open: this call is not in it.
  run.spent = run.tc
  run.st, run.ts = run.st + 1, run.ts + 1
  touch(run)
  each_above(run, function(above)
    if not above.origin and asked.lineage then
      for place, known in ipairs(asked.lineage) do
        if known.id == above.id then
          if known.totals then take_totals(above, known.totals) end
          local next = asked.lineage[place + 1]
          above.parent = next and next.id or nil
          break
        end
      end
    end
    if not above.origin and above.fa == 0 then above.fa = now end
    above.origin = above.origin or asked.origin
    above.spent = above.tc
    above.ts = above.ts + 1
    touch(above)
    chain[#chain + 1] = above
  end)
  return is_new, before, chain
end
