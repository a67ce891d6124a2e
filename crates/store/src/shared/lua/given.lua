-- What a script is given as one packed table: A.
local A = cmsgpack.unpack(ARGV[1])
local P, CALL, NODE, FRESH, NOW = A.p, A.call, A.node, A.fresh, A.now
