//! Text that comes in pieces gives what it gives as a whole, prose is not held back, and hostile text costs no more than long text.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{found, found_in_pieces, scan};

const TEXTS: &[&str] = &[
    "x = 1\npassword = \"hunter2-and-more\"\ny = 2\n",
    "{\\\"password\\\": \\\"hunter2\\\", \\\"b\\\": 1}",
    "DB_PASSWORD=hunter2\\nAPI_KEY=b373398b00849944a45ab3eb93c31de5\\nX=1",
    "var acmeToken string = \"b373398b00849944a45ab3eb93c31de5\"",
    "{\"tokens\":[\"1edf45aea11a74be\", \"99317e2ea29752cb\"],\"id\":1}",
    "define('DB_PASSWORD', 'hunter2' ); setPassword(\"hunter2\") ;",
    "<acmeToken>\n    b373398b00849944a45ab3eb93c31de5\n</acmeToken>",
    "acme-apikey-b373398b00849944a45ab3eb93c31de5 and more",
    "curl -s -u me:hunter2 https://example.com --user a:b",
    "postgres://app:s3cr3tly@db:5432/app https://b373398b00849944a45ab3eb93c31de5@host/1",
    "Authorization: Bearer b373398b00849944a45ab3eb93c31de5\nAuthorization: Basic bWU6aHVudGVyMg==\n",
    "AKIA2OGYBAH6RLKQ7XWZ,\nAqXaFvWgCqRmdpprRR+frSw40tk/1lf4wkseFnER\n",
    "CREATE USER app IDENTIFIED BY 'hunter2'; openssl rsa -passin pass:hunter2 -in x",
    "the password is hunter2-x9, the token abc, Server=db;User Id=sa;Password=s3cr3tly;X=1",
    "- name: DB_PASSWORD\n  value: \"hunter2\"\n",
];

#[test]
fn one_cut_anywhere_changes_nothing() {
    for text in TEXTS {
        let whole = found(text);
        assert!(!whole.is_empty(), "{text}");
        for cut in 1..text.len() {
            assert_eq!(found_in_pieces(text, &[cut]), whole, "{cut}: {text}");
        }
        assert_eq!(found_in_pieces(text, &(1..text.len()).collect::<Vec<_>>()), whole, "each byte alone: {text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_cuts_of_any_mixture_change_nothing(
        parts in prop::collection::vec(prop_oneof![
            prop::sample::select(TEXTS).prop_map(str::to_owned),
            prop::sample::select(&["password", "api_key", "token", " = ", ": ", "=", "\"", "'", "\\", "\\n", "\n", " ", "hunter2", "Bearer ", "://", "@", "<", ">", "[", ",", "(", ")", "curl -u "][..]).prop_map(str::to_owned),
            "[a-zA-Z0-9+/=_.:-]{1,40}",
        ], 1..12),
        cuts in prop::collection::vec(0.0..1.0_f64, 0..8),
    ) {
        let text = parts.concat();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| (cut * text.len() as f64) as usize).filter(|cut| *cut > 0).collect();
        cuts.sort_unstable();
        cuts.dedup();
        prop_assert_eq!(found_in_pieces(&text, &cuts), found(&text), "{:?}", text);
    }
}

#[test]
fn prose_flows() {
    let text = "Please reset the password for me: the token is not valid, and the secret of this key, \"he said\", is private. ";
    for cut in 1..=text.len() {
        let held = cut - scan(&text.as_bytes()[..cut], 0, false).1;
        assert!(held <= 12, "{held} bytes held of {:?}", &text[..cut]);
    }
}

#[test]
fn hostile_text_costs_no_more_than_long_text() {
    for part in [
        "password=",
        "password",
        "token: \"",
        "key-",
        "a.key.",
        "tokens[\"a\",",
        "://",
        "://a:",
        "curl -u ",
        "curl ",
        "Bearer ",
        "AKIA2OGYBAH6RLKQ7XWZ ",
        "identified by '",
        "<password ",
        "password \\\"",
        "secret is ",
        "pass\\",
        "key key ",
        "api_key: '",
    ] {
        let time = |size: usize| {
            let text = part.repeat(size / part.len());
            let begin = Instant::now();
            let _ = scan(text.as_bytes(), 0, false);
            begin.elapsed()
        };
        let (short, long) = (time(3_000), time(30_000));
        assert!(
            long < short * 60 + Duration::from_millis(300),
            "{part:?}: {short:?}, then {long:?} for ten times as much"
        );
    }
}
