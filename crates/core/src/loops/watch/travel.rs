//! Watches as bytes for another node, and back.
//!
//! The bytes begin with the form that they are written in: those of another form, of another version of the program,
//! say nothing. So do those that were cut or changed on the way: what is read is written down again and compared, and
//! lists are never longer than the detectors would keep them. There are no names of fields, numbers take as many bytes
//! as they need, and most of it lies packed in memory already.

use super::{AgentWatch, PromptWatch, RunWatch};
use crate::limits::{PACKED_AGENT_BYTES, PACKED_RUN_BYTES, RUN_BYTES};
use crate::loops::attempts::Attempts;
use crate::loops::packed::{Reader, bits, put_number};
use crate::loops::score::ScoreWindow;
use crate::loops::seen_steps::SeenSteps;
use crate::loops::similar::Similar;
use crate::loops::trail::{Since, Trail};
use crate::loops::velocity::Velocity;
use crate::loops::{Strikes, Tally, progress};

/// The forms of the bytes. Whoever changes what is written takes the next number.
const RUN_FORM: u8 = 0x12;
const AGENT_FORM: u8 = 0x21;

impl RunWatch {
    /// The watch as bytes, the same on every machine.
    #[must_use]
    pub fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(RUN_BYTES);
        bytes.push(RUN_FORM);
        bytes.push(bits([self.is_retry, self.shared.is_some()]));
        put_number(&mut bytes, u64::from(self.forgotten));
        if let Some(seen) = &self.shared {
            seen.write(&mut bytes);
        }
        self.strikes.write(&mut bytes);
        self.attempts.write(&mut bytes);
        self.progress.write(&mut bytes);
        self.prompts.write(&mut bytes);
        bytes
    }

    /// What was packed. None for bytes that [`RunWatch::pack`] of this version does not give.
    #[must_use]
    pub fn unpack(bytes: &[u8]) -> Option<RunWatch> {
        let mut reader = opened(bytes, RUN_FORM, PACKED_RUN_BYTES)?;
        let flags = reader.byte();
        let watch = RunWatch {
            is_retry: flags & 1 == 1,
            forgotten: reader.small()?,
            shared: if flags >> 1 & 1 == 1 { Some(SeenSteps::read(&mut reader)?) } else { None },
            strikes: Strikes::read(&mut reader)?,
            attempts: Attempts::read(&mut reader)?,
            progress: progress::State::read(&mut reader)?,
            prompts: PromptWatch::read(&mut reader)?,
        };
        (watch.pack() == bytes).then_some(watch)
    }
}

impl AgentWatch {
    /// The watch as bytes, the same on every machine.
    #[must_use]
    pub fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(PACKED_AGENT_BYTES / 16);
        bytes.push(AGENT_FORM);
        put_number(&mut bytes, u64::from(self.forgotten));
        let Tally { prompts, answers, calls } = self.tally;
        [prompts, answers, calls].iter().for_each(|count| put_number(&mut bytes, u64::from(*count)));
        self.velocity.write(&mut bytes);
        self.score.write(&mut bytes);
        bytes
    }

    /// What was packed. None for bytes that [`AgentWatch::pack`] of this version does not give.
    #[must_use]
    pub fn unpack(bytes: &[u8]) -> Option<AgentWatch> {
        let mut reader = opened(bytes, AGENT_FORM, PACKED_AGENT_BYTES)?;
        let watch = AgentWatch {
            forgotten: reader.small()?,
            tally: Tally { prompts: reader.small()?, answers: reader.small()?, calls: reader.small()? },
            velocity: Velocity::read(&mut reader)?,
            score: ScoreWindow::read(&mut reader)?,
        };
        (watch.pack() == bytes).then_some(watch)
    }
}

impl PromptWatch {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(bits([self.wants_answers, self.wants_similar_answers]));
        self.exact_since.write(bytes);
        self.oscillation_since.write(bytes);
        self.trail.write(bytes);
        self.similar.write(bytes);
    }

    fn read(reader: &mut Reader<'_>) -> Option<PromptWatch> {
        let flags = reader.byte();
        Some(PromptWatch {
            wants_answers: flags & 1 == 1,
            wants_similar_answers: flags >> 1 & 1 == 1,
            exact_since: Since::read(reader)?,
            oscillation_since: Since::read(reader)?,
            trail: Trail::read(reader)?,
            similar: Similar::read(reader)?,
        })
    }
}

/// Bytes of a form, behind its number.
fn opened(bytes: &[u8], form: u8, most: usize) -> Option<Reader<'_>> {
    let (first, rest) = bytes.split_first()?;
    (*first == form && bytes.len() <= most).then(|| Reader::new(rest))
}

#[cfg(test)]
mod tests;
