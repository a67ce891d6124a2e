-- A sign of life lets nobody be lost, least of all the node that gives it.

local function lose()
  return 0
end
