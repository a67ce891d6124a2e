//! `[defaults.models]` and `[agents.NAME.models]`: which models an agent may ask.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::LimitMode;

/// Which models an agent may ask.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Models {
    /// Names of models, in which * stands for anything, such as "gpt-4o*". An agent with none may ask every model.
    pub allow: Vec<String>,
    /// "enforce", "shadow" (only report what would have been stopped) or "off".
    pub mode: LimitMode,
}

/// Which models one agent may ask.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentModels {
    /// Names of models, instead of those of the defaults. An empty list is every model.
    #[schemars(example = &["gpt-4o*", "claude-*"])]
    pub allow: Option<Vec<String>>,
    /// "enforce", "shadow" or "off".
    #[schemars(example = LimitMode::Shadow)]
    pub mode: Option<LimitMode>,
}
