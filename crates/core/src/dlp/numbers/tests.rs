//! Own examples: numbers that are published for tests, and texts that only look like them.

use proptest::prelude::*;

use super::{DIGITS_WITHIN, at_digits, may_begin};
use crate::dlp::catalogue::KINDS;
use crate::dlp::hits::Hits;
use crate::dlp::scan::{Scan, Scanner};
use crate::dlp::view::{LOOK_BACK, View};

/// A text, and what is found in it.
type Case = (&'static str, &'static [(&'static str, &'static str)]);

const CARDS: &[Case] = &[
    ("pay with 4111111111111111.", &[("CREDIT_CARD", "4111111111111111")]),
    ("4111 1111 1111 1111, 12/27", &[("CREDIT_CARD", "4111 1111 1111 1111")]),
    ("card 5555-5555-5555-4444", &[("CREDIT_CARD", "5555-5555-5555-4444")]),
    ("3782 822463 10005", &[("CREDIT_CARD", "3782 822463 10005")]),
    ("{\"n\":30569309025904}", &[("CREDIT_CARD", "30569309025904")]),
    ("a,6011111111111117,b", &[("CREDIT_CARD", "6011111111111117")]),
    ("卡号4111111111111111。", &[("CREDIT_CARD", "4111111111111111")]),
    ("{\\\"pan\\\":\\\"x\\\\n4111111111111111\\\"}", &[("CREDIT_CARD", "4111111111111111")]),
    ("caf\\u00e94111111111111111 ", &[("CREDIT_CARD", "4111111111111111")]),
    ("order_id: 4111111111111111", &[]),
    ("card order_id: 4111111111111111", &[("CREDIT_CARD", "4111111111111111")]),
    ("maestro 6304000000000000", &[("CREDIT_CARD", "6304000000000000")]),
    ("see 6304000000000000", &[]),
    ("4222222222222 pieces", &[]),
    ("visa 4222222222222", &[("CREDIT_CARD", "4222222222222")]),
    ("4111111111111112", &[]),
    ("4503599627370496", &[]),
    ("1731679200000", &[]),
    ("4111111111111111.25", &[]),
    ("0.4111111111111111", &[]),
    ("x4111111111111111", &[]),
    ("4111111111111111_a", &[]),
    ("/item/4111111111111111", &[]),
    ("4111-1111 1111-1111", &[]),
    ("card-4111-1111-1111-1111", &[("CREDIT_CARD", "4111-1111-1111-1111")]),
    ("12 4111 1111 1111 1111", &[("CREDIT_CARD", "4111 1111 1111 1111")]),
    ("0000 4111 1111 1111 1111 0000", &[]),
    ("4444444444444444", &[]),
    ("\"tracking_id\": [\"114641927258\"]", &[]),
];

const ACCOUNTS: &[Case] = &[
    ("to DE89370400440532013000 now", &[("IBAN", "DE89370400440532013000")]),
    ("to GB29 NWBK 6016 1331 9268 19 before", &[("IBAN", "GB29 NWBK 6016 1331 9268 19")]),
    ("gb29-nwbk-6016-1331-9268-19.", &[("IBAN", "gb29-nwbk-6016-1331-9268-19")]),
    ("\\nNO9386011117947\\n", &[("IBAN", "NO9386011117947")]),
    ("DE89370400440532013001", &[]),
    ("DE8937040044053201300", &[]),
    ("xDE89370400440532013000", &[]),
    ("+DE89370400440532013000", &[]),
    ("DE89370400440532013000=", &[]),
    ("no10 downing street in london", &[]),
];

const PERSONS: &[Case] = &[
    ("SSN 536-90-4399.", &[("SSN", "536-90-4399")]),
    ("it is 536 90 4399, yes", &[("SSN", "536 90 4399")]),
    ("ssn: 536904399", &[("SSN", "536904399")]),
    ("n: 536904399", &[]),
    ("rows 12 536 90 4399 17", &[]),
    ("666-12-3456 000-12-3456 900-12-3456 123-00-4567 123-45-0000 078-05-1120", &[]),
    ("2024-03-0912", &[]),
    ("part 536-90-4399-2", &[]),
];

