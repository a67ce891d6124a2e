//! The way into a shared history, against the real engine: everything arrives, and counts once.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use sprag_core::event::Event;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_testkit::{Cable, CableCut, ClickHouseServer};

use super::link::Link;
use super::{ClickHouseAddress, ClickHouseHistory, ClickHouseSettings, schema};
use crate::data_dir::DataDir;
use crate::history::HistorySettings;
use crate::history::Recorded;
use crate::history::Spender;
use crate::history::samples::step;
use crate::history::spool::When;

/// The tables that sum requests and money.
const SUMS: [&str; 8] =
    ["runs", "agent_totals", "spend", "slot_totals", "key_spend", "minute_totals", "agent_minutes", "agent_days"];

/// Nothing is sent before a flush, and nothing is too old.
fn settings(url: &str) -> (HistorySettings, ClickHouseSettings) {
    let clickhouse = ClickHouseSettings {
        address: ClickHouseAddress::parse(url).unwrap(),
        batch_events: 10,
        batch_age: Duration::from_secs(3600),
        patience: Duration::from_secs(100),
    };
    let patient = HistorySettings {
        flush_interval: Duration::from_secs(3600),
        retention_days: 36_500,
        run_retention_days: 36_500,
        spend_retention_days: 36_500,
        minute_retention_days: 36_500,
        clickhouse: Some(clickhouse.clone()),
        ..HistorySettings::default()
    };
    (patient, clickhouse)
}

fn open(dir: &Path, url: &str) -> ClickHouseHistory {
    let (settings, clickhouse) = settings(url);
    ClickHouseHistory::open(Arc::new(DataDir::open(dir).unwrap()), settings, clickhouse).unwrap()
}

/// A call of 1000 nano-dollars with a key, now, so that charts keep it.
fn call(id: &str, run: &str) -> Event {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Event { at: Timestamp(now.as_millis() as i64), key: Some("key-1".into()), ..step(id, run, 1) }
}

fn link(url: &str) -> Link {
    Link::new(ClickHouseAddress::parse(url).unwrap())
}

fn ask(link: &Link, sql: &str) -> String {
    String::from_utf8(link.select(sql, &[]).unwrap()).unwrap().trim().to_owned()
}

/// So many calls are on record everywhere, each of them once.
fn assert_counted(link: &Link, calls: u64, when: &str) {
    let found = ask(link, "SELECT count(), sum(cost_nano) FROM (SELECT id, cost_nano FROM events LIMIT 1 BY id)");
    assert_eq!(found, format!("{calls}\t{}", calls * 1000), "events {when}");
    for table in SUMS {
        let found = ask(link, &format!("SELECT sum(steps), sum(cost_nano) FROM {table}"));
        assert_eq!(found, format!("{calls}\t{}", calls * 1000), "{table} {when}");
    }
}

#[test]
fn what_many_nodes_record_is_summed_once() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = ClickHouseServer::start(&dir.path().join("clickhouse")) else { return };
    let url = server.url("events_of_all");
    let nodes = ["one", "two"].map(|name| open(&dir.path().join(name), &url));
    for round in 0..3 {
        for (number, node) in nodes.iter().enumerate() {
            for n in 0..7 {
                node.own().record(&call(&format!("{round}-{number}-{n}"), "shared run"), When::Now);
            }
            node.flush().unwrap();
        }
    }
    let link = link(&url);
    assert_counted(&link, 42, "from two nodes");
    assert_eq!(ask(&link, "SELECT count(), uniqExact(node) FROM runs"), "2\t2", "a row for each node");
    assert_eq!(ask(&link, "SELECT uniqExact(run_hash) FROM run_hours"), "1");
    let status = nodes[0].status().shared.unwrap();
    assert_eq!((status.sent, status.waiting, status.problem), (21, 0, None));
    nodes[0].flush().unwrap();
    assert_counted(&link, 42, "after nothing new");
}

#[test]
fn a_line_cut_at_any_point_loses_and_doubles_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = ClickHouseServer::start(&dir.path().join("clickhouse")) else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let cable = runtime.block_on(Cable::to(([127, 0, 0, 1], server.port()).into())).unwrap();
    let direct = server.url("cut");
    let through = format!("http://{}/cut", cable.address());
    let link = link(&direct);
    let node = dir.path().join("node");
    open(&node, &direct).flush().unwrap();
    let mut calls = 0;
    let mut points = 0;
    for how in [CableCut::Before, CableCut::After] {
        for at in 0.. {
            // Two batches: the cut falls before, between, inside and after them.
            cable.cut_at(at, how);
            let history = open(&node, &through);
            for _ in 0..15 {
                calls += 1;
                history.own().record(&call(&calls.to_string(), &format!("run {}", calls % 4)), When::Now);
            }
            let outcome = history.flush();
            assert_eq!(outcome.is_err(), history.status().shared.unwrap().problem.is_some());
            drop(history);
            if outcome.is_ok() {
                break;
            }
            points += 1;
            // Another process finds what the one before left.
            let history = open(&node, &direct);
            history.flush().unwrap();
            assert_counted(&link, calls, &format!("after a cut {how:?} turn {at}"));
        }
    }
    assert!(points > 40, "only {points} points");
    assert_eq!(ask(&link, "SELECT count() - uniqExact(id) FROM events"), "0", "blocks of the same name are taken once");
}

