//! Virtual keys, as far as anybody is told of them.

use serde::{Deserialize, Serialize};
use sprag_core::policy::{Budget, KeyState, PreviousSecret, VirtualKey};
use sprag_core::time::Timestamp;
use utoipa::ToSchema;

use super::Usd;

/// A virtual key.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct KeyRecord {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Whom it speaks for.
    pub(crate) agent: String,
    pub(crate) state: KeyState,
    /// The last letters of its secret.
    pub(crate) hint: String,
    pub(crate) created_at: String,
    pub(crate) expires_at: Option<String>,
    pub(crate) revoked_at: Option<String>,
    /// The secret before the last rotation, while it still holds.
    pub(crate) previous: Option<PreviousRecord>,
    /// Absent where nothing limits it.
    pub(crate) budget: Option<KeyBudget>,
    /// The secret, told once: to the one who made the key or rotated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<String>,
}

/// A secret that was replaced.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct PreviousRecord {
    pub(crate) hint: String,
    pub(crate) ends_at: String,
}

/// What may be spent with a key, in dollars.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyBudget {
    #[serde(default)]
    pub(crate) max_run_cost: Option<Usd>,
    #[serde(default)]
    pub(crate) daily_limit: Option<Usd>,
    #[serde(default)]
    pub(crate) monthly_limit: Option<Usd>,
}

impl KeyRecord {
    pub(crate) fn new(key: &VirtualKey, now: Timestamp) -> KeyRecord {
        let moment = |at: Option<Timestamp>| at.map(Timestamp::to_rfc3339);
        let state = key.state(now);
        // It ends with the key.
        let is_open = |previous: &&PreviousSecret| state == KeyState::Active && previous.ends_at > now;
        let previous = key.previous.as_ref().filter(is_open);
        KeyRecord {
            id: key.id.clone(),
            name: key.name.clone(),
            agent: key.agent.to_string(),
            state,
            hint: key.hint.clone(),
            created_at: key.created_at.to_rfc3339(),
            expires_at: moment(key.expires_at),
            revoked_at: moment(key.revoked_at),
            previous: previous
                .map(|previous| PreviousRecord { hint: previous.hint.clone(), ends_at: previous.ends_at.to_rfc3339() }),
            budget: key.budget.is_set().then(|| KeyBudget::from(&key.budget)),
            secret: None,
        }
    }
}

impl From<&Budget> for KeyBudget {
    fn from(budget: &Budget) -> KeyBudget {
        KeyBudget {
            max_run_cost: budget.max_run_cost.map(Usd),
            daily_limit: budget.daily_limit.map(Usd),
            monthly_limit: budget.monthly_limit.map(Usd),
        }
    }
}
