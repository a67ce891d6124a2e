//! What the model asked for: its calls, the call in its text, or its text.

use memchr::memmem;
use xxhash_rust::xxh3::xxh3_64;

use super::{Gathered, Sketch, ends, hash, short_hash, shortened, text_call, upper_half};
use crate::blocks::{BLOCK, ROW, Spaces, Words, row};
use crate::loops::canonical::canonical;

/// Text beside a call that says anything at all has this many bytes.
const THOUGHT_BYTES: usize = 8;

/// Bytes of a call in which a command that sleeps stands.
const WAIT_BYTES: usize = 400;

/// The action of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Action {
    /// Calls with canonical arguments, in no order; or the call in the text; or the text.
    pub(crate) exact: u32,
    /// The same with every word that has a digit masked.
    pub(crate) masked: u16,
    /// The whole answer, what was said beside the call included.
    pub(crate) answer: u16,
    /// The tools called; 0 where none was.
    pub(crate) tool: u16,
    /// Which words it has.
    pub(crate) words: Sketch,
    /// The call stands apart from the text, in the dialect's own form.
    pub(crate) is_native: bool,
    /// Nothing was said beside the call.
    pub(crate) is_bare: bool,
    /// It lets time pass: `sleep 30`, `wait_for_job`.
    pub(crate) is_wait: bool,
}

impl Action {
    /// Reads an answer; `calls` gives name and arguments of each. Also gives the name of the first tool.
    pub(crate) fn read<'a>(
        text: &'a str,
        calls: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> (Action, Option<&'a str>) {
        Action::read_hashed(text, xxh3_64(text.trim_ascii().as_bytes()), calls)
    }

    /// The same where the hash of the trimmed text is known.
    pub(crate) fn read_hashed<'a>(
        text: &'a str,
        hash: u64,
        calls: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> (Action, Option<&'a str>) {
        let mut action = Action { answer: shortened(upper_half(hash)), ..Action::default() };
        let mut spelled: Vec<(String, &str)> = Vec::new();
        for (name, arguments) in calls {
            spelled.push(([name, &canonical(arguments)].join(" "), name));
        }
        spelled.sort();
        if let Some((_, first)) = spelled.first() {
            let names: String = spelled.iter().map(|(_, name)| *name).collect();
            action.tool = short_hash(names.as_bytes());
            action.is_native = true;
            action.is_bare = text.trim_ascii().len() < THOUGHT_BYTES;
            action.is_wait = spelled.iter().any(|(call, name)| lets_time_pass(name, call));
            let whole = spelled.iter().map(|(call, _)| call.as_str()).collect::<Vec<_>>().join("\n");
            action.spell(&whole);
            action.answer ^= action.exact as u16;
            return (action, Some(first));
        }
        let Some(found) = text_call::find(text) else {
            action.is_bare = true;
            action.spell(text);
            return (action, None);
        };
        action.tool = short_hash(found.tool.as_bytes());
        action.is_wait = lets_time_pass(found.tool, found.call);
        action.is_bare = text.len() - found.call.len() < THOUGHT_BYTES;
        action.spell(found.call);
        (action, Some(found.tool).filter(|_| found.is_named))
    }

    /// Whether anything was called.
    pub(crate) fn is_call(&self) -> bool {
        self.tool != 0
    }

    fn spell(&mut self, text: &str) {
        let mut plain = Vec::with_capacity(text.len().min(1 << 14) + 1);
        for text in ends(text) {
            collapse(text.as_bytes(), &mut plain);
        }
        self.exact = hash(&plain);
        let mut gathered = Gathered::new();
        // A part with a digit becomes one sign, a part without is a word.
        let (mut masked, mut copied) = (Vec::new(), 0);
        let is_changed = each_part(&mut plain, |plain, start, end, has_digit| {
            if has_digit {
                masked.extend_from_slice(&plain[copied..start]);
                masked.push(b'#');
                copied = end;
            } else {
                gathered.add(&plain[start..end]);
            }
        });
        self.words = gathered.sketch();
        if copied > 0 {
            masked.extend_from_slice(&plain[copied..]);
            plain = masked;
        } else if !is_changed {
            self.masked = shortened(self.exact);
            return;
        }
        self.masked = short_hash(&plain);
    }
}

