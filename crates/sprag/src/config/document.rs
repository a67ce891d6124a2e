//! A TOML file, with the place of every key.
//!
//! Excerpts for error messages are made here, and here secrets are masked in them: values of secret keys, of keys
//! nobody knows (`api_kye = "…"`), and URLs that carry a password.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value as Schema;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Excerpt, Problem};
use super::schema;
use super::secret::MASK;

/// A parsed file.
#[derive(Debug)]
pub(crate) struct Document {
    /// What the file says.
    pub(crate) table: toml::Table,
    name: String,
    text: String,
    places: BTreeMap<String, Place>,
    private: Vec<Range<usize>>,
}

/// Where a key and its value stand, in bytes of the text.
#[derive(Debug)]
struct Place {
    key: Range<usize>,
    value: Range<usize>,
}

impl Document {
    /// Reads `text`. `name` is what messages call the file.
    ///
    /// # Errors
    /// Every place that is not TOML.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Document, Vec<Problem>> {
        let (spanned, errors) = DeTable::parse_recoverable(text);
        let mut document = Document {
            table: toml::Table::new(),
            name: name.to_owned(),
            text: text.to_owned(),
            places: BTreeMap::new(),
            private: Vec::new(),
        };
        if errors.is_empty() {
            match text.parse() {
                Ok(table) => document.table = table,
                Err(error) => return Err(vec![document.syntax_problem(&error)]),
            }
            if !document.table.is_empty() {
                document.note_table(spanned.get_ref(), Some(schema::root()), "");
            }
            return Ok(document);
        }
        Err(errors.iter().map(|error| document.syntax_problem(error)).collect())
    }

    /// Adds file, line and excerpt to a problem with a key that the file holds, or whose table it holds.
    pub(crate) fn locate(&self, problem: &mut Problem) {
        let mut path = problem.key.as_str();
        loop {
            if let Some(place) = self.places.get(path) {
                let is_exact = path.len() == problem.key.len();
                let span = if problem.is_about_name || !is_exact { &place.key } else { &place.value };
                return self.place(problem, span.clone());
            }
            let Some(end) = path.rfind(['.', '[']) else { break };
            path = &path[..end];
        }
        problem.file = Some(self.name.clone()).filter(|name| !name.is_empty());
    }

    /// Whether the file sets `path`.
    pub(crate) fn holds(&self, path: &str) -> bool {
        self.places.contains_key(path)
    }

    /// The file, and the line where it sets `path`.
    pub(crate) fn line_of(&self, path: &str) -> Option<(String, usize)> {
        let start = floor(&self.text, self.places.get(path)?.key.start);
        Some((self.name.clone(), self.text[..start].matches('\n').count() + 1))
    }

    fn note_table(&mut self, table: &DeTable<'_>, node: Option<&Schema>, prefix: &str) {
        for (key, value) in table {
            let name = key.get_ref();
            let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
            self.note(path, key.span(), value, node.and_then(|node| schema::child(node, name)));
        }
    }

    fn note(&mut self, path: String, key: Range<usize>, value: &Spanned<DeValue<'_>>, node: Option<&Schema>) {
        match value.get_ref() {
            DeValue::Table(table) => self.note_table(table, node, &path),
            DeValue::Array(items) => {
                let item_node = node.and_then(|node| node.get("items"));
                for (index, item) in items.iter().enumerate() {
                    self.note(format!("{path}[{index}]"), item.span(), item, item_node);
                }
            }
            scalar => {
                let has_password = scalar.as_str().is_some_and(|text| text.contains("://") && text.contains('@'));
                if has_password || node.is_none_or(schema::is_secret) {
                    self.private.push(value.span());
                }
            }
        }
        // A table of a dotted or bracketed key has no text of its own.
        let value = if value.get_ref().is_table() { key.clone() } else { value.span() };
        self.places.insert(path, Place { key, value });
    }

    fn place(&self, problem: &mut Problem, span: Range<usize>) {
        let start = floor(&self.text, span.start);
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |at| start + at);
        problem.file = Some(self.name.clone());
        problem.line = Some(before.matches('\n').count() + 1);
        problem.column = Some(before[line_start..].chars().count() + 1);
        problem.excerpt = Some(self.excerpt(line_start..line_end, start..span.end.max(start)));
    }

    /// The line with private parts masked; the mark follows what moved.
    fn excerpt(&self, line: Range<usize>, mark: Range<usize>) -> Excerpt {
        let mut shown = String::new();
        let (mut mark_start, mut mark_end) = (None, None);
        let mut is_masked = false;
        for (offset, char) in self.text[line.clone()].char_indices() {
            let at = line.start + offset;
            let column = shown.chars().count();
            let is_private = self.private.iter().any(|range| range.contains(&at));
            if at >= mark.start && mark_start.is_none() {
                mark_start = Some(column);
            }
            if at >= mark.end && mark_end.is_none() {
                mark_end = Some(column);
            }
            match (is_private, is_masked) {
                (true, false) => shown.push_str(MASK),
                (true, true) => {}
                (false, _) => shown.push(if char.is_control() { ' ' } else { char }),
            }
            is_masked = is_private;
        }
        let shown = shown.trim_end().to_owned();
        let end = shown.chars().count();
        let mark_start = mark_start.unwrap_or(end);
        let mark_len = mark_end.unwrap_or(end).min(end).saturating_sub(mark_start).max(1);
        Excerpt { line: shown, mark_start, mark_len }
    }

    /// Where the text is not TOML nobody knows which part is a value: a line is not shown if it, or one above it in its
    /// section, could hold a secret.
    fn syntax_problem(&self, error: &toml::de::Error) -> Problem {
        const SECRETIVE: [&str; 6] = ["key", "token", "secret", "password", "header", "auth"];
        let span = error.span().unwrap_or(0..0);
        let mut problem = Problem::value("", format!("not valid TOML: {}", error.message().replace('\n', ", ")));
        self.place(&mut problem, span.clone());
        let line_end =
            self.text[floor(&self.text, span.start)..].find('\n').map_or(self.text.len(), |at| span.start + at);
        let before = &self.text[..floor(&self.text, line_end)];
        let section = before.rfind("\n[").map_or(before, |at| &before[at..]).to_lowercase();
        if SECRETIVE.iter().any(|word| section.contains(word)) {
            problem.excerpt = None;
        }
        problem
    }
}

/// The nearest character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
