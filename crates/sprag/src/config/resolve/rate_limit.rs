//! Rate limits as written, made rules.

use std::collections::BTreeSet;
use std::sync::Arc;

use sprag_core::limits::{RATE_LIMIT_KEYS, RATE_NAME_BYTES, RATE_RULES};
use sprag_core::policy::{LimitKey, RateMeasure, RateRule};
use xxhash_rust::xxh3::xxh3_64;

use crate::config::file::RateLimit;
use crate::config::problem::Problem;

/// The rules of a list; `key` is where it stands in the file.
pub(super) fn resolve_all(key: &str, written: &[RateLimit], problems: &mut Vec<Problem>) -> Arc<[RateRule]> {
    resolve_for(key, key, written, problems)
}

/// The rules of a list that belongs to something with a name: they count on when it stands elsewhere in the file.
pub(super) fn resolve_for(
    owner: &str,
    key: &str,
    written: &[RateLimit],
    problems: &mut Vec<Problem>,
) -> Arc<[RateRule]> {
    if written.len() > RATE_RULES {
        problems.push(Problem::value(key, format!("more than {RATE_RULES} rate limits")));
        return Arc::default();
    }
    let mut names = BTreeSet::new();
    let entries = written.iter().enumerate();
    let rules: Vec<RateRule> = entries.filter_map(|(place, limit)| rule(owner, key, place, limit, problems)).collect();
    for (place, rule) in rules.iter().enumerate() {
        if !names.insert(&rule.name) {
            let problem = Problem::value(format!("{key}[{place}]"), format!("two limits are called \"{}\"", rule.name));
            problems.push(problem.hint("refusals call a limit by its name: give each its own"));
        }
    }
    rules.into()
}

fn rule(owner: &str, key: &str, place: usize, limit: &RateLimit, problems: &mut Vec<Problem>) -> Option<RateRule> {
    let found = problems.len();
    let path = format!("{key}[{place}]");
    let measured = measure(limit).map_err(|(part, message)| {
        let path = if part.is_empty() { path.clone() } else { format!("{path}.{part}") };
        problems.push(Problem::value(path, message));
    });
    if limit.limit_keys.len() > RATE_LIMIT_KEYS {
        let message = format!("more than {RATE_LIMIT_KEYS} limit keys");
        problems.push(Problem::value(format!("{path}.limit_keys"), message));
    }
    let mut limit_keys: Vec<LimitKey> = Vec::new();
    for (at, text) in limit.limit_keys.iter().enumerate().take(RATE_LIMIT_KEYS) {
        match text.parse() {
            Ok(one) => limit_keys.push(one),
            Err(error) => problems.push(Problem::value(format!("{path}.limit_keys[{at}]"), error.to_string())),
        }
    }
    let name: Arc<str> = limit.name.clone().unwrap_or_else(|| format!("{}", place + 1)).into();
    if !(1..=RATE_NAME_BYTES).contains(&name.len()) || name.chars().any(char::is_control) {
        let message = format!("a name has 1 to {RATE_NAME_BYTES} printable characters");
        problems.push(Problem::value(format!("{path}.name"), message));
    }
    let mode = limit.mode.unwrap_or_default().into();
    let measure = measured.ok().filter(|_| problems.len() == found)?;
    // What changes the meaning of a counter changes its name.
    let id = xxh3_64(format!("{owner}|{name}|{limit_keys:?}|{measure:?}|{mode:?}").as_bytes());
    Some(RateRule { name, mode, limit_keys, measure, id })
}

