use std::fmt::Write;

use sprag_core::limits;
use sprag_core::loops::Mode;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{RateMeasure, Reserve, Stage, StageAction};

use super::*;
use crate::config::problem::Level;
use crate::config::sandbox::Sandbox;
use crate::config::settings::Settings;

fn settings(text: &str) -> Settings {
    Sandbox::new(text).load().unwrap_or_else(|problems| panic!("{text}\n{problems}")).settings
}

fn policy(text: &str, agent: &str) -> Policy {
    settings(text).policies.of(&AgentName::parse(agent).unwrap()).clone()
}

fn usd(text: &str) -> Option<NanoUsd> {
    Some(NanoUsd::parse_usd(text).unwrap())
}

#[test]
fn an_agent_overrides_the_defaults_key_by_key() {
    let text = "[defaults.run_limits]\nmax_steps = 50\n[defaults.kill_switch]\nthreshold = 7\n\
         [agents.bot.run_limits]\ntimeout_seconds = 0\napplies_to = \"all\"\n[agents.\"team:b\".kill_switch]\nenabled = true";
    let policies = Sandbox::new(text).load().unwrap().settings.policies;
    let limits = |max_steps, timeout_seconds, applies_to| RunLimits {
        max_steps,
        timeout_seconds,
        applies_to,
        ..RunLimits::default()
    };
    let named = |name: &str| policies.of(&AgentName::parse(name).unwrap()).clone();
    assert_eq!(named("other").run_limits, limits(50, 120, RunKind::Declared));
    assert_eq!(named("bot").run_limits, limits(50, 0, RunKind::All));
    let switch = |enabled| KillSwitch { enabled, window_size: 20, threshold: 7.0 };
    assert_eq!((named("bot").kill_switch, named("team:b").kill_switch), (switch(false), switch(true)));
    let default = Sandbox::new("").load().unwrap().settings.policies.defaults;
    assert_eq!((default.run_limits, default.kill_switch), (RunLimits::default(), KillSwitch::default()));
}

#[test]
fn says_what_cannot_be_used() {
    for (text, expected) in [
        ("[agents.\"a b\".kill_switch]\nenabled = true", "an agent name has 1 to 64"),
        ("[defaults.kill_switch]\nwindow_size = 4", "expected 5 to 100"),
        ("[agents.bot.kill_switch]\nthreshold = 50.5", "expected 1 to 50"),
        ("[defaults.kill_switch]\nthreshold = \"x\"", "expected a number, found a string"),
        ("[defaults.run_limits]\napplies_to = \"none\"", "expected \"declared\" or \"all\""),
        ("[defaults.run_limits]\nmax_step = 1", "did you mean `max_steps`?"),
        ("[defaults.run_limits]\nmode = \"watch\"", "expected \"off\", \"shadow\" or \"enforce\""),
        ("[budget]\ndaily_limit = \"5 dollars\"", "`budget.daily_limit`: \"5 dollars\" is not an amount of dollars"),
        ("[budget]\ndaily_limit = -1", "expected a plain number, 0 or more"),
        ("[budget]\ndaily_limit = 0.0000000001", "at most nine decimal places"),
        ("[budget]\ndaily_limit = inf", "is not an amount of dollars"),
        ("[budget]\ntime_zone = \"Berlin\"", "`budget.time_zone`: `Berlin` is not a time zone"),
        ("[defaults.budget]\ntime_zone = \"UTC\"", "`defaults.budget.time_zone`: unknown key"),
        ("[defaults.budget]\nreserve = \"worst\"", "did you mean \"worst_case\"?"),
        ("[defaults.budget]\nstages = [{ at = 100, action = \"warn\" }]", "expected 1 to 99"),
        ("[defaults.budget]\nstages = [{ at = 0, action = \"warn\" }]", "expected 1 to 99"),
        ("[defaults.budget]\nstages = [{ action = \"warn\" }]", "`defaults.budget.stages[0].at`: a stage needs"),
        ("[defaults.budget]\nstages = [{ at = 5 }]", "`defaults.budget.stages[0].action`: a stage needs an action"),
        ("[defaults.budget]\nstages = [{ at = 5, action = \"warn\", delay_ms = 1 }]", "only \"throttle\""),
        ("[agents.bot.budget]\nstages = [{ at = 5, action = \"throttle\" }]", "`agents.bot.budget.stages[0].delay_ms`"),
        ("[agents.bot.budget]\nstages = [{ at = 5, action = \"throttle\", delay_ms = 30001 }]", "1 to 30000"),
        (
            "[budget]\nstages = [{ at = 80, action = \"warn\" }, { at = 80, action = \"throttle\", delay_ms = 9 }]",
            "`budget.stages[1].at`: 80 does not come after 80",
        ),
        ("[defaults.hours]\ntime_zone = \"Mars/Base\"", "expected a name such as UTC, Europe/Berlin"),
        ("[agents.bot.hours]\nallowed = [\"sometimes\"]", "`agents.bot.hours.allowed[0]`: `sometimes` is not a day"),
        ("[defaults.models]\nallow = [\" \"]", "`defaults.models.allow[0]`: \"\" is not the name of a model"),
        ("[defaults.models]\nallow = \"gpt-4o\"", "expected a list, found a string"),
        ("[[defaults.rate_limits]]\nrequests = 5", "`requests` needs `window_seconds`"),
        ("[[agents.bot.rate_limits]]\nname = \"x\"", "set one of `requests` and `tokens`"),
    ] {
        let complaint = Sandbox::new(text).complaint();
        assert!(complaint.contains(expected), "{text}\n---\n{complaint}");
    }
}