#[test]
fn a_server_that_is_away_is_caught_up_with() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut server) = ClickHouseServer::start(&dir.path().join("clickhouse")) else { return };
    let url = server.url("away");
    let history = open(&dir.path().join("node"), &url);
    history.own().record(&call("before", "r"), When::Now);
    history.flush().unwrap();
    server.kill();
    for n in 0..25 {
        history.own().record(&call(&n.to_string(), "r"), When::Now);
    }
    let error = history.flush().unwrap_err().to_string();
    assert!(error.contains("ClickHouse at http://127.0.0.1"), "{error}");
    let status = history.status().shared.unwrap();
    assert_eq!((status.waiting, status.sent, status.dropped), (25, 1, 0));
    assert!(status.problem.is_some() && status.oldest_waiting.is_some(), "{status:?}");
    server.restart();
    history.flush().unwrap();
    assert_counted(&link(&url), 26, "after the server was killed");
    let status = history.status().shared.unwrap();
    assert_eq!((status.waiting, status.problem, status.oldest_waiting), (0, None, None));
}

#[test]
fn a_server_that_lost_everything_gets_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = ClickHouseServer::start(&dir.path().join("clickhouse")) else { return };
    let url = server.url("lost");
    let history = open(&dir.path().join("node"), &url);
    for n in 0..25 {
        history.own().record(&call(&n.to_string(), "r"), When::Now);
    }
    history.flush().unwrap();
    let link = link(&url);
    link.command("DROP DATABASE lost SYNC").unwrap();
    history.own().record(&call("after", "r"), When::Now);
    history.flush().unwrap_err();
    history.flush().unwrap();
    assert_counted(&link, 26, "in the new database");
}

#[test]
fn detail_is_given_up_before_money_when_too_much_waits() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut server) = ClickHouseServer::start(&dir.path().join("clickhouse")) else { return };
    let url = server.url("full");
    let (mut settings, clickhouse) = settings(&url);
    settings.spool_bytes = 100 << 10;
    let data = Arc::new(DataDir::open(&dir.path().join("node")).unwrap());
    let history = ClickHouseHistory::open(data, settings, clickhouse).unwrap();
    history.flush().unwrap();
    server.kill();
    for n in 0..1000 {
        history.own().record(&call(&n.to_string(), "r"), When::Now);
        if n % 50 == 0 {
            history.settle().unwrap();
        }
    }
    history.flush().unwrap_err();
    history.prune(Timestamp(0)).unwrap();
    history.flush().unwrap_err();
    let status = history.status().shared.unwrap();
    assert!(status.dropped > 0 && status.waiting <= 100 && status.waiting > 0, "{status:?}");
    assert_eq!(status.dropped + status.waiting, 1000);
    server.restart();
    history.flush().unwrap();
    let link = link(&url);
    assert_eq!(ask(&link, "SELECT count() FROM events"), status.waiting.to_string());
    for table in SUMS {
        assert_eq!(ask(&link, &format!("SELECT sum(cost_nano) FROM {table}")), "1000000", "{table}");
    }
}

#[test]
fn several_nodes_may_set_the_tables_up_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = ClickHouseServer::start(&dir.path().join("clickhouse")) else { return };
    let url = server.url("at_once");
    let prepare = |days| {
        let (settings, _) = settings(&url);
        schema::prepare(&link(&url), &HistorySettings { retention_days: days, ..settings })
    };
    thread::scope(|scope| {
        let starting: Vec<_> = (0..4).map(|_| scope.spawn(|| prepare(36_500))).collect();
        starting.into_iter().for_each(|node| node.join().unwrap().unwrap());
    });
    let kept = "SELECT engine_full FROM system.tables WHERE database = 'at_once' AND name = 'events'";
    assert!(ask(&link(&url), kept).contains("toIntervalDay(36500)"));
    prepare(7).unwrap();
    assert!(ask(&link(&url), kept).contains("toIntervalDay(7)"), "a new configuration changes how long");
    let tables = "SELECT count(), max(number) FROM migrations FINAL";
    assert_eq!(ask(&link(&url), tables), "3\t3");
}

