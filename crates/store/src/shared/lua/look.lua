-- A run as it stands.

local run = load_run(A.run)
if not run.is_known then return false end
return { totals_of(run), run.is_opened and 1 or 0, run.r }
