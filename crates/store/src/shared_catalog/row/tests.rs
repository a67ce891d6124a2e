use serde_json::json;
use sprag_core::policy::KillKind;

use super::*;

fn stamp(at: i64, node: &str, gone_at: Option<i64>) -> Stamp {
    Stamp { at, node: node.into(), gone_at }
}

fn kill_row() -> Row {
    let kill = Kill {
        id: "kill_1".into(),
        scope: "run:bot/my task".parse().unwrap(),
        kind: KillKind::Pause,
        reason: "why \"so\"".into(),
        by: "anna".into(),
        at: Timestamp(5),
        expires_at: None,
        proof: Some(json!({"steps": [1, 2]}).into()),
    };
    let name = RowName::kill(&kill.scope);
    let content = Some(Content::Kill(Box::new(kill), vec![0, 7, u64::MAX]));
    Row { name, stamp: stamp(12, "ab12", None), content }
}

#[test]
fn the_later_stamp_wins_then_the_node_then_what_left() {
    let order = [stamp(1, "b", None), stamp(1, "b", Some(9)), stamp(1, "c", None), stamp(2, "a", None)];
    for (place, earlier) in order.iter().enumerate() {
        assert!(earlier.beats(None) && !earlier.beats(Some(earlier)));
        for later in &order[place + 1..] {
            assert!(later.beats(Some(earlier)) && !earlier.beats(Some(later)), "{earlier:?} {later:?}");
        }
    }
}

#[test]
fn a_row_comes_back_as_it_was_written() {
    let row = kill_row();
    let text = write(&row).unwrap();
    assert!(text.starts_with("[1,12,\"ab12\",0,{"), "{text}");
    assert_eq!(read(row.name.clone(), text.as_bytes()).unwrap(), row);
    let gone = Row { stamp: stamp(13, "ab12", Some(14)), content: None, ..row };
    assert_eq!(write(&gone).unwrap(), "[1,13,\"ab12\",14,null]");
    assert_eq!(read(gone.name.clone(), b"[1,13,\"ab12\",14,null]").unwrap(), gone);
}

#[test]
fn garbage_is_no_row() {
    let text = write(&kill_row()).unwrap();
    let name = kill_row().name;
    let other = |kind, name: &str| RowName::new(kind, name);
    for bad in ["", "nonsense", "[]", "[1]", "{}", "[1,-1,\"a\",0,null]", "[1,1,\"\",0,{}]", "[1,1,\"a b\",0,{}]"] {
        assert_eq!(read(name.clone(), bad.as_bytes()), Err(Unreadable::Form), "{bad}");
    }
    assert_eq!(read(other(RowKind::Kill, "all"), text.as_bytes()), Err(Unreadable::Form), "of another scope");
    assert_eq!(read(other(RowKind::Kill, "whatever"), b"[1,1,\"a\",5,null]"), Err(Unreadable::Form));
    assert_eq!(read(other(RowKind::Policy, "a\nb"), b"[1,1,\"a\",0,{}]"), Err(Unreadable::Form));
    assert_eq!(read(name.clone(), text.replace("[1,", "[2,").as_bytes()), Err(Unreadable::OtherFormat(2)));
    let long = format!("[1,1,\"a\",0,\"{}\"]", "x".repeat(SHARED_ROW_BYTES));
    assert_eq!(read(name, long.as_bytes()), Err(Unreadable::TooLong));
    let made = Content::Made(json!({"text": "x".repeat(SHARED_ROW_BYTES)}));
    let row = Row { name: other(RowKind::Channel, "ops"), stamp: stamp(1, "a", None), content: Some(made) };
    assert_eq!(write(&row), None);
}

#[test]
fn names_say_what_they_are_of() {
    let account: AccountId = "run:bot/my task run".parse().unwrap();
    let name = RowName::adjustment(&account, Timestamp(7), "ab");
    assert_eq!(name.adjusted(), Some((Timestamp(7), "ab", account)));
    let run = RunKey { agent: AgentName::parse("bot").unwrap(), id: sprag_core::id::RunId::parse("my task").unwrap() };
    assert_eq!(RowName::mark(&run).run(), Some(run));
}

#[test]
fn secrets_of_channels_are_not_shown_by_accident() {
    let shown = format!("{:?}", Content::Made(json!({"url": "https://hooks.example.com/secret"})));
    assert_eq!(shown, "Made");
}
