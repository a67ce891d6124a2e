-- What `begin` is given: packed values one after the other, as packed/begin.rs puts them. Further arguments are the keys that it reads:
-- READS of them, and from CLUES_AT on one for each of the clues that the call brings. At ORIGINS stands how a run is recognised by each clue.
-- FOLLOWS is the key that is there when the answer is over that the call goes on from; empty where nobody knows that key, and nothing where it
-- may begin in any case.
local P, CALL, NODE, FRESH, NOW, READS, IS_OF_AGENT, AGENT_WATCH, HABITS,
  RUN_ID, ORIGIN, PARENT, SEED, LINEAGE, HOWS, ORIGINS, CLUES_AT, HAVE_ID, HAVE_VERSION, FOLLOWS, LEFT_CLUES, LEFT_OFFERS,
  RATES, REPEATED, AMOUNT, LEAST, FORCE, SHADOW, CORRECTIONS =
  cmsgpack.unpack(ARGV[1])