#[test]
fn the_environment_reaches_them_too() {
    let env = [
        ("SPRAG_DEFAULTS_KILL_SWITCH_THRESHOLD", "12.5"),
        ("SPRAG_AGENTS_MY_BOT_RUN_LIMITS_MAX_STEPS", "7"),
        ("SPRAG_DEFAULTS_RUN_LIMITS_APPLIES_TO", "all"),
    ];
    let text = "[agents.my-bot.kill_switch]\nenabled = true";
    let policies = Sandbox::new(text).with_env(&env).load().unwrap().settings.policies;
    let bot = policies.of(&AgentName::parse("my-bot").unwrap());
    assert_eq!((bot.run_limits.max_steps, bot.run_limits.applies_to), (7, RunKind::All));
    assert_eq!(bot.kill_switch, KillSwitch { enabled: true, window_size: 20, threshold: 12.5 });
    let complaint = Sandbox::new("").with_env(&[("SPRAG_DEFAULTS_KILL_SWITCH_THRESHOLD", "much")]).complaint();
    assert!(complaint.contains("expected a number"), "{complaint}");
}

#[test]
fn nothing_is_limited_unless_it_is_said() {
    let settings = settings("");
    let default = &settings.policies.defaults;
    assert_eq!((default.hours.mode, default.hours.windows.len()), (Mode::Enforce, 0));
    assert_eq!((default.models.mode, default.models.allow.len()), (Mode::Enforce, 0));
    assert_eq!(default.rate_limits.len(), 0);
    let stages = vec![Stage { at: 80, action: StageAction::Warn }];
    for budget in [&default.budget, &settings.budget.budget] {
        assert!(!budget.is_set());
        assert_eq!((budget.mode, budget.reserve, budget.kill_run), (Mode::Enforce, Reserve::Expected, true));
        assert_eq!(*budget.stages, *stages);
    }
    assert_eq!(settings.budget.zone.to_string(), "UTC");
}