/// Copies with one space behind each run of other bytes.
fn collapse(text: &[u8], plain: &mut Vec<u8>) {
    let mut rest = text.trim_ascii_start();
    while !rest.is_empty() {
        // A single space stays where it is: up to the next odd one all is copied at once.
        let end = odd_space(rest);
        plain.extend_from_slice(&rest[..end]);
        plain.push(b' ');
        rest = rest[end..].trim_ascii_start();
    }
}

/// Where the first white space stands that is no single space between two other bytes.
fn odd_space(text: &[u8]) -> usize {
    let mut spaces = [Spaces::default(); ROW];
    for from in (0..text.len()).step_by(BLOCK * ROW) {
        let blocks = row(text, from, &mut spaces);
        for (nth, Spaces { any, plain }) in spaces[..blocks].iter().enumerate() {
            let block = from + nth * BLOCK;
            // What stands behind the block counts; behind the end of the text nothing is single.
            let follows = text.get(block + BLOCK).is_none_or(u8::is_ascii_whitespace);
            let last = (text.len() - block).min(BLOCK) - 1;
            let next = any >> 1 | u64::from(follows) << last;
            let odd = any & !(plain & !next);
            if odd != 0 {
                return block + odd.trailing_zeros() as usize;
            }
        }
    }
    text.len()
}

/// Lowers all letters, and goes through the parts of letters, digits and underscores of a text that ends in none: where
/// each begins and ends, and whether it has a digit. Gives whether there was a letter to lower.
#[inline]
fn each_part(bytes: &mut [u8], mut take: impl FnMut(&[u8], usize, usize, bool)) -> bool {
    let mut row_of_words = [Words::default(); ROW];
    let (mut start, mut is_open, mut has_digit, mut is_changed) = (0, false, false, false);
    for from in (0..bytes.len()).step_by(BLOCK * ROW) {
        let blocks = row(bytes, from, &mut row_of_words);
        if row_of_words[..blocks].iter().any(|words| words.upper != 0) {
            is_changed = true;
            let end = bytes.len().min(from + BLOCK * ROW);
            bytes[from..end].make_ascii_lowercase();
        }
        for (nth, words) in row_of_words[..blocks].iter().enumerate() {
            let block = from + nth * BLOCK;
            let before = words.part << 1 | u64::from(is_open);
            let (mut starts, mut ends) = (words.part & !before, before & !words.part);
            // The part that is open begins here, as far as this block goes.
            let mut opened = 0;
            while ends != 0 {
                if !is_open {
                    (opened, has_digit) = (starts.trailing_zeros(), false);
                    starts &= starts - 1;
                    start = block + opened as usize;
                }
                let end = ends.trailing_zeros();
                ends &= ends - 1;
                has_digit |= words.digit & below(end) & !below(opened) != 0;
                take(bytes, start, block + end as usize, has_digit);
                is_open = false;
            }
            if starts != 0 {
                (opened, has_digit, is_open) = (starts.trailing_zeros(), false, true);
                start = block + opened as usize;
            }
            has_digit |= is_open && words.digit & !below(opened) != 0;
        }
    }
    is_changed
}

/// The bits below this one.
#[inline]
fn below(bit: u32) -> u64 {
    (1 << bit) - 1
}

