//! What is no event that can be read: words without JSON, and streams that cannot be cut into events any more.

use bytes::Bytes;

use super::StreamFilter;
use super::text::PlainText;
use super::watch::{Spot, Stopped};

impl StreamFilter {
    /// What must stand in the place of a text that is not JSON; None when it stays.
    pub(super) fn said_plainly(&mut self, text: &[u8]) -> Result<Option<Vec<u8>>, Stopped> {
        let path = || "data".to_owned();
        let mut spot = Spot { watch: &mut self.watch, path: &path, is_repeat: false };
        let mut said = Vec::new();
        PlainText::new(b"", 0).push(&mut spot, text, true, &mut said)?;
        Ok((said != text).then_some(said))
    }

    pub(super) fn unread(&mut self, bytes: &[u8], out: &mut Vec<Bytes>) -> Result<(), Stopped> {
        self.end_all(out)?;
        self.unread.get_or_insert_with(|| PlainText::new(b"", 0));
        self.plain(bytes, false, out)
    }

    /// Continues what is not read as events.
    pub(super) fn plain(&mut self, bytes: &[u8], is_end: bool, out: &mut Vec<Bytes>) -> Result<(), Stopped> {
        let Some(unread) = &mut self.unread else { return Ok(()) };
        let path = || "data".to_owned();
        let mut spot = Spot { watch: &mut self.watch, path: &path, is_repeat: false };
        let mut said = Vec::new();
        let result = unread.push(&mut spot, bytes, is_end, &mut said);
        if !said.is_empty() {
            out.push(said.into());
        }
        result
    }
}
