//! How values get into pages: as text, whatever they hold. Markup is escaped; control characters, which do nothing on a page
//! but command a terminal that the text is copied to, are shown as a mark.

use std::fmt::{self, Write};

use askama::filters::{Escaper, Html};

/// The escaping of every template; `askama.toml` names it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlainHtml;

impl Escaper for PlainHtml {
    fn write_escaped_str<W: Write>(&self, mut dest: W, string: &str) -> fmt::Result {
        let is_command = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        for (at, part) in string.split(is_command).enumerate() {
            if at > 0 {
                dest.write_char(char::REPLACEMENT_CHARACTER)?;
            }
            Html.write_escaped_str(&mut dest, part)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_commands_to_terminals_become_text() {
        let mut page = String::new();
        PlainHtml.write_escaped_str(&mut page, "<b>\u{1b}[2J\u{7}a\tb\n\u{9b}é\"</b>").unwrap();
        assert_eq!(page, "&#60;b&#62;\u{fffd}[2J\u{fffd}a\tb\n\u{fffd}é&#34;&#60;/b&#62;");
    }
}
