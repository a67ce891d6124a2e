#![allow(dead_code, reason = "x")]
//! Reading the shared history.

use std::sync::Arc;

use super::link::Link;

/// Asks the server.
pub(in crate::history) struct Reader {
    link: Arc<Link>,
}

impl Reader {
    pub(super) fn new(link: Arc<Link>) -> Reader {
        Reader { link }
    }
}
