//! E-mail addresses and names of machines inside a network.

mod email;
pub(super) mod internal;
#[cfg(test)]
mod tests;
mod top_level;

pub(super) use email::at_sign;
pub(super) use internal::{INTERNAL, at_url};
