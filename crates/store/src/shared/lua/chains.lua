-- The runs of a call, from it upwards, for accounts.
local function chain_of(id)
  local run = load_run(id)
  run.spent = run.tc
  local chain = { run }
  each_above(run, function(above)
    above.spent = above.tc
    chain[#chain + 1] = above
  end)
  return chain
end
