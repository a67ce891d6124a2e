//! What may pass. The judge is one pure function over facts; it exists once, for the proxy and for replay.

mod agent;
mod budget;
mod calendar;
mod hours;
mod judge;
mod kept_proof;
mod key;
mod kill;
mod kills;
mod loops;
mod models;
mod operator;
mod policy_of_agent;
mod rate;
mod run_limits;
mod scope;
mod stop;

pub use agent::{AgentStanding, DeactivatedBy, KillSwitch, KillSwitchChange};
pub use budget::{
    ALWAYS, Account, AccountId, AccountState, Asked, BadAccount, Budget, Crossed, Denied, Draw, Draws, Epoch, Estimate,
    Habits, Held, Holder, Ledger, Level, Reservation, Reserve, Seed, Shortfall, Spender, Stage, StageAction, Window,
    denied_refusal, draws, estimate, shortfall_refusal, unknown_refusal,
};
pub use calendar::{BadZone, Span, Zone};
pub use hours::{BadHours, Hours, HoursWindow};
pub use judge::{Facts, Judgement, Permit, Weighed, judge, killed};
pub use kept_proof::KeptProof;
pub use key::{KEY_PREFIX, KeyProblem, KeyState, PreviousSecret, SecretPlace, VirtualKey, check as check_key};
pub use kill::{Kill, KillKind, bounded_reason};
pub use kills::{Kills, Subject};
pub use loops::{Advice, Delay, chanting, loop_warning};
pub use models::Models;
pub use operator::{AdminToken, BadOperatorName, Role, TOKEN_PREFIX, check_operator_name};
pub use policy_of_agent::Policy;
pub use rate::{BadLimitKey, LimitKey, RateCounter, RateExceeded, RateMeasure, RateRule};
pub use run_limits::{RunLimits, RunProgress};
pub use scope::{BadScope, Descriptor, KillScope};
pub use stop::{Consequence, Stop};