#[test]
fn budgets_are_exact_and_overridden_key_by_key() {
    let text = "[budget]\nmonthly_limit = 0.1\ntime_zone = \"Europe/Berlin\"\nreserve = \"worst_case\"\n\
        [defaults.budget]\ndaily_limit = \"5.000000001\"\nmax_run_cost = 1\nmode = \"shadow\"\n\
        [agents.bot.budget]\ndaily_limit = 0\nkill_run = false\n\
        stages = [{ at = 50, action = \"warn\" }, { at = 95, action = \"throttle\", delay_ms = 30000 }]";
    let settings = settings(text);
    let all = &settings.budget;
    assert_eq!((all.budget.monthly_limit, all.budget.daily_limit), (usd("0.1"), None));
    assert_eq!((all.budget.reserve, all.zone.to_string()), (Reserve::WorstCase, "Europe/Berlin".to_owned()));
    let other = policy(text, "other").budget;
    assert_eq!((other.daily_limit, other.max_run_cost), (usd("5.000000001"), usd("1")));
    assert_eq!((other.mode, other.reserve), (Mode::Shadow, Reserve::Expected));
    let bot = policy(text, "bot").budget;
    assert_eq!((bot.daily_limit, bot.max_run_cost, bot.monthly_limit), (None, usd("1"), None));
    assert_eq!((bot.mode, bot.kill_run), (Mode::Shadow, false));
    assert_eq!(bot.stages[1], Stage { at: 95, action: StageAction::Throttle { delay_ms: 30_000 } });
}

#[test]
fn models_hours_and_modes_are_overridden_key_by_key() {
    let text = "[defaults.models]\nallow = [\"gpt-4o*\"]\n[defaults.hours]\ntime_zone = \"Asia/Tokyo\"\n\
        [agents.bot.models]\nmode = \"shadow\"\n[agents.bot.hours]\nmode = \"off\"\n\
        [agents.open.models]\nallow = []\n[agents.open.run_limits]\nmode = \"shadow\"";
    let bot = policy(text, "bot");
    assert_eq!((bot.models.mode, bot.models.allow.to_vec()), (Mode::Shadow, vec!["gpt-4o*".to_owned()]));
    assert_eq!((bot.hours.mode, bot.hours.zone.to_string()), (Mode::Off, "Asia/Tokyo".to_owned()));
    assert_eq!(bot.run_limits.mode, Mode::Enforce);
    let open = policy(text, "open");
    assert_eq!((open.models.mode, open.models.allow.len(), open.run_limits.mode), (Mode::Enforce, 0, Mode::Shadow));
}

#[test]
fn an_agents_rate_limits_replace_those_of_the_defaults() {
    let text = "[[defaults.rate_limits]]\nname = \"base\"\nrequests = 60\nwindow_seconds = 60\n\
        [[defaults.rate_limits]]\nrps = 2.0\n[[agents.bot.rate_limits]]\ntokens = 1000\nwindow_seconds = 3600\n\
        [agents.free]\nrate_limits = []\n[agents.other.run_limits]\nmax_steps = 1";
    let measures =
        |agent: &str| -> Vec<RateMeasure> { policy(text, agent).rate_limits.iter().map(|rule| rule.measure).collect() };
    let base = [RateMeasure::Requests { limit: 60, window_ms: 60_000 }, RateMeasure::Bucket { rps: 2.0, burst: 2.0 }];
    assert_eq!(measures("other"), base);
    assert_eq!(measures("anybody"), base);
    assert_eq!(measures("bot"), [RateMeasure::Tokens { limit: 1000, window_ms: 3_600_000 }]);
    assert_eq!(measures("free"), []);
}

#[test]
fn hours_are_windows_of_the_week() {
    let text = "[defaults.hours]\nallowed = [\"mon-fri 09:00-18:00\"]\ntime_zone = \"UTC\"\n\
        [agents.bot.hours]\nallowed = [\"22:00-06:00\", \"sat,sun\"]\n[agents.free.hours]\nallowed = []";
    let windows = |agent: &str| policy(text, agent).hours.windows.len();
    assert_eq!((windows("other"), windows("bot"), windows("free")), (1, 2, 0));
}

