//! An event as JSON, as serde would write it. Every call writes one, and most of it is names of fields.

use serde::Serialize;

use super::{Ending, Event, EventKind, RunOrigin, RunRecord};
use crate::json::{put_flag, put_number, put_text};
use crate::usage::Usage;

impl Event {
    /// Appends the event to `out`. False if something of it cannot be written.
    #[must_use]
    pub fn write_json(&self, out: &mut Vec<u8>) -> bool {
        self.write(out).is_ok()
    }

    fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        // Names of fields stand in the order of the fields.
        out.extend_from_slice(b"{\"id\":");
        put_text(out, &self.id);
        out.extend_from_slice(b",\"at\":");
        put_number(out, self.at.0);
        put_name(out, b",\"kind\":\"", self.kind.name());
        out.extend_from_slice(b",\"agent\":");
        put_text(out, self.agent.as_str());
        put_optional_text(out, ",\"key\":", self.key.as_deref());
        if let Some(run) = &self.run {
            out.extend_from_slice(b",\"run\":");
            run.write_json(out)?;
        }
        out.extend_from_slice(b",\"provider\":");
        put_text(out, &self.provider);
        put_name(out, b",\"dialect\":\"", self.dialect.name());
        out.extend_from_slice(b",\"path\":");
        put_text(out, &self.path);
        put_optional_text(out, ",\"model\":", self.model.as_deref());
        out.extend_from_slice(b",\"stream\":");
        put_flag(out, self.stream);
        out.extend_from_slice(b",\"status\":");
        put_number(out, self.status);
        put_name(out, b",\"ending\":\"", self.ending.name());
        out.extend_from_slice(b",\"total_ms\":");
        put_number(out, self.total_ms);
        if let Some(ms) = self.first_byte_ms {
            out.extend_from_slice(b",\"first_byte_ms\":");
            put_number(out, ms);
        }
        out.extend_from_slice(b",\"overhead_us\":");
        put_number(out, self.overhead_us);
        if let Some(usage) = &self.usage {
            out.extend_from_slice(b",\"usage\":");
            write_usage(out, usage);
        }
        if let Some(cost) = self.cost {
            out.extend_from_slice(b",\"cost\":");
            put_number(out, cost.0);
        }
        out.extend_from_slice(b",\"unpriced\":");
        put_flag(out, self.unpriced);
        put_optional_text(out, ",\"finish\":", self.finish.as_deref());
        if !self.tools.is_empty() {
            put(out, ",\"tools\":", &self.tools)?;
        }
        out.extend_from_slice(b",\"blocked\":");
        put_flag(out, self.blocked);
        put_optional_text(out, ",\"block_reason\":", self.block_reason.as_deref());
        put_optional(out, ",\"verdict\":", self.verdict.as_ref())?;
        put_optional(out, ",\"shadow\":", self.shadow.as_ref())?;
        if !self.would_block.is_empty() {
            put(out, ",\"would_block\":", &self.would_block)?;
        }
        put_optional(out, ",\"dlp\":", self.dlp.as_ref())?;
        put_optional(out, ",\"level\":", self.level.as_ref())?;
        if let Some(evidence) = &self.evidence {
            out.extend_from_slice(b",\"evidence\":");
            evidence.put_json(out);
        }
        put_optional(out, ",\"saved\":", self.saved.as_ref())?;
        put_optional_text(out, ",\"error\":", self.error.as_deref());
        put_optional(out, ",\"act\":", self.act.as_ref())?;
        out.push(b'}');
        Ok(())
    }
}

impl RunRecord {
    /// Appends the place in its run to `out`.
    ///
    /// # Errors
    /// When something of it cannot be written.
    pub fn write_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        out.extend_from_slice(b"{\"id\":");
        put_text(out, self.id.as_str());
        out.extend_from_slice(b",\"step\":");
        put_number(out, self.step);
        put_optional_text(out, ",\"parent\":", self.parent.as_ref().map(|parent| parent.as_str()));
        put_name(out, b",\"origin\":\"", self.origin.name());
        out.push(b'}');
        Ok(())
    }
}

/// Names as serde has them.
impl EventKind {
    fn name(self) -> &'static str {
        match self {
            EventKind::LlmCall => "llm_call",
            EventKind::Request => "request",
            EventKind::Admin => "admin",
            EventKind::RunKilled => "run_killed",
            EventKind::KillSwitch => "kill_switch",
            EventKind::Budget => "budget",
        }
    }
}

impl Ending {
    fn name(self) -> &'static str {
        match self {
            Ending::Complete => "complete",
            Ending::UpstreamError => "upstream_error",
            Ending::UpstreamGone => "upstream_gone",
            Ending::TimedOut => "timed_out",
            Ending::ClientGone => "client_gone",
            Ending::Refused => "refused",
            Ending::Killed => "killed",
            Ending::CutOff => "cut_off",
            Ending::Lost => "lost",
        }
    }
}

impl RunOrigin {
    fn name(self) -> &'static str {
        match self {
            RunOrigin::Declared => "declared",
            RunOrigin::Session => "session",
            RunOrigin::Previous => "previous",
            RunOrigin::Trace => "trace",
            RunOrigin::Conversation => "conversation",
        }
    }
}

