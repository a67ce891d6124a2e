//! A page of metrics, read as strictly as its format wants it.

use std::collections::{BTreeMap, BTreeSet};

type Labels = BTreeMap<String, String>;

/// One family of metrics.
#[derive(Debug, Default)]
pub(crate) struct Family {
    pub(crate) kind: String,
    pub(crate) help: String,
    /// Name of the sample, its labels, its value.
    pub(crate) samples: Vec<(String, Labels, f64)>,
}

#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) families: BTreeMap<String, Family>,
}

impl Page {
    /// Reads a page, or fails with the line that is wrong.
    pub(crate) fn read(text: &str) -> Page {
        assert!(text.ends_with('\n'), "the last line is whole");
        let (mut families, mut current) = (BTreeMap::<String, Family>::new(), String::new());
        let mut seen = BTreeSet::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap_or_else(|| panic!("no help: {line}"));
                let new = Family { help: help.to_owned(), ..Family::default() };
                assert!(families.insert(name.to_owned(), new).is_none(), "twice: {line}");
                current = name.to_owned();
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(name, current, "the type follows the help");
                families.get_mut(name).unwrap().kind = kind.to_owned();
            } else {
                let (name, labels, value) = sample(line);
                let family = families.get_mut(&current).unwrap_or_else(|| panic!("nobody announced {line}"));
                let suffixes: &[&str] = match family.kind.as_str() {
                    "counter" | "gauge" => &[""],
                    "histogram" => &["_bucket", "_sum", "_count"],
                    other => panic!("unknown type {other}"),
                };
                let is_its = suffixes.iter().any(|suffix| name == format!("{current}{suffix}"));
                assert!(is_its, "{name} does not belong to {current}");
                assert!(seen.insert(line.rsplit_once(' ').unwrap().0.to_owned()), "twice: {line}");
                family.samples.push((name, labels, value));
            }
        }
        Page { text: text.to_owned(), families }
    }

    /// The value of one sample; 0 where there is none.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let wanted: Labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let mut all = self.families.values().flat_map(|family| &family.samples);
        all.find(|(sample, labels, _)| sample == name && *labels == wanted).map_or(0.0, |(_, _, value)| *value)
    }

    /// The sum over all samples of a name that have these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |of: &Labels| labels.iter().all(|(key, value)| of.get(*key).is_some_and(|found| found == value));
        let all = self.families.values().flat_map(|family| &family.samples);
        all.filter(|(sample, of, _)| sample == name && has(of)).map(|(_, _, value)| value).sum()
    }

    /// Every value of a label.
    pub(crate) fn values_of(&self, label: &str) -> BTreeSet<String> {
        let all = self.families.values().flat_map(|family| &family.samples);
        all.filter_map(|(_, labels, _)| labels.get(label).cloned()).collect()
    }
}

fn sample(line: &str) -> (String, Labels, f64) {
    let (head, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
    let value = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
    let Some((name, rest)) = head.split_once('{') else { return (named(head), Labels::new(), value) };
    let rest = rest.strip_suffix('}').unwrap_or_else(|| panic!("no end of labels: {line}"));
    let mut labels = Labels::new();
    let mut chars = rest.chars().peekable();
    while chars.peek().is_some() {
        let key: String = chars.by_ref().take_while(|c| *c != '=').collect();
        assert_eq!(chars.next(), Some('"'), "{line}");
        let mut text = String::new();
        loop {
            match chars.next().unwrap_or_else(|| panic!("no end of a label: {line}")) {
                '"' => break,
                '\\' => match chars.next() {
                    Some('n') => text.push('\n'),
                    Some(c @ ('"' | '\\')) => text.push(c),
                    other => panic!("escaped {other:?}: {line}"),
                },
                c => text.push(c),
            }
        }
        assert!(labels.insert(named(&key), text).is_none(), "a label twice: {line}");
        assert!(matches!(chars.next(), None | Some(',')), "{line}");
    }
    (named(name), labels, value)
}

fn named(name: &str) -> String {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    assert!(
        !name.is_empty() && name.chars().all(is_good) && !name.starts_with(|c: char| c.is_ascii_digit()),
        "{name:?}"
    );
    name.to_owned()
}
