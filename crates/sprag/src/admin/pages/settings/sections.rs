//! The configuration in force as texts: every value and where it comes from, and the providers that come of it.

use crate::config::{Auth, ConfigValue, Origin, Provider, Settings};

/// A table of the configuration.
pub(super) struct Section {
    pub(super) name: String,
    pub(super) rows: Vec<ValueLine>,
    /// How many of its values somebody set.
    pub(super) set: usize,
}

/// A value of the configuration.
#[derive(Clone)]
pub(super) struct ValueLine {
    pub(super) path: String,
    pub(super) key: String,
    pub(super) value: String,
    /// Who says so, in words.
    pub(super) origin: String,
    pub(super) is_set: bool,
    /// It holds from the next start on.
    pub(super) waits: bool,
}

/// A provider, and whose key it is called with.
pub(super) struct ProviderLine {
    pub(super) name: String,
    pub(super) base: String,
    pub(super) key: &'static str,
    /// Somebody set something of it; otherwise it is a preset as it comes.
    pub(super) is_set: bool,
}

/// All values by section. `waiting` are keys, or whole sections, that need a restart.
pub(super) fn sections(settings: &Settings, waiting: &[&str]) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for value in settings.values.list().iter() {
        let name = if value.section.is_empty() { &value.key } else { &value.section };
        if sections.last().is_none_or(|section| section.name != *name) {
            sections.push(Section { name: name.clone(), rows: Vec::new(), set: 0 });
        }
        let Some(section) = sections.last_mut() else { continue };
        let line = ValueLine::new(value, waiting);
        section.set += usize::from(line.is_set);
        section.rows.push(line);
    }
    sections
}

pub(super) fn providers(settings: &Settings) -> Vec<ProviderLine> {
    let line = |provider: &Provider| ProviderLine {
        name: provider.name.to_string(),
        base: provider.base.to_string(),
        key: match (&provider.key, &provider.auth) {
            (Some(_), _) => "held by Sprag",
            (None, Auth::None) => "none needed",
            (None, _) => "from the caller",
        },
        is_set: settings.values.list().iter().any(|value| {
            let rest = value.section.strip_prefix("providers.").and_then(|rest| rest.strip_prefix(&*provider.name));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        }),
    };
    settings.providers.values().map(|provider| line(provider)).collect()
}

impl ValueLine {
    fn new(value: &ConfigValue, waiting: &[&str]) -> ValueLine {
        let path = value.path();
        ValueLine {
            key: value.key.clone(),
            value: value.value.clone().unwrap_or_else(|| "not set".to_owned()),
            origin: match &value.origin {
                Origin::Default => "default".to_owned(),
                Origin::File { file, line } => format!("{file}, line {line}"),
                Origin::Environment { variable } => variable.clone(),
                Origin::Flag { flag } => flag.clone(),
            },
            is_set: value.origin != Origin::Default,
            waits: waiting.iter().any(|key| *key == path || *key == value.section),
            path,
        }
    }
}