fn write_usage(out: &mut Vec<u8>, usage: &Usage) {
    let counts = [
        ("{\"input\":", usage.input),
        (",\"cache_read\":", usage.cache_read),
        (",\"cache_write\":", usage.cache_write),
        (",\"cache_write_1h\":", usage.cache_write_1h),
        (",\"output\":", usage.output),
        (",\"reasoning\":", usage.reasoning),
        (",\"audio_input\":", usage.audio_input),
        (",\"audio_output\":", usage.audio_output),
    ];
    for (name, count) in counts {
        out.extend_from_slice(name.as_bytes());
        put_number(out, count);
    }
    out.extend_from_slice(b",\"estimated\":");
    put_flag(out, usage.estimated);
    out.push(b'}');
}

/// A plain word, in the quotes that `before` opens.
fn put_name(out: &mut Vec<u8>, before: &[u8], name: &str) {
    out.extend_from_slice(before);
    out.extend_from_slice(name.as_bytes());
    out.push(b'"');
}

/// A value as serde writes it, behind its name.
fn put(out: &mut Vec<u8>, name: &str, value: &impl Serialize) -> serde_json::Result<()> {
    out.extend_from_slice(name.as_bytes());
    serde_json::to_writer(out, value)
}

fn put_optional(out: &mut Vec<u8>, name: &str, value: Option<&impl Serialize>) -> serde_json::Result<()> {
    value.map_or(Ok(()), |value| put(out, name, value))
}

fn put_optional_text(out: &mut Vec<u8>, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        out.extend_from_slice(name.as_bytes());
        put_text(out, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dlp::Sightings;
    use crate::event::{Act, ActKind, WouldBlock};
    use crate::id::RunId;
    use crate::loops::StepEvidence;
    use crate::money::NanoUsd;
    use crate::time::Timestamp;
    use crate::wire::Dialect;

    fn agrees(event: &Event) {
        let mut written = b"before ".to_vec();
        assert!(event.write_json(&mut written));
        let expected = format!("before {}", serde_json::to_string(event).unwrap());
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }

    #[test]
    fn every_word_is_written_as_serde_writes_it() {
        let word = |kind, dialect, ending, origin| {
            let run = RunRecord { id: RunId::parse("r").unwrap(), step: 1, parent: None, origin };
            let event = Event::new("req_1".into(), Timestamp(1), kind);
            agrees(&Event { dialect, ending, run: Some(run), ..event });
        };
        let kinds = ["llm_call", "request", "admin", "run_killed", "kill_switch", "budget"];
        let dialects = [
            Dialect::OpenaiChat,
            Dialect::OpenaiCompletions,
            Dialect::OpenaiResponses,
            Dialect::OpenaiEmbeddings,
            Dialect::Anthropic,
            Dialect::Gemini,
            Dialect::Opaque,
        ];
        let endings = [
            Ending::Complete,
            Ending::UpstreamError,
            Ending::UpstreamGone,
            Ending::TimedOut,
            Ending::ClientGone,
            Ending::Refused,
            Ending::Killed,
            Ending::CutOff,
            Ending::Lost,
        ];
        let origins =
            [RunOrigin::Declared, RunOrigin::Session, RunOrigin::Previous, RunOrigin::Trace, RunOrigin::Conversation];
        for nth in 0..endings.len() {
            let kind = serde_json::from_value(kinds[nth % kinds.len()].into()).unwrap();
            word(kind, dialects[nth % dialects.len()], endings[nth], origins[nth % origins.len()]);
        }
    }

    #[test]
    fn an_event_is_written_as_serde_writes_it() {
        let event = Event::new("req_1".into(), Timestamp(1_770_000_000_000), EventKind::LlmCall);
        agrees(&event);
        let run = |text: &str| RunId::parse(text).unwrap();
        let full = Event {
            key: Some("key-abcdefgh".into()),
            run: Some(RunRecord {
                id: run("run \"1\""),
                step: 7,
                parent: Some(run("é\\")),
                origin: RunOrigin::Conversation,
            }),
            provider: "openai".into(),
            path: "POST /v1/\"x\"".into(),
            model: Some("gpt\n4".into()),
            stream: true,
            first_byte_ms: Some(3),
            usage: Some(Usage { input: 1, output: u64::MAX, estimated: true, ..Usage::default() }),
            cost: Some(NanoUsd(-5)),
            unpriced: true,
            finish: Some("stop".into()),
            tools: vec!["a\"b".into(), "c".into()],
            blocked: true,
            block_reason: Some("loop_detected".into()),
            would_block: vec![WouldBlock { reason: "r".into(), exceeded_limit: None, message: "m".into() }],
            dlp: Some(Sightings::default()),
            level: Some(0.25),
            evidence: StepEvidence::from_bytes(&[1, 2, 3]),
            saved: Some(NanoUsd(9)),
            error: Some("went wrong".into()),
            act: Some(Box::new(Act {
                what: ActKind::Kill,
                by: "jo".into(),
                target: "run:a/b".into(),
                reason: String::new(),
                proof: Some(serde_json::json!({"a": 1})),
                expires_at: None,
                detail: None,
            })),
            ..event
        };
        for length in 0..40 {
            agrees(&Event { evidence: StepEvidence::from_bytes(&vec![0xa7; length]), ..full.clone() });
        }
        agrees(&full);
    }
}