/// A tool that waits by its name, or a command that sleeps.
fn lets_time_pass(tool: &str, call: &str) -> bool {
    let mut words = tool.split(['_', '-', '.']);
    if words.any(|word| word.eq_ignore_ascii_case("wait") || word.eq_ignore_ascii_case("sleep")) {
        return true;
    }
    let front = &call.as_bytes()[..call.len().min(WAIT_BYTES)];
    memmem::find_iter(front, b"sleep").any(|at| {
        let starts_word = at == 0 || !(front[at - 1].is_ascii_alphanumeric() || front[at - 1] == b'_');
        starts_word && matches!(front[at + 5..], [b' ' | b'(', b'0'..=b'9', ..])
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn native(calls: &[(&str, &str)]) -> Action {
        Action::read("", calls.iter().copied()).0
    }

    #[test]
    fn digits_of_arguments_count() {
        let page = |page: u32| native(&[("search", &format!(r#"{{"q":"rust","page":{page}}}"#))]);
        assert_eq!(page(1), page(1));
        assert_ne!(page(1).exact, page(2).exact);
        assert_eq!(page(1).masked, page(2).masked);
    }

    #[test]
    fn what_is_said_beside_a_call_is_the_answer_and_not_the_action() {
        let read = |text: &'static str| Action::read(text, std::iter::once(("ls", "{}"))).0;
        assert_eq!(read("Let me look around.").exact, read("").exact);
        assert_ne!(read("Let me look around.").answer, read("Another look then.").answer);
        assert!(read("").is_bare && !read("Let me look around.").is_bare);
    }

    #[test]
    fn letting_time_pass_is_seen() {
        let is_wait = |tool, command: &str| native(&[(tool, &format!(r#"{{"command":"{command}"}}"#))]).is_wait;
        assert!(
            is_wait("bash", "sleep 30 && make") && is_wait("python", "time.sleep(5)") && is_wait("wait_for_job", "")
        );
        assert!(!is_wait("bash", "usleep 3") && !is_wait("bash", "grep sleep x") && !is_wait("await_x", ""));
    }

    #[test]
    fn calls_in_text_and_plain_text_are_actions_too() {
        let (call, tool) = Action::read("I think\nAction: Search[x]", std::iter::empty());
        assert!(call.is_call() && !call.is_native && !call.is_bare && tool == Some("Search"));
        assert_eq!(call.exact, Action::read("Else\nAction:  Search[x]", std::iter::empty()).0.exact);
        let (text, tool) = Action::read("Good-bye!", std::iter::empty());
        assert!(!text.is_call() && text.is_bare && tool.is_none());
    }

    fn is_word(byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || byte == b'_'
    }

    /// The same byte by byte: plain, masked, words.
    fn slowly(text: &str) -> (Vec<u8>, Vec<u8>, Vec<Vec<u8>>) {
        let mut plain: Vec<u8> = Vec::new();
        for word in text.split_ascii_whitespace() {
            plain.extend_from_slice(word.as_bytes());
            plain.push(b' ');
        }
        let (mut masked, mut words) = (Vec::new(), Vec::new());
        for part in plain.chunk_by(|a, b| is_word(*a) == is_word(*b)) {
            let part = part.to_ascii_lowercase();
            match (is_word(part[0]), part.iter().any(u8::is_ascii_digit)) {
                (false, _) => masked.extend_from_slice(&part),
                (true, true) => masked.push(b'#'),
                (true, false) => {
                    masked.extend_from_slice(&part);
                    words.push(part);
                }
            }
        }
        (plain, masked, words)
    }

    proptest! {
        #[test]
        fn a_text_is_spelled_as_byte_by_byte(text in "([ \\n\\t]{1,3}|[a-zA-Z_]{1,40}|[0-9]{1,9}|[a-z0-9]{1,80}|[.,:é\"-]| ){0,40}") {
            let (plain, masked, words) = slowly(&text);
            let mut gathered = Gathered::new();
            words.iter().for_each(|word| gathered.add(word));
            let mut action = Action::default();
            action.spell(&text);
            prop_assert_eq!((action.exact, action.masked), (hash(&plain), short_hash(&masked)));
            prop_assert_eq!(action.words, gathered.sketch());
        }

        #[test]
        fn neither_keys_nor_calls_have_an_order(a in "[a-z]{1,6}", b in "[a-z0-9 ]{0,12}", n in 0_u32..999) {
            let one = format!(r#"{{"x":"{a}","y":{{"b":{n},"a":"{b}"}}}}"#);
            let two = format!(r#"{{ "y": {{"a": "{b}", "b": {n}}}, "x": "{a}" }}"#);
            prop_assert_eq!(native(&[("f", &one), ("g", "{}")]), native(&[("g", "{ }"), ("f", &two)]));
        }
    }
}
