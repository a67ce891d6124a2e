//! What one request showed, as it is kept with its event: hashes, sketches of words and counts, and never text.

use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Step;
use super::log::{Gap, pack, unpack};
use super::tool_names::ToolNames;
use crate::limits::STEP_EVIDENCE_BYTES;
use crate::loops::evidence::Sketch;
use crate::loops::packed::{Reader, put_number};
use crate::time::Timestamp;

/// The form of the bytes; those of another form say nothing.
const FORM: u8 = 1 << 4;

mod flag {
    pub(super) const STEP: u8 = 1;
    pub(super) const RETRY: u8 = 1 << 1;
    pub(super) const NAMED: u8 = 1 << 2;
}

/// What a request showed of its run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Observation {
    /// The step that it finished.
    pub(super) step: Option<Step>,
    /// How often this conversation was answered and asked again.
    pub(super) asked_again: u32,
    /// How often the history was rewritten without new work in between, where it was rewritten here.
    pub(super) compactions: u32,
    /// The same request while, or because, there was no answer.
    pub(super) is_retry: bool,
}

/// What detection saw in one request, packed: about a hundred bytes. With the evidence of the requests before it, it can
/// be judged again by other rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepEvidence(Box<[u8]>);

/// The evidence of a request with its place in the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedStep {
    /// The number of the request.
    pub request: u32,
    /// When it arrived.
    pub at: Timestamp,
    /// What was seen.
    pub evidence: StepEvidence,
}

/// What a person is shown of a step's evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepFacts {
    /// The step: the number of the request whose answer it begins with.
    pub step: u32,
    /// How it resembles those before it: `new`, `exact`, `near`, `same_error`, …
    pub alike: String,
    /// A hash of what was asked for.
    pub action: String,
    /// A hash of what came back.
    pub result: String,
    /// What came back tells of a failure.
    pub failed: bool,
}

impl StepEvidence {
    /// Bytes that were kept.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<StepEvidence> {
        (bytes.len() <= STEP_EVIDENCE_BYTES).then(|| StepEvidence(bytes.into()))
    }

    /// The bytes to keep.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Appends it to `out` as JSON.
    pub(crate) fn put_json(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        let start = out.len();
        out.resize(start + 4 * self.0.len().div_ceil(3), 0);
        // There is room for all of it.
        let written = BASE64_STANDARD_NO_PAD.encode_slice(&self.0, &mut out[start..]).unwrap_or(0);
        out.truncate(start + written);
        out.push(b'"');
    }

    /// What a person is shown of it; None where the request finished no step. `request` is its number.
    #[must_use]
    pub fn facts(&self, request: u32) -> Option<StepFacts> {
        let (Observation { step, .. }, _) = self.unpack(request, Timestamp(0))?;
        let step = step?;
        Some(StepFacts {
            step: step.number,
            alike: step.kind.as_str().to_owned(),
            action: format!("{:08x}", step.action.exact),
            result: format!("{:08x}", step.outcome.exact),
            failed: step.outcome.failure != 0 && !step.outcome.is_nothing,
        })
    }

    /// Whether the request only asked again because there was no answer.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        self.unpack(0, Timestamp(0)).is_some_and(|(seen, _)| seen.is_retry)
    }

    pub(super) fn pack(seen: &Observation, request: u32, names: &ToolNames) -> StepEvidence {
        let name = seen.step.and_then(|step| names.get(step.tool_name?));
        let flags = [(seen.step.is_some(), flag::STEP), (seen.is_retry, flag::RETRY), (name.is_some(), flag::NAMED)];
        let flags = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum::<u8>();
        // Without a step there are but three numbers, small ones as a rule.
        let mut bytes = Vec::with_capacity(if seen.step.is_some() { 192 } else { 3 });
        bytes.push(FORM | flags);
        put_number(&mut bytes, u64::from(seen.asked_again));
        put_number(&mut bytes, u64::from(seen.compactions));
        if let Some(name) = name {
            bytes.push(name.len() as u8);
            bytes.extend(name.as_bytes());
        }
        if let Some(step) = seen.step {
            let gap =
                Gap { numbers: i64::from(request) - i64::from(step.number), seconds: 0, thread: Some(step.thread) };
            let names = name.map(ToolNames::only).unwrap_or_default();
            pack(&Step { tool_name: name.map(|_| 0), ..step }, &gap, &names, &mut bytes);
            step.action.words.pack_whole(&mut bytes);
            step.outcome.words.pack_whole(&mut bytes);
        }
        StepEvidence(bytes.into())
    }

    /// What was packed, and the name of the tool that was called.
    pub(super) fn unpack(&self, request: u32, at: Timestamp) -> Option<(Observation, Option<&str>)> {
        let mut reader = Reader::new(&self.0);
        let head = reader.byte();
        let is = |flag: u8| head & flag != 0;
        if head & 0xf0 != FORM {
            return None;
        }
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let (asked_again, compactions) = (small(reader.number()), small(reader.number()));
        let name = is(flag::NAMED).then(|| {
            let length = reader.byte();
            std::str::from_utf8(reader.take(usize::from(length))).unwrap_or_default()
        });
        let mut observation = Observation { step: None, asked_again, compactions, is_retry: is(flag::RETRY) };
        if is(flag::STEP) {
            let names = name.map(ToolNames::only).unwrap_or_default();
            let (mut step, gap) = unpack(&mut reader, &names);
            step.number = u32::try_from(i64::from(request).saturating_sub(gap.numbers)).unwrap_or(0);
            step.thread = gap.thread.unwrap_or(0);
            step.at = at;
            step.action.words = Sketch::unpack(&mut reader);
            step.outcome.words = Sketch::unpack(&mut reader);
            step.has_words = true;
            observation.step = Some(step);
        }
        Some((observation, name))
    }
}

impl Serialize for StepEvidence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD_NO_PAD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for StepEvidence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StepEvidence, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let bytes = BASE64_STANDARD_NO_PAD.decode(text.as_bytes()).map_err(D::Error::custom)?;
        StepEvidence::from_bytes(&bytes).ok_or_else(|| D::Error::custom("too long for the evidence of a step"))
    }
}