const PHONES: &[Case] = &[
    ("ring +44 20 7946 0958 now", &[("PHONE", "+44 20 7946 0958")]),
    ("+14155552671", &[("PHONE", "+14155552671")]),
    ("+46 (0)8 928 571 38 fax", &[("PHONE", "+46 (0)8 928 571 38")]),
    ("at (212) 555-0123, or", &[("PHONE", "(212) 555-0123")]),
    ("TTY (1-800-555-0199)", &[("PHONE", "1-800-555-0199")]),
    ("212.555.0123x459", &[("PHONE", "212.555.0123x459")]),
    ("212-555-0123 ext. 12 ok", &[("PHONE", "212-555-0123 ext. 12")]),
    ("Suite 12 1-800-555-0199", &[("PHONE", "1-800-555-0199")]),
    ("Suite 12 1 (800) 555-0199", &[("PHONE", "1 (800) 555-0199")]),
    ("FL 33064 (954) 555-0136", &[("PHONE", "(954) 555-0136")]),
    ("Phone:\n0393 1144137\n", &[("PHONE", "0393 1144137")]),
    ("customer_phone=5551234567", &[("PHONE", "5551234567")]),
    ("call me at 0494 92 82 32 please", &[("PHONE", "0494 92 82 32")]),
    ("{\"text\": \"call 0494 92 82 32\"}", &[("PHONE", "0494 92 82 32")]),
    ("{\"text\":\"0.099915\"} {'message': '0494 92 82 32'} {\\\"answer\\\":\\\"77.810034\\\"}", &[]),
    ("{\"Desk Lamp\": \"6817146515\"}", &[]),
    ("416 60 039 office, then", &[("PHONE", "416 60 039")]),
    ("082 490 1693-Office, then", &[("PHONE", "082 490 1693")]),
    ("+290 51234", &[]),
    ("tel +290 51234", &[("PHONE", "+290 51234")]),
    ("+999 123 456 789", &[]),
    ("1e+12025550123", &[]),
    ("+1202555012", &[]),
    ("1731679200 seconds", &[]),
    ("message 1731679200", &[]),
    ("call on 2024-03-09 12 times", &[]),
    ("call it 09.03.2024 then", &[]),
    ("version 1.2.3.4567", &[]),
    ("call order 123-45678", &[]),
    ("phone_id: 12345678", &[]),
    ("37.7749295 -122.4194155", &[]),
    ("contact us 1-800-FLOWERS (356-9377)", &[]),
];

const MACHINES: &[Case] = &[
    ("at 10.1.1.5:8080", &[("PRIVATE_IP", "10.1.1.5")]),
    ("172.16.0.1, 172.31.255.254", &[("PRIVATE_IP", "172.16.0.1"), ("PRIVATE_IP", "172.31.255.254")]),
    ("(192.168.1.1)", &[("PRIVATE_IP", "192.168.1.1")]),
    ("it is 192.168.1.1.", &[("PRIVATE_IP", "192.168.1.1")]),
    ("192.168.1.1/repo", &[("PRIVATE_IP", "192.168.1.1")]),
    ("10.0.0.1-10.0.0.9", &[("PRIVATE_IP", "10.0.0.1"), ("PRIVATE_IP", "10.0.0.9")]),
    ("\\n10.0.0.1\\n", &[("PRIVATE_IP", "10.0.0.1")]),
    ("192.168.1.0/24 10.0.0.0/8", &[]),
    ("127.0.0.1 0.0.0.0 169.254.169.254 192.0.2.1 198.51.100.7 203.0.113.9 8.8.8.8 172.32.0.1", &[]),
    ("10.0.0.1.2 1.10.0.0.1 v10.0.0.1 10.0.0.1-beta 10.0.19041.1 10.0.0.256 10.00.0.1", &[]),
];

const ALL: &[&[Case]] = &[CARDS, ACCOUNTS, PERSONS, PHONES, MACHINES];

#[test]
fn numbers_are_found_and_others_are_not() {
    for (text, expected) in ALL.iter().copied().flatten() {
        let scan = Scanner::default().scan(text.as_bytes(), 0, true);
        assert_eq!(shown(text.as_bytes(), &scan), expected.to_vec(), "{text}");
    }
}

#[test]
fn a_cut_changes_nothing() {
    for (text, expected) in ALL.iter().copied().flatten() {
        let text = text.as_bytes();
        for cut in 0..=text.len() {
            let first = Scanner::default().scan(&text[..cut], 0, false);
            let second = Scanner::default().scan(text, first.settled, true);
            let found = [shown(text, &first), shown(text, &second)].concat();
            assert_eq!(found, expected.to_vec(), "{} cut at {cut}", String::from_utf8_lossy(text));
        }
    }
}

