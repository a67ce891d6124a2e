//! What is wrong with a configuration, where, and what would be right.

use std::fmt;

use serde::Serialize;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Whether Sprag can go on with it.
    pub level: Level,
    /// The configuration file, where the problem is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Column in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// The variable or flag, where the problem is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The key, as a dotted path; empty where the problem has none.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether `key` itself is meant, rather than its value.
    #[serde(skip)]
    pub(crate) is_about_name: bool,
    /// The line of the file with secrets masked, and the columns to underline.
    #[serde(skip)]
    pub(crate) excerpt: Option<Excerpt>,
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The configuration is refused.
    Error,
    /// The configuration is used, and the user told.
    Warning,
}

/// A line of the file, to be shown with a mark under a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) line: String,
    pub(crate) mark_start: usize,
    pub(crate) mark_len: usize,
}

/// All that is wrong, at least one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(transparent)]
pub struct Problems(pub Vec<Problem>);

impl Problem {
    /// A value that cannot be used.
    pub(crate) fn value(key: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem {
            level: Level::Error,
            file: None,
            line: None,
            column: None,
            origin: None,
            key: key.into(),
            message: message.into(),
            hint: None,
            is_about_name: false,
            excerpt: None,
        }
    }

    /// A name that cannot be used.
    pub(crate) fn name(key: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { is_about_name: true, ..Problem::value(key, message) }
    }

    /// Adds what would be right.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Problem {
        Problem { hint: Some(hint.into()), ..self }
    }

    /// Makes it one that Sprag can go on with.
    pub(crate) fn warning(self) -> Problem {
        Problem { level: Level::Warning, ..self }
    }
}

/// The candidate that looks most like `written`, and whether it looks like a slip of the pen.
pub(crate) fn nearest<'a>(written: &str, candidates: &[&'a str]) -> Option<(&'a str, bool)> {
    let written = written.to_lowercase();
    let similarity = |name: &str| strsim::normalized_damerau_levenshtein(&written, &name.to_lowercase());
    let best = candidates.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)))?;
    Some((best, similarity(best) >= 0.5))
}

/// `a`, `b` or `c`, each in quotes.
pub(crate) fn either(choices: &[&str]) -> String {
    let quoted: Vec<_> = choices.iter().map(|choice| format!("\"{choice}\"")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => "nothing".to_owned(),
    }
}

impl fmt::Display for Problem {
    /// The problem with its place and the line it stands in, as compilers show it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Error => "error",
            Level::Warning => "warning",
        };
        write!(f, "{level}: ")?;
        if !self.key.is_empty() {
            write!(f, "`{}`: ", self.key)?;
        }
        f.write_str(&self.message)?;
        let width = self.line.unwrap_or(1).to_string().len();
        if let Some(file) = &self.file {
            write!(f, "\n{:width$}--> {file}", "")?;
            if let (Some(line), Some(column)) = (self.line, self.column) {
                write!(f, ":{line}:{column}")?;
            }
        }
        if let Some(origin) = &self.origin {
            write!(f, "\n{:width$}--> {origin}", "")?;
        }
        if let (Some(Excerpt { line, mark_start, mark_len }), Some(number)) = (&self.excerpt, self.line) {
            let mark = "^".repeat(*mark_len);
            write!(f, "\n{:width$} |\n{number} | {line}\n{:width$} | {:mark_start$}{mark}", "", "", "")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n{:width$} = help: {hint}", "")?;
        }
        Ok(())
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let gap = if index == 0 { "" } else { "\n\n" };
            write!(f, "{gap}{problem}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_like_a_compiler_message() {
        let problem = Problem {
            file: Some("sprag.toml".into()),
            line: Some(12),
            column: Some(1),
            excerpt: Some(Excerpt { line: "lisen = \"x\"".into(), mark_start: 0, mark_len: 5 }),
            ..Problem::name("proxy.lisen", "unknown key").hint("did you mean `listen`?")
        };
        let expected = "\
error: `proxy.lisen`: unknown key
  --> sprag.toml:12:1
   |
12 | lisen = \"x\"
   | ^^^^^
   = help: did you mean `listen`?";
        assert_eq!(problem.to_string(), expected);
        let json = serde_json::to_value(Problems(vec![problem])).unwrap();
        assert_eq!(json[0]["line"], 12);
        assert_eq!(json[0]["hint"], "did you mean `listen`?");
        assert!(json[0].get("origin").is_none());
    }

    #[test]
    fn the_nearest_name_is_found() {
        let names = ["listen", "max_connections", "drain_seconds"];
        assert_eq!(nearest("Lisen", &names), Some(("listen", true)));
        assert_eq!(nearest("drain_secs", &names), Some(("drain_seconds", true)));
        assert!(nearest("zzz", &names).is_some_and(|(_, is_slip)| !is_slip));
        assert_eq!(nearest("x", &[]), None);
    }
}
