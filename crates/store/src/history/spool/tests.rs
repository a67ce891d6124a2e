use sprag_core::limits::{SPOOL_NOTED_BYTES, SPOOL_SEGMENT_BYTES};

use super::*;
use crate::history::line::{Line, read_line};
use crate::history::samples::{request, step};

fn ids_in(spool: &Spool) -> Vec<String> {
    let mut ids = Vec::new();
    for segment in segment::list(&spool.dir).unwrap() {
        let path = segment::path_of(&spool.dir, segment.number);
        let id_of = |line: &[u8]| match read_line(line)? {
            Line::Event(event) => Some(event.id),
            Line::Open(call) => Some(format!("open {}", call.id)),
        };
        segment::for_each_line(&path, |line| ids.extend(id_of(line))).unwrap();
    }
    ids
}

#[test]
fn an_event_is_in_the_file_when_record_returns() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(dir.path(), u64::MAX, SPOOL_SEGMENT_BYTES).unwrap();
    assert_eq!(spool.record(&step("a", "r", 1), When::Now), (Recorded::Whole, false));
    assert_eq!(ids_in(&spool), ["a"]);
}

#[test]
fn a_file_is_closed_at_its_bound() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(dir.path(), u64::MAX, 1000).unwrap();
    let mut closed = 0;
    for n in 0..10 {
        closed += usize::from(spool.record(&step(&format!("e{n}"), "r", n), When::Now).1);
    }
    let files = segment::list(dir.path()).unwrap();
    assert!(closed >= 4, "{files:?}");
    assert!(files.iter().all(|file| file.bytes < 2000), "{files:?}");
    assert_eq!(ids_in(&spool).len(), 10);
    assert_eq!(spool.status().bytes, files.iter().map(|file| file.bytes).sum::<u64>());
    assert_eq!(spool.status().segments, files.len());
}

#[test]
fn a_full_spool_keeps_money_and_drops_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let mut line = Vec::new();
    assert!(write_event(&mut line, &step("a", "r", 1)));
    let spool = Spool::open(dir.path(), line.len() as u64, SPOOL_SEGMENT_BYTES).unwrap();
    assert_eq!(spool.record(&step("a", "r", 1), When::Now).0, Recorded::Whole, "at the bound");
    assert_eq!(spool.record(&step("b", "r", 2), When::Now).0, Recorded::MoneyOnly, "past it");
    assert_eq!(spool.record(&request("c"), When::Now).0, Recorded::Dropped);
    assert_eq!(ids_in(&spool), ["a", "b"]);
    let status = spool.status();
    assert_eq!((status.whole, status.money_only, status.dropped, status.lost), (1, 1, 1, 0));

    spool.close_current();
    let (closed, _) = spool.oldest_closed().unwrap();
    spool.remove(closed);
    assert_eq!(spool.record(&step("d", "r", 3), When::Now).0, Recorded::Whole, "room again");
}

#[test]
fn an_event_past_the_bound_of_a_line_leaves_its_money() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(dir.path(), u64::MAX, SPOOL_SEGMENT_BYTES).unwrap();
    let mut line = Vec::new();
    let mut event = step("a", "r", 1);
    event.error = Some(String::from("x"));
    assert!(write_event(&mut line, &event));
    event.error = Some("x".repeat(EVENT_LINE_BYTES + 1 - line.len() + 1));
    assert_eq!(spool.record(&event, When::Now).0, Recorded::Whole, "at the bound");
    let longer = Event { id: "b".into(), error: event.error.map(|text| text + "x"), ..step("b", "r", 2) };
    assert_eq!(spool.record(&longer, When::Now).0, Recorded::MoneyOnly, "past it");
    assert_eq!(ids_in(&spool), ["a", "b"]);
}

#[test]
fn money_is_held_up_to_its_bound_while_nothing_can_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(&dir.path().join("spool"), u64::MAX, SPOOL_SEGMENT_BYTES).unwrap();
    fs::remove_dir(dir.path().join("spool")).unwrap();

    assert_eq!(spool.record(&step("first", "r", 1), When::Now).0, Recorded::Held);
    assert!(spool.status().problem.is_some());
    assert!(spool.recover().is_err());
    let mut held = 1;
    while spool.record(&step(&format!("{held:08}"), "r", 1), When::Now).0 == Recorded::Held {
        held += 1;
        assert!(held < SPOOL_HELD_BYTES as u64 / 100, "no bound");
    }
    let status = spool.status();
    assert!(status.held_bytes <= SPOOL_HELD_BYTES && status.held_bytes > SPOOL_HELD_BYTES - 300);
    assert_eq!((status.whole, status.money_only, status.lost), (0, held, 1));

    fs::create_dir(dir.path().join("spool")).unwrap();
    spool.recover().unwrap();
    assert_eq!(spool.record(&step("last", "r", 1), When::Now).0, Recorded::Whole);
    let ids = ids_in(&spool);
    assert_eq!(ids.len() as u64, held + 1);
    assert_eq!((ids[0].as_str(), ids[ids.len() - 1].as_str()), ("first", "last"));
    assert_eq!(spool.status().held_bytes, 0);
}

