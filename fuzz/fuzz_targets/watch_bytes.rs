//! Any bytes as a watch that another node has packed: reading them never panics, what is read stays within its bounds, goes
//! on as a watch, and comes out as the bytes that went in.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sprag_core::limits::RUN_BYTES;
use sprag_core::loops::{AgentWatch, Arrival, Departure, Preset, Rules, RunWatch, ToolResult, Turn, decide};
use sprag_core::policy::Habits;
use sprag_core::time::Timestamp;
use sprag_core::wire::Reply;

fuzz_target!(|data: &[u8]| {
    let rules = Rules::preset(Preset::Strict);
    let result = ToolResult { call_id: "1".into(), text: "Error: no such file".into(), ..ToolResult::default() };
    let turn = Turn { opening: 1, results: vec![result], is_continued: true, items: 2, ..Turn::default() };
    let now = Timestamp(1_770_000_000_000);
    let arrival = Arrival { step: 9, now, end: Some(1), turn: &turn, is_declared: true };
    let reply = Reply { text: "I will look again.".into(), ..Reply::default() };
    let departure = Departure { step: 9, now, reply: &reply, is_answered: true, cost: None, tokens: 7 };
    if let Some(mut watch) = RunWatch::unpack(data) {
        assert_eq!(watch.pack(), data);
        assert!(watch.bytes() <= 2 * RUN_BYTES);
        let mut merged = RunWatch::merge(&watch, RunWatch::default());
        for watch in [&mut watch, &mut merged] {
            let findings = watch.arrive(&arrival, &rules).findings;
            decide(findings, &rules, watch.strikes(), 9);
            watch.depart(&departure);
        }
        let both = RunWatch::merge(&watch, merged);
        assert!(both.bytes() <= 2 * RUN_BYTES && RunWatch::unpack(&both.pack()).is_some());
    }
    if let Some(mut watch) = AgentWatch::unpack(data) {
        assert_eq!(watch.pack(), data);
        watch.arrive(1, false, &arrival, &rules);
        watch.depart(1, &departure, &rules);
        let both = AgentWatch::merge(&watch, watch.clone());
        assert!(AgentWatch::unpack(&both.pack()).is_some());
    }
    if let Some(habits) = Habits::unpack(data) {
        assert_eq!(habits.pack(), data);
    }
});
