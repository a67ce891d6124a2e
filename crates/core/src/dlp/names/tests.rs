//! Own examples of addresses and URLs, and of texts that only look like them.

use crate::dlp::catalogue::{KINDS, entity};
use crate::dlp::hits::Hits;
use crate::dlp::names::at_sign;
use crate::dlp::names::internal::{INTERNAL, at_url_under};
use crate::dlp::scan::{Scan, Scanner};
use crate::dlp::view::{LOOK_BACK, View};

/// A text, and what is found in it.
type Case = (&'static str, &'static [(&'static str, &'static str)]);

const ADDRESSES: &[Case] = &[
    ("write to mia.lee+news@mail.example.co.uk.", &[("EMAIL", "mia.lee+news@mail.example.co.uk")]),
    ("<Mia_Lee@Example.COM>", &[("EMAIL", "Mia_Lee@Example.COM")]),
    ("a@xn--d1acufc.xn--p1ai", &[("EMAIL", "a@xn--d1acufc.xn--p1ai")]),
    ("[x](mailto:mia@example.org) MAILTO:mia@example.org", &[]),
    ("[mia@example.org](mailto:mia@example.org) to:mia@example.org", &[("EMAIL", "mia@example.org"); 2]),
    ("email='mia@example.org'", &[("EMAIL", "mia@example.org")]),
    ("to=mia@example.org&cc=ben@example.org", &[("EMAIL", "mia@example.org"), ("EMAIL", "ben@example.org")]),
    ("one\\nmia@example.org", &[("EMAIL", "mia@example.org")]),
    ("one\\\\nmia@example.org\\\\n", &[("EMAIL", "mia@example.org")]),
    ("\\u003cmia@example.org\\u003e", &[("EMAIL", "mia@example.org")]),
    ("mia@example.org:hunter2 leaked", &[("EMAIL", "mia@example.org")]),
    ("...mia@example.org-", &[("EMAIL", "mia@example.org")]),
    ("https://example.org/?to=mia@example.org", &[("EMAIL", "mia@example.org")]),
    ("https://lists.example.org/msg/20240131120000.GA1234@host.example.com/raw", &[]),
    ("https://lists.example.org/r/CAHk-=wh5xYzQr7Tn2bVw9Lm4Kd6Hs3Pf8@mail.example.com.", &[]),
    ("https://example.org/users/anna.kowalska1984@example.com", &[("EMAIL", "anna.kowalska1984@example.com")]),
    ("msg/20240131120000.GA1234@example.com", &[("EMAIL", "20240131120000.GA1234@example.com")]),
    ("https://example.org/?to=20240131120000@example.com", &[("EMAIL", "20240131120000@example.com")]),
    ("https://example.org/ 20240131120000.GA1234@example.com", &[("EMAIL", "20240131120000.GA1234@example.com")]),
    ("git@github.com:owner/name.git and deploy@host.org:/srv/app", &[]),
    ("https://user:word@example.org/ ssh://user@example.org", &[("URL_CREDENTIALS", "word")]),
    ("ftp://mia@example.org ftp://mia.lee+x@example.org/", &[]),
    ("react@19.2.4 pkg@1.2.3 actions/checkout@v4.1.2 glob@^11.1.0", &[]),
    ("icon@2x.png, getty@tty1.service, x@y.json", &[]),
    ("@app.route @scope/pkg.name user@localhost a@b W@x.T u@v.mean(0)", &[]),
    ("help@my_crawler.com", &[]),
    ("a..b@example.org. @example.org", &[]),
    ("mia@-example.org mia@example..org mia@example.org_x", &[]),
    ("mia@example.zz", &[]),
];

