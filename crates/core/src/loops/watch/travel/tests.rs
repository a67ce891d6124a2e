use super::*;

#[test]
fn nothing_seen_takes_few_bytes() {
    assert!(RunWatch::unpack(&RunWatch::default().pack()).is_some());
    assert!(AgentWatch::unpack(&AgentWatch::default().pack()).is_some());
}