#[test]
fn numbers_go_on_after_what_was_left_behind() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(dir.path(), u64::MAX, SPOOL_SEGMENT_BYTES).unwrap();
    spool.record(&step("a", "r", 1), When::Now);
    drop(spool);
    let spool = Spool::open(dir.path(), u64::MAX, SPOOL_SEGMENT_BYTES).unwrap();
    assert!(spool.status().bytes > 0);
    spool.record(&step("b", "r", 2), When::Now);
    assert_eq!(ids_in(&spool), ["a", "b"]);
    assert_eq!(spool.oldest_closed().unwrap().0.number, 1);
}

fn opening(id: &str) -> OpenCall {
    let event = step(id, "r", 1);
    OpenCall {
        id: event.id,
        at: event.at,
        agent: event.agent,
        key: None,
        run: event.run,
        provider: event.provider,
        dialect: event.dialect,
        path: event.path,
        model: event.model,
        reserved: sprag_core::money::NanoUsd(5000),
    }
}

#[test]
fn a_call_is_open_from_its_line_to_its_event() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(dir.path(), u64::MAX, SPOOL_SEGMENT_BYTES).unwrap();
    assert_eq!(spool.open_call(opening("a"), When::Now), (true, false));
    assert_eq!(spool.open_call(opening("a"), When::Now), (true, false), "again, with another amount");
    assert_eq!(spool.status().open_calls, 1);
    spool.record(&step("a", "r", 1), When::Now);
    assert_eq!(ids_in(&spool), ["open a", "open a", "a"]);
    assert_eq!((spool.status().open_calls, spool.status().whole), (0, 1));
}

#[test]
fn open_calls_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(dir.path(), u64::MAX, SPOOL_SEGMENT_BYTES).unwrap();
    with_lock(&spool.writer, |writer| writer.open.extend(1..OPEN_CALLS as u128));
    assert!(spool.open_call(opening("a"), When::Now).0, "at the bound");
    assert!(!spool.open_call(opening("b"), When::Now).0, "one past it");
    assert!(spool.open_call(opening("a"), When::Now).0, "a known one takes no room");
    spool.record(&step("a", "r", 1), When::Now);
    assert!(spool.open_call(opening("b"), When::Now).0, "room again");
    assert_eq!(spool.status().unopened, 1);
}

#[test]
fn beginnings_are_not_held_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(&dir.path().join("spool"), u64::MAX, SPOOL_SEGMENT_BYTES).unwrap();
    fs::remove_dir(dir.path().join("spool")).unwrap();
    assert!(!spool.open_call(opening("a"), When::Now).0);
    assert!(spool.status().problem.is_some());
    assert!(!spool.open_call(opening("a"), When::Now).0);
    assert_eq!((spool.status().held_bytes, spool.status().open_calls, spool.status().unopened), (0, 0, 2));
    assert_eq!(spool.record(&step("a", "r", 1), When::Now).0, Recorded::Held, "the money of its end is");
}

#[test]
fn a_call_whose_event_was_lost_stays_open() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(&dir.path().join("spool"), u64::MAX, 1).unwrap();
    assert!(spool.open_call(opening("a"), When::Now).0);
    fs::remove_dir_all(dir.path().join("spool")).unwrap();
    spool.record(&step("first", "r", 1), When::Now);
    with_lock(&spool.writer, |writer| writer.held.resize(SPOOL_HELD_BYTES, b'\n'));
    assert_eq!(spool.record(&step("a", "r", 1), When::Now).0, Recorded::Lost);
    assert_eq!(spool.status().open_calls, 1, "the next process charges it");
}

#[test]
fn what_is_kept_in_memory_is_what_the_file_says() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(dir.path(), u64::MAX, SPOOL_SEGMENT_BYTES).unwrap();
    for number in 1..4 {
        assert!(spool.open_call(opening(&number.to_string()), When::Now).0);
        spool.record(&step(&number.to_string(), "r", number), When::Now);
    }
    spool.record(&request("4"), When::Now);
    spool.close_current();
    let (segment, path) = spool.oldest_closed().unwrap();
    let mut on_disk = Vec::new();
    segment::for_each_line(&path, |line| on_disk.extend(read_line(line))).unwrap();
    assert_eq!(on_disk.len(), 7);
    assert_eq!(spool.take_lines(segment), Some(on_disk));
    assert_eq!(spool.take_lines(segment), None);
}

