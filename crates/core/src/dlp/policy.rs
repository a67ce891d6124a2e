//! What is done about a finding.

use serde::{Deserialize, Serialize};

use super::kind::Entity;

/// What a kind's findings lead to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = DlpMode))]
pub enum Mode {
    /// The call is stopped.
    Strict,
    /// They are hidden.
    #[default]
    Redact,
    /// They pass, and are on record.
    LogOnly,
    /// They pass.
    Off,
}

/// How findings are hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hiding {
    /// For good: `[REDACTED:OPENAI_KEY]`.
    ForGood,
    /// `[EMAIL_1]` towards the provider, and the value again towards the client that sent it.
    Reversible,
}

/// Which way a text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = DlpDirection))]
pub enum Direction {
    /// To the provider.
    Request,
    /// To the client.
    Answer,
}

/// What is to be done about one finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Stop the call.
    Stop,
    /// Stop the call where the value itself or its format is proof; hide what only its context tells.
    StopIfSure,
    /// Hide it.
    Hide(Hiding),
    /// Put it on record.
    Note,
    /// Nothing.
    Pass,
}

/// What is done about each kind, each way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DlpPolicy {
    /// By entity, then by direction.
    actions: Vec<[Option<Action>; 2]>,
}

impl DlpPolicy {
    /// What is to be done about a finding of this kind.
    #[must_use]
    pub fn action(&self, entity: Entity, direction: Direction) -> Action {
        let way = match direction {
            Direction::Request => 0,
            Direction::Answer => 1,
        };
        let action = self.actions.get(usize::from(entity.0)).and_then(|ways| ways[way]);
        action.unwrap_or(Action::Hide(Hiding::ForGood))
    }

    /// Sets it.
    pub fn set(&mut self, entity: Entity, direction: Direction, action: Action) {
        let place = usize::from(entity.0);
        if self.actions.len() <= place {
            self.actions.resize(place + 1, [None; 2]);
        }
        let way = match direction {
            Direction::Request => 0,
            Direction::Answer => 1,
        };
        self.actions[place][way] = Some(action);
    }
}
