//! What clients and providers say to each other.
//!
//! Everything here reads borrowed bytes and never re-serialises: a body that must change is changed by splicing.
//! Only the fields that Sprag acts on are given a type; whatever else there is passes untouched.

mod agentwall;
mod anthropic;
pub mod assistant;
mod call;
mod client;
mod dialect;
mod draft;
mod edit;
mod gemini;
mod history;
mod lenient;
mod manners;
mod metadata;
mod mold;
mod named;
mod nudge;
mod openai_chat;
mod openai_responses;
pub mod refusal;
mod reply;
pub mod sse;
mod tap;

pub use call::{BadBody, Call, OwnFields, StreamOptions};
pub use client::{Client, adapted_status};
pub use dialect::{Dialect, Family};
pub use edit::outgoing;
pub use history::{Followed, History, Mark, call_id_hash, looks_unique, read as read_history};
pub use manners::{Manner, Manners};
pub use metadata::{JsonTail, Metadata, splice};
pub(crate) use mold::Mold;
pub use named::named_models;
pub use nudge::nudge;
pub use refusal::{Form, Reason, Refusal};
pub use reply::{Reply, ToolCall};
pub use tap::{Passing, Tap};