const PLACES: &[Case] = &[
    ("see <http://192.168.99.100:3000>,", &[("INTERNAL_URL", "http://192.168.99.100:3000")]),
    ("\"https://registry.corp/mcp\"", &[("INTERNAL_URL", "https://registry.corp/mcp")]),
    ("at http://a.b.svc.cluster.local:80/x?y=1#z.", &[("INTERNAL_URL", "http://a.b.svc.cluster.local:80/x?y=1#z")]),
    ("(https://wiki.INTERNAL/a)", &[("INTERNAL_URL", "https://wiki.INTERNAL/a")]),
    ("x\\nhttp://nas.home.arpa\\n", &[("INTERNAL_URL", "http://nas.home.arpa")]),
    ("{\\\"u\\\":\\\"http://db.lan/\\\"}", &[("INTERNAL_URL", "http://db.lan/")]),
    ("redis://mia@cache.internal:6379/0", &[("INTERNAL_URL", "redis://mia@cache.internal:6379/0")]),
    (
        "http://a.lan/?to=http://b.lan/x http://a.lan/?to=http://example.org/x",
        &[
            ("INTERNAL_URL", "http://a.lan/?to="),
            ("INTERNAL_URL", "http://b.lan/x"),
            ("INTERNAL_URL", "http://a.lan/?to="),
        ],
    ),
    ("http://localhost:80 http://127.0.0.1/ http://host.docker.internal:80/x http://web/ http://printer.local/", &[]),
    ("https://internal.example.org https://corp https://example.org/a.internal http://10.0.0.1.example.org", &[]),
    ("https://notinternal https://my-corp.com http://8.8.8.8/ ://a.internal", &[]),
];

#[test]
fn names_are_found_and_others_are_not() {
    for (text, expected) in [ADDRESSES, PLACES].into_iter().flatten() {
        let scan = Scanner::default().scan(text.as_bytes(), 0, true);
        assert_eq!(shown(text.as_bytes(), &scan), expected.to_vec(), "{text}");
    }
}

#[test]
fn a_cut_changes_nothing() {
    for (text, expected) in [ADDRESSES, PLACES].into_iter().flatten() {
        let text = text.as_bytes();
        for cut in 0..=text.len() {
            let first = Scanner::default().scan(&text[..cut], 0, false);
            let context = first.settled - first.settled.min(LOOK_BACK);
            let second = Scanner::default().scan(&text[context..], first.settled - context, true);
            let found = [shown(text, &first), shown(&text[context..], &second)].concat();
            assert_eq!(found, expected.to_vec(), "{} cut at {cut}", String::from_utf8_lossy(text));
        }
    }
}

#[test]
fn what_is_cut_is_left_open() {
    let unsure_from = |text: &str| {
        let (view, mut hits) = (View { text: text.as_bytes(), is_end: false }, Hits::new());
        at_sign(&view, text.find('@').unwrap(), &mut hits);
        assert_eq!(hits.findings, []);
        hits.unsure_from
    };
    assert_eq!(unsure_from("to mia@exam"), 3);
    assert_eq!(unsure_from("to mia@example.org"), 3);
    assert_eq!(unsure_from("to mia@example.org:hun"), 3);
    assert_eq!(unsure_from("to git@example.org:hun "), usize::MAX);
}

#[test]
fn own_domains_are_inside() {
    let look = |text: &str, names: &[&str]| {
        let mut hits = Hits::new();
        let at = text.find("://").unwrap();
        at_url_under(&View { text: text.as_bytes(), is_end: true }, at, names, &mut hits);
        hits.findings.iter().map(|found| (found.entity, found.start, found.end)).collect::<Vec<_>>()
    };
    let found = (entity("INTERNAL_URL"), 0, 25);
    assert_eq!(look("https://ci.int.example.org", &[".int.example.org"]), [(found.0, 0, 26)]);
    assert_eq!(look("https://ci.Example.net/ab", &["example.net"]), [found]);
    assert_eq!(look("https://ci.myexample.net/", &["example.net"]), []);
    assert_eq!(look("https://ci.example.net/ab", INTERNAL), []);
}

#[test]
fn long_names_are_none() {
    let found = |text: String| Scanner::default().scan(text.as_bytes(), 0, true).findings.len();
    assert_eq!(found(format!("{}@example.org", "a".repeat(64))), 1);
    assert_eq!(found(format!("{}@example.org", "a".repeat(65))), 0);
    let label = "a".repeat(62) + ".";
    let most = 253 - 3 * label.len() - ".org".len();
    assert_eq!(found(format!("mia@{}{}.org", label.repeat(3), "b".repeat(most))), 1);
    assert_eq!(found(format!("mia@{}{}.org", label.repeat(3), "b".repeat(most + 1))), 0);
}

fn shown<'t>(text: &'t [u8], scan: &Scan) -> Vec<(&'static str, &'t str)> {
    let show = |found: &crate::dlp::Finding| {
        let value = std::str::from_utf8(&text[found.start..found.end]).unwrap();
        (KINDS[usize::from(found.entity.0)].id, value)
    };
    scan.findings.iter().map(show).collect()
}
