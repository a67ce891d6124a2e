//! How much is kept of a run.

use super::*;
use crate::limits::RUN_BYTES;

const TOOLS: [&str; 6] = ["read_file", "grep", "run_tests", "apply_patch", "list_directory", "web_search"];

/// Made-up words.
fn prose(seed: u64, bytes: u64) -> String {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::new();
    while (text.len() as u64) < bytes {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        text.extend((0..3 + random % 6).map(|at| char::from(b'a' + (random >> (5 * at + 3)) as u8 % 26)));
        text.push(' ');
    }
    text
}

/// A step of an agent that works: calls and results of up to 4 KB, or answers and prompts of up to 2 KB.
fn work(run: &mut Run, number: u64, has_tools: bool) -> usize {
    let (said, result) = (prose(number, 150 + number * 131 % 1800), prose(number + 5000, 200 + number * 577 % 3800));
    let arguments = |number: u64| format!(r#"{{"path":"src/{}.rs","line":{number}}}"#, prose(number, 20));
    let tool = |number: u64| TOOLS[number as usize % TOOLS.len()];
    let mut turn = Turn { opening: 1, items: 2 * number as usize, ..Turn::default() };
    if has_tools && number > 0 {
        let (name, arguments) = (tool(number).into(), arguments(number).into());
        let call = ToolUse { id: number.to_string().into(), name, arguments };
        turn.said = Some(Said { text: "".into(), calls: vec![call] });
        let text = result.into();
        turn.results = vec![ToolResult { call_id: number.to_string().into(), text, ..ToolResult::default() }];
    } else {
        turn.said = (number > 0).then(|| Said { text: said.into(), ..Said::default() });
        turn.user_text = result.into();
    }
    assert_eq!(run.send(&turn, Some(number << 20)), [""; 0], "step {number}");
    let next = number + 1;
    if has_tools {
        run.answer("", &[(tool(next), &arguments(next))], true);
    } else {
        run.answer(&prose(next, 150 + next * 131 % 1800), &[], true);
    }
    run.watch.bytes()
}

#[test]
fn a_run_that_works_stays_small_however_long_it_is() {
    for (has_tools, is_declared) in [(true, false), (true, true), (false, false), (false, true)] {
        let mut run = Run { is_declared, ..Run::new(Preset::Balanced) };
        let bytes: Vec<usize> = (0..1000).map(|number| work(&mut run, number, has_tools)).collect();
        let most = bytes.iter().max().copied().unwrap_or(0);
        let seen = [1, 5, 20, 50, 1000].map(|steps| bytes[steps - 1]);
        let bound = if is_declared { RUN_BYTES } else { RUN_BYTES / 4 * 3 };
        assert!(most <= bound, "{most}: {seen:?}, tools {has_tools}, declared {is_declared}");
        assert!(bytes[0] <= RUN_BYTES / 2, "after one step: {seen:?}");
    }
}

#[test]
fn a_run_is_bounded_whatever_it_does() {
    let mut run = Run::new(Preset::Strict);
    run.rules.similar.needs_second_signal = true;
    for number in 0..1000_u64 {
        // Conversations, tools and words that never come again, so that all lists fill up.
        let letter = |n: u8| char::from(b'a' + n % 26);
        let text: String = (0..200).map(|n: u8| format!("word{}{} ", letter(n), letter(n / 26))).collect();
        let results = (0..20).map(|n| ToolResult { text: format!("{number} {n}").into(), ..ToolResult::default() });
        let said = Said { text: text.clone().into(), ..Said::default() };
        let turn = Turn { opening: number, user_text: text.clone().into(), said: Some(said), ..Turn::default() };
        run.send(
            &Turn { results: results.collect(), opening: number, said: turn.said.clone(), ..Turn::default() },
            None,
        );
        run.send(&turn, Some(number));
        run.answer(&text, &[(&format!("{number}{}", "tool".repeat(20)), "{}")], true);
        assert!(run.watch.bytes() <= 2 * RUN_BYTES, "{number}: {}", run.watch.bytes());
    }
}

#[test]
fn answers_that_nobody_carries_back_are_few() {
    let mut run = Run::new(Preset::Strict);
    for number in 0..1000 {
        let text: String = (0..300).map(|word| format!("word{} ", number * 300 + word)).collect();
        run.send(&Turn { user_text: text.clone().into(), opening: number, ..Turn::default() }, Some(number));
        run.answer(&text, &[("read", "{}")], true);
        assert!(run.watch.bytes() <= 2 * RUN_BYTES, "{number}: {}", run.watch.bytes());
    }
}
