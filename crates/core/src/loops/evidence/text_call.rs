//! The call that an answer's text contains, where an agent does without native tool calls.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// A call inside a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextCall<'a> {
    /// What is called: the name of a function, or the first word of a command.
    pub(super) tool: &'a str,
    /// That is a name for sure, and no other word of the run: only then may a proof show it.
    pub(super) is_named: bool,
    /// The call as it stands in the text.
    pub(super) call: &'a str,
}

/// What shows that there may be a call. How to look for it is worked out once.
static TAGS: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| ["<function=", "<invoke name="].map(Finder::new));
static LABEL: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("Action"));
static FENCE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("```"));
static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"name\""));

/// Finds `<function=…>`, `Action: …`, the last block of code, or a JSON object with a name.
pub(super) fn find(text: &str) -> Option<TextCall<'_>> {
    // Most answers have none of these signs, and then no call that begins with them.
    if memchr::memchr3(b'<', b'`', b'"', text.as_bytes()).is_none() {
        return labelled(text);
    }
    tagged(text).or_else(|| labelled(text)).or_else(|| fenced(text)).or_else(|| object(text))
}

fn tagged(text: &str) -> Option<TextCall<'_>> {
    let at = TAGS.iter().find_map(|tag| tag.find(text.as_bytes()))?;
    let call = &text[at..];
    let name = call.split_once('=').map_or(call, |(_, rest)| rest);
    let end = name.find(['>', ' ', '\n']).unwrap_or(name.len());
    let tool = name[..end].trim_matches('"');
    Some(TextCall { tool, is_named: is_name(tool), call })
}

/// `Action:` or `Action 3:` at the beginning of a line.
fn labelled(text: &str) -> Option<TextCall<'_>> {
    let mut from = 0;
    while let Some(found) = LABEL.find(&text.as_bytes()[from..]) {
        let at = from + found;
        from = at + "Action".len();
        let starts_line = text[..at].rsplit('\n').next().unwrap_or_default().trim_ascii().is_empty();
        let rest = text[from..].trim_start_matches([' ', '\t']).trim_start_matches(|c: char| c.is_ascii_digit());
        let Some(call) = rest.trim_start_matches([' ', '\t']).strip_prefix(':') else { continue };
        if starts_line {
            let call = call.trim_ascii_start();
            let end = call.find(|c: char| c == '[' || c == '(' || c.is_ascii_whitespace()).unwrap_or(call.len());
            return Some(TextCall { tool: &call[..end], is_named: is_name(&call[..end]), call });
        }
    }
    None
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// The last block between lines of three backticks.
fn fenced(text: &str) -> Option<TextCall<'_>> {
    let split = |text: &'_ str| {
        let at = FENCE.find(text.as_bytes())?;
        Some((at, at + FENCE.needle().len()))
    };
    let mut last = None;
    let mut rest = text;
    while let Some((_, behind)) = split(rest) {
        let opened = &rest[behind..];
        let language = opened.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let Some(block) = opened[language..].strip_prefix('\n') else {
            rest = opened;
            continue;
        };
        let Some((end, behind)) = split(block) else { break };
        last = Some(&block[..end]);
        rest = &block[behind..];
    }
    let call = last?;
    Some(TextCall { tool: call.split_ascii_whitespace().next().unwrap_or_default(), is_named: false, call })
}

fn object(text: &str) -> Option<TextCall<'_>> {
    let key = NAME.find_iter(text.as_bytes());
    let mut starts = key.filter(|at| text[..*at].trim_ascii_end().ends_with('{'));
    let at = starts.next()?;
    let start = text[..at].trim_ascii_end().len() - 1;
    let value = text[at + "\"name\"".len()..].trim_ascii_start().strip_prefix(':')?.trim_ascii_start();
    let name = value.strip_prefix('"').and_then(|value| value.split('"').next()).unwrap_or_default();
    Some(TextCall { tool: name, is_named: false, call: &text[start..] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_a_name_for_sure_may_be_shown() {
        let is_named = |text: &str| find(text).unwrap().is_named;
        assert!(is_named("<function=execute_bash>\n<parameter"));
        assert!(is_named("Action: Search[Rust]"));
        assert!(!is_named("```sh\nOPENAI_API_KEY=sk-1234567890 curl x\n```"));
        assert!(!is_named("{\"name\": \"John Doe\", \"age\": 5}"));
        assert!(!is_named("Action: password=hunter2"));
    }

    #[test]
    fn calls_are_found_in_text() {
        let table = [
            (
                "I look.\n<function=execute_bash>\n<parameter=command>ls</parameter>",
                Some(("execute_bash", "<function=")),
            ),
            ("<invoke name=\"read\"><parameter", Some(("read", "<invoke"))),
            ("Thought 2: so\nAction 2: Search[Rust]", Some(("Search", "Search[Rust]"))),
            ("Thought\n  Action: finish (x)", Some(("finish", "finish (x)"))),
            ("the Action: no", None),
            ("First ```sh\nls\n``` then\n```bash\ncat x | head\n```", Some(("cat", "cat x"))),
            ("inline ```code``` only", None),
            ("open ```sh\nls", None),
            ("<tool_call>\n{ \"name\" : \"get\", \"arguments\": {}}", Some(("get", "{ \"name\""))),
            ("my \"name\": is nobody", None),
            ("", None),
        ];
        for (text, wanted) in table {
            let found = find(text);
            assert_eq!(found.map(|call| call.tool), wanted.map(|(tool, _)| tool), "{text}");
            if let (Some(found), Some((_, start))) = (found, wanted) {
                assert!(found.call.starts_with(start), "{}", found.call);
            }
        }
    }
}
