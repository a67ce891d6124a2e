//! Groups of digits that stand together: `4111 1111 1111 1111`, `(212) 555-0123`.

use crate::dlp::view::View;

/// A card has 19 at most, and what stands behind it matters.
const MOST_DIGITS: usize = 23;
/// No number of those that are looked for has more.
const MOST_GROUPS: usize = 10;

/// What stands between two groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Between {
    /// A space, also one that does not break.
    Space,
    /// A dash.
    Dash,
    /// A full stop.
    Dot,
    /// A slash.
    Slash,
    /// A bracket, with or without a space.
    Bracket,
}

/// Digits beside each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) start: usize,
    pub(super) end: usize,
    /// What stands before it; of no meaning for the first.
    pub(super) between: Between,
}

/// Groups of digits, from the first on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number<'t> {
    text: &'t [u8],
    groups: [Group; MOST_GROUPS],
    count: usize,
    /// The text ends where the number could go on.
    pub(super) is_open: bool,
}

impl Group {
    pub(super) fn length(&self) -> usize {
        self.end - self.start
    }
}

impl<'t> Number<'t> {
    /// Reads the groups that begin at `at`, where a digit stands. Ends before there are too many digits.
    pub(super) fn read(view: &View<'t>, at: usize) -> Number<'t> {
        let none = Group { start: at, end: at, between: Between::Space };
        let mut number = Number { text: view.text, groups: [none; MOST_GROUPS], count: 0, is_open: false };
        let (mut start, mut between, mut digits) = (at, Between::Space, 0);
        while number.count < MOST_GROUPS {
            let most = view.text.len().min(start + MOST_DIGITS + 1);
            let length = view.text[start..most].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let end = start + length;
            digits += length;
            if number.count > 0 && digits > MOST_DIGITS {
                break;
            }
            number.groups[number.count] = Group { start, end, between };
            number.count += 1;
            number.is_open = view.may_go_on(end);
            if digits > MOST_DIGITS {
                break;
            }
            match read_between(view, end) {
                Next::Digits(kind, next) => (between, start) = (kind, next),
                Next::Nothing => break,
                Next::Open => {
                    number.is_open = true;
                    break;
                }
            }
        }
        number
    }

    pub(super) fn groups(&self) -> &[Group] {
        &self.groups[..self.count]
    }

    pub(super) fn start(&self) -> usize {
        self.groups[0].start
    }

    /// The digits of the first `count` groups.
    pub(super) fn digits(&self, count: usize) -> impl DoubleEndedIterator<Item = u8> + Clone + 't {
        let (first, last) = (self.groups[0].start, self.groups[count - 1].end);
        self.text[first..last].iter().filter(|byte| byte.is_ascii_digit()).map(|byte| byte - b'0')
    }

    pub(super) fn bytes(&self, group: &Group) -> &'t [u8] {
        &self.text[group.start..group.end]
    }

    /// Whether the first groups have these lengths.
    pub(super) fn has_shape(&self, shape: &[usize]) -> bool {
        self.count >= shape.len() && self.groups().iter().zip(shape).all(|(group, length)| group.length() == *length)
    }

    /// Whether the same stands between all of the first `count` groups.
    pub(super) fn is_even(&self, count: usize) -> bool {
        self.groups[1..count].iter().all(|group| group.between == self.groups[1].between)
    }
}

enum Next {
    Digits(Between, usize),
    Nothing,
    Open,
}

/// Reads what stands between two groups.
fn read_between(view: &View<'_>, at: usize) -> Next {
    let Some((mut between, mut next)) = one_between(&view.text[at..]) else {
        let is_cut = matches!(view.text[at..], [] | [0xc2] | [0xe2] | [0xe2, 0x80]);
        return if is_cut && !view.is_end { Next::Open } else { Next::Nothing };
    };
    next += at;
    for _ in 0..2 {
        match (between, one_between(&view.text[next..])) {
            (Between::Bracket, Some((Between::Space | Between::Dash | Between::Dot, length))) => next += length,
            (Between::Space | Between::Dash, Some((Between::Bracket, length))) => {
                (between, next) = (Between::Bracket, next + length);
            }
            _ => break,
        }
    }
    match view.text.get(next) {
        Some(byte) if byte.is_ascii_digit() => Next::Digits(between, next),
        None | Some(0xc2 | 0xe2) if view.may_go_on(next + 2) => Next::Open,
        _ => Next::Nothing,
    }
}

/// Whether what parts two groups may begin with this byte.
#[inline]
pub(super) fn may_part(byte: u8) -> bool {
    matches!(byte, b' ' | b'-' | b'.' | b'/' | b'(' | b')' | 0xc2 | 0xe2)
}

fn one_between(text: &[u8]) -> Option<(Between, usize)> {
    match text {
        [b' ', ..] => Some((Between::Space, 1)),
        [0xc2, 0xa0, ..] => Some((Between::Space, 2)),
        [0xe2, 0x80, 0xaf, ..] => Some((Between::Space, 3)),
        [b'-', ..] => Some((Between::Dash, 1)),
        [0xe2, 0x80, 0x90 | 0x91, ..] => Some((Between::Dash, 3)),
        [b'.', ..] => Some((Between::Dot, 1)),
        [b'/', ..] => Some((Between::Slash, 1)),
        [b'(' | b')', ..] => Some((Between::Bracket, 1)),
        _ => None,
    }
}
