//! `[defaults.hours]` and `[agents.NAME.hours]`: when an agent may call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::LimitMode;

/// When an agent may call.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Hours {
    /// Windows of the week, such as "mon-fri 09:00-18:00", "22:00-06:00" (every day, over midnight) or "sat,sun". An agent with none may call at any time.
    pub allowed: Vec<String>,
    /// Whose clocks count, by IANA name, such as "Europe/Berlin".
    pub time_zone: String,
    /// "enforce", "shadow" (only report what would have been stopped) or "off".
    pub mode: LimitMode,
}

/// When one agent may call.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentHours {
    /// Windows of the week, instead of those of the defaults. An empty list is any time.
    #[schemars(example = &["mon-fri 09:00-18:00"])]
    pub allowed: Option<Vec<String>>,
    /// Whose clocks count.
    #[schemars(example = &"Europe/Berlin")]
    pub time_zone: Option<String>,
    /// "enforce", "shadow" or "off".
    #[schemars(example = LimitMode::Shadow)]
    pub mode: Option<LimitMode>,
}

impl Default for Hours {
    fn default() -> Hours {
        Hours { allowed: Vec::new(), time_zone: "UTC".to_owned(), mode: LimitMode::Enforce }
    }
}