#[test]
fn tables_of_a_newer_version_take_what_this_one_sends() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = ClickHouseServer::start(&dir.path().join("clickhouse")) else { return };
    let url = server.url("newer");
    let beside = open(&dir.path().join("beside"), &url);
    beside.own().record(&call("before", "r"), When::Now);
    beside.flush().unwrap();
    // The next version adds to them, as every migration does.
    let link = link(&url);
    for change in [
        "ALTER TABLE events ADD COLUMN mood String DEFAULT 'fine'",
        "ALTER TABLE node_runs ADD COLUMN mood String DEFAULT 'fine'",
        "CREATE TABLE moods (node String, mood String) ENGINE = MergeTree ORDER BY node",
        "INSERT INTO migrations (number) VALUES (99)",
    ] {
        link.command(change).unwrap();
    }
    // One node runs all along, another starts meanwhile.
    let fresh = open(&dir.path().join("fresh"), &url);
    for (number, node) in [&beside, &fresh].into_iter().enumerate() {
        node.own().record(&call(&format!("after-{number}"), "r"), When::Now);
        node.flush().unwrap();
        assert_eq!(node.status().shared.unwrap().problem, None);
    }
    assert_counted(&link, 3, "beside a newer version");
    assert_eq!(fresh.spent(Spender::Everything, Timestamp(0)).unwrap(), NanoUsd(3000));
    assert_eq!(ask(&link, "SELECT max(number) FROM migrations"), "99");
}

#[test]
fn a_wrong_password_is_told_and_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("clickhouse");
    let Some(server) = ClickHouseServer::start_for(&data, "sprag", "right") else { return };
    let history = open(&dir.path().join("node"), &server.url("guarded"));
    history.own().record(&call("1", "r"), When::Now);
    history.flush().unwrap();
    assert_counted(&link(&server.url("guarded")), 1, "with the right password");
    let wrong = server.url("guarded").replace("right", "wrong-pw");
    let error = open(&dir.path().join("other"), &wrong).flush().unwrap_err().to_string();
    assert!(error.contains("check user and password") && !error.contains("wrong-pw"), "{error}");
}

#[test]
fn money_is_exact_to_the_nano_dollar() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = ClickHouseServer::start(&dir.path().join("clickhouse")) else { return };
    let url = server.url("exact");
    let history = open(&dir.path().join("node"), &url);
    for n in 0..3 {
        // Past what a double can tell apart.
        history.own().record(&Event { cost: Some(NanoUsd((1 << 53) + 1)), ..call(&n.to_string(), "r") }, When::Now);
    }
    history.flush().unwrap();
    for table in SUMS {
        let found = ask(&link(&url), &format!("SELECT sum(cost_nano) FROM {table}"));
        assert_eq!(found, (3 * ((1_i64 << 53) + 1)).to_string(), "{table}");
    }
}

#[test]
fn what_was_sent_leaves_the_node_and_what_waits_stays() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut server) = ClickHouseServer::start(&dir.path().join("clickhouse")) else { return };
    let url = server.url("left");
    let history = open(&dir.path().join("node"), &url);
    let (first, later) = (call("0", "r"), |hours: i64| Timestamp(call("", "r").at.0 + hours * 3_600_000));
    history.own().record(&first, When::Now);
    (1..20).for_each(|n| assert_eq!(history.own().record(&call(&n.to_string(), "r"), When::Now), Recorded::Whole));
    history.flush().unwrap();
    server.kill();
    history.own().record(&call("waits", "r"), When::Now);
    history.settle().unwrap();
    assert_eq!(history.prune(later(0)).unwrap().events, 0, "not at once");
    assert_eq!(history.prune(later(2)).unwrap().events, 19, "all but the last one that was sent");
    server.restart();
    history.own().record(&call("after", "r"), When::Now);
    history.flush().unwrap();
    assert_counted(&link(&url), 22, "after the node let go of them");
}

#[test]
fn the_server_forgets_what_is_too_old() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = ClickHouseServer::start(&dir.path().join("clickhouse")) else { return };
    let url = server.url("old");
    let (mut settings, clickhouse) = settings(&url);
    settings.retention_days = 30;
    let data = Arc::new(DataDir::open(&dir.path().join("node")).unwrap());
    let history = ClickHouseHistory::open(data, settings, clickhouse).unwrap();
    history.flush().unwrap();
    let now = call("now", "r");
    let before = |id: &str, days: i64| Event { at: Timestamp(now.at.0 - days * 86_400_000), ..call(id, "r") };
    [now.clone(), before("kept", 29), before("gone", 32)]
        .iter()
        .for_each(|event| assert_eq!(history.own().record(event, When::Now), Recorded::Whole));
    history.flush().unwrap();
    let link = link(&url);
    link.command("OPTIMIZE TABLE events FINAL").unwrap();
    assert_eq!(ask(&link, "SELECT groupArray(id) FROM (SELECT id FROM events ORDER BY id)"), "['kept','now']");
    assert_eq!(ask(&link, "SELECT sum(steps) FROM runs"), "3", "sums stay longer");
}

