//! `[responses.reasons.NAME]`: how a stop for one reason is put.

use std::collections::BTreeMap;

use sprag_core::limits::REFUSAL_TEXT_BYTES;
use sprag_core::wire::{Form, Manner, Reason};

use crate::config::file;
use crate::config::problem::{Problem, nearest};

/// The manners by reason. An entry that says nothing is left out.
pub(super) fn resolve_all(
    written: &BTreeMap<String, file::Stop>,
    problems: &mut Vec<Problem>,
) -> BTreeMap<Reason, Manner> {
    let mut manners = BTreeMap::new();
    for (name, stop) in written {
        let path = format!("responses.reasons.{name}");
        let stops = || Reason::ALL.into_iter().filter(|reason| reason.is_policy());
        let Some(reason) = stops().find(|reason| reason.as_str() == name) else {
            let names: Vec<&str> = stops().map(Reason::as_str).collect();
            let near = nearest(name, &names).map_or("loop_detected", |(near, _)| near);
            let problem = Problem::name(path, format!("\"{name}\" is no reason to stop a request"));
            problems.push(problem.hint(format!("the nearest is \"{near}\"; known: {}", names.join(", "))));
            continue;
        };
        let manner = Manner { form: stop.form.map(Form::from), status: stop.status, text: stop.text.clone() };
        check_status(reason, &manner, &path, problems);
        check_text(manner.text.as_deref(), &path, problems);
        if manner != Manner::default() {
            manners.insert(reason, manner);
        }
    }
    manners
}

fn check_status(reason: Reason, manner: &Manner, path: &str, problems: &mut Vec<Problem>) {
    let form = manner.form.unwrap_or(reason.form());
    if manner.status.is_some() && form == Form::Assistant {
        let problem = Problem::value(format!("{path}.status"), "an answer of the assistant always has status 200");
        problems.push(problem.hint("set form = \"error\" beside it, or leave the status out"));
    }
}

fn check_text(text: Option<&str>, path: &str, problems: &mut Vec<Problem>) {
    let Some(text) = text else { return };
    let mut complain = |message: String, hint: &str| {
        problems.push(Problem::value(format!("{path}.text"), message).hint(hint));
    };
    if text.trim().is_empty() {
        complain("the text is empty".to_owned(), "leave it out to keep Sprag's own");
    }
    if text.len() > REFUSAL_TEXT_BYTES {
        complain(format!("the text is longer than {REFUSAL_TEXT_BYTES} bytes"), "say it in fewer words");
    }
    if let Some(name) = placeholders(text).find(|name| *name != "message") {
        complain(format!("there is no {{{name}}} to put in"), "the only one is {message}, what Sprag would have said");
    }
}

/// Words in braces.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| {
        let (name, _) = rest.split_once('}')?;
        let is_word = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        is_word.then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::sandbox::Sandbox;

    fn loaded(text: &str) -> BTreeMap<Reason, Manner> {
        Sandbox::new(text).load().unwrap_or_else(|problems| panic!("{problems}")).settings.responses.reasons
    }

    #[test]
    fn a_reason_can_be_put_in_another_way() {
        let reasons = loaded(
            "[responses.reasons.loop_detected]\nform = \"assistant\"\ntext = \"Stopped. {message}\"\n\
             [responses.reasons.run_killed]\nstatus = 429\n[responses.reasons.rate_limited]\n",
        );
        let loop_detected =
            Manner { form: Some(Form::Assistant), status: None, text: Some("Stopped. {message}".into()) };
        let run_killed = Manner { form: None, status: Some(429), text: None };
        let expected = [(Reason::LoopDetected, loop_detected), (Reason::RunKilled, run_killed)];
        assert_eq!(reasons, BTreeMap::from(expected));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let cases = [
            ("loop_detcted]\nstatus = 429", "\"loop_detcted\" is no reason to stop a request", "\"loop_detected\""),
            ("upstream_cut]\nstatus = 500", "is no reason to stop a request", "known: loop_detected"),
            ("agent_inactive]\nstatus = 403", "always has status 200", "form = \"error\""),
            ("loop_detected]\nform = \"assistant\"\nstatus = 200", "200 is out of range", "400 to 599"),
            ("loop_detected]\nform = \"assistant\"\nstatus = 400", "always has status 200", "leave the status out"),
            ("loop_detected]\nform = \"asistant\"", "expected \"error\" or \"assistant\"", "did you mean"),
            ("loop_detected]\ntext = \" \"", "the text is empty", "leave it out"),
            ("loop_detected]\ntext = \"{reason}: {message}\"", "there is no {reason} to put in", "{message}"),
            ("loop_detected]\nstaus = 400", "unknown key", "did you mean `status`?"),
        ];
        for (text, message, hint) in cases {
            let complaint = Sandbox::new(&format!("[responses.reasons.{text}")).complaint();
            assert!(complaint.contains(message) && complaint.contains(hint), "{text}: {complaint}");
        }
        assert_eq!(placeholders("{\"a\": 1} {} {A} {a b} {message}").collect::<Vec<_>>(), ["message"]);
    }

    #[test]
    fn a_text_may_be_as_long_as_the_bound_and_no_longer() {
        let file = |bytes: usize| format!("[responses.reasons.run_killed]\ntext = \"{}\"", "x".repeat(bytes));
        assert_eq!(loaded(&file(REFUSAL_TEXT_BYTES)).len(), 1);
        assert!(Sandbox::new(&file(REFUSAL_TEXT_BYTES + 1)).complaint().contains("longer than 4096 bytes"));
    }

    #[test]
    fn a_variable_can_say_it_too() {
        let sandbox = Sandbox::new("").with_env(&[("SPRAG_RESPONSES_REASONS_RUN_KILLED_STATUS", "429")]);
        assert_eq!(sandbox.load().unwrap().settings.responses.reasons[&Reason::RunKilled].status, Some(429));
    }
}
