use proptest::prelude::*;

use super::*;

const HOUR: u64 = 3_600_000;

fn at(text: &str) -> Timestamp {
    let moment: jiff::Timestamp = text.parse().unwrap();
    Timestamp(moment.as_millisecond())
}

fn zone(name: &str) -> Zone {
    Zone::named(name).unwrap()
}

#[test]
fn days_are_as_long_as_the_clocks_say() {
    for (name, moment, start, hours) in [
        ("UTC", "2026-03-29T12:00:00Z", "2026-03-29T00:00:00Z", 24),
        ("UTC", "2026-03-29T00:00:00Z", "2026-03-29T00:00:00Z", 24),
        ("UTC", "2026-03-28T23:59:59.999Z", "2026-03-28T00:00:00Z", 24),
        // The clocks go forward in spring and back in autumn.
        ("Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", 23),
        ("Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", 25),
        ("Europe/Berlin", "2026-10-25T22:59:59Z", "2026-10-24T22:00:00Z", 25),
        ("America/New_York", "2026-03-08T12:00:00Z", "2026-03-08T05:00:00Z", 23),
        ("America/New_York", "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", 25),
        // Days without a midnight begin at one o'clock.
        ("America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", 23),
        ("America/Sao_Paulo", "2018-11-03T12:00:00Z", "2018-11-03T03:00:00Z", 24),
        ("Asia/Beirut", "2021-03-28T12:00:00Z", "2021-03-27T22:00:00Z", 23),
        ("Africa/Cairo", "2024-04-26T12:00:00Z", "2024-04-25T22:00:00Z", 23),
        // Midnight comes twice: the day before is longer, or the day itself.
        ("America/Sao_Paulo", "2018-02-17T12:00:00Z", "2018-02-17T02:00:00Z", 25),
        ("America/Havana", "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", 25),
        // 2011-12-30 never was in Samoa.
        ("Pacific/Apia", "2011-12-30T09:00:00Z", "2011-12-29T10:00:00Z", 24),
        ("Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", 24),
        // Leap days.
        ("UTC", "2028-02-29T23:00:00Z", "2028-02-29T00:00:00Z", 24),
    ] {
        let day = zone(name).day(at(moment));
        assert_eq!(day.start, at(start), "{name} {moment}");
        assert_eq!(day.end.since_ms(day.start), hours * HOUR, "{name} {moment}");
        assert!(day.contains(at(moment)) && !day.contains(day.end) && day.contains(day.start));
    }
}

#[test]
fn months_have_their_own_lengths() {
    for (name, moment, start, end) in [
        ("UTC", "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"),
        ("UTC", "2027-02-28T23:59:59Z", "2027-02-01T00:00:00Z", "2027-03-01T00:00:00Z"),
        ("UTC", "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("UTC", "2027-01-31T00:00:00Z", "2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z"),
        ("Europe/Berlin", "2026-12-31T23:00:00Z", "2026-12-31T23:00:00Z", "2027-01-31T23:00:00Z"),
        // 743 and 745 hours.
        ("Europe/Berlin", "2026-03-15T00:00:00Z", "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z"),
        ("Europe/Berlin", "2026-10-15T00:00:00Z", "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z"),
        ("America/New_York", "2026-11-01T04:00:00Z", "2026-11-01T04:00:00Z", "2026-12-01T05:00:00Z"),
        ("America/New_York", "2026-11-01T03:59:59Z", "2026-10-01T04:00:00Z", "2026-11-01T04:00:00Z"),
    ] {
        let month = zone(name).month(at(moment));
        assert_eq!(month, Span { start: at(start), end: at(end) }, "{name} {moment}");
    }
}

#[test]
fn zones_are_known_by_name() {
    assert_eq!(zone("Europe/Berlin").to_string(), "Europe/Berlin");
    assert_eq!((Zone::default(), Zone::default().to_string()), (zone("UTC"), "UTC".to_owned()));
    for name in ["", "Mars/Olympus", "CEST+2", "../UTC", "Local"] {
        let error = Zone::named(name).unwrap_err().to_string();
        assert!(error.contains("is not a time zone; expected a name such as UTC"), "{name}: {error}");
    }
}

#[test]
fn moments_beyond_the_calendar_have_a_day_of_their_own() {
    for now in [Timestamp(i64::MAX - 1), Timestamp(i64::MIN)] {
        let day = zone("Europe/Berlin").day(now);
        assert!(day.contains(now), "{day:?}");
    }
}

/// Prints what a look at the calendar costs.
#[test]
fn a_look_at_the_calendar_is_cheap() {
    let (berlin, start) = (zone("Europe/Berlin"), at("2026-03-29T00:00:00Z"));
    let rounds = 20_000;
    for (what, look) in [("day", Zone::day as fn(&Zone, Timestamp) -> Span), ("month", Zone::month)] {
        let before = std::time::Instant::now();
        let mut sum = 0;
        for round in 0..rounds {
            sum ^= std::hint::black_box(look(&berlin, Timestamp(start.0 + round * 997))).end.0;
        }
        let ns = before.elapsed().as_nanos() / u128::try_from(rounds).unwrap();
        println!("{what}: {ns} ns ({sum})");
        assert!(ns < 200_000, "{what}: {ns} ns");
    }
}

proptest! {
    /// Days and months follow each other without a gap, and each moment is in its own.
    #[test]
    fn spans_tile_the_time(
        name in prop_oneof![
            Just("Europe/Berlin"), Just("America/New_York"), Just("America/Sao_Paulo"), Just("Africa/Cairo"),
            Just("Asia/Beirut"), Just("Australia/Lord_Howe"), Just("Pacific/Apia"), Just("UTC"), Just("America/Havana"),
        ],
        now in 0..2_500_000_000_000_i64,
    ) {
        let (zone, now) = (zone(name), Timestamp(now));
        for look in [Zone::day as fn(&Zone, Timestamp) -> Span, Zone::month] {
            let span = look(&zone, now);
            prop_assert!(span.contains(now));
            prop_assert_eq!(look(&zone, span.start), span);
            prop_assert_eq!(look(&zone, Timestamp(span.end.0 - 1)), span);
            prop_assert_eq!(look(&zone, span.end).start, span.end);
            prop_assert_eq!(look(&zone, Timestamp(span.start.0 - 1)).end, span.start);
        }
    }
}