#[test]
fn a_file_with_a_line_in_its_short_form_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut line = Vec::new();
    assert!(write_event(&mut line, &step("a", "r", 1)));
    let spool = Spool::open(dir.path(), line.len() as u64, SPOOL_SEGMENT_BYTES).unwrap();
    assert_eq!(spool.record(&step("a", "r", 1), When::Now).0, Recorded::Whole);
    assert_eq!(spool.record(&step("b", "r", 2), When::Now).0, Recorded::MoneyOnly);
    spool.close_current();
    let (segment, _) = spool.oldest_closed().unwrap();
    assert_eq!(spool.take_lines(segment), None);
    assert_eq!(ids_in(&spool), ["a", "b"]);
}

#[test]
fn what_is_noted_is_written_together_and_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(dir.path(), u64::MAX, SPOOL_SEGMENT_BYTES).unwrap();
    assert!(spool.open_call(opening("a"), When::Together).0);
    assert_eq!(spool.record(&step("b", "r", 1), When::Together), (Recorded::Whole, false));
    assert!(segment::list(dir.path()).unwrap().is_empty(), "not yet");
    let status = spool.status();
    assert!(status.bytes > 0, "it counts already");
    assert_eq!((status.open_calls, status.whole), (1, 1));
    assert!(!spool.write_out());
    assert_eq!(ids_in(&spool), ["open a", "b"]);
    assert_eq!(spool.status().bytes, status.bytes);

    spool.record(&step("a", "r", 1), When::Together);
    spool.record(&step("c", "r", 2), When::Now);
    assert_eq!(ids_in(&spool), ["open a", "b", "a", "c"], "what must be there at once takes along what was noted");
    spool.record(&step("d", "r", 3), When::Together);
    spool.close_current();
    assert_eq!(ids_in(&spool).len(), 5, "and so does whoever empties the files");
    let (segment, _) = spool.oldest_closed().unwrap();
    assert_eq!(spool.take_lines(segment).map(|lines| lines.len()), Some(5));
}

#[test]
fn a_file_is_closed_at_its_bound_by_what_was_noted() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(dir.path(), u64::MAX, 1).unwrap();
    spool.record(&step("a", "r", 1), When::Together);
    assert!(spool.write_out(), "it can be emptied");
    assert!(!spool.write_out(), "nothing to write");
}

#[test]
fn what_is_noted_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(dir.path(), u64::MAX, SPOOL_SEGMENT_BYTES).unwrap();
    let mut line = Vec::new();
    let mut event = step("a", "r", 1);
    event.error = Some(String::new());
    assert!(write_event(&mut line, &event));
    // Two lines that fill the room to the last byte.
    event.error = Some("x".repeat(SPOOL_NOTED_BYTES / 2 - line.len()));
    spool.record(&event, When::Together);
    spool.record(&Event { id: "b".into(), ..event }, When::Together);
    assert!(segment::list(dir.path()).unwrap().is_empty(), "at the bound");
    spool.record(&step("c", "r", 3), When::Together);
    assert_eq!(ids_in(&spool), ["a", "b", "c"], "one past it is written, and so is all before it");
}

#[test]
fn what_was_noted_and_cannot_be_written_leaves_its_money() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(&dir.path().join("spool"), u64::MAX, SPOOL_SEGMENT_BYTES).unwrap();
    fs::remove_dir(dir.path().join("spool")).unwrap();
    assert!(spool.open_call(opening("a"), When::Together).0);
    assert_eq!(spool.record(&step("b", "r", 1), When::Together).0, Recorded::Whole);
    spool.write_out();
    let status = spool.status();
    assert!(status.problem.is_some());
    assert_eq!((status.open_calls, status.unopened), (0, 1), "it is not on record as under way");
    assert_eq!((status.whole, status.money_only, status.lost), (0, 1, 0));
    assert!(status.held_bytes > 0);
    fs::create_dir(dir.path().join("spool")).unwrap();
    spool.recover().unwrap();
    assert_eq!(ids_in(&spool), ["b"]);
}

#[test]
fn a_noted_event_that_is_lost_leaves_its_call_open() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(&dir.path().join("spool"), u64::MAX, 1).unwrap();
    assert!(spool.open_call(opening("a"), When::Now).0);
    fs::remove_dir_all(dir.path().join("spool")).unwrap();
    spool.record(&step("a", "r", 1), When::Together);
    with_lock(&spool.writer, |writer| writer.held.resize(SPOOL_HELD_BYTES, b'\n'));
    spool.write_out();
    assert_eq!((spool.status().open_calls, spool.status().lost), (1, 1), "the next process charges it");
}
