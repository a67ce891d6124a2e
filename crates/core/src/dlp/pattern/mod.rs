//! Patterns of one's own: a regular expression, a name, and words that must stand before it.
//!
//! A pattern is checked when it is made, so that searching cannot fail. It is searched with an automaton that reads
//! each byte once; what it finds at a place depends on at most its longest match, so a stream cut anywhere gives the
//! same. Letters are ASCII: `\w` does not match `é`, but what is found never ends inside a character.

mod compile;
mod search;

pub(super) use search::Patterns;

use thiserror::Error;

use super::kind::Family;

/// A pattern as somebody wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternSpec {
    /// The name that placeholders carry: `STAFF_NUMBER`.
    pub id: String,
    /// What to look for. A group named `secret` says which part is hidden; without it, that is everything.
    pub regex: String,
    /// What it belongs to.
    pub family: Family,
    /// What it is, for people.
    pub title: String,
    /// If there are any, one of them must stand in the 256 bytes before, in any case.
    pub words: Vec<String>,
}

/// What is wrong with a pattern. Each says what to do.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PatternError {
    /// Not a name.
    #[error("pattern `{0}`: an id is 1 to {most} of A-Z, 0-9 and _; write `STAFF_NUMBER`, say", most = crate::limits::PATTERN_ID_BYTES)]
    Id(String),
    /// A name that is taken.
    #[error("pattern `{0}`: this id is in use; choose another one")]
    Taken(String),
    /// Not a regular expression.
    #[error("pattern `{id}`: not a regular expression: {what}; look-around and back-references are not possible")]
    Syntax {
        /// Which pattern.
        id: String,
        /// What is wrong, and where.
        what: String,
    },
    /// It matches the empty text.
    #[error("pattern `{0}`: matches the empty text, and so everywhere; ask for at least one character")]
    Empty(String),
    /// It has no bound, or a large one.
    #[error("pattern `{0}`: may match more than {most} bytes; write a bound such as {{1,64}} for * and +", most = crate::limits::PATTERN_MATCH_BYTES)]
    Long(String),
    /// It asks where the whole text begins or ends.
    #[error("pattern `{0}`: \\A and \\z have no meaning in a stream; use ^ and $, which stand for lines")]
    Anchor(String),
    /// Too large to search.
    #[error("pattern `{id}`: too large to search: {what}; make it shorter or its bounds smaller")]
    Large {
        /// Which pattern.
        id: String,
        /// Which bound it passes.
        what: String,
    },
    /// Words that cannot be looked for.
    #[error("pattern `{id}`: the word {word:?} must have 1 to {most} bytes", most = crate::limits::PATTERN_WORD_BYTES)]
    Word {
        /// Which pattern.
        id: String,
        /// Which word.
        word: String,
    },
    /// Too many.
    #[error("{0} own patterns; at most {most} are possible, so put some into one with |", most = crate::limits::PATTERNS)]
    Many(usize),
}

#[cfg(test)]
mod tests;
