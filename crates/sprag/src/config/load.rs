//! Puts the layers together: file < environment < flags.
//!
//! Callable again for a reload: it changes nothing and keeps nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use sprag_core::limits;
use sprag_core::policy::RateRule;
use toml::Value;

use super::check::{check_table, check_value};
use super::document::Document;
use super::environment::Environment;
use super::file::{File, Unpriced};
use super::flags::Flags;
use super::problem::{Level, Problem, Problems};
use super::resolve::resolve;
use super::schema;
use super::settings::Settings;
use super::values::{Origin, Values};

/// Where configuration comes from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// What the command line says.
    pub flags: Flags,
    /// What the environment says.
    pub environment: Environment,
    /// Where `sprag.toml` is looked for when nobody names a file.
    pub dir: PathBuf,
    /// How much of the file is read.
    pub reads: Reads,
}

/// What is taken from the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    /// All of it.
    #[default]
    Everything,
    /// What a running Sprag is found by: where its admin side listens, its tokens and its data directory. What else it says
    /// may hold only where that one runs, such as a key of a provider in a variable.
    WhereItIs,
    /// Nothing, even if one is named.
    Nothing,
}

/// A configuration that can be used.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What it says.
    pub settings: Settings,
    /// What the user should know about it.
    pub warnings: Vec<Problem>,
    /// The file it came from, if any.
    pub file: Option<PathBuf>,
}

/// Keys of which only one can hold; one from the environment replaces those in the file.
const ALTERNATIVES: [&str; 3] = ["api_key", "api_key_env", "api_key_file"];
/// Sections that say where a running Sprag is.
const WHERE_IT_IS: [&str; 2] = ["admin", "data"];
/// The one key that a flag sets and that has to be one of several words.
const CHOICE: &str = "dialect";

impl Sources {
    /// The flags given, the environment and the working directory of this process.
    #[must_use]
    pub fn process(flags: Flags) -> Sources {
        Sources { flags, environment: Environment::process(), dir: PathBuf::from("."), reads: Reads::Everything }
    }

    /// The same, with less of the file.
    #[must_use]
    pub fn reading(&self, reads: Reads) -> Sources {
        Sources { reads, ..self.clone() }
    }

    /// The file to read: `--config`, `SPRAG_CONFIG`, or `sprag.toml` if there is one.
    #[must_use]
    pub fn file(&self) -> Option<PathBuf> {
        if self.reads == Reads::Nothing {
            return None;
        }
        self.named_file().or_else(|| Some(self.usual_file()).filter(|path| path.exists()))
    }

    /// Where the file is, or where one would be found once somebody writes it.
    #[must_use]
    pub fn place(&self) -> PathBuf {
        self.named_file().unwrap_or_else(|| self.usual_file())
    }

    fn named_file(&self) -> Option<PathBuf> {
        self.flags.config.clone().or_else(|| self.environment.get("SPRAG_CONFIG").map(PathBuf::from))
    }

    fn usual_file(&self) -> PathBuf {
        self.dir.join("sprag.toml")
    }
}

/// Reads every source and makes settings of it.
///
/// # Errors
/// Everything that is wrong, in every source, at once. Warnings are among them.
pub fn load(sources: &Sources) -> Result<Loaded, Problems> {
    let file = sources.file();
    let document = match &file {
        Some(path) => read_document(path, sources.reads).map_err(Problems)?,
        None => Document::parse("", "").map_err(Problems)?,
    };
    let document = Arc::new(document);
    let mut layers = Layers::over(&document);
    layers.add_environment(&sources.environment);
    layers.add_flags(&sources.flags);
    let values = layers.values();
    let (resolved, mut problems) = layers.resolve(&sources.environment);
    problems.extend(resolved.iter().filter_map(uncounted).map(|mut problem| {
        document.locate(&mut problem);
        problem
    }));
    problems.extend(resolved.iter().flat_map(unverified_claims));
    match resolved {
        Some(settings) if problems.iter().all(|problem| problem.level == Level::Warning) => {
            Ok(Loaded { settings: Settings { values, ..settings }, warnings: problems, file })
        }
        _ => {
            problems.sort_by_key(|problem| (problem.level == Level::Warning, problem.line));
            Err(Problems(problems))
        }
    }
}

/// A budget that does not see everything that is spent.
fn uncounted(settings: &Settings) -> Option<Problem> {
    let policies = &settings.policies;
    let named = policies.agents.iter().map(|(name, policy)| (format!("agents.{name}.budget"), &policy.budget));
    let everybody = [("budget", &settings.budget.budget), ("defaults.budget", &policies.defaults.budget)];
    let mut budgets = everybody.into_iter().map(|(key, budget)| (key.to_owned(), budget)).chain(named);
    let (key, _) = budgets.find(|(_, budget)| budget.is_set() && settings.prices.unpriced == Unpriced::Allow)?;
    let problem = Problem::name(key, "calls to models without a price pass, and are not counted against a budget");
    Some(problem.hint("refuse them with `[prices] unpriced = \"block\"`, or add a `[[price]]` for each").warning())
}

