//! `[alerts]` as written, made channels and rules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use http::Uri;
use sprag_core::alerts::{AlertKind, AlertRule, AlertRules, ErrorRate};
use sprag_core::limits::{ALERT_AGENTS, ALERT_CHANNELS, ALERT_RULES, RATE_NAME_BYTES};

use super::{expand, hours};
use crate::config::alerts::{Alerts, Channel, Mail, SecretUrl, Target};
use crate::config::environment::Environment;
use crate::config::file::{self, AgentHours, AlertChannel, ChannelType, MailSecurity};
use crate::config::problem::{Problem, nearest};
use crate::config::secret::Secret;

const TELEGRAM: &str = "https://api.telegram.org";
const PAGERDUTY: &str = "https://events.pagerduty.com/v2/enqueue";
const MINUTE: u64 = 60_000;

pub(in crate::config) fn resolve(
    written: &file::Alerts,
    environment: &Environment,
    problems: &mut Vec<Problem>,
) -> Alerts {
    if written.channels.len() > ALERT_CHANNELS {
        problems.push(Problem::name("alerts.channels", format!("more than {ALERT_CHANNELS} channels")));
    }
    if written.rules.len() > ALERT_RULES {
        problems.push(Problem::value("alerts.rules", format!("more than {ALERT_RULES} rules")));
    }
    let mut channels = BTreeMap::new();
    for (name, channel) in &written.channels {
        let key = format!("alerts.channels.{name}");
        check_name(&key, name, problems);
        if let Some(channel) = self::channel(&key, channel, environment, problems) {
            channels.insert(name.clone(), Arc::new(channel));
        }
    }
    let known: Vec<&str> = written.channels.keys().map(String::as_str).collect();
    let mut names = BTreeSet::new();
    let mut rules = Vec::with_capacity(written.rules.len());
    for (index, one) in written.rules.iter().enumerate() {
        let key = format!("alerts.rules[{index}]");
        if let Some(rule) = rule(&key, one, &known, problems) {
            if !names.insert(rule.name.clone()) {
                let message = format!("two rules are called \"{}\"", rule.name);
                problems.push(Problem::value(&key, message).hint("give each a `name` of its own"));
            }
            rules.push(rule);
        }
    }
    let quiet = AgentHours {
        allowed: Some(written.quiet_hours.clone()),
        time_zone: Some(written.time_zone.clone()),
        mode: None,
    };
    let mut found = Vec::new();
    let quiet = hours::over(&Default::default(), &quiet, "alerts", &mut found);
    problems.extend(
        found
            .into_iter()
            .map(|problem| Problem { key: problem.key.replace("alerts.allowed", "alerts.quiet_hours"), ..problem }),
    );
    Alerts {
        rules: Arc::new(AlertRules { rules, quiet }),
        channels,
        dashboard_url: written.dashboard_url.as_deref().and_then(|url| dashboard_url(url, problems)),
        link_ms: written.link_hours * 60 * MINUTE,
    }
}

/// One channel.
pub(in crate::config) fn channel(
    key: &str,
    written: &AlertChannel,
    environment: &Environment,
    problems: &mut Vec<Problem>,
) -> Option<Channel> {
    let target = target(key, written, problems);
    let ca_file = written.ca_file.as_deref().map(|file| expand(file, environment));
    if let Some(file) = ca_file.as_ref().filter(|file| !file.is_file()) {
        problems.push(Problem::value(format!("{key}.ca_file"), format!("there is no file {}", file.display())));
    }
    let allow_private = written.allow_private.unwrap_or(false);
    target.map(|target| Channel { target, allow_private, ca_file })
}

pub(in crate::config) fn check_name(key: &str, name: &str, problems: &mut Vec<Problem>) {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() || name.len() > RATE_NAME_BYTES || !name.chars().all(is_allowed) {
        let message = format!("a channel's name is 1 to {RATE_NAME_BYTES} lower-case letters, digits, '-' and '_'");
        problems.push(Problem::name(key, message));
    }
}

fn dashboard_url(written: &str, problems: &mut Vec<Problem>) -> Option<String> {
    let url = parse(written);
    if url.is_none() {
        let problem = Problem::value("alerts.dashboard_url", "not an address of a web page");
        problems.push(problem.hint("expected something like https://sprag.example.com"));
    }
    url.map(|_| written.trim_end_matches('/').to_owned())
}

