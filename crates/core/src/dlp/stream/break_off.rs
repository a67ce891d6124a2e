//! An answer that is broken off in the middle: nothing more of it will come or may go out.

use bytes::Bytes;

use super::StreamFilter;
use super::field::Field;
use super::watch::{Spot, Stopped};

impl StreamFilter {
    /// Breaks the answer off. Of what is held back only that goes out which nothing that follows could have changed. The
    /// rest is dropped: it may be half of a secret. Of a stream that is an array nothing goes out. Afterwards nothing
    /// passes any more.
    pub fn break_off(&mut self, out: &mut Vec<Bytes>) {
        if self.is_watching {
            // All of it is out. What stands at its end has still to be put on record.
            let _ = self.end(out);
        } else {
            let _ = self.unless_stopped(|filter| filter.give_decided(out));
        }
        self.stop();
    }

    fn give_decided(&mut self, out: &mut Vec<Bytes>) -> Result<(), Stopped> {
        if self.elements.is_begun() {
            return Ok(());
        }
        self.last_number = self.last_number.map(|last| last.saturating_add(1));
        for index in 0..self.fields.len() {
            let Field { content, path, .. } = &mut self.fields[index];
            let path = || path.clone();
            let mut spot = Spot { watch: &mut self.watch, path: &path, is_repeat: false };
            let mut said = Vec::new();
            let result = content.break_off(&mut spot, &mut said);
            self.add_event(index, &said, out);
            result?;
        }
        let Some(unread) = &mut self.unread else { return Ok(()) };
        let path = || "data".to_owned();
        let mut spot = Spot { watch: &mut self.watch, path: &path, is_repeat: false };
        let mut said = Vec::new();
        let result = unread.break_off(&mut spot, &mut said);
        if !said.is_empty() {
            out.push(said.into());
        }
        result
    }
}