#[test]
fn no_batch_holds_more_events_than_it_may() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = ClickHouseServer::start(&dir.path().join("clickhouse")) else { return };
    let url = server.url("batches");
    let history = open(&dir.path().join("node"), &url);
    history.flush().unwrap();
    let link = link(&url);
    link.command("CREATE TABLE inserts (into String, rows UInt64) ENGINE = MergeTree ORDER BY into").unwrap();
    let tables = ["events".to_owned()].into_iter().chain(SUMS.map(|name| format!("node_{name}")));
    // A view is told of each insert by itself.
    for table in tables.clone() {
        let told = format!("SELECT '{table}' AS into, count() AS rows FROM {table}");
        link.command(&format!("CREATE MATERIALIZED VIEW of_{table} TO inserts AS {told}")).unwrap();
    }
    // Each in a run of its own, so that there are as many sums of runs as events.
    for n in 0..25 {
        history.own().record(&call(&n.to_string(), &format!("run {n}")), When::Now);
    }
    history.flush().unwrap();
    let inserts = |table: &str| {
        let rows =
            format!("SELECT groupArray(rows) FROM (SELECT rows FROM inserts WHERE into = '{table}' ORDER BY rows)");
        ask(&link, &rows)
    };
    assert_eq!(inserts("events"), "[5,10,10]", "`batch_events` is 10");
    assert_eq!(inserts("node_runs"), "[5,10,10]", "and so many sums of runs at most");
    for table in tables {
        let most = ask(&link, &format!("SELECT max(rows) FROM inserts WHERE into = '{table}'"));
        assert!((1..=10).contains(&most.parse::<u64>().unwrap()), "{table}: {most}");
    }
}

#[test]
fn every_table_forgets_what_it_need_not_keep() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = ClickHouseServer::start(&dir.path().join("clickhouse")) else { return };
    let url = server.url("kept");
    // Far from each other, for a month of some tables goes only as a whole.
    let (events, minutes, runs, spend) = (40, 2, 100, 200);
    let (settings, _) = settings(&url);
    let settings = HistorySettings {
        retention_days: events,
        minute_retention_days: minutes,
        run_retention_days: runs,
        spend_retention_days: spend,
        ..settings
    };
    let link = link(&url);
    schema::prepare(&link, &settings).unwrap();
    const DAY_MS: i64 = 86_400_000;
    let now = call("", "r").at.0;
    let mut seen = Vec::new();
    // The column that tells the age of a row, and how many milliseconds one of it is.
    for (table, column, unit_ms, days) in [
        ("events", "at", 1, events),
        ("notes", "at", 1, events),
        ("run_hours", "hour", 3_600_000, runs),
        ("run_acts", "at", 1, runs),
        ("node_runs", "last_at", 1, runs),
        ("node_agent_totals", "last_at", 1, spend),
        ("node_spend", "slot", 900_000, spend),
        ("node_slot_totals", "slot", 900_000, spend),
        ("node_key_spend", "slot", 900_000, spend),
        ("node_agent_days", "day", DAY_MS, spend),
        ("node_minute_totals", "minute", 60_000, minutes),
        ("node_agent_minutes", "minute", 60_000, minutes),
    ] {
        seen.push(table);
        let days = i64::from(days);
        for age in [0, days - 1, days + 33] {
            let at = (now - age * DAY_MS) / unit_ms;
            // Rows of one key would replace each other.
            let (columns, values) = match column {
                "last_at" => ("agent, last_at", format!("'{age}', {at}")),
                _ => (column, at.to_string()),
            };
            link.command(&format!("INSERT INTO {table} ({columns}) VALUES ({values})")).unwrap();
        }
        link.command(&format!("OPTIMIZE TABLE {table} FINAL")).unwrap();
        let age = format!("intDiv({now}, {DAY_MS}) - intDiv({column} * {unit_ms}, {DAY_MS})");
        let ages = ask(&link, &format!("SELECT arraySort(groupArray({age})) FROM {table}"));
        assert_eq!(ages, format!("[0,{}]", days - 1), "{table} keeps {days} days");
    }
    let kept = "SELECT groupArray(name) FROM (SELECT name FROM system.tables
        WHERE database = currentDatabase() AND engine_full LIKE '%TTL%' ORDER BY name)";
    seen.sort_unstable();
    assert_eq!(ask(&link, kept), format!("['{}']", seen.join("','")), "no other table forgets");
}
