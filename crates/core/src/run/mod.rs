//! Which run a request belongs to.
//!
//! A run is declared by the caller, named by the client's own session, or recognised by evidence: an id of an earlier
//! answer, a shared trace, a conversation that continues. Every piece of evidence becomes a *clue*, a hash that also
//! holds whose it is; the state store remembers which run a clue led to. This module decides what is evidence and in
//! which order it counts; it remembers nothing.

mod clue;
mod identify;

pub use clue::{Brought, Clue, Lookup, RETRY_MS, Remember, Scope, answer_before, at_opening, at_settling, evidence};
pub use identify::{Named, Signs, name_run};
