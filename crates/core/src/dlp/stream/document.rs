//! The JSON of one event as a flat list of values with their places, so that a value can be looked up by name and
//! changed where it stands.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;

use super::escape;
use crate::dlp::scan::Scanner;
use crate::limits::{EVENT_DEPTH, EVENT_VALUES};

/// Names in a path are cut here; they are for people.
const KEY_IN_PATH: usize = 64;
/// Most paths are shorter.
const PATH_BYTES: usize = 48;

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    Array,
    Text,
    Number,
    /// `true`, `false`, `null`
    Word,
}

/// One value.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// Where it stands; of a text, its inside.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Its name, where it is a member of an object.
    key: Option<(usize, usize)>,
    /// The first value that is not inside it.
    pub(super) after: usize,
    pub(super) parent: Option<usize>,
}

/// All values of an event, each before those inside it.
#[derive(Debug)]
pub(super) struct Document<'d> {
    pub(super) data: &'d [u8],
    pub(super) nodes: Vec<Node>,
}

impl<'d> Document<'d> {
    /// None when `data` is not JSON, or has more or deeper values than anyone would send.
    pub(super) fn read(data: &'d [u8]) -> Option<Document<'d>> {
        let nodes = Reader { data, at: 0, nodes: Vec::with_capacity(32), open: Vec::new() }.read()?;
        Some(Document { data, nodes })
    }

    /// The name of a value.
    pub(super) fn key(&self, node: usize) -> Option<&'d [u8]> {
        self.nodes[node].key.map(|(start, end)| &self.data[start..end])
    }

    /// Where the name of a value stands, without its quotes.
    pub(super) fn key_range(&self, node: usize) -> Option<Range<usize>> {
        self.nodes[node].key.map(|(start, end)| start..end)
    }

    pub(super) fn children(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let end = if matches!(self.nodes[node].kind, Kind::Object | Kind::Array) { self.nodes[node].after } else { 0 };
        let mut next = node + 1;
        std::iter::from_fn(move || {
            let this = next;
            (this < end).then(|| {
                next = self.nodes[this].after;
                this
            })
        })
    }

    /// The member of an object with this name.
    pub(super) fn member(&self, node: usize, name: &str) -> Option<usize> {
        self.children(node).find(|child| self.key(*child) == Some(name.as_bytes()))
    }

    /// The elements of a member that is an array.
    pub(super) fn list(&self, node: usize, name: &str) -> impl Iterator<Item = usize> + '_ {
        let list = self.member(node, name).filter(|list| self.nodes[*list].kind == Kind::Array);
        list.into_iter().flat_map(|list| self.children(list))
    }

    /// As it is written; of a text, its inside.
    pub(super) fn raw(&self, node: usize) -> &'d [u8] {
        &self.data[self.range(node)]
    }

    pub(super) fn range(&self, node: usize) -> Range<usize> {
        self.nodes[node].start..self.nodes[node].end
    }

    /// What a text says.
    pub(super) fn text(&self, node: usize) -> Option<Cow<'d, [u8]>> {
        (self.nodes[node].kind == Kind::Text).then(|| escape::decoded(self.raw(node)))
    }

    /// What a member says that is a text.
    pub(super) fn text_of(&self, node: usize, name: &str) -> Option<Cow<'d, [u8]>> {
        self.text(self.member(node, name)?)
    }

    /// A member that is a text and not empty.
    pub(super) fn filled(&self, node: usize, name: &str) -> Option<usize> {
        let member = self.member(node, name)?;
        let is_filled = self.nodes[member].kind == Kind::Text && !self.raw(member).is_empty();
        is_filled.then_some(member)
    }

    /// A member that is a whole number.
    pub(super) fn number_of(&self, node: usize, name: &str) -> Option<u64> {
        std::str::from_utf8(self.raw(self.member(node, name)?)).ok()?.parse().ok()
    }

    /// Whether there is such a member and it is not null.
    pub(super) fn has(&self, node: usize, name: &str) -> bool {
        self.member(node, name).is_some_and(|member| self.raw(member) != b"null")
    }

    /// Whether a member gives a reason why the answer is over. Some send an empty one while it is not.
    pub(super) fn is_finished(&self, node: usize, name: &str) -> bool {
        self.has(node, name) && self.text_of(node, name).is_none_or(|reason| !reason.is_empty())
    }

    /// Whether a member is `true`.
    pub(super) fn is_true(&self, node: usize, name: &str) -> bool {
        self.member(node, name).is_some_and(|member| self.raw(member) == b"true")
    }

    /// The neighbours of a value that stand before it.
    pub(super) fn before(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let parent = self.nodes[node].parent.into_iter();
        parent.flat_map(|parent| self.children(parent)).take_while(move |child| *child != node)
    }

    /// Where a value stands, for people: `choices[0].delta.content`. A name in which something is found is a star.
    pub(super) fn path(&self, node: usize, scanner: &Scanner) -> String {
        let above = |node: &usize| self.nodes[*node].parent;
        // The outermost value has no name.
        let mut way: Vec<usize> = std::iter::successors(Some(node), above).collect();
        way.pop();
        let mut path = String::with_capacity(PATH_BYTES);
        for &at in way.iter().rev() {
            match self.key(at) {
                Some(key) if scanner.scan(&escape::decoded(key), 0, true).findings.is_empty() => {
                    path.push('.');
                    path.extend(String::from_utf8_lossy(key).chars().take(KEY_IN_PATH));
                }
                Some(_) => path.push_str(".*"),
                None => path.extend(["[", itoa::Buffer::new().format(self.before(at).count()), "]"]),
            }
        }
        match path.starts_with('.') {
            true => path.trim_start_matches('.').to_owned(),
            false => path,
        }
    }
}

