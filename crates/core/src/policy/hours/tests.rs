use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    let zoned: jiff::Timestamp = text.parse().unwrap();
    Timestamp(zoned.as_millisecond())
}

fn hours(zone: &str, windows: &[&str]) -> Hours {
    let windows = windows.iter().map(|text| text.parse().unwrap()).collect();
    Hours { mode: Mode::Enforce, windows, zone: Zone::named(zone).unwrap() }
}

fn opens(hours: &Hours, now: &str) -> String {
    let refusal = hours.check(at(now)).expect_err(now);
    refusal.fields["opens_at"].as_str().unwrap().to_owned()
}

#[test]
fn windows_are_read_and_written() {
    for (text, shown) in [
        ("mon-fri 09:00-18:00", "mon-fri 09:00-18:00"),
        ("Monday-FRIDAY 9-18", "mon-fri 09:00-18:00"),
        ("  mon - fri   9:00 - 18:00 ", "mon-fri 09:00-18:00"),
        ("22:00-06:00", "22:00-06:00"),
        ("9-17", "09:00-17:00"),
        ("sat,sun", "sat-sun"),
        ("SUN, sat", "sat-sun"),
        ("fri-mon", "mon,fri-sun"),
        ("mon,wed,fri-sat 0-24", "mon,wed,fri-sat"),
        ("tuesday 20:30-24:00", "tue 20:30-24:00"),
        ("fri 22:00-00:00", "fri 22:00-00:00"),
        ("00:00-24:00", "mon-sun"),
        ("mon-sun", "mon-sun"),
        ("sun-sat 1-2", "01:00-02:00"),
        ("thu-thu", "thu"),
    ] {
        let window: HoursWindow = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(window.to_string(), shown, "{text}");
        assert_eq!(shown.parse(), Ok(window));
    }
}

