//! What is written about DLP for an agent: a profile, and what differs from it, by kind or by family.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::catalogue::KINDS;
use super::kind::{Entity, Family};
use super::policy::{Action, Direction, DlpPolicy, Hiding, Mode};

/// What is done unless something else is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = DlpProfile))]
pub enum Profile {
    /// Everything is hidden; what agents need in order to work, reversibly.
    #[default]
    Default,
    /// Keys and credentials are hidden, the rest passes.
    SecretsOnly,
    /// Keys, credentials and financial data stop a call; the rest is hidden.
    Strict,
    /// Everything passes and is on record.
    LogOnly,
    /// Nothing is looked for.
    Off,
}

/// What is done about a kind, each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    /// Towards the provider.
    pub request: Option<Mode>,
    /// Towards the client.
    pub answer: Option<Mode>,
}

/// The rules of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DlpRules {
    /// What is done unless something else is said.
    pub profile: Profile,
    /// What is done instead: by the name of a family (`pii`) or of a kind (`EMAIL`), which comes first.
    pub modes: BTreeMap<String, Ways>,
    /// Families and kinds that the client gets back.
    pub reversible: Vec<String>,
    /// Names of own patterns, in their order: their entities come behind the catalogue.
    pub own: Arc<[String]>,
}

/// Kinds that agents need in order to work.
pub const REVERSIBLE: [&str; 4] = ["EMAIL", "PHONE", "PRIVATE_IP", "INTERNAL_URL"];

impl Default for DlpRules {
    fn default() -> DlpRules {
        DlpRules {
            profile: Profile::Default,
            modes: BTreeMap::new(),
            reversible: REVERSIBLE.map(str::to_owned).into(),
            own: Arc::default(),
        }
    }
}

impl DlpRules {
    /// Whether nothing is looked for.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.profile == Profile::Off && self.modes.is_empty()
    }

    /// What is to be done about each kind.
    #[must_use]
    pub fn resolve(&self) -> DlpPolicy {
        let mut policy = DlpPolicy::default();
        let own = self.own.iter().map(|id| (id.as_str(), Family::Credential));
        let kinds = KINDS.iter().map(|kind| (kind.id, kind.family)).chain(own);
        for (place, (id, family)) in kinds.enumerate() {
            let Ok(place) = u16::try_from(place) else { break };
            for direction in [Direction::Request, Direction::Answer] {
                policy.set(Entity(place), direction, self.action(id, family, direction));
            }
        }
        policy
    }

    /// A name in `modes` or `reversible` that is neither a family nor a kind.
    #[must_use]
    pub fn unknown_name(&self) -> Option<&str> {
        let names = self.modes.keys().chain(&self.reversible).map(String::as_str);
        names.into_iter().find(|name| !self.is_known(name))
    }

    fn is_known(&self, name: &str) -> bool {
        let is_family = FAMILIES.iter().any(|(family, _)| *family == name);
        is_family || KINDS.iter().any(|kind| kind.id == name) || self.own.iter().any(|id| id == name)
    }

    fn action(&self, id: &str, family: Family, direction: Direction) -> Action {
        let of_name = |name: &str| {
            let ways = self.modes.get(name)?;
            match direction {
                Direction::Request => ways.request,
                Direction::Answer => ways.answer,
            }
        };
        let is_named = |name: &String| name == id || name == name_of(family);
        let hidden = match self.reversible.iter().any(is_named) {
            true => Action::Hide(Hiding::Reversible),
            false => Action::Hide(Hiding::ForGood),
        };
        match of_name(id).or_else(|| of_name(name_of(family))) {
            Some(Mode::Strict) => Action::Stop,
            Some(Mode::Redact) => hidden,
            Some(Mode::LogOnly) => Action::Note,
            Some(Mode::Off) => Action::Pass,
            None => self.by_profile(id, family, hidden),
        }
    }

    fn by_profile(&self, id: &str, family: Family, hidden: Action) -> Action {
        let is_secret = matches!(family, Family::ApiKey | Family::Credential);
        match self.profile {
            Profile::Default => hidden,
            Profile::SecretsOnly if is_secret => hidden,
            Profile::SecretsOnly | Profile::Off => Action::Pass,
            Profile::Strict if is_secret || family == Family::Financial || id == "SSN" => Action::StopIfSure,
            Profile::Strict => hidden,
            Profile::LogOnly => Action::Note,
        }
    }
}

/// Families by the names that rules use.
pub const FAMILIES: [(&str, Family); 5] = [
    ("api_key", Family::ApiKey),
    ("credential", Family::Credential),
    ("financial", Family::Financial),
    ("pii", Family::Pii),
    ("infra", Family::Infra),
];

fn name_of(family: Family) -> &'static str {
    FAMILIES.iter().find(|(_, known)| *known == family).map_or("", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(rules: &DlpRules, id: &str, direction: Direction) -> Action {
        let place = KINDS.iter().position(|kind| kind.id == id).unwrap_or(KINDS.len());
        rules.resolve().action(Entity(place as u16), direction)
    }

    #[test]
    fn profiles_say_what_is_done_and_modes_what_is_done_instead() {
        use Direction::{Answer, Request};
        let for_good = Action::Hide(Hiding::ForGood);
        let back = Action::Hide(Hiding::Reversible);
        let by = |profile| DlpRules { profile, ..DlpRules::default() };
        let table = [
            (Profile::Default, for_good, back),
            (Profile::SecretsOnly, for_good, Action::Pass),
            (Profile::Strict, Action::StopIfSure, back),
            (Profile::LogOnly, Action::Note, Action::Note),
            (Profile::Off, Action::Pass, Action::Pass),
        ];
        for (profile, key, email) in table {
            let rules = by(profile);
            assert_eq!(action(&rules, "OPENAI_KEY", Request), key, "{profile:?}");
            assert_eq!(action(&rules, "EMAIL", Request), email, "{profile:?}");
        }
        let mut rules = by(Profile::Default);
        rules.modes.insert("pii".into(), Ways { request: Some(Mode::Off), answer: None });
        assert_eq!((action(&rules, "EMAIL", Request), action(&rules, "EMAIL", Answer)), (Action::Pass, back));
        rules.modes.insert("EMAIL".into(), Ways { request: Some(Mode::Strict), answer: Some(Mode::LogOnly) });
        assert_eq!((action(&rules, "EMAIL", Request), action(&rules, "EMAIL", Answer)), (Action::Stop, Action::Note));
        rules.reversible = vec!["api_key".into()];
        assert_eq!(action(&rules, "OPENAI_KEY", Request), back);
        rules.own = vec!["STAFF_ID".to_owned()].into();
        rules.modes.insert("STAFF_ID".into(), Ways { request: Some(Mode::LogOnly), answer: None });
        assert_eq!((action(&rules, "STAFF_ID", Request), action(&rules, "STAFF_ID", Answer)), (Action::Note, for_good));
        assert_eq!(rules.unknown_name(), None);
        rules.modes.insert("E_MAIL".into(), Ways { request: None, answer: None });
        assert_eq!(rules.unknown_name(), Some("E_MAIL"));
    }
}
