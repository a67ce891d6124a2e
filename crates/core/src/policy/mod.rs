//! What may pass. The judge is one pure function over facts; it exists once, for the proxy and for replay.

mod agent;
mod judge;
mod kill;
mod kills;
mod loops;
mod run_limits;
mod scope;
mod stop;

pub use agent::{AgentStanding, DeactivatedBy, KillSwitch, KillSwitchChange};
pub use judge::{Facts, Permit, judge, killed};
pub use kill::{Kill, KillKind, bounded_reason};
pub use kills::{Kills, Subject};
pub use loops::{Advice, chanting, loop_warning};
pub use run_limits::{RunLimits, RunProgress};
pub use scope::{BadScope, Descriptor, KillScope};
pub use stop::{Consequence, Stop};
