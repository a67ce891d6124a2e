//! Text of others in messages. Names of agents, runs, tools and models are chosen by whoever runs the agent: nothing in
//! them may format, mention, end or hide a part of a message.

/// One line without anything that steers how it is shown: no control characters, nothing that turns the direction.
pub(super) fn plain(text: &str) -> String {
    let shown = |c: char| match c {
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => None,
        '\u{2028}' | '\u{2029}' => Some(' '),
        c if c.is_control() => Some(' '),
        c => Some(c),
    };
    text.chars().filter_map(shown).collect()
}

/// `text` with each character put as `escape` does, in at most `most` units of UTF-16: what the strictest chats count.
/// It is cut between characters, never within what an escape makes of one.
pub(super) fn fitted(text: &str, most: usize, escape: impl Fn(char, &mut String)) -> String {
    let mut whole = String::with_capacity(text.len());
    // `kept` bytes leave room for the mark that something is missing.
    let (mut units, mut kept) = (0, 0);
    for c in text.chars() {
        let before = whole.len();
        escape(c, &mut whole);
        units += whole[before..].encode_utf16().count();
        if units > most {
            whole.truncate(kept);
            whole.push('…');
            return whole;
        }
        if units < most {
            kept = whole.len();
        }
    }
    whole
}

/// As it is.
pub(super) fn as_is(c: char, to: &mut String) {
    to.push(c);
}

/// The three characters that Slack gives a meaning, and Telegram in HTML.
pub(super) fn angle_free(c: char, to: &mut String) {
    match c {
        '&' => to.push_str("&amp;"),
        '<' => to.push_str("&lt;"),
        '>' => to.push_str("&gt;"),
        c => to.push(c),
    }
}

/// For HTML, in attributes too.
pub(super) fn html(c: char, to: &mut String) {
    match c {
        '"' => to.push_str("&quot;"),
        '\'' => to.push_str("&#39;"),
        c => angle_free(c, to),
    }
}

/// For the Markdown of adaptive cards.
pub(super) fn markdown(c: char, to: &mut String) {
    if matches!(c, '\\' | '*' | '_' | '~' | '`' | '|' | '[' | ']' | '<' | '>' | '#') {
        to.push('\\');
    }
    to.push(c);
}

/// For the Markdown of Discord, which makes links of bare addresses, and lists. It takes a backslash before any mark.
pub(super) fn discord(c: char, to: &mut String) {
    if c.is_ascii_punctuation() && !matches!(c, ',' | ';' | '\'' | '"' | '%' | '$') {
        to.push('\\');
    }
    to.push(c);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_cut_after_it_is_escaped_and_never_within_an_escape() {
        assert_eq!(fitted("ab", 2, as_is), "ab");
        assert_eq!(fitted("abc", 2, as_is), "a…");
        assert_eq!(fitted("a*b", 4, markdown), r"a\*b");
        assert_eq!(fitted("a**b", 4, markdown), r"a\*…");
        assert_eq!(fitted("**b", 3, markdown), r"\*…");
        assert_eq!(fitted("&&", 9, angle_free), "&amp;…");
        // One that takes two units.
        assert_eq!(fitted("a😀b", 4, as_is), "a😀b");
        assert_eq!(fitted("a😀bc", 4, as_is), "a😀…");
        assert_eq!(fitted("a😀b", 3, as_is), "a…");
        for most in 1..40 {
            let cut = fitted("<&*😀é".repeat(9).as_str(), most, html);
            assert!(cut.encode_utf16().count() <= most, "{most}: {cut}");
        }
    }

    #[test]
    fn nothing_steers_how_a_line_is_shown() {
        assert_eq!(plain("a\r\nb\tc\u{7f}"), "a  b c ");
        assert_eq!(plain("safe\u{202e}txt.exe\u{2066}x\u{200b}y\u{feff}"), "safetxt.exexy");
        assert_eq!(plain("a\u{2028}b\u{85}c"), "a b c");
        assert_eq!(plain("héllo 😀"), "héllo 😀");
    }
}