#[test]
fn byte_by_byte_gives_the_same() {
    let text = ALL.iter().copied().flatten().map(|(text, _)| *text).collect::<Vec<_>>().join(" ;\n");
    let text = text.as_bytes();
    let whole = Scanner::default().scan(text, 0, true);
    let (mut found, mut from) = (Vec::new(), 0);
    for end in 1..=text.len() {
        let context = from - from.min(LOOK_BACK);
        let scan = Scanner::default().scan(&text[context..end], from - context, end == text.len());
        found.extend(shown(&text[context..], &scan).into_iter().map(|(kind, value)| (kind, value.to_owned())));
        from = context + scan.settled;
    }
    let expected: Vec<_> = shown(text, &whole).into_iter().map(|(kind, value)| (kind, value.to_owned())).collect();
    assert_eq!(found, expected);
    assert!(expected.len() > 40);
}

#[test]
fn prose_flows() {
    let text = b"in 2024 we sold 12 cars, 1,200 bikes at 10:30, and 3.5 boats on 2024-03-09 for 20 people";
    for end in 1..text.len() {
        let scan = Scanner::default().scan(&text[..end], 0, false);
        let held = String::from_utf8_lossy(&text[scan.settled..end]);
        let is_short = held.len() <= "2024-03-09 ".len();
        assert!(is_short, "{held} is held back at {end}");
    }
}

#[test]
fn little_is_held_back_of_any_row() {
    for row in
        ["1 ", "12 34 ", "4111 1111 ", "4111 1111 1111 1111 ", "+49 1 2 3 4 ", "(212) ", "1 (2) ", "536 90 4399 "]
    {
        let text = row.repeat(30);
        for end in 1..text.len() {
            let settled = Scanner::default().scan(&text.as_bytes()[..end], 0, false).settled;
            assert!(end - settled <= 64, "{} of {row} at {end}", end - settled);
        }
    }
}

#[test]
#[ignore = "measures; run with --release"]
fn rows_cost_no_more_when_they_are_long() {
    for row in ["1 ", "4111 1111 ", "212-555-0123 ", "call 555 1234 ", "10.", "DE89 ", "a@b.", "http://10.0.0.1/"] {
        let spent = |count: usize| {
            let text = row.repeat(count);
            let begin = std::time::Instant::now();
            std::hint::black_box(Scanner::default().scan(text.as_bytes(), 0, true));
            begin.elapsed()
        };
        let best = |count: usize| (0..5).map(|_| spent(count)).min().unwrap();
        let (short, long) = (best(10_000), best(160_000));
        assert!(long < short * 64, "{row}: {short:?}, {long:?}");
    }
}

#[test]
fn dates_are_no_numbers() {
    let may_begin = |text: &str| {
        let at = text.find("20").unwrap();
        let bits = text[at..].bytes().take(DIGITS_WITHIN).enumerate();
        let bits = bits.fold(0, |bits, (place, byte)| bits | u64::from(byte.is_ascii_digit()) << place);
        may_begin(&View { text: text.as_bytes(), is_end: true }, at, bits)
    };
    for date in ["on 2024-03-09 at 12:30:15.250 in the morning", "\\n2024/03/09 and so on, for some more words"] {
        assert!(!may_begin(date), "{date}");
    }
    for other in ["+2024-03-09", "2024-03-091", "202-555-0123", "2024 0309", "20240309", "\\u2024-03-09"] {
        assert!(may_begin(&format!("call {other} and then some more words")), "{other}");
    }
}

proptest! {
    #[test]
    fn where_no_number_may_begin_none_is_found(
        before in "(call|card|tel|ssn|[a-z]|\\\\n|\\\\u00)? ?[+(\"]?",
        number in "(19|20|10|172|192|[0-9]{1,3})[0-9]{0,4}([-./ ()]{1,2}[0-9]{1,5}){0,6}",
    ) {
        let text = format!("{before}{number} and then some more words");
        let view = View { text: text.as_bytes(), is_end: true };
        for at in (0..before.len() + number.len()).filter(|at| view.text[*at].is_ascii_digit() && view.is_word_start(*at)) {
            let bits = view.text[at..].iter().take(DIGITS_WITHIN).enumerate();
            let bits = bits.fold(0, |bits, (place, byte)| bits | u64::from(byte.is_ascii_digit()) << place);
            let mut hits = Hits::new();
            hits.trigger = at;
            at_digits(&view, at, &mut hits);
            prop_assert!(hits.findings.is_empty() || may_begin(&view, at, bits), "{} at {}", text, at);
        }
    }
}

fn shown<'t>(text: &'t [u8], scan: &Scan) -> Vec<(&'static str, &'t str)> {
    let show = |found: &crate::dlp::Finding| {
        let value = std::str::from_utf8(&text[found.start..found.end]).unwrap();
        (KINDS[usize::from(found.entity.0)].id, value)
    };
    scan.findings.iter().map(show).collect()
}