/// What is counted, or which key is wrong and why.
fn measure(limit: &RateLimit) -> Result<RateMeasure, (&'static str, &'static str)> {
    const MOST_RPS: f64 = 1e9;
    if limit.rps.is_some() && limit.window_seconds.is_some() {
        return Err(("window_seconds", "`window_seconds` goes with `requests` or `tokens`, not with `rps`"));
    }
    if limit.rps.is_none() && limit.burst.is_some() {
        return Err(("burst", "`burst` goes with `rps`, which is missing"));
    }
    let window_ms = limit.window_seconds.map(|seconds| seconds.saturating_mul(1000));
    match (limit.requests, limit.tokens, limit.rps) {
        (Some(limit), None, None) => {
            let window_ms = window_ms.ok_or(("requests", "`requests` needs `window_seconds`"))?;
            Ok(RateMeasure::Requests { limit, window_ms })
        }
        (None, Some(limit), None) => {
            let window_ms = window_ms.ok_or(("tokens", "`tokens` needs `window_seconds`"))?;
            Ok(RateMeasure::Tokens { limit, window_ms })
        }
        (None, None, Some(rps)) if rps > 0.0 && rps <= MOST_RPS => {
            let burst = limit.burst.unwrap_or_else(|| rps.max(1.0));
            match burst >= rps && (1.0..=MOST_RPS).contains(&burst) {
                true => Ok(RateMeasure::Bucket { rps, burst }),
                false => Err(("burst", "`burst` is at least 1, and no less than `rps`")),
            }
        }
        (None, None, Some(_)) => Err(("rps", "`rps` is a number above 0, up to a billion")),
        _ => Err(("", "set one of `requests` and `tokens`, with `window_seconds`, or `rps`, with `burst`")),
    }
}

#[cfg(test)]
mod tests {
    use sprag_core::loops::Mode;

    use super::*;

    #[derive(serde::Deserialize)]
    struct Written {
        #[serde(default)]
        limits: Vec<RateLimit>,
    }

    fn resolve(text: &str) -> Result<Arc<[RateRule]>, Vec<String>> {
        let written: Written = toml::from_str(text).map_err(|error| vec![error.message().to_owned()])?;
        let mut problems = Vec::new();
        let rules = resolve_all("defaults.rate_limits", &written.limits, &mut problems);
        let problems: Vec<String> =
            problems.into_iter().map(|problem| format!("{}: {}", problem.key, problem.message)).collect();
        if problems.is_empty() { Ok(rules) } else { Err(problems) }
    }

    #[test]
    fn every_form_becomes_a_rule() {
        let rules = resolve(
            "[[limits]]\nname = \"base\"\nlimit_keys = [\"agent\", \"header:X-Tool\"]\nrps = 20\nburst = 40\n\
             [[limits]]\nrequests = 60\nwindow_seconds = 30\nmode = \"shadow\"\n\
             [[limits]]\ntokens = 1000\nwindow_seconds = 60\n\
             [[limits]]\nrps = 0.5\n\
             [[limits]]\nrps = 15",
        )
        .unwrap();
        let measures: Vec<RateMeasure> = rules.iter().map(|rule| rule.measure).collect();
        let expected = [
            RateMeasure::Bucket { rps: 20.0, burst: 40.0 },
            RateMeasure::Requests { limit: 60, window_ms: 30_000 },
            RateMeasure::Tokens { limit: 1000, window_ms: 60_000 },
            RateMeasure::Bucket { rps: 0.5, burst: 1.0 },
            RateMeasure::Bucket { rps: 15.0, burst: 15.0 },
        ];
        assert_eq!(measures, expected);
        let names: Vec<&str> = rules.iter().map(|rule| &*rule.name).collect();
        assert_eq!(names, ["base", "2", "3", "4", "5"]);
        let keys: Vec<String> = rules[0].limit_keys.iter().map(ToString::to_string).collect();
        assert_eq!(keys, ["agent", "header:x-tool"]);
        assert_eq!((rules[0].mode, rules[1].mode), (Mode::Enforce, Mode::Shadow));
    }

    #[test]
    fn a_rule_that_changes_begins_anew() {
        let id = |text: &str| resolve(&format!("[[limits]]\n{text}")).unwrap()[0].id;
        let base = id("rps = 1");
        assert_eq!(base, id("rps = 1.0\nburst = 1.0"));
        for other in [
            "rps = 2",
            "rps = 1\nburst = 2",
            "rps = 1\nname = \"x\"",
            "rps = 1\nlimit_keys = [\"ip\"]",
            "rps = 1\nmode = \"shadow\"",
        ] {
            assert_ne!(base, id(other), "{other}");
        }
    }

