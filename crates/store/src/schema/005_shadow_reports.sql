-- What rules in shadow would have done lately, without a walk over all events.
CREATE INDEX events_shadow_newest ON events (at) WHERE shadow IS NOT NULL;
