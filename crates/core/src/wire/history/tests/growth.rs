//! The work of reading a history follows what is new in it.

use super::*;

const STEPS: usize = 1000;
/// A new answer and a new turn, and what the client writes in another form one step later.
const NEW_ITEMS: usize = 7;

/// The body of one step, from the items before it.
fn body(items: &[String]) -> String {
    format!(r#"{{"messages":[{}]}}"#, items.join(","))
}

fn answer(step: usize) -> String {
    format!(
        r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"toolu_01a7b{step:08}","name":"read","input":{{"n":{step}}}}}]}}"#
    )
}

#[test]
fn a_thousand_steps_of_chat_parse_what_is_new() {
    let mut known = HashMap::new();
    let mut items = vec![r#"{"role":"user","content":"start"}"#.to_owned()];
    let (mut parsed, mut expected) = (0, None);
    for step in 0..STEPS {
        let history = read_body(Dialect::OpenaiChat, &body(&items), &mut known);
        assert!(history.parsed_items <= 2, "step {step} parsed {}", history.parsed_items);
        assert_eq!(history.after_answers.first().copied(), expected, "step {step}");
        assert!(history.marks.len() <= MARK_PLACES);
        parsed += history.parsed_items;
        expected = Some(history.followed_by(&reply(&format!("answer {step}"), &[])).after);
        items.push(format!(r#"{{"role":"assistant","content":"answer {step}"}}"#));
        items.push(format!(r#"{{"role":"user","content":"more {step}"}}"#));
    }
    assert!(parsed < 2 * STEPS + 2, "{parsed}");
}

/// As Claude Code writes it: the last turns carry a cache mark, older ones flip from blocks to a string, and a system
/// message stands in the middle.
#[test]
fn a_thousand_steps_with_moving_marks_parse_what_is_new() {
    let mut known = HashMap::new();
    let mark = r#","cache_control":{"type":"ephemeral"}"#;
    let turn = |step: usize, age: usize| match (step, age) {
        (0, 0) => format!(r#"{{"role":"user","content":[{{"type":"text","text":"start"{mark}}}]}}"#),
        (0, _) => r#"{"role":"user","content":"start"}"#.to_owned(),
        (_, age) => {
            let mark = if age < 2 { mark } else { "" };
            format!(
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_01a7b{:08}","content":"ok {step}"{mark}}}]}}"#,
                step - 1
            )
        }
    };
    let (mut old, mut expected, mut parsed) = (Vec::new(), None, 0);
    for step in 0..STEPS {
        // What is older than three turns no longer changes.
        let mut items: Vec<String> = old.clone();
        for recent in step.saturating_sub(2)..=step {
            items.push(turn(recent, step - recent));
            if recent == 0 {
                let content = if step % 2 == 0 {
                    r##""# Environment""##
                } else {
                    r##"[{"type":"text","text":"# Environment"}]"##
                };
                items.push(format!(r#"{{"role":"system","content":{content}}}"#));
            }
            if recent < step {
                items.push(answer(recent));
            }
        }
        let history = read_body(Dialect::Anthropic, &body(&items), &mut known);
        assert!(history.parsed_items <= NEW_ITEMS, "step {step} parsed {}", history.parsed_items);
        assert_eq!(history.after_answers.first().copied(), expected, "step {step}");
        parsed += history.parsed_items;
        let arguments = format!(r#"{{"n":{step}}}"#);
        let id = format!("toolu_01a7b{step:08}");
        expected = Some(history.followed_by(&reply("", &[(&id, "read", &arguments)])).after);
        if step >= 2 {
            let settled = step - 2;
            old.push(turn(settled, 3));
            if settled == 0 {
                old.push(r##"{"role":"system","content":"# Environment"}"##.to_owned());
            }
            old.push(answer(settled));
        }
    }
    assert!(parsed <= NEW_ITEMS * STEPS, "{parsed}");
    assert!(known.len() <= MARK_PLACES * STEPS);
}
