use std::sync::LazyLock;

use fearless_simd::{Level, Simd};
use proptest::prelude::*;

use super::*;
use crate::dlp::view::LOOK_BACK;

const WORDS: &[&str] = &["passw", "secret", "token"];
const MARKS: &[&str] = &["Q~", "AZDO"];

type IsToken = fn(TokenStart) -> bool;
type IsNumber = fn(&View<'_>, usize, u64) -> bool;
const MAY_BE: MayBe<IsToken, IsNumber> = MayBe { token: may_begin, number: |_, _, _| true };

static SEARCHES: LazyLock<Vec<WordSearch>> =
    LazyLock::new(|| levels().into_iter().map(|level| WordSearch::with(WORDS, MARKS, level)).collect());

/// What processors can do, as far as this one can: the best first.
pub(super) fn levels() -> Vec<Level> {
    let mut levels = vec![Level::new(), Level::baseline()];
    #[cfg(target_arch = "x86_64")]
    {
        levels.extend(Level::new().as_avx2().map(|avx2| avx2.level()));
        levels.extend(Level::new().as_sse4_2().map(|sse| sse.level()));
    }
    levels
}

fn triggers(text: &[u8], begin: usize, is_end: bool) -> Vec<(usize, Trigger)> {
    triggers_by(&SEARCHES[0], text, begin, is_end)
}

fn triggers_by(search: &WordSearch, text: &[u8], begin: usize, is_end: bool) -> Vec<(usize, Trigger)> {
    let mut all = Vec::new();
    let view = View { text, is_end };
    each_trigger(&view, begin, search, &MAY_BE, |trigger, at| all.push((at, trigger)));
    all.sort_unstable();
    all
}

fn may_begin(bytes: TokenStart) -> bool {
    matches!(bytes, [b's', b'k', ..] | [b'0'..=b'9' | b'A'..=b'E', ..])
}

/// What triggers are, said place by place.
fn slowly(text: &[u8], begin: usize, is_end: bool) -> Vec<(usize, Trigger)> {
    let view = View { text, is_end };
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'+' || *byte == b'/';
    let mut all = Vec::new();
    for at in begin..text.len() {
        let rest = &text[at..];
        let mut add = |is: bool, trigger| {
            if is {
                all.push((at, trigger));
            }
        };
        add(rest[0] == b'@', Trigger::Sign);
        if at >= BASE64_RUN && text[at - BASE64_RUN..at].iter().all(is_base64) {
            continue;
        }
        add(rest.starts_with(b"://"), Trigger::Url);
        add(rest.starts_with(b"-----BEGIN"), Trigger::Dashes);
        for (place, word) in WORDS.iter().enumerate() {
            let is_here = rest.get(..word.len()).is_some_and(|here| here.eq_ignore_ascii_case(word.as_bytes()));
            add(is_here, Trigger::Word(place));
        }
        for (place, mark) in MARKS.iter().enumerate() {
            add(rest.starts_with(mark.as_bytes()), Trigger::Mark(place));
        }
        if !rest[0].is_ascii_alphanumeric() || !view.is_word_start(at) {
            continue;
        }
        let is_run = rest.len() >= TOKEN_RUN && rest[..TOKEN_RUN].iter().all(|byte| (b'+'..=0x7f).contains(byte));
        add(is_run && may_begin(*rest.first_chunk().unwrap()), Trigger::Token);
        let is_country = matches!(rest, [a, b, c, d, ..] if a.is_ascii_alphabetic() && b.is_ascii_alphabetic()
            && c.is_ascii_digit() && d.is_ascii_digit());
        add(is_country, Trigger::Country);
        let digits = rest.iter().take(NUMBER_WITHIN).filter(|byte| byte.is_ascii_digit()).count() as u32;
        let is_address = digits >= ADDRESS_DIGITS && rest[..4.min(rest.len())].contains(&b'.');
        let is_open = !is_end && rest.len() <= NUMBER_WITHIN;
        add(rest[0].is_ascii_digit() && (digits >= NUMBER_DIGITS || is_address || is_open), Trigger::Digits);
    }
    all.sort_unstable();
    all
}

#[test]
fn each_kind_of_place_is_met() {
    let text =
        b"a@b http://x sk-12345678901 GB82WEST 10.0.0.1 call 415 555 2671 now; -----BEGIN X Password=\\nsk-12345678901";
    let met = triggers(text, 0, true);
    assert_eq!(met, slowly(text, 0, true));
    let others: Vec<_> = met.iter().copied().filter(|(_, trigger)| *trigger != Trigger::Digits).collect();
    let expected = [
        (1, Trigger::Sign),
        (8, Trigger::Url),
        (13, Trigger::Token),
        (28, Trigger::Country),
        (69, Trigger::Dashes),
        (82, Trigger::Word(0)),
        (93, Trigger::Token),
    ];
    assert_eq!(others, expected);
    assert!(met.contains(&(37, Trigger::Digits)) && met.contains(&(51, Trigger::Digits)), "{met:?}");
}

#[test]
fn a_picture_leads_nowhere() {
    let picture: Vec<u8> = (0..100_000_usize).map(|n| b"sk1/passwGB82+0123456789"[n * 7919 % 24]).collect();
    let text = [b"data:image/png;base64,", &picture[..], b"\" sk-1234567890"].concat();
    let met = triggers(&text, 0, true);
    assert_eq!(met, slowly(&text, 0, true));
    assert!(met.iter().all(|(at, _)| *at < BASE64_RUN + 30 || *at > text.len() - 20), "{met:?}");
    assert_eq!(met.last().map(|(at, _)| *at), Some(text.len() - 10));
}

#[test]
fn ordinary_text_leads_to_few_looks() {
    let prose = "The agent read 12 files in 2024 and wrote three of them again, \"as planned\"; see docs/notes.md. "
        .repeat(500);
    let code =
        "    let result = self.counters.get(&key).map_or(0, |count| count.saturating_add(1)); // line 42\n".repeat(500);
    for text in [prose, code] {
        let looks = triggers(text.as_bytes(), 0, true).len();
        assert!(looks * 100 < text.len(), "{looks} looks at {} bytes", text.len());
    }
}

const HOSTILE: [&str; 9] = ["sk-", "/eyJ", "7 ", "1.", "@", "-----BEGIN ", "password=", "://", "\\"];

#[test]
fn hostile_text_leads_to_a_look_for_each_byte_at_most() {
    for hostile in HOSTILE {
        let text = hostile.repeat(20_000);
        assert!(triggers(text.as_bytes(), 0, true).len() <= text.len(), "{hostile}");
    }
}

/// More places in a stretch than a list has room for.
#[test]
fn no_place_is_lost_where_there_are_many() {
    for many in HOSTILE.iter().chain(&["GB82 ", "\\GB82", "sk-123456789012 ", "passw", "Q~", "1234567 ", "\\71234567"])
    {
        let text = many.repeat(9000 / many.len());
        assert_eq!(triggers(text.as_bytes(), 0, true), slowly(text.as_bytes(), 0, true), "{many}");
    }
}

#[test]
#[ignore = "measures time, so it wants an optimised build: cargo test --release -p sprag-core -- --ignored hostile"]
fn finding_places_in_hostile_text_is_fast() {
    let words = WordSearch::new(WORDS, MARKS);
    for hostile in HOSTILE {
        let text = hostile.repeat((1 << 20) / hostile.len()).into_bytes();
        let view = View { text: &text, is_end: true };
        let best = |work: &dyn Fn() -> usize| {
            let time = |_| {
                let began = std::time::Instant::now();
                std::hint::black_box(work());
                began.elapsed()
            };
            (0..9).map(time).min().unwrap()
        };
        let plain = best(&|| text.iter().map(|byte| usize::from(*byte)).fold(0, usize::wrapping_add));
        let scanned = best(&|| {
            let mut count = 0;
            each_trigger(&view, 0, &words, &MAY_BE, |_, _| count += 1);
            count
        });
        assert!(scanned < plain * 200, "{hostile:?}: {scanned:?} beside {plain:?}");
    }
}

proptest! {
    #[test]
    fn the_fast_way_and_the_plain_way_agree(
        parts in prop::collection::vec(
            "[!-~]{0,40}|sk-[a-z0-9.]{5,40}|[0-9 .-]{1,40}|(\\\\n|\\\\\\\\)[A-Za-z0-9]{1,14}|[A-Za-z0-9+/]{200,900}|passWORD|Q~|AZDO|@|://|-----BEGIN|[é漢\x7f ]{1,9}",
            0..40,
        ),
        begin in any::<prop::sample::Index>(),
        is_end in any::<bool>(),
    ) {
        let text = parts.concat().into_bytes();
        let begin = begin.index(text.len() + 1);
        let expected = slowly(&text, begin, is_end);
        for search in SEARCHES.iter() {
            prop_assert_eq!(&triggers_by(search, &text, begin, is_end), &expected);
        }
        prop_assert!(LOOK_BACK >= BASE64_RUN);
    }
}