#[test]
fn the_environment_sets_limits_too() {
    let env = [
        ("SPRAG_BUDGET_DAILY_LIMIT", "12.50"),
        ("SPRAG_DEFAULTS_BUDGET_STAGES", "[{ at = 10, action = \"warn\" }]"),
        ("SPRAG_DEFAULTS_MODELS_ALLOW", "gpt-4o*,claude-*"),
        ("SPRAG_AGENTS_BOT_BUDGET_MODE", "shadow"),
        ("SPRAG_DEFAULTS_RATE_LIMITS", "[{ rps = 5.0 }]"),
    ];
    let settings = Sandbox::new("[agents.bot.budget]\ndaily_limit = 1").with_env(&env).load().unwrap().settings;
    assert_eq!(settings.budget.budget.daily_limit, usd("12.5"));
    let default = &settings.policies.defaults;
    assert_eq!((default.budget.stages[0].at, default.models.allow.len(), default.rate_limits.len()), (10, 2, 1));
    let bot = settings.policies.of(&AgentName::parse("bot").unwrap());
    assert_eq!((bot.budget.mode, bot.budget.daily_limit), (Mode::Shadow, usd("1")));
    let complaint = Sandbox::new("").with_env(&[("SPRAG_BUDGET_DAILY_LIMIT", "much")]).complaint();
    assert!(complaint.contains("environment variable SPRAG_BUDGET_DAILY_LIMIT"), "{complaint}");
}

#[test]
fn a_budget_that_cannot_see_everything_is_a_warning() {
    for (text, place) in [
        ("[budget]\ndaily_limit = 1", Some("`budget`")),
        ("[defaults.budget]\nmax_run_cost = 1\nmode = \"shadow\"", Some("`defaults.budget`")),
        ("[agents.bot.budget]\nmonthly_limit = 1", Some("`agents.bot.budget`")),
        ("[budget]\ndaily_limit = 0", None),
        ("[budget]\ndaily_limit = 1\nmode = \"off\"", None),
        ("[budget]\ndaily_limit = 1\n[prices]\nunpriced = \"block\"", None),
    ] {
        let warnings = Sandbox::new(text).load().unwrap().warnings;
        let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), usize::from(place.is_some()), "{text}: {told:?}");
        if let Some(place) = place {
            assert_eq!(warnings[0].level, Level::Warning);
            assert!(told[0].contains(place) && told[0].contains("sprag.toml:1:"), "{told:?}");
            assert!(told[0].contains("unpriced = \"block\""), "{told:?}");
        }
    }
}

#[test]
fn what_agents_have_in_common_is_shared() {
    let text = "[agents.a.budget]\ndaily_limit = 1\n[agents.b.detection]\npreset = \"strict\"";
    let policies = settings(text).policies;
    let rules = |agent: &str| policies.of(&AgentName::parse(agent).unwrap()).rules.clone();
    assert!(Arc::ptr_eq(&rules("a"), &policies.defaults.rules));
    assert!(!Arc::ptr_eq(&rules("b"), &policies.defaults.rules));
}

#[test]
fn lists_have_a_bound() {
    let at_and_past = |make: &dyn Fn(usize) -> String, bound: usize, message: &str| {
        assert!(Sandbox::new(&make(bound)).load().is_ok(), "{message}");
        let complaint = Sandbox::new(&make(bound + 1)).complaint();
        assert!(complaint.contains(message), "{complaint}");
    };
    let models = |count: usize| {
        let names = (0..count).fold(String::new(), |mut text, index| {
            let _ = write!(text, "\"m{index}\",");
            text
        });
        format!("[defaults.models]\nallow = [{names}]")
    };
    at_and_past(&models, limits::MODEL_PATTERNS, "more than 256 patterns");
    let pattern = |length: usize| format!("[defaults.models]\nallow = [\"{}\"]", "m".repeat(length));
    at_and_past(&pattern, limits::MODEL_NAME_BYTES, "is not the name of a model");
    let stages = |count: usize| {
        let stages = (1..=count).fold(String::new(), |mut text, at| {
            let _ = write!(text, "{{ at = {at}, action = \"warn\" }},");
            text
        });
        format!("[budget]\nstages = [{stages}]")
    };
    at_and_past(&stages, limits::BUDGET_STAGES, "more than 16 stages");
}

#[test]
fn windows_of_hours_have_a_bound() {
    let windows = |count: usize| format!("[defaults.hours]\nallowed = [{}]", "\"sat\",".repeat(count));
    assert_eq!(policy(&windows(limits::HOURS_WINDOWS), "bot").hours.windows.len(), limits::HOURS_WINDOWS);
    let complaint = Sandbox::new(&windows(limits::HOURS_WINDOWS + 1)).complaint();
    assert!(complaint.contains("more than 64 windows"), "{complaint}");
}
