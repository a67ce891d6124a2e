//! Own examples; wallets are those that their standards print.

use crate::dlp::Finding;
use crate::dlp::catalogue::KINDS;
use crate::dlp::options::ScanOptions;
use crate::dlp::scan::Scanner;

const CASES: &[(&str, &[(&str, &str)])] = &[
    ("to 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa.", &[("CRYPTO_WALLET", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa")]),
    ("3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy", &[("CRYPTO_WALLET", "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy")]),
    ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", &[("CRYPTO_WALLET", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4")]),
    ("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", &[("CRYPTO_WALLET", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")]),
    ("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb", &[]),
    ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5", &[]),
    ("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe", &[]),
    ("is 00:1a:2b:3c:4d:5e up", &[("MAC_ADDRESS", "00:1a:2b:3c:4d:5e")]),
    ("AA-BB-CC-DD-EE-01", &[("MAC_ADDRESS", "AA-BB-CC-DD-EE-01")]),
    ("00:1a:2b-3c:4d:5e 00:1a:2b:3c:4d:5e:6f 00:1a:2b:3c:4d", &[]),
    ("at fd12:3456:789a::1.", &[("IPV6_ULA", "fd12:3456:789a::1")]),
    ("2001:db8::1 fe80::1 fd12::3456::1 feed:1", &[]),
    ("routing 021000021", &[("ABA_ROUTING", "021000021")]),
    ("routing 021000022", &[]),
    ("n 021000021", &[]),
    ("529.982.247-25", &[("BR_CPF", "529.982.247-25")]),
    ("529.982.247-26 111.111.111-11 529.982.247.25", &[]),
    ("SIN 046 454 286 no", &[]),
    ("SIN 130-692-544", &[("CA_SIN", "130-692-544")]),
    ("n 130-692-544", &[]),
    ("DNI 12345678Z, X1234567L", &[("ES_DNI", "12345678Z"), ("ES_DNI", "X1234567L")]),
    ("12345678A A12345678Z", &[]),
    ("2345 6789 0124", &[("IN_AADHAAR", "2345 6789 0124")]),
    ("2345 6789 0125 and 1345 6789 0124", &[]),
];

/// With all of them on.
fn scanner() -> Scanner {
    let off = KINDS.iter().filter(|kind| !kind.is_on);
    Scanner::new(ScanOptions { on: off.map(|kind| kind.id.to_owned()).collect(), ..ScanOptions::default() }).unwrap()
}

#[test]
fn kinds_that_are_off_can_be_found() {
    let scanner = scanner();
    for (text, expected) in CASES {
        let findings = scanner.scan(text.as_bytes(), 0, true).findings;
        let show = |found: &Finding| (scanner.id(found.entity), &text[found.start..found.end]);
        assert_eq!(findings.iter().map(show).collect::<Vec<_>>(), expected.to_vec(), "{text}");
    }
}

#[test]
fn kinds_that_are_off_are_not_found_by_default() {
    for (text, expected) in CASES {
        let findings = Scanner::default().scan(text.as_bytes(), 0, true).findings;
        let is_new = |found: &Finding| expected.iter().all(|(id, _)| *id != KINDS[usize::from(found.entity.0)].id);
        assert!(findings.iter().all(is_new), "{text} {findings:?}");
    }
}

#[test]
fn what_is_cut_is_left_open() {
    let scanner = scanner();
    for (text, expected) in CASES {
        for (_, value) in *expected {
            let start = text.find(value).unwrap();
            for cut in start + 1..=start + value.len() {
                let settled = scanner.scan(&text.as_bytes()[..cut], 0, false).settled;
                assert!(settled <= start, "{} is settled to {settled}", &text[..cut]);
            }
        }
    }
}
