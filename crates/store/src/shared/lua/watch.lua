-- What detection keeps of a run or an agent: sixteen digits of version, then the packed value, which no script reads.

local function watch_key(id)
  if id then return P .. ':watch:' .. id end
  return P .. ':agent-watch'
end