/// An address with a host, of HTTP or HTTPS, without a name and password in it.
fn parse(text: &str) -> Option<Uri> {
    let uri: Uri = text.trim().parse().ok()?;
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    let authority = uri.authority()?.as_str();
    (is_web && !uri.host()?.is_empty() && !authority.contains('@')).then_some(uri)
}

/// The keys that each type takes besides `type`, `allow_private` and `ca_file`; those in front are needed.
fn keys_of(kind: ChannelType) -> (&'static [&'static str], &'static [&'static str]) {
    match kind {
        ChannelType::Webhook => (&["url"], &["secret"]),
        ChannelType::Slack | ChannelType::Discord | ChannelType::Teams => (&["url"], &[]),
        ChannelType::Telegram => (&["token", "chat"], &["url"]),
        ChannelType::Pagerduty => (&["routing_key"], &["url"]),
        ChannelType::Email => (&["server", "from", "recipients"], &["security", "username", "password"]),
    }
}

fn target(key: &str, channel: &AlertChannel, problems: &mut Vec<Problem>) -> Option<Target> {
    let before = problems.len();
    let Some(kind) = channel.kind else {
        let problem = Problem::value(format!("{key}.type"), "missing");
        problems.push(
            problem.hint("\"webhook\", \"slack\", \"discord\", \"teams\", \"telegram\", \"pagerduty\" or \"email\""),
        );
        return None;
    };
    let is_text = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    let is_secret = |secret: &Option<Secret>| secret.as_ref().is_some_and(|secret| !secret.reveal().is_empty());
    let given = [
        ("url", is_secret(&channel.url)),
        ("secret", is_secret(&channel.secret)),
        ("token", is_secret(&channel.token)),
        ("chat", is_text(&channel.chat)),
        ("routing_key", is_secret(&channel.routing_key)),
        ("server", is_text(&channel.server)),
        ("security", channel.security.is_some()),
        ("username", is_text(&channel.username)),
        ("password", is_secret(&channel.password)),
        ("from", is_text(&channel.from)),
        ("recipients", channel.recipients.as_ref().is_some_and(|to| !to.is_empty())),
    ];
    let (needed, optional) = keys_of(kind);
    for (name, is_given) in given {
        let is_known = needed.contains(&name) || optional.contains(&name);
        if is_given && !is_known {
            problems.push(Problem::name(format!("{key}.{name}"), "means nothing for a channel of this type"));
        } else if !is_given && needed.contains(&name) {
            problems.push(Problem::value(format!("{key}.{name}"), "missing; a channel of this type needs it"));
        }
    }
    // Whoever set it means to sign; with nothing, anybody could.
    if kind == ChannelType::Webhook && channel.secret.as_ref().is_some_and(|secret| secret.reveal().trim().is_empty()) {
        let problem = Problem::value(format!("{key}.secret"), "empty: anybody could sign messages with it");
        problems.push(problem.hint("set a long random text, or leave it out to send messages unsigned"));
    }
    let target = match kind {
        ChannelType::Webhook => {
            url(key, channel, None, problems).map(|url| Target::Webhook { url, secret: channel.secret.clone() })
        }
        ChannelType::Slack => url(key, channel, None, problems).map(Target::Slack),
        ChannelType::Discord => url(key, channel, None, problems).map(Target::Discord),
        ChannelType::Teams => url(key, channel, None, problems).map(Target::Teams),
        ChannelType::Telegram => telegram(key, channel, problems),
        ChannelType::Pagerduty => url(key, channel, Some(PAGERDUTY), problems)
            .zip(channel.routing_key.clone())
            .map(|(url, routing_key)| Target::Pagerduty { url, routing_key }),
        ChannelType::Email => mail(key, channel, problems),
    };
    target.filter(|_| problems.len() == before)
}

/// The message never shows the address: it is a secret.
fn url(key: &str, channel: &AlertChannel, otherwise: Option<&str>, problems: &mut Vec<Problem>) -> Option<SecretUrl> {
    let written = channel.url.as_ref().map(Secret::reveal).or(otherwise)?;
    let parsed = parse(written);
    if parsed.is_none() {
        let problem = Problem::value(format!("{key}.url"), "not an address that a message can be sent to");
        problems.push(problem.hint("expected https://HOST/PATH, without a name and password"));
    }
    parsed.map(SecretUrl)
}