    #[test]
    fn says_what_cannot_be_used() {
        for (text, expected) in [
            ("", "defaults.rate_limits[0]: set one of `requests` and `tokens`"),
            ("window_seconds = 60", "defaults.rate_limits[0]: set one of"),
            ("requests = 1\ntokens = 1\nwindow_seconds = 60", "defaults.rate_limits[0]: set one of"),
            ("requests = 1\nrps = 1", "defaults.rate_limits[0]: set one of"),
            ("requests = 1", "defaults.rate_limits[0].requests: `requests` needs `window_seconds`"),
            ("tokens = 1", "defaults.rate_limits[0].tokens: `tokens` needs `window_seconds`"),
            ("rps = 1\nwindow_seconds = 60", "[0].window_seconds: `window_seconds` goes with `requests` or `tokens`"),
            ("burst = 200", "[0].burst: `burst` goes with `rps`, which is missing"),
            ("requests = 1\nwindow_seconds = 1\nburst = 200", "[0].burst: `burst` goes with `rps`"),
            ("rps = 0\nburst = 10", "[0].rps: `rps` is a number above 0"),
            ("rps = -1", "[0].rps: `rps` is a number above 0"),
            ("rps = nan", "[0].rps: `rps` is a number above 0"),
            ("rps = inf", "[0].rps: `rps` is a number above 0"),
            ("rps = 1000000001", "[0].rps: `rps` is a number above 0, up to a billion"),
            ("rps = 20\nburst = 10", "[0].burst: `burst` is at least 1, and no less than `rps`"),
            ("rps = 0.1\nburst = 0.5", "[0].burst: `burst` is at least 1"),
            ("rps = 1\nburst = nan", "[0].burst: `burst` is at least 1"),
            ("rps = 1\nlimit_keys = [\"agent\", \"ip:country\"]", "[0].limit_keys[1]: `ip:country` is not a limit key"),
            ("rps = 1\nname = \"\"", "[0].name: a name has 1 to 64 printable characters"),
            ("rps = 1\nmode = \"on\"", "unknown variant `on`"),
            ("rps = 1\ncost_source = \"cookie:weight\"", "unknown field `cost_source`"),
            ("rps = 1\n[[limits]]\nrps = 2\nname = \"1\"", "[1]: two limits are called \"1\""),
        ] {
            let problems = resolve(&format!("[[limits]]\n{text}")).unwrap_err();
            assert!(problems.len() == 1 && problems[0].contains(expected), "{text}: {problems:?}");
        }
    }

    #[test]
    fn lists_keys_and_names_are_bounded() {
        let limits = |count: usize| resolve(&"[[limits]]\nrps = 1\n".repeat(count));
        assert_eq!(limits(RATE_RULES).unwrap().len(), RATE_RULES);
        assert_eq!(limits(RATE_RULES + 1).unwrap_err(), ["defaults.rate_limits: more than 32 rate limits"]);
        let keys = |count: usize| {
            let keys: Vec<String> = (0..count).map(|n| format!("\"header:x-{n}\"")).collect();
            resolve(&format!("[[limits]]\nrps = 1\nlimit_keys = [{}]", keys.join(",")))
        };
        assert!(keys(RATE_LIMIT_KEYS).is_ok());
        assert_eq!(
            keys(RATE_LIMIT_KEYS + 1).unwrap_err(),
            ["defaults.rate_limits[0].limit_keys: more than 8 limit keys"]
        );
        let named = |bytes: usize| resolve(&format!("[[limits]]\nrps = 1\nname = \"{}\"", "n".repeat(bytes)));
        assert!(named(RATE_NAME_BYTES).is_ok());
        assert!(named(RATE_NAME_BYTES + 1).unwrap_err()[0].contains("a name has 1 to 64"));
    }
}
