//! Bounds of everything that can grow, in one place.
//!
//! Each constant has a test at the bound and one past it, beside the code that uses it.

/// Longest run id, in characters.
pub const RUN_ID_CHARS: usize = 128;
/// Longest agent name, in bytes.
pub const AGENT_NAME_BYTES: usize = 64;
/// Largest request body, unless configured.
pub const BODY_BYTES: usize = 32 << 20;
/// Largest request body that is looked through for secrets while other nodes are asked about the call, which may be refused then.
pub const LOOK_AHEAD_BYTES: usize = 256 << 10;
/// Bytes still taken, and thrown away, of a request body that is too large, so that its sender reads the refusal.
pub const REFUSED_BODY_BYTES: usize = 256 << 20;
/// Largest event of a stream that is still read; a longer one passes unread.
pub const SSE_EVENT_BYTES: usize = 8 << 20;
/// Text of an answer kept for counting and fingerprints; what is beyond is counted in bytes only.
pub const REPLY_TEXT_BYTES: usize = 256 << 10;
/// Tool calls kept of one answer.
pub const REPLY_TOOL_CALLS: usize = 128;
/// Arguments kept of one tool call.
pub const TOOL_ARGUMENT_BYTES: usize = 64 << 10;
/// Largest JSON answer that is read; a larger one passes unread.
pub const JSON_REPLY_BYTES: usize = 32 << 20;
/// Pieces of evidence looked up to find the run of one request.
pub const RUN_CLUES: usize = 48;
/// Text of an answer, without white space, by which the answer is recognised when it comes back in a history.
pub const ANSWER_KEY_BYTES: usize = 64 << 10;
/// Runs that offer the same clue to whoever claims it; the oldest offer leaves first.
pub const CLUE_OFFERS: usize = 64;
/// Longest model name that is looked up or listed in a price table; a longer one has no price.
pub const MODEL_NAME_BYTES: usize = 256;
/// Largest price table.
pub const PRICE_TABLE_BYTES: usize = 4 << 20;
/// Most rows of a price table.
pub const PRICE_ROWS: usize = 20_000;
/// Most prices set in the configuration: the ones with a `*` are tried one after the other.
pub const PRICE_OVERRIDES: usize = 256;
/// Short words kept of one answer: its id, model and finish reason, and the id and name of a tool call.
pub const REPLY_WORD_BYTES: usize = 512;
/// An upstream's error message kept of one answer.
pub const REPLY_ERROR_BYTES: usize = 4 << 10;
/// Choices of one answer whose text is kept apart; the text of further ones is counted in bytes only.
pub const REPLY_CHOICES: usize = 128;
/// Elements read of one list inside an answer (choices, content parts, output items); further ones are skipped.
pub const REPLY_LIST_ITEMS: usize = 1024;
/// Requests that the scripted provider of the tests remembers.
pub const MOCK_LOG_REQUESTS: usize = 4096;
/// Bytes of request bodies that it remembers.
pub const MOCK_LOG_BYTES: usize = 256 << 20;
/// Largest request body that it reads: more than a proxy lets through, so that the proxy's own bound shows.
pub const MOCK_BODY_BYTES: usize = 2 * BODY_BYTES;
/// Answers that it can be asked to continue.
pub const MOCK_ANSWER_IDS: usize = 16_384;
/// Beginning of a conversation that it remembers with each of them.
pub const MOCK_OPENING_BYTES: usize = 4096;
/// Largest configuration file.
pub const CONFIG_BYTES: u64 = 1 << 20;
/// Largest file that holds a key or token.
pub const SECRET_FILE_BYTES: u64 = 16 << 10;
/// Providers, presets included.
pub const PROVIDERS: usize = 256;
/// Longest provider name, in bytes.
pub const PROVIDER_NAME_BYTES: usize = 64;
/// Headers that one provider's requests gain.
pub const PROVIDER_HEADERS: usize = 64;
/// Path rewrites of one provider.
pub const PROVIDER_REWRITES: usize = 64;
/// Bytes of events waiting on disk for the database, unless configured; beyond it only money is kept.
pub const SPOOL_BYTES: u64 = 1 << 30;
/// Bytes of events or sums that go to ClickHouse at once.
pub const CLICKHOUSE_BATCH_BYTES: usize = 16 << 20;
/// Bytes of one answer of ClickHouse: more than a page of the longest events.
pub const CLICKHOUSE_ANSWER_BYTES: u64 = 64 << 20;
/// Bytes of events that one command hands over to whoever has the data directory.
pub const HANDOVER_BYTES: u64 = 256 << 20;
/// Conversations of a command that its report tells apart; beyond it they are only counted.
pub const COMMAND_RUNS: usize = 10_000;
/// Stops that the report of a command tells one by one.
pub const COMMAND_STOPS: usize = 20;
/// Size at which a file of the spool is closed and another begun.
pub const SPOOL_SEGMENT_BYTES: u64 = 4 << 20;
/// Lines of the spool that may wait to be written together.
pub const SPOOL_NOTED_BYTES: usize = 64 << 10;
/// Money held in memory while the disk takes nothing.
pub const SPOOL_HELD_BYTES: usize = 4 << 20;
/// Lines of the spool, by their bytes there, that are kept in memory until the database has them.
pub const SPOOL_KEPT_BYTES: usize = 8 << 20;
/// Longest event on disk; of a longer one only the money is kept.
pub const EVENT_LINE_BYTES: usize = 64 << 10;
/// Most rows of one page of a listing.
pub const PAGE_ROWS: u32 = 500;
/// Runs of a shared history that are looked at for one page of their listing.
pub const LISTED_CANDIDATES: usize = 20_000;
/// Agents that are looked at for one page of their listing; what is rare among more is found on later pages.
pub const AGENTS_WALKED: usize = 50_000;
/// Names of agents that a page offers to whoever writes one.
pub const OFFERED_AGENTS: u32 = 200;
/// Idle connections kept for reading the database.
pub const IDLE_READERS: usize = 4;
/// Runs kept in memory; the idlest leave first.
pub const RUNS_IN_MEMORY: usize = 1 << 17;
/// Clues to runs kept in memory; the least recently used leave first. Seven eighths of a power of two fill the tables
/// that they lie in.
pub const CLUES_IN_MEMORY: usize = 7 << 16;
/// Generations of runs that a run's money and steps are added to.
pub const RUN_TREE_DEPTH: usize = 16;
/// Conversations whose reading is remembered; the least recently used leave first.
pub const HISTORY_MARKS: usize = 7 << 14;
/// Answers whose tokens are counted at once; those of further ones are estimated from their length.
pub const COUNTS_AT_ONCE: usize = 16;
/// Longest path that an event keeps.
pub const EVENT_PATH_BYTES: usize = 512;
/// Largest body that the admin listener reads.
pub const ADMIN_BODY_BYTES: usize = 64 << 10;
/// Browsers signed in at once; whoever has most of them signed in loses the oldest.
pub const ADMIN_SESSIONS: usize = 256;
/// Admin tokens made at run time, those that ended included; a further one is refused.
pub const ADMIN_TOKENS: usize = 1000;
/// Longest name of whom an admin token belongs to.
pub const OPERATOR_NAME_CHARS: usize = 64;
/// Wrong tokens that one address may offer in a minute.
pub const WRONG_TOKENS: u32 = 10;
/// Addresses whose wrong tokens are counted; the longest quiet are forgotten first.
pub const WRONG_TOKEN_PEERS: usize = 1024;
/// Pages and programs that follow what happens, at once.
pub const LIVE_FOLLOWERS: usize = 64;
/// Events that one of them may be behind before it misses some.
pub const LIVE_EVENTS: usize = 1024;
/// Readings of the history that the admin side does at once; further ones wait.
pub const ADMIN_READS: usize = 16;
/// Largest answer of the admin API that a command reads.
pub const COMMAND_ANSWER_BYTES: usize = 16 << 20;
/// Steps that a proof names.
pub const PROOF_STEPS: usize = 24;
/// Last requests of a run of which is known whether they were answered.
pub const ATTEMPTS: usize = 16;
/// Steps that a run gets after a strike before the next one counts.
pub const STRIKE_STEPS: u32 = 3;
/// Longest wait of a throttled request.
pub const THROTTLE_MS: u64 = 30_000;
/// Requests that wait in a throttle at once; further ones are refused.
pub const THROTTLED_REQUESTS: usize = 1024;
/// Agents whose requests are watched; the longest quiet are forgotten first.
pub const AGENTS_WATCHED: usize = 16_384;
/// Text that similarity is computed from; of a longer one the beginning and the end.
pub const COMPARED_TEXT_BYTES: usize = 32 << 10;
/// Last prompts of a run that are compared for exact repetition and oscillation.
pub const RUN_PROMPTS: usize = 32;
/// Last prompts of a run whose words are compared.
pub const SIMILAR_PROMPTS: usize = 4;
/// Words kept of a prompt: a prompt with more distinct words is compared by this sample.
pub const SKETCH_WORDS: usize = 64;
/// Last tool results of a run by which `similar` knows a result again.
pub const SIMILAR_RESULTS: usize = 16;
/// Most requests of an agent that `score` looks back on.
pub const SCORE_REQUESTS: usize = 100;
/// Identical requests counted at once by `repeat`; the longest unseen leave first.
pub const REPEAT_KEYS: usize = 1 << 16;
/// Moments kept by `repeat` for sliding windows, all requests together.
pub const REPEAT_MOMENTS: usize = 1 << 18;
/// Most identical requests that a sliding window counts: a throttle waits no longer than for as many.
pub const REPEAT_COUNT: usize = 300;
/// Longest passage whose repetition `chant` sees, in bytes.
pub const CHANT_PERIOD_BYTES: usize = 512;
/// Runs whose kill is on record; the oldest leave first.
pub const KILLED_RUNS: usize = 100_000;
/// Kills of agents, keys and descriptors; a further one is refused.
pub const WIDE_KILLS: usize = 1000;
/// Clues kept with the kill of a run, by which its requests are known again after a restart.
pub const KILL_CLUES: usize = 1024;
/// Runs that were resumed, with where they stood; the oldest leave first.
pub const RUN_MARKS: usize = 100_000;
/// Agents of which more is remembered than the configuration says; a further one is refused.
pub const AGENT_STANDINGS: usize = 100_000;
/// Longest reason of a kill.
pub const KILL_REASON_BYTES: usize = 512;
/// Longest name, value, key id or path that a kill names.
pub const KILL_VALUE_BYTES: usize = 256;
/// Longest `Retry-After`: some clients sleep it out. What a refusal's body says is not bounded.
pub const RETRY_AFTER_SECONDS: u32 = 60;
/// Longest text that can be configured for a refusal.
pub const REFUSAL_TEXT_BYTES: usize = 4 << 10;
/// Words of a text that its sketch keeps.
pub const EVIDENCE_WORDS: usize = 32;
/// Last steps of a run that its progress is judged by.
pub const PROGRESS_STEPS: usize = 24;
/// Conversations of one run that are told apart; the longest quiet leaves first.
pub const PROGRESS_THREADS: usize = 8;
/// Last steps of a run whose words are kept.
pub const PROGRESS_WORDED: usize = 12;
/// Tool names kept of one run for proofs.
pub const PROGRESS_TOOLS: usize = 16;
/// Bytes of all of them together.
pub const PROGRESS_TOOL_BYTES: usize = 256;
/// Bytes of the evidence of one step that is kept with its event.
pub const STEP_EVIDENCE_BYTES: usize = 512;
/// Steps that the picture of a run compares with each other, the last ones.
pub const PICTURE_STEPS: usize = 200;
/// Requests of a run that are judged again by other rules, the last ones.
pub const TRIED_REQUESTS: u32 = 2000;
/// Runs that other rules are tried on at once, the latest.
pub const TRIED_RUNS: u32 = 500;
/// Requests of all of them together.
pub const TRIED_REQUESTS_OF_ALL: usize = 50_000;
/// Refused calls of one stop that count as money saved: who asks in vain for hours has saved nothing more.
pub const SAVED_CALLS: u32 = 50;
/// Highest level of a detector, as a share of its threshold.
pub const LEVEL: f64 = 100.0;
/// Bytes kept of a tool's name.
pub const TOOL_NAME_BYTES: usize = 48;
/// Longest line that `sprag replay` reads: one recorded run, or one exchange.
pub const REPLAY_LINE_BYTES: usize = 256 << 20;
/// Recorded runs of one file that are followed at once; the longest quiet is taken to be over first.
pub const REPLAY_OPEN_RUNS: usize = 1024;
/// Complaints about lines of recorded runs that are written out; further ones are counted.
pub const REPLAY_COMPLAINTS: usize = 20;
/// The latest events that a report on rules in shadow looks at.
pub const SHADOW_EVENTS: u32 = 50_000;
/// The same in a history that many nodes share: each of them is a run that is looked for among the events of all.
pub const SHARED_SHADOW_EVENTS: u32 = 2000;
/// The latest calls with findings that a report on secrets and personal data looks at.
pub const FINDING_CALLS: u32 = 20_000;
/// Clues kept in memory with kills that the disk has refused so far, all together.
pub const UNWRITTEN_CLUES: usize = 1024 * 1024;
/// Runs of which a node sums up what it did while it could not reach the state that nodes share.
pub const ALONE_RUNS: usize = 1 << 15;
/// The same of accounts.
pub const ALONE_ACCOUNTS: usize = 1 << 15;
/// Clues that only one node knows, left while it could not tell the others.
pub const ALONE_CLUES: usize = 1 << 16;
/// Models whose first call under a budget is under way; calls to further ones do not wait for each other.
pub const PILOTS: usize = 1024;
/// Routes to other HTTP APIs.
pub const ROUTES: usize = 256;
/// Accounts of the ledger; the longest idle without calls under way leave first.
pub const LEDGER_ACCOUNTS: usize = 1 << 17;
/// Pairs of agent and model whose habits are remembered; the longest quiet leave first.
pub const HABITS: usize = 16_384;
/// Calls under way that are on record with the money set aside for them; further ones go on without.
pub const OPEN_CALLS: usize = 1 << 16;
/// Agents, and virtual keys, that one report of what was spent lists.
pub const SPENDERS: u32 = 100_000;
/// Corrections of what accounts have spent; those of the oldest windows leave first.
pub const ADJUSTMENTS: usize = 10_000;
/// Virtual keys, those that ended included; a further one is refused.
pub const VIRTUAL_KEYS: usize = 100_000;
/// Days that a virtual key is still listed after its end when room is needed.
pub const ENDED_KEY_DAYS: u32 = 90;
/// Longest time that the secret before a rotation still holds, in seconds.
pub const KEY_GRACE_SECONDS: u32 = 30 * 24 * 60 * 60;
/// Longest name of a virtual key.
pub const KEY_NAME_CHARS: usize = 64;
/// Windows of the hours in which an agent may call.
pub const HOURS_WINDOWS: usize = 64;
/// Patterns of one list of models.
pub const MODEL_PATTERNS: usize = 256;
/// Longest pattern of a model's name.
pub const MODEL_PATTERN_BYTES: usize = 256;
/// Stages of one budget.
pub const BUDGET_STAGES: usize = 16;
/// What can be set for one agent over the configuration, as JSON.
pub const AGENT_OVERRIDE_BYTES: usize = 64 << 10;
/// Rate limits of one list.
pub const RATE_RULES: usize = 32;
/// Limit keys of one rate limit.
pub const RATE_LIMIT_KEYS: usize = 8;
/// Longest name of a rate limit.
pub const RATE_NAME_BYTES: usize = 64;
/// Longest name of a header, parameter or claim that a rate limit is kept by.
pub const LIMIT_KEY_BYTES: usize = 256;
/// Most requests or tokens in a window that can be counted.
pub const RATE_LIMIT_MOST: u64 = 4_000_000_000;
/// Counters of rate limits in memory; the idle ones leave first, and then new values share one counter for each rule.
pub const RATE_BUCKETS: usize = 1 << 16;
/// Tokens of callers whose verification is remembered.
pub const JWT_CACHE: usize = 4096;
/// Longest token that is verified.
pub const JWT_BYTES: usize = 16 << 10;
/// Largest set of public keys, and most keys of it.
pub const JWKS_BYTES: u64 = 1 << 20;
/// Keys of one set.
pub const JWKS_KEYS: usize = 64;
/// Most bytes that detection keeps of a run that works, by default rules; of one that its caller did not name, three
/// quarters.
pub const RUN_BYTES: usize = 2048;
/// Most bytes of what detection keeps of a run, written down for another node; longer ones are not read.
pub const PACKED_RUN_BYTES: usize = 8 << 10;
/// The same of an agent.
pub const PACKED_AGENT_BYTES: usize = 8 << 10;
/// Models that one request may name: the one asked for and those to ask instead.
pub const FALLBACK_MODELS: usize = 16;
/// Places in which the ledger notes that accounts have changed; accounts that share one are read again for each other.
pub const LEDGER_EPOCHS: usize = 4096;
/// Values that one run can get back, and their bytes together; beyond that they are hidden for good.
pub const VAULT_VALUES: usize = 1024;
/// See [`VAULT_VALUES`].
pub const VAULT_BYTES: usize = 64 << 10;
/// Findings of one call that are put on record one by one; the others are counted.
pub const SIGHTINGS: usize = 32;
/// Longest path of a finding on record.
pub const SIGHTING_PATH_BYTES: usize = 200;
/// Objects and lists inside each other whose paths and rules are followed in a body; deeper texts are all looked at.
pub const JSON_DEPTH: usize = 128;
/// JSON inside strings inside JSON that is read as such; deeper it is plain text.
pub const JSON_LEVELS: usize = 3;
/// Messages and other items whose findings are remembered, so that they are not looked for again.
pub const SEEN_ITEMS: usize = 1 << 16;
/// Findings of all these items together.
pub const SEEN_FINDINGS: usize = 1 << 16;
/// Runs that can get something back; of more, those unused longest cannot.
pub const VAULTS: usize = 16 << 10;
/// Text of a stream that is held back until it is known what it is.
pub const STREAM_HELD_BYTES: usize = (16 << 10) + 1024;
/// Values in one event of a stream that are looked at one by one; of an event with more the text is looked at.
pub const EVENT_VALUES: usize = 1 << 16;
/// Deepest value of such an event, and of the arguments of a tool.
pub const EVENT_DEPTH: usize = 128;
/// Texts of one stream that are followed over its events; of further ones each event is looked at by itself.
pub const STREAM_FIELDS: usize = 256;
/// Longest placeholder that is put back: `[EMAIL_1]`.
pub const PLACEHOLDER_BYTES: usize = 64;
/// Longest number or word in the arguments of a tool; what is longer makes them plain text.
pub const ARGUMENT_SCALAR_BYTES: usize = 64;
/// Values of one answer that are remembered, by hash, in order to record them once.
pub const STREAM_NOTED: usize = 1024;
/// Values of one event that continue texts.
pub const EVENT_PARTS: usize = 1024;
/// Own patterns of what is to be hidden.
pub const PATTERNS: usize = 128;
/// Longest text that an own pattern may match.
pub const PATTERN_MATCH_BYTES: usize = 512;
/// Longest name of an own pattern.
pub const PATTERN_ID_BYTES: usize = 40;
/// Longest word that an own pattern may want nearby.
pub const PATTERN_WORD_BYTES: usize = 64;
/// Memory of one automaton of own patterns.
pub const PATTERN_AUTOMATON_BYTES: usize = 4 << 20;
/// Values that are never reported, and own domains: each list.
pub const ALLOWED_VALUES: usize = 4096;
/// Agents, budgets and models of which is known that an alert told them. What is over leaves first, the longest untouched
/// before others; what lasts stays.
pub const ALERT_SUBJECTS: usize = 4096;
/// Alerts that one rule tells in a minute; further ones come later, put together.
pub const ALERTS_A_MINUTE: u32 = 100;
/// Channels of alerts.
pub const ALERT_CHANNELS: usize = 64;
/// Rules of alerts.
pub const ALERT_RULES: usize = 128;
/// Patterns of agents of one rule.
pub const ALERT_AGENTS: usize = 256;
/// Events that wait to be looked at for alerts; further ones are counted and dropped, but for those about kills and loops.
pub const ALERT_QUEUE: usize = 16_384;
/// Agents whose kills and loops are put together while that queue is full: three kinds and a return of each.
pub const ALERT_URGENT: usize = 4 * AGENTS_WATCHED;
/// Alerts on record; the oldest leave first. What still waits when half of these are newer is given up.
pub const ALERTS_KEPT: u32 = 10_000;
/// Messages of alerts that were sent, but could not be noted as sent; while there are so many, no others are sent.
pub const ALERTS_UNNOTED: usize = 1024;
/// Messages of alerts on their way to one channel at the same time.
pub const ALERTS_AT_ONCE: usize = 4;
/// Links of alerts that are remembered as used.
pub const USED_LINKS: u32 = 100_000;
/// Connections of alerts to one address at a time.
pub const ALERT_CONNECTIONS: usize = 4;
/// Mails of which it is remembered which recipients have them while others are tried again.
pub const MAILS_IN_PART: usize = 1024;
/// Longest token of a link in an alert.
pub const ACT_TOKEN_BYTES: usize = 4096;
/// Ends of calls that Redis is still to be told, on one node; further ones are lost, and what they held is booked.
pub const UNTOLD_CALLS: usize = 1 << 16;
/// Corrections of accounts that Redis is still to be told, on one node; further ones hold on that node alone.
pub const UNTOLD_CORRECTIONS: usize = 4096;
/// Runs, and accounts, that a node tells Redis of at once after it was away.
pub const MISSED_AT_ONCE: usize = 200;
/// Days for which nodes remember that a row of their catalog was taken away, so that none of them brings it back.
pub const GONE_ROW_DAYS: u32 = 30;
/// Rows of a node's catalog that were taken away and are remembered; those that left first are forgotten first.
pub const GONE_ROWS: usize = 200_000;
/// Longest row of a catalog that nodes give to each other.
pub const SHARED_ROW_BYTES: usize = 128 << 10;
/// Rows of one kind that a node reads from what nodes share.
pub const SHARED_ROWS: usize = 400_000;
/// Changes that the log of a shared catalog keeps; a node that is further behind reads everything.
pub const SHARED_LOG: usize = 10_000;
/// Rows that a node takes or gives in one step.
pub const SHARED_BATCH: usize = 200;
/// Changes that wait for the shared catalog one by one; beyond it everything is compared.
pub const UNSHARED_CHANGES: usize = 10_000;
/// Milliseconds after which a node looks for changes of which nobody told it: a kill is everywhere within a second also then.
pub const SHARED_POLL_MS: u64 = 750;
/// Seconds after which a node compares all rows, though it missed nothing that it knows of.
pub const SHARED_EXCHANGE_SECONDS: u64 = 600;
/// Rows of a shared catalog that cannot be read and are named in the log; further ones are only counted.
pub const UNREADABLE_NAMED: usize = 1000;
/// Providers and routes whose calls are counted apart in metrics; further ones together.
pub const METERED_UPSTREAMS: usize = 2 * (PROVIDERS + ROUTES);
/// Models of one provider whose tokens and cost are counted apart in metrics; further ones together.
pub const METERED_MODELS: usize = 64;
/// Agents whose calls are counted apart in metrics, where that is wanted; further ones together.
pub const METERED_AGENTS: usize = 1000;
/// Kinds of secrets and personal data that are counted apart in metrics, own patterns included; further ones together.
pub const METERED_FINDINGS: usize = 512;
/// Calls whose spans wait to be exported; those of further ones are counted and dropped.
pub const TRACE_QUEUE: usize = 4096;
/// Spans from which on a batch is full; it may hold the others of its last call too.
pub const TRACE_BATCH: usize = 512;
/// Largest answer that is read of a collector of traces; of a larger one only the status counts.
pub const TRACE_ANSWER_BYTES: usize = 64 << 10;