fn telegram(key: &str, channel: &AlertChannel, problems: &mut Vec<Problem>) -> Option<Target> {
    let base = channel.url.as_ref().map_or(TELEGRAM, Secret::reveal).trim_end_matches('/');
    let token = channel.token.as_ref()?.reveal();
    let is_token = token.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b':' | b'-' | b'_'));
    if !is_token {
        problems.push(Problem::value(format!("{key}.token"), "not the token of a bot").hint("copy it from @BotFather"));
        return None;
    }
    let written = Secret::new(format!("{base}/bot{token}/sendMessage"));
    let whole = AlertChannel { url: Some(written), ..AlertChannel::default() };
    let url = url(key, &whole, None, problems)?;
    Some(Target::Telegram { url, chat: channel.chat.clone()? })
}

fn mail(key: &str, channel: &AlertChannel, problems: &mut Vec<Problem>) -> Option<Target> {
    let (to, from) = (channel.recipients.clone()?, channel.from.clone()?);
    let addresses = [("from", &from)].into_iter().chain(to.iter().map(|to| ("recipients", to)));
    for (name, _) in addresses.filter(|(_, address)| !is_address(address)) {
        let problem = Problem::value(format!("{key}.{name}"), "not the address of a mailbox");
        problems.push(problem.hint("expected NAME@HOST alone, in plain letters"));
    }
    let login = match (channel.username.clone(), channel.password.clone()) {
        (Some(username), Some(password)) => Some((username, password)),
        (None, None) => None,
        _ => {
            problems.push(Problem::value(format!("{key}.username"), "`username` and `password` go together"));
            None
        }
    };
    let security = channel.security.unwrap_or_default();
    if login.is_some() && security == MailSecurity::None {
        let problem = Problem::value(format!("{key}.security"), "a password is not sent in the clear");
        problems.push(problem.hint("use \"starttls\" or \"tls\""));
    }
    let usual = if security == MailSecurity::Tls { 465 } else { 587 };
    let (host, port) = host_and_port(channel.server.as_deref()?, usual).or_else(|| {
        let problem = Problem::value(format!("{key}.server"), "not the name of a server");
        problems.push(problem.hint("expected HOST or HOST:PORT"));
        None
    })?;
    Some(Target::Email(Box::new(Mail { host, port, security, login, from, to })))
}

fn host_and_port(written: &str, usual: u16) -> Option<(String, u16)> {
    let authority: http::uri::Authority = written.parse().ok()?;
    let port = match written.strip_prefix(authority.host())? {
        "" => usual,
        rest => rest.strip_prefix(':')?.parse().ok()?,
    };
    (!authority.host().is_empty()).then(|| (authority.host().to_owned(), port))
}

fn is_address(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '<' | '>' | '"' | ',' | ';' | ':' | '(' | ')' | '\\');
    text.len() <= 254
        && text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'))
        && text.chars().all(is_plain)
        && text.parse::<lettre::Address>().is_ok()
}

