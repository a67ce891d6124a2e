//! The configuration in force, section by section, as texts. Secrets are told as held or not, never shown.

use std::time::Duration;

use crate::config::{Auth, PathSelector, Settings};
use crate::show;

/// A section of the configuration.
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) rows: Vec<(String, String)>,
}

pub(super) fn sections(settings: &Settings) -> Vec<Section> {
    let section = |name: &'static str, rows: Vec<(&str, String)>| Section {
        name,
        rows: rows.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
    };
    let proxy = &settings.proxy;
    let events = &settings.events;
    let budget = &settings.budget.budget;
    let amount = |limit: Option<sprag_core::money::NanoUsd>| limit.map_or("no limit".to_owned(), show::usd_headline);
    let list = |texts: Vec<String>| if texts.is_empty() { "none".to_owned() } else { texts.join(", ") };
    vec![
        section(
            "proxy",
            vec![
                ("listen", proxy.listen.to_string()),
                ("require_keys", proxy.require_keys.to_string()),
                ("max_connections", show::count(proxy.max_connections as u64)),
                ("max_body_bytes", show::count(proxy.max_body_bytes as u64)),
                ("max_requests_per_agent", show::count(proxy.max_requests_per_agent as u64)),
                ("drain", span(proxy.drain)),
            ],
        ),
        section(
            "admin",
            vec![
                ("listen", settings.admin.listen.to_string()),
                ("token", held(settings.admin.token.is_some(), "from the configuration", "made at the first start")),
                ("viewer_token", held(settings.admin.viewer_token.is_some(), "held", "none")),
            ],
        ),
        providers(settings),
        section(
            "routing",
            vec![
                ("default_openai", settings.routing.default_openai.to_string()),
                ("default_anthropic", settings.routing.default_anthropic.to_string()),
                ("default_gemini", settings.routing.default_gemini.to_string()),
                (
                    "routes",
                    list(
                        settings
                            .routes
                            .iter()
                            .map(|route| {
                                let path = match &route.selector {
                                    PathSelector::Exact(path) | PathSelector::Prefix(path) => path,
                                };
                                format!("{} on {path}", route.upstream.name)
                            })
                            .collect(),
                    ),
                ),
            ],
        ),
        section("runs", vec![("idle", span(settings.runs.idle))]),
        section(
            "budget",
            vec![
                ("max_run_cost", amount(budget.max_run_cost)),
                ("daily_limit", amount(budget.daily_limit)),
                ("monthly_limit", amount(budget.monthly_limit)),
                ("time_zone", settings.budget.zone.to_string()),
            ],
        ),
        section(
            "agents",
            vec![(
                "with a policy of their own",
                list(settings.policies.agents.keys().map(ToString::to_string).collect()),
            )],
        ),
        section(
            "dlp",
            vec![
                ("kinds", list(settings.dlp.written.kinds.clone())),
                ("internal_domains", list(settings.dlp.written.internal_domains.clone())),
                ("patterns", list(settings.dlp.written.patterns.iter().map(|pattern| pattern.id.clone()).collect())),
                // Values that nobody may touch may still be nobody's business.
                (
                    "allow",
                    format!(
                        "{} values, {} patterns",
                        settings.dlp.written.allow.len(),
                        settings.dlp.written.allow_patterns.len()
                    ),
                ),
            ],
        ),
        section(
            "events",
            vec![
                ("retention", span(events.retention)),
                ("run_retention", span(events.run_retention)),
                ("flush", span(events.flush)),
                ("max_spool_bytes", show::count(events.max_spool_bytes)),
                ("max_db_bytes", events.max_db_bytes.map_or("no limit".to_owned(), show::count)),
            ],
        ),
        section(
            "prices",
            vec![
                ("unpriced", format!("{:?}", settings.prices.unpriced).to_lowercase()),
                ("own prices", settings.prices.overrides.len().to_string()),
            ],
        ),
        section(
            "responses",
            vec![
                ("metadata", settings.responses.metadata.to_string()),
                ("adapt", settings.responses.adapt.to_string()),
                (
                    "compat",
                    list(settings.responses.compat.iter().map(|one| format!("{one:?}").to_lowercase()).collect()),
                ),
            ],
        ),
        section("jwt", vec![("verified", held(settings.jwt.is_some(), "yes", "no"))]),
        section(
            "log",
            vec![
                ("format", format!("{:?}", settings.log.format).to_lowercase()),
                ("level", settings.log.level.clone()),
            ],
        ),
    ]
}

fn providers(settings: &Settings) -> Section {
    let row = |provider: &crate::config::Provider| {
        let key = match (&provider.key, &provider.auth) {
            (Some(_), _) => "key held by Sprag",
            (None, Auth::None) => "no key",
            (None, _) => "key from the caller",
        };
        (provider.name.to_string(), format!("{} · {key}", provider.base))
    };
    Section { name: "providers", rows: settings.providers.values().map(|provider| row(provider)).collect() }
}

fn held(is_held: bool, yes: &str, no: &str) -> String {
    if is_held { yes } else { no }.to_owned()
}

fn span(span: Duration) -> String {
    show::duration_ms(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}