struct Reader<'d> {
    data: &'d [u8],
    at: usize,
    nodes: Vec<Node>,
    open: Vec<usize>,
}

impl Reader<'_> {
    fn read(mut self) -> Option<Vec<Node>> {
        let mut key = None;
        loop {
            self.skip_space();
            let is_opened = self.value(key)?;
            if is_opened && !self.is_closing() {
                key = self.key()?;
                continue;
            }
            loop {
                self.skip_space();
                let Some(container) = self.open.last().copied() else {
                    return (self.at == self.data.len()).then_some(self.nodes);
                };
                let byte = *self.data.get(self.at)?;
                if byte == b',' {
                    self.at += 1;
                    key = self.key()?;
                    break;
                }
                let closing = if self.nodes[container].kind == Kind::Object { b'}' } else { b']' };
                if byte != closing {
                    return None;
                }
                self.at += 1;
                self.nodes[container].end = self.at;
                self.nodes[container].after = self.nodes.len();
                self.open.pop();
            }
        }
    }

    /// Reads a value, of an object or array only its beginning: true.
    fn value(&mut self, key: Option<(usize, usize)>) -> Option<bool> {
        if self.nodes.len() >= EVENT_VALUES {
            return None;
        }
        let (parent, place) = (self.open.last().copied(), self.nodes.len());
        let mut node = Node { kind: Kind::Word, start: self.at, end: 0, key, after: place + 1, parent };
        let first = *self.data.get(self.at)?;
        match first {
            b'{' | b'[' => {
                if self.open.len() >= EVENT_DEPTH {
                    return None;
                }
                node.kind = if first == b'{' { Kind::Object } else { Kind::Array };
                self.open.push(place);
                self.at += 1;
            }
            b'"' => {
                (node.kind, (node.start, node.end)) = (Kind::Text, self.string()?);
            }
            _ => {
                let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                let length = self.data[self.at..].iter().take_while(is_part).count();
                self.at += length;
                node.end = self.at;
                let raw = &self.data[node.start..node.end];
                if first == b'-' || first.is_ascii_digit() {
                    node.kind = Kind::Number;
                } else if ![&b"true"[..], b"false", b"null"].contains(&raw) {
                    return None;
                }
            }
        }
        self.nodes.push(node);
        Some(matches!(first, b'{' | b'['))
    }

    /// The name of the next member; None inside an array.
    #[expect(clippy::option_option, reason = "no JSON, no name, a name")]
    fn key(&mut self) -> Option<Option<(usize, usize)>> {
        self.skip_space();
        if self.nodes[*self.open.last()?].kind == Kind::Array {
            return Some(None);
        }
        let key = self.string()?;
        self.skip_space();
        (self.data.get(self.at) == Some(&b':')).then_some(())?;
        self.at += 1;
        Some(Some(key))
    }

    /// The inside of the string that begins here.
    fn string(&mut self) -> Option<(usize, usize)> {
        (self.data.get(self.at) == Some(&b'"')).then_some(())?;
        let start = self.at + 1;
        let mut end = start;
        loop {
            end += memchr2(b'"', b'\\', self.data.get(end..)?)?;
            if self.data[end] == b'"' {
                self.at = end + 1;
                return Some((start, end));
            }
            end += 2;
        }
    }

    fn is_closing(&mut self) -> bool {
        self.skip_space();
        matches!(self.data.get(self.at), Some(b'}' | b']'))
    }

    fn skip_space(&mut self) {
        let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += self.data[self.at.min(self.data.len())..].iter().take_while(is_space).count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_json_is_read_and_nothing_else() {
        let good = ["{}", "[]", " [ ] ", r#"{"a":[1,{"b":"x\"y"}],"c":null}"#, "7", r#""a""#, r#"[[],{},"",-1.5e3]"#];
        for json in good {
            assert!(Document::read(json.as_bytes()).is_some(), "{json}");
        }
        let bad =
            ["", "[DONE]", "{", "[", r#"{"a"}"#, r#"{"a":}"#, "[,1]", "[1 2]", "{]", "[}", r#"{"a":1"#, "nul", "\"a"];
        for json in bad {
            assert!(Document::read(json.as_bytes()).is_none(), "{json}");
        }
    }

    #[test]
    fn values_are_found_by_name_and_have_paths() {
        let json = br#"{"choices": [7, {"delta": {"content": "h\u0069", "n": 12}}], "x": true}"#;
        let document = Document::read(json).unwrap();
        let choice = document.list(0, "choices").nth(1).unwrap();
        let delta = document.member(choice, "delta").unwrap();
        assert_eq!(document.text_of(delta, "content").unwrap().as_ref(), b"hi");
        assert_eq!(document.number_of(delta, "n"), Some(12));
        assert!(document.is_true(0, "x") && !document.has(0, "y"));
        assert_eq!(
            document.path(document.member(delta, "content").unwrap(), &Scanner::default()),
            "choices[1].delta.content"
        );
    }

    #[test]
    fn depth_and_number_of_values_are_bounded() {
        let deep = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
        assert!(Document::read(&deep(EVENT_DEPTH)).is_some());
        assert!(Document::read(&deep(EVENT_DEPTH + 1)).is_none());
        let wide = |values: usize| format!("[{}1]", "1,".repeat(values - 2)).into_bytes();
        assert!(Document::read(&wide(EVENT_VALUES)).is_some());
        assert!(Document::read(&wide(EVENT_VALUES + 1)).is_none());
        assert!(Document::read(&vec![b'['; 1 << 20]).is_none());
    }
}