#[test]
fn other_texts_are_refused_with_the_reason() {
    for (text, expected) in [
        ("", "`` is not a window of hours"),
        ("   ", "is not a window of hours"),
        ("mon 9", "is not a window of hours"),
        ("9-17 mon", "is not a window of hours"),
        ("mon fri", "is not a window of hours"),
        ("mon 9-17 x", "is not a window of hours"),
        ("mo", "`mo` is not a day"),
        ("mond", "`mond` is not a day"),
        ("mon,", "`` is not a day"),
        ("mon--fri", "`-fri` is not a day"),
        ("always", "`always` is not a day"),
        ("25-26", "`25` is not a time"),
        ("9-24:01", "`24:01` is not a time"),
        ("24:00-06:00", "`24:00` is not a time"),
        ("9:60-10", "`9:60` is not a time"),
        ("9:5-10", "`9:5` is not a time"),
        ("009-10", "`009` is not a time"),
        ("9--10", "`-10` is not a time"),
        ("9-٣", "`٣` is not a time"),
        ("09:00-09:00", "begins and ends at the same time; write 00:00-24:00 for the whole day"),
        ("mon 0-0", "begins and ends at the same time"),
    ] {
        let error = text.parse::<HoursWindow>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_week_of_office_hours_and_nights() {
    // 2026-03-02 is a Monday. Minutes at both ends, midnight, and the day that a night belongs to.
    let hours = hours("UTC", &["mon-fri 09:00-18:00", "fri 22:00-06:00", "sun"]);
    for (moment, is_allowed) in [
        ("2026-03-02T08:59:59Z", false),
        ("2026-03-02T09:00:00Z", true),
        ("2026-03-02T17:59:59.999Z", true),
        ("2026-03-02T18:00:00Z", false),
        ("2026-03-06T05:00:00Z", false),
        ("2026-03-06T21:59:59Z", false),
        ("2026-03-06T22:00:00Z", true),
        ("2026-03-07T00:00:00Z", true),
        ("2026-03-07T05:59:59Z", true),
        ("2026-03-07T06:00:00Z", false),
        ("2026-03-07T23:00:00Z", false),
        ("2026-03-08T00:00:00Z", true),
        ("2026-03-08T23:59:59Z", true),
        ("2026-03-09T00:00:00Z", false),
    ] {
        assert_eq!(hours.allows(at(moment)), is_allowed, "{moment}");
    }
    assert!(Hours::default().allows(at("2026-03-02T03:00:00Z")), "no windows are no limit");
}

#[test]
fn a_refusal_says_which_hours_and_when_they_begin() {
    let hours = hours("Europe/Berlin", &["mon-fri 09:00-18:00", "sat 10-12"]);
    let refusal = hours.check(at("2026-03-07T11:00:00.500Z")).unwrap_err();
    assert_eq!(
        refusal.message,
        "this agent may call during its allowed hours only: mon-fri 09:00-18:00, sat 10:00-12:00 (Europe/Berlin); they \
         begin again on Monday, 9 March 2026 at 09:00"
    );
    assert_eq!(refusal.reason, Reason::OutsideAllowedHours);
    let expected = serde_json::json!({"allowed_hours": ["mon-fri 09:00-18:00", "sat 10:00-12:00"],
        "time_zone": "Europe/Berlin", "opens_at": "2026-03-09T09:00:00+01:00"});
    assert_eq!(Value::from(refusal.fields), expected);
    // From 12:00:00.5 on Saturday to 09:00 on Monday.
    assert_eq!(refusal.retry_after_seconds, Some(45 * 3600));
}

#[test]
fn the_clocks_count_on_days_that_they_are_changed() {
    // Berlin, 2026-03-29: 02:00 to 03:00 does not exist. 2026-10-25: it exists twice.
    let early = hours("Europe/Berlin", &["01:30-02:15"]);
    assert!(early.allows(at("2026-03-29T00:59:00Z")) && !early.allows(at("2026-03-29T01:00:00Z")));
    assert!(early.allows(at("2026-10-25T00:10:00Z")), "02:10, the first");
    assert!(!early.allows(at("2026-10-25T00:20:00Z")));
    assert_eq!(opens(&early, "2026-10-25T00:20:00Z"), "2026-10-25T02:00:00+01:00", "where the clocks went back");
    assert!(early.allows(at("2026-10-25T01:10:00Z")), "02:10, the second");
    assert_eq!(opens(&early, "2026-10-25T01:20:00Z"), "2026-10-26T01:30:00+01:00");

    let skipped = hours("Europe/Berlin", &["sun 02:15-02:45"]);
    assert_eq!(opens(&skipped, "2026-03-29T00:30:00Z"), "2026-04-05T02:15:00+02:00");
    let begun = hours("Europe/Berlin", &["02:30-05:00"]);
    assert_eq!(opens(&begun, "2026-03-29T00:30:00Z"), "2026-03-29T03:00:00+02:00", "the clocks go on in it");
    // No midnight on 2018-11-04 in Sao Paulo: the day begins at 01:00.
    let sunday = hours("America/Sao_Paulo", &["sun"]);
    assert_eq!(opens(&sunday, "2018-11-04T02:59:00Z"), "2018-11-04T01:00:00-02:00");
}

#[test]
fn windows_are_bounded() {
    assert_eq!(hours("UTC", &["mon"; HOURS_WINDOWS]).problem(), None);
    let many = hours("UTC", &["mon"; HOURS_WINDOWS + 1]);
    assert_eq!(many.problem(), Some("more than 64 windows".to_owned()));
}

#[test]
fn moments_beyond_the_calendar_are_refused_without_an_opening() {
    let refusal = hours("UTC", &["mon"]).check(Timestamp(i64::MAX)).unwrap_err();
    assert!(refusal.message.ends_with("they do not begin again") && refusal.retry_after_seconds.is_none());
}

fn windows() -> impl Strategy<Value = Vec<HoursWindow>> {
    let window = (1..128_u8, 0..1440_u16, 0..=1440_u16)
        .prop_filter_map("empty", |(days, from, to)| (from != to).then_some(HoursWindow { days, from, to }));
    proptest::collection::vec(window, 1..4)
}

proptest! {
    /// Around the days on which clocks change, and everywhere else.
    #[test]
    fn the_opening_is_the_first_allowed_minute(
        windows in windows(),
        zone in prop_oneof![
            Just("Europe/Berlin"), Just("America/New_York"), Just("America/Sao_Paulo"), Just("Asia/Beirut"),
            Just("Africa/Cairo"), Just("Australia/Lord_Howe"), Just("UTC"), Just("Asia/Kathmandu"),
        ],
        minute in prop_oneof![25_400_000..29_900_000_i64, 29_579_000..29_582_000_i64],
    ) {
        let hours = Hours { mode: Mode::Enforce, windows: windows.into(), zone: Zone::named(zone).unwrap() };
        let now = Timestamp(minute * 60_000);
        let Err(refusal) = hours.check(now) else { return Ok(()) };
        let opening = at(refusal.fields["opens_at"].as_str().unwrap());
        prop_assert!(opening > now && hours.allows(opening));
        // Not one minute before it, nor any other since now.
        let minutes = (opening.0 - now.0) / 60_000;
        for back in (1..=minutes).filter(|back| *back <= 300 || back % 7 == 0) {
            let before = Timestamp(opening.0 - back * 60_000);
            prop_assert!(!hours.allows(before), "{back} minutes before {}", refusal.message);
        }
        prop_assert_eq!(refusal.retry_after_seconds, Some(u32::try_from((opening.0 - now.0) / 1000).unwrap()));
    }
}
