//! Admin tokens and who has them, as far as anybody is told.

use serde::{Deserialize, Serialize};
use sprag_core::policy::{AdminToken, KeyState, Role};
use sprag_core::time::Timestamp;
use utoipa::ToSchema;

/// Who asks.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Me {
    /// What events call them.
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Whether they may do anything but look.
    pub(crate) may_change: bool,
    /// The id of their token, where it was made at run time.
    pub(crate) token: Option<String>,
    /// When that token ends.
    pub(crate) expires_at: Option<String>,
}

/// An admin token.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct TokenRecord {
    pub(crate) id: String,
    /// Whose it is.
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) state: KeyState,
    /// How its secret begins.
    pub(crate) prefix: String,
    pub(crate) created_at: String,
    pub(crate) expires_at: Option<String>,
    pub(crate) revoked_at: Option<String>,
    /// The secret, told once: to the one who made the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<String>,
}

impl TokenRecord {
    pub(crate) fn new(token: &AdminToken, now: Timestamp) -> TokenRecord {
        let moment = |at: Option<Timestamp>| at.map(Timestamp::to_rfc3339);
        TokenRecord {
            id: token.id.clone(),
            name: token.name.clone(),
            role: token.role,
            state: token.state(now),
            prefix: token.prefix.clone(),
            created_at: token.created_at.to_rfc3339(),
            expires_at: moment(token.expires_at),
            revoked_at: moment(token.revoked_at),
            secret: None,
        }
    }
}