/// One rule; `known` are the channels that there are.
pub(in crate::config) fn rule(
    key: &str,
    one: &file::AlertRule,
    known: &[&str],
    problems: &mut Vec<Problem>,
) -> Option<AlertRule> {
    let Some(kind) = one.on else {
        let problem = Problem::value(format!("{key}.on"), "missing");
        problems.push(problem.hint("say what the rule is about, as in on = \"loop_detected\""));
        return None;
    };
    let only = |is_given: bool, name: &str, is_used: bool, problems: &mut Vec<Problem>| {
        if is_given && !is_used {
            problems.push(Problem::name(format!("{key}.{name}"), format!("means nothing for {}", kind.as_str())));
        }
    };
    let is_rate = kind == AlertKind::ErrorRate;
    only(one.repeat_minutes.is_some(), "repeat_minutes", kind.lasts(), problems);
    only(one.recovery.is_some(), "recovery", kind.recovers(), problems);
    only(one.percent.is_some(), "percent", is_rate, problems);
    only(one.min_requests.is_some(), "min_requests", is_rate, problems);
    only(one.window_minutes.is_some(), "window_minutes", is_rate, problems);
    only(one.thresholds.is_some(), "thresholds", kind == AlertKind::Budget, problems);
    if one.thresholds.as_ref().is_some_and(Vec::is_empty) {
        let problem = Problem::value(format!("{key}.thresholds"), "nothing would be told");
        problems.push(problem.hint("name percentages, as in [50, 80, 100], or leave it out"));
    }
    only(one.silent_minutes.is_some(), "silent_minutes", kind == AlertKind::AgentDown, problems);
    let name = one.name.clone().unwrap_or_else(|| kind.as_str().to_owned());
    if name.is_empty() || name.len() > RATE_NAME_BYTES || name.contains(char::is_control) {
        let message = format!("a name has 1 to {RATE_NAME_BYTES} printable characters");
        problems.push(Problem::value(format!("{key}.name"), message));
    }
    let agents = one.agents.clone().unwrap_or_else(|| vec!["*".to_owned()]);
    if agents.is_empty() || agents.len() > ALERT_AGENTS || agents.iter().any(String::is_empty) {
        let problem = Problem::value(format!("{key}.agents"), format!("expected 1 to {ALERT_AGENTS} names of agents"));
        problems.push(problem.hint("leave it out for all agents; * stands for anything"));
    }
    let channels = one.channels.clone().unwrap_or_else(|| known.iter().copied().map(str::to_owned).collect());
    for (index, name) in channels.iter().enumerate().filter(|(_, name)| !known.contains(&name.as_str())) {
        let problem = Problem::value(format!("{key}.channels[{index}]"), format!("there is no channel \"{name}\""));
        problems.push(match nearest(name, known) {
            Some((near, _)) => {
                problem.hint(format!("the nearest name is \"{near}\"; others need [alerts.channels.NAME]"))
            }
            None => problem.hint("add [alerts.channels.NAME]"),
        });
    }
    if channels.is_empty() {
        let problem = Problem::value(format!("{key}.channels"), "nobody would be told");
        problems.push(problem.hint("add [alerts.channels.NAME]"));
    }
    let minutes = |given: Option<u64>, otherwise: u64| given.unwrap_or(otherwise) * MINUTE;
    Some(AlertRule {
        name,
        kind,
        agents,
        channels,
        cooldown_ms: minutes(one.cooldown_minutes, 15),
        repeat_ms: one.repeat_minutes.map(|every| every * MINUTE),
        tells_recovery: one.recovery.unwrap_or(true),
        keeps_quiet: !one.ignore_quiet_hours.unwrap_or(false),
        error_rate: ErrorRate {
            percent: one.percent.unwrap_or(50),
            min_requests: one.min_requests.unwrap_or(20),
            window_ms: minutes(one.window_minutes, 5),
        },
        silent_ms: minutes(one.silent_minutes, 15),
        thresholds: one.thresholds.clone().unwrap_or_default(),
        is_for_all: one.channels.is_none(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::sandbox::Sandbox;

    fn complaint(text: &str) -> String {
        Sandbox::new(text).complaint()
    }

    #[test]
    fn every_type_of_channel_and_rule_can_be_written() {
        let text = r#"
            [alerts]
            quiet_hours = ["22:00-07:00"]
            time_zone = "Europe/Berlin"
            dashboard_url = "https://sprag.example.com/"
            [alerts.channels.hook]
            type = "webhook"
            url = "https://example.com/hook"
            secret = "s"
            [alerts.channels.chat]
            type = "slack"
            url = "https://hooks.slack.com/services/T/B/x"
            [alerts.channels.bot]
            type = "telegram"
            token = "123:abc"
            chat = "-1"
            [alerts.channels.pager]
            type = "pagerduty"
            routing_key = "r"
            [alerts.channels.mail]
            type = "email"
            server = "smtp.example.com"
            from = "sprag@example.com"
            recipients = ["ops@example.com"]
            [[alerts.rules]]
            on = "loop_detected"
            [[alerts.rules]]
            name = "failures"
            on = "error_rate"
            agents = ["prod-*"]
            channels = ["mail"]
            percent = 20
            repeat_minutes = 60
            ignore_quiet_hours = true
        "#;
        let sandbox = Sandbox::new(text).with_env(&[("SPRAG_ALERTS_CHANNELS_HOOK_SECRET", "from outside")]);
        let alerts = sandbox.load().unwrap_or_else(|problems| panic!("{problems}")).settings.alerts;
        let kinds: Vec<&str> = alerts.channels.values().map(|channel| channel.target.kind()).collect();
        assert_eq!(kinds, ["telegram", "slack", "webhook", "email", "pagerduty"]);
        assert_eq!(alerts.rules.rules[0].channels.len(), 5, "all of them");
        assert_eq!((alerts.rules.rules[1].error_rate.percent, alerts.rules.rules[1].keeps_quiet), (20, false));
        assert_eq!(alerts.dashboard_url.as_deref(), Some("https://sprag.example.com"));
        let shown = format!("{alerts:?}");
        for secret in ["from outside", "services/T/B/x", "123:abc", "bot123"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }

    #[test]
    fn says_what_cannot_be_used_and_shows_no_secret() {
        let hook = "[alerts.channels.ops]\ntype = \"webhook\"\nurl = \"https://example.com/private\"\n";
        for (text, expected) in [
            ("[alerts.channels.ops]\n".to_owned(), "type"),
            ("[alerts.channels.ops]\ntype = \"slack\"\n".to_owned(), "a channel of this type needs it"),
            ("[alerts.channels.ops]\ntype = \"slack\"\nurl = \"ftp://x/private\"\n".to_owned(), "not an address"),
            (hook.replace("example.com", "me:pw@example.com"), "not an address"),
            (format!("{hook}secret = \"\"\n"), "anybody could sign messages"),
            (format!("{hook}secret = \"  \"\n"), "or leave it out"),
            ("[alerts]\nlink_hours = 721\n".to_owned(), "link_hours"),
            (format!("{hook}chat = \"1\"\n"), "means nothing for a channel of this type"),
            (hook.replace(".ops", ".OPS"), "lower-case"),
            (format!("{hook}[[alerts.rules]]\n"), "say what the rule is about"),
            (format!("{hook}[[alerts.rules]]\non = \"loops\"\n"), "loops"),
            (format!("{hook}[[alerts.rules]]\non = \"dlp\"\nchannels = [\"opps\"]\n"), "the nearest name is \"ops\""),
            (format!("{hook}[[alerts.rules]]\non = \"dlp\"\npercent = 5\n"), "means nothing for dlp"),
            (format!("{hook}[[alerts.rules]]\non = \"dlp\"\nrepeat_minutes = 5\n"), "means nothing for dlp"),
            (format!("{hook}[[alerts.rules]]\non = \"dlp\"\nagents = []\n"), "names of agents"),
            (format!("{hook}{}", "[[alerts.rules]]\non = \"dlp\"\n".repeat(2)), "two rules are called \"dlp\""),
            ("[[alerts.rules]]\non = \"dlp\"\n".to_owned(), "nobody would be told"),
            ("[alerts]\nquiet_hours = [\"late\"]\n".to_owned(), "quiet_hours"),
            ("[alerts]\ntime_zone = \"Mars\"\n".to_owned(), "not a time zone"),
            ("[alerts]\ndashboard_url = \"sprag\"\n".to_owned(), "not an address of a web page"),
            (
                "[alerts.channels.m]\ntype = \"email\"\nserver = \"h\"\nfrom = \"a\"\nrecipients = [\"b@c\"]\n"
                    .to_owned(),
                "not the address of a mailbox",
            ),
            (
                "[alerts.channels.m]\ntype = \"email\"\nserver = \"h:x\"\nfrom = \"a@b\"\nrecipients = [\"b@c\"]\n"
                    .to_owned(),
                "expected HOST or HOST:PORT",
            ),
        ] {
            let said = complaint(&text);
            assert!(said.contains(expected), "{text}: {said}");
            assert!(!said.contains("/private"), "{said}");
        }
    }

    #[test]
    fn channels_rules_and_agents_are_bounded() {
        let loads = |text: &str| Sandbox::new(text).load().map(drop).map_err(|problems| problems.to_string());
        let channel = |number: usize| {
            format!("[alerts.channels.c{number}]\ntype = \"slack\"\nurl = \"https://hooks.slack.com/x\"\n")
        };
        let channels = |count: usize| (0..count).map(channel).collect::<String>();
        assert_eq!(loads(&channels(ALERT_CHANNELS)), Ok(()));
        assert!(loads(&channels(ALERT_CHANNELS + 1)).unwrap_err().contains("more than 64 channels"));
        let rule = |number: usize| format!("[[alerts.rules]]\nname = \"r{number}\"\non = \"dlp\"\n");
        let rules = |count: usize| channels(1) + &(0..count).map(rule).collect::<String>();
        assert_eq!(loads(&rules(ALERT_RULES)), Ok(()));
        assert!(loads(&rules(ALERT_RULES + 1)).unwrap_err().contains("more than 128 rules"));
        let agents = |count: usize| format!("{}agents = {:?}\n", rules(1), vec!["a"; count]);
        assert_eq!(loads(&agents(ALERT_AGENTS)), Ok(()));
        assert!(loads(&agents(ALERT_AGENTS + 1)).unwrap_err().contains("1 to 256 names of agents"));
    }
}
