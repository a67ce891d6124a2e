//! Puts the layers together: file < environment < flags.
//!
//! Callable again for a reload: it changes nothing and keeps nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sprag_core::limits;
use toml::Value;

use super::check::{check_table, check_value};
use super::document::Document;
use super::environment::Environment;
use super::file::File;
use super::flags::Flags;
use super::problem::{Level, Problem, Problems};
use super::resolve::resolve;
use super::schema;
use super::settings::Settings;

/// Where configuration comes from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// What the command line says.
    pub flags: Flags,
    /// What the environment says.
    pub environment: Environment,
    /// Where `sprag.toml` is looked for when nobody names a file.
    pub dir: PathBuf,
    /// No file is read, even if one is named.
    pub ignores_file: bool,
}

/// A configuration that can be used.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What it says.
    pub settings: Settings,
    /// What the user should know about it.
    pub warnings: Vec<Problem>,
    /// The file it came from, if any: what to watch.
    pub file: Option<PathBuf>,
}

/// Keys of which only one can hold; one from the environment replaces those in the file.
const ALTERNATIVES: [&str; 3] = ["api_key", "api_key_env", "api_key_file"];

impl Sources {
    /// The flags given, the environment and the working directory of this process.
    #[must_use]
    pub fn process(flags: Flags) -> Sources {
        Sources { flags, environment: Environment::process(), dir: PathBuf::from("."), ignores_file: false }
    }

    /// The same without any file.
    #[must_use]
    pub fn without_file(&self) -> Sources {
        Sources { ignores_file: true, ..self.clone() }
    }

    /// The file to read: `--config`, `SPRAG_CONFIG`, or `sprag.toml` if there is one.
    #[must_use]
    pub fn file(&self) -> Option<PathBuf> {
        if self.ignores_file {
            return None;
        }
        let named = self.flags.config.clone().or_else(|| self.environment.get("SPRAG_CONFIG").map(PathBuf::from));
        named.or_else(|| Some(self.dir.join("sprag.toml")).filter(|path| path.exists()))
    }
}

/// Reads every source and makes settings of it.
///
/// # Errors
/// Everything that is wrong, in every source, at once. Warnings are among them.
pub fn load(sources: &Sources) -> Result<Loaded, Problems> {
    let file = sources.file();
    let document = match &file {
        Some(path) => read_document(path).map_err(Problems)?,
        None => Document::parse("", "").map_err(Problems)?,
    };
    let mut layers = Layers::over(&document);
    layers.add_environment(&sources.environment);
    layers.add_flags(&sources.flags);
    let (resolved, mut problems) = layers.resolve(&sources.environment);
    problems.extend(resolved.iter().flat_map(without_effect));
    match resolved {
        Some(settings) if problems.iter().all(|problem| problem.level == Level::Warning) => {
            Ok(Loaded { settings, warnings: problems, file })
        }
        _ => {
            problems.sort_by_key(|problem| (problem.level == Level::Warning, problem.line));
            Err(Problems(problems))
        }
    }
}

/// Keys that are understood and checked, and that nothing uses yet.
fn without_effect(settings: &Settings) -> Vec<Problem> {
    let keys = settings.providers.values().filter(|provider| provider.key.is_some());
    let unused = keys.map(|provider| format!("providers.{}.api_key", provider.name));
    unused.map(|key| Problem::value(key, "has no effect in this version").warning()).collect()
}

/// What differs between two configurations and takes effect only at the next start.
#[must_use]
pub fn needs_restart(old: &Settings, new: &Settings) -> Vec<&'static str> {
    let differs = [
        ("proxy.listen", old.proxy.listen != new.proxy.listen),
        ("proxy.max_connections", old.proxy.max_connections != new.proxy.max_connections),
        ("proxy.max_header_bytes", old.proxy.max_header_bytes != new.proxy.max_header_bytes),
        ("proxy.header_read_timeout_ms", old.proxy.header_read_timeout != new.proxy.header_read_timeout),
        ("proxy.drain_seconds", old.proxy.drain != new.proxy.drain),
        ("admin.listen", old.admin.listen != new.admin.listen),
        ("admin.token", old.admin.token != new.admin.token),
        ("data.dir", old.data_dir != new.data_dir),
        ("events", old.events != new.events),
        ("log.format", old.log.format != new.log.format),
        ("log.level", old.log.level != new.log.level),
    ];
    differs.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

/// A text file of at most `max` bytes, or why not. The message never repeats what is in it.
pub(super) fn read_bounded(path: &Path, max: u64) -> Result<String, String> {
    let cannot = |error: std::io::Error| format!("{} cannot be read: {error}", path.display());
    let mut text = String::new();
    std::fs::File::open(path).and_then(|file| file.take(max + 1).read_to_string(&mut text)).map_err(cannot)?;
    if text.len() as u64 > max {
        return Err(format!("{} is larger than {max} bytes", path.display()));
    }
    Ok(text)
}

