//! `[dlp]`, `[defaults.dlp]` and `[agents.NAME.dlp]`: what is looked for in requests and answers, and what is done about it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sprag_core::dlp;

/// What is looked for besides the catalogue, and what is left alone. What is done about it stands in the policies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dlp {
    /// Kinds of the catalogue that are not looked for by default, such as "MAC_ADDRESS"; `sprag scan --kinds` lists them.
    pub kinds: Vec<String>,
    /// Values that are never touched: keys of a sandbox, an address that everybody may know.
    pub allow: Vec<String>,
    /// The same by regular expressions, which must match the whole value.
    pub allow_patterns: Vec<String>,
    /// Ends of names of machines inside your network, besides .internal, .corp, .lan and the like: "example.net".
    pub internal_domains: Vec<String>,
    /// Own kinds.
    pub patterns: Vec<DlpPattern>,
}

/// An own kind, found by a regular expression.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DlpPattern {
    /// Its name in capital letters, digits and underscores: placeholders carry it.
    #[schemars(example = &"STAFF_ID")]
    pub id: String,
    /// What it looks like. No longer match than 512 bytes; a group named `secret` says which part is hidden.
    #[schemars(example = &"\\bE-[0-9]{6}\\b")]
    pub regex: String,
    /// What it is, for people.
    #[schemars(example = &"Staff number")]
    pub title: Option<String>,
    /// One of these words must stand in the 256 bytes before it.
    #[schemars(example = &["staff", "employee"])]
    pub words: Vec<String>,
}

/// What is done about sensitive data.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DlpRules {
    /// "default" (hide everything), "secrets_only" (hide keys and credentials), "strict" (stop calls with keys, credentials or financial data), "log_only" or "off".
    pub profile: DlpProfile,
    /// Kinds and families ("pii", "infra") that the provider sees as a placeholder and the client gets back in answers.
    pub reversible: Vec<String>,
    /// What is done instead about a kind or a family: "strict", "redact", "log_only" or "off".
    pub modes: BTreeMap<String, DlpMode>,
    /// The same for requests alone; it comes before `modes`.
    pub request_modes: BTreeMap<String, DlpMode>,
    /// The same for answers alone.
    pub answer_modes: BTreeMap<String, DlpMode>,
}

/// What is done about one agent's sensitive data.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentDlp {
    /// "default", "secrets_only", "strict", "log_only" or "off".
    #[schemars(example = DlpProfile::SecretsOnly)]
    pub profile: Option<DlpProfile>,
    /// Kinds and families that the client gets back, instead of those of the defaults.
    #[schemars(example = &["EMAIL"])]
    pub reversible: Option<Vec<String>>,
    /// What is done about a kind or a family, over what the defaults say.
    #[schemars(example = json!({"infra": "off"}))]
    pub modes: Option<BTreeMap<String, DlpMode>>,
    /// The same for requests alone.
    #[schemars(example = json!({"CREDIT_CARD": "strict"}))]
    pub request_modes: Option<BTreeMap<String, DlpMode>>,
    /// The same for answers alone.
    #[schemars(example = json!({"pii": "log_only"}))]
    pub answer_modes: Option<BTreeMap<String, DlpMode>>,
}

/// What is done unless something else is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DlpProfile {
    /// Everything is hidden.
    #[default]
    Default,
    /// Keys and credentials are hidden.
    SecretsOnly,
    /// Keys, credentials and financial data stop a call.
    Strict,
    /// Everything passes and is on record.
    LogOnly,
    /// Nothing is looked for.
    Off,
}

/// What is done about a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DlpMode {
    /// The call is stopped.
    Strict,
    /// It is hidden.
    Redact,
    /// It passes and is on record.
    LogOnly,
    /// It passes.
    Off,
}

impl Default for DlpRules {
    fn default() -> DlpRules {
        DlpRules {
            profile: DlpProfile::Default,
            reversible: dlp::REVERSIBLE.map(str::to_owned).into(),
            modes: BTreeMap::new(),
            request_modes: BTreeMap::new(),
            answer_modes: BTreeMap::new(),
        }
    }
}

impl From<&DlpRules> for AgentDlp {
    fn from(rules: &DlpRules) -> AgentDlp {
        AgentDlp {
            profile: Some(rules.profile),
            reversible: Some(rules.reversible.clone()),
            modes: Some(rules.modes.clone()),
            request_modes: Some(rules.request_modes.clone()),
            answer_modes: Some(rules.answer_modes.clone()),
        }
    }
}

impl From<DlpProfile> for dlp::Profile {
    fn from(profile: DlpProfile) -> dlp::Profile {
        match profile {
            DlpProfile::Default => dlp::Profile::Default,
            DlpProfile::SecretsOnly => dlp::Profile::SecretsOnly,
            DlpProfile::Strict => dlp::Profile::Strict,
            DlpProfile::LogOnly => dlp::Profile::LogOnly,
            DlpProfile::Off => dlp::Profile::Off,
        }
    }
}

impl From<DlpMode> for dlp::Mode {
    fn from(mode: DlpMode) -> dlp::Mode {
        match mode {
            DlpMode::Strict => dlp::Mode::Strict,
            DlpMode::Redact => dlp::Mode::Redact,
            DlpMode::LogOnly => dlp::Mode::LogOnly,
            DlpMode::Off => dlp::Mode::Off,
        }
    }
}
