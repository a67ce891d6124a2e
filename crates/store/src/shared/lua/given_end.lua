-- What `end` is given: packed values one after the other, as packed/end.rs puts them. Then come bytes that no script reads, and from
-- KEYS_AT on the keys that it reads: READS of them, the last LATES those of accounts that the call did not draw on.
local P, CALL, NODE, FRESH, NOW, KEYS_AT, READS, LATES, IS_OF_AGENT, RUN_ID, BORN, IS_AGAIN, USED, UNCOUNTS,
  COST, INPUT, OUTPUT, UNPRICED, FAILED, IS_REFUSED, IS_WITHDRAWN,
  LEFT_CLUES, LEFT_UNLESS, LEFT_WITHDRAWN, LEFT_OFFERS, BASED, WATCH, AGENT_BASED, AGENT_WATCH, HABITS, MODEL, OF_MODEL, ACCOUNTS =
  cmsgpack.unpack(ARGV[1])