/// Rate limits by claims that nothing verifies: all callers share them.
fn unverified_claims(settings: &Settings) -> Vec<Problem> {
    if settings.jwt.is_some() {
        return Vec::new();
    }
    let defaults = ("defaults.rate_limits".to_owned(), &settings.policies.defaults);
    let agents = settings.policies.agents.iter().map(|(name, policy)| (format!("agents.{name}.rate_limits"), policy));
    let mut told = BTreeSet::new();
    let policies = std::iter::once(defaults).chain(agents);
    let lists = policies.map(|(key, policy)| (key, &policy.rate_limits));
    let lists = lists.chain(
        settings.routes.iter().map(|route| (format!("routes.{}.rate_limits", route.upstream.name), &route.rate_limits)),
    );
    let rules = lists.flat_map(|(key, list)| list.iter().map(move |rule| (key.clone(), rule)));
    // Agents without a list of their own have that of the defaults.
    let rules = rules.filter(|(_, rule)| rule.uses_claims() && told.insert(rule.id));
    let warning = |(key, rule): (String, &RateRule)| {
        let message =
            format!("\"{}\" is kept by claims of tokens that nothing verifies, so all callers share it", rule.name);
        Problem::value(key, message).warning().hint("set a key in [jwt]")
    };
    rules.map(warning).collect()
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
        ("admin.viewer_token", old.admin.viewer_token != new.admin.viewer_token),
        ("data.dir", old.data_dir != new.data_dir),
        ("runs.max_killed", old.runs.max_killed != new.runs.max_killed),
        ("state.redis", old.state.redis != new.state.redis),
        ("state.timeout_ms", old.state.timeout != new.state.timeout),
        ("events", old.events != new.events),
        ("telemetry.otlp", old.telemetry.traces != new.telemetry.traces),
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

fn read_document(path: &Path, reads: Reads) -> Result<Document, Vec<Problem>> {
    let name = path.strip_prefix("./").unwrap_or(path).display().to_string();
    let text = read_bounded(path, limits::CONFIG_BYTES)
        .map_err(|message| vec![Problem { file: Some(name.clone()), ..Problem::value("", message) }])?;
    let mut document = Document::parse(&name, text.strip_prefix('\u{feff}').unwrap_or(&text))?;
    if reads == Reads::WhereItIs {
        document.table.retain(|section, _| WHERE_IT_IS.contains(&section));
    }
    Ok(document)
}

/// The values of all layers so far, and who set them.
struct Layers<'a> {
    document: &'a Arc<Document>,
    table: toml::Table,
    /// Who set a key, where it was not the file.
    origins: BTreeMap<String, Origin>,
    problems: Vec<Problem>,
    /// Keys taken out because their value has the wrong type.
    pruned: BTreeSet<String>,
}

impl<'a> Layers<'a> {
    fn over(document: &'a Arc<Document>) -> Layers<'a> {
        let mut table = document.table.clone();
        let mut problems = Vec::new();
        // To make the schema takes longer than all else here, and where nothing is written nothing can be wrong.
        if !table.is_empty() {
            check_table(&table, schema::root(), "", &mut problems);
        }
        let mut pruned = BTreeSet::new();
        for problem in &mut problems {
            document.locate(problem);
            prune(&mut table, &problem.key);
            pruned.insert(problem.key.clone());
        }
        Layers { document, table, origins: BTreeMap::new(), problems, pruned }
    }

    fn add_environment(&mut self, environment: &Environment) {
        let alerts = self.table.get("alerts").and_then(|alerts| alerts.get("channels")?.as_table());
        let chosen = ["providers", "agents"].into_iter().filter_map(|section| self.table.get(section)?.as_table());
        let chosen = chosen.chain(alerts);
        let names: Vec<String> = chosen.flat_map(|names| names.keys().cloned()).collect();
        for assignment in environment.layer(&names, &mut self.problems) {
            self.set(&assignment.path, assignment.value, Origin::Environment { variable: assignment.variable });
        }
    }

    fn add_flags(&mut self, flags: &Flags) {
        for (path, value, flag) in flags.layer() {
            let mut found = Vec::new();
            // Of the texts that flags give, only one has to be a certain word.
            let is_choice = path.last().is_some_and(|name| name == CHOICE);
            let node = || path.iter().try_fold(schema::root(), |node, name| schema::child(node, name));
            if is_choice && let Some(node) = node() {
                check_value(&value, node, &path.join("."), &mut found);
            }
            if found.is_empty() {
                self.set(&path, value, Origin::Flag { flag: flag.to_owned() });
            }
            self.problems.extend(found.into_iter().map(|p| Problem { origin: Some(format!("flag {flag}")), ..p }));
        }
        for name in flags.undescribed_providers() {
            let key = format!("providers.{name}.dialect");
            if !self.origins.contains_key(&key) && !self.document.holds(&key) {
                let path = ["providers", name, "dialect"].map(str::to_owned);
                self.set(&path, Value::from("openai"), Origin::Flag { flag: "--provider".to_owned() });
            }
        }
    }

    fn set(&mut self, path: &[String], value: Value, origin: Origin) {
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

    /// Every value, with who set it.
    fn values(&self) -> Values {
        let (document, origins) = (self.document.clone(), self.origins.clone());
        let origin = move |key: &str| {
            let in_file = || document.line_of(key).map(|(file, line)| Origin::File { file, line });
            origins.get(key).cloned().or_else(in_file).unwrap_or(Origin::Default)
        };
        Values::gather(self.table.clone(), origin)
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
                    problem.origin = origins.get(&problem.key).map(Origin::to_string);
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