fn read_document(path: &Path) -> Result<Document, Vec<Problem>> {
    let name = path.strip_prefix("./").unwrap_or(path).display().to_string();
    match read_bounded(path, limits::CONFIG_BYTES) {
        Ok(text) => Document::parse(&name, text.strip_prefix('\u{feff}').unwrap_or(&text)),
        Err(message) => Err(vec![Problem { file: Some(name), ..Problem::value("", message) }]),
    }
}

/// The values of all layers so far, and who set them.
struct Layers<'a> {
    document: &'a Document,
    table: toml::Table,
    /// Who set a key, where it was not the file.
    origins: BTreeMap<String, String>,
    problems: Vec<Problem>,
    /// Keys taken out because their value has the wrong type.
    pruned: BTreeSet<String>,
}

impl<'a> Layers<'a> {
    fn over(document: &'a Document) -> Layers<'a> {
        let mut table = document.table.clone();
        let mut problems = Vec::new();
        check_table(&table, schema::root(), "", &mut problems);
        let mut pruned = BTreeSet::new();
        for problem in &mut problems {
            document.locate(problem);
            prune(&mut table, &problem.key);
            pruned.insert(problem.key.clone());
        }
        Layers { document, table, origins: BTreeMap::new(), problems, pruned }
    }

    fn add_environment(&mut self, environment: &Environment) {
        let chosen = ["providers", "agents"].into_iter().filter_map(|section| self.table.get(section)?.as_table());
        let names: Vec<String> = chosen.flat_map(|names| names.keys().cloned()).collect();
        for assignment in environment.layer(&names, &mut self.problems) {
            let origin = format!("environment variable {}", assignment.variable);
            self.set(&assignment.path, assignment.value, origin);
        }
    }

    fn add_flags(&mut self, flags: &Flags) {
        for (path, value, flag) in flags.layer() {
            let mut found = Vec::new();
            let node = path.iter().try_fold(schema::root(), |node, name| schema::child(node, name));
            if let Some(node) = node {
                check_value(&value, node, &path.join("."), &mut found);
            }
            if found.is_empty() {
                self.set(&path, value, format!("flag {flag}"));
            }
            self.problems.extend(found.into_iter().map(|p| Problem { origin: Some(format!("flag {flag}")), ..p }));
        }
        for name in flags.undescribed_providers() {
            let key = format!("providers.{name}.dialect");
            if !self.origins.contains_key(&key) && !self.document.holds(&key) {
                let path = ["providers", name, "dialect"].map(str::to_owned);
                self.set(&path, Value::from("openai"), "flag --provider".to_owned());
            }
        }
    }

    fn set(&mut self, path: &[String], value: Value, origin: String) {
        let Some((last, sections)) = path.split_last() else { return };
        let mut table = &mut self.table;
        for section in sections {
            let entry = table.entry(section.clone()).or_insert_with(|| Value::Table(toml::Table::new()));
            let Value::Table(inner) = entry else { return };
            table = inner;
        }
        let sibling = |name: &str| [sections, &[name.to_owned()]].concat().join(".");
        if ALTERNATIVES.contains(&last.as_str()) {
            for other in ALTERNATIVES.iter().filter(|&other| other != last) {
                if !self.origins.contains_key(&sibling(other)) {
                    table.remove(*other);
                }
            }
        }
        table.insert(last.clone(), value);
        self.origins.insert(path.join("."), origin);
        self.pruned.remove(&path.join("."));
    }

    fn resolve(mut self, environment: &Environment) -> (Option<Settings>, Vec<Problem>) {
        let resolved = match File::deserialize(std::mem::take(&mut self.table)) {
            Ok(file) => resolve(&file, environment),
            Err(error) => Err(vec![Problem::value("", error.message())]),
        };
        match resolved {
            Ok(settings) => (Some(settings), self.problems),
            Err(problems) => {
                let (pruned, origins) = (&self.pruned, &self.origins);
                let news = problems.into_iter().filter(|problem| !pruned.contains(&problem.key));
                self.problems.extend(news.map(|mut problem| {
                    problem.origin = origins.get(&problem.key).cloned();
                    if problem.origin.is_none() {
                        self.document.locate(&mut problem);
                    }
                    problem
                }));
                (None, self.problems)
            }
        }
    }
}

/// Takes out the value at `path`, or the nearest thing around it, so that the rest can still be looked at.
fn prune(table: &mut toml::Table, path: &str) {
    let (name, rest) = match path.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    };
    let name = name.split('[').next().unwrap_or(name);
    match (table.get_mut(name), rest) {
        (Some(Value::Table(inner)), Some(rest)) => prune(inner, rest),
        _ => {
            table.remove(name);
        }
    }
}

#[cfg(test)]
mod tests;
