//! Numbers, money and times as people read them: on the page, in tables and in the log.
//!
//! For showing only. What programs read is exact and made elsewhere.

use std::collections::BTreeMap;

use serde_json::Value;
use sprag_core::dlp::{Outcome, Sightings};
use sprag_core::event::{Act, ActKind, Ending, WouldBlock};
use sprag_core::loops::{Action, Verdict};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

/// The sentence in a proof; empty where there is none.
#[must_use]
pub fn proof_summary(proof: Option<&Value>) -> &str {
    proof.and_then(|proof| proof.get("summary")?.as_str()).unwrap_or_default()
}

/// A number with its thousands apart: `12,345`.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A large number in short: `12.3k`, `4.56M`.
#[must_use]
pub fn short_count(number: u64) -> String {
    match number {
        0..10_000 => count(number),
        10_000..1_000_000 => format!("{:.1}k", number as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2}M", number as f64 / 1e6),
        _ => format!("{:.2}B", number as f64 / 1e9),
    }
}

/// Money with six places, so that a column of it lines up: `$0.003120`.
#[must_use]
pub fn usd(amount: NanoUsd) -> String {
    if (1..500).contains(&amount.0) {
        return "<$0.000001".to_owned();
    }
    money(amount, 6)
}

/// Money in a cell of a page: four places, so that a column of it lines up; the exact amount is in the cell's title.
#[must_use]
pub fn usd_cell(amount: NanoUsd) -> String {
    match amount.0 {
        0 => "$0".to_owned(),
        1..50_000 => "<$0.0001".to_owned(),
        _ => money(amount, 4),
    }
}

/// Money beside a limit: cents from a dollar on, finer below.
#[must_use]
pub fn usd_round(amount: NanoUsd) -> String {
    match amount.0 {
        0 | 1_000_000_000.. | ..0 => money(amount, 2),
        _ => usd_cell(amount),
    }
}

/// So many of something: `1 call`, `2 calls`.
#[must_use]
pub fn counted(number: u64, one: &str) -> String {
    format!("{} {one}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Money of which some may be unknown: never a zero where the price is.
#[must_use]
pub fn usd_known(amount: NanoUsd, unpriced: u64) -> String {
    match (amount.0, unpriced) {
        (_, 0) => usd(amount),
        (0, _) => "unknown".to_owned(),
        _ => format!("{} + unknown", usd(amount)),
    }
}

/// Money as a headline: cents from a hundred dollars on, finer below.
#[must_use]
pub fn usd_headline(amount: NanoUsd) -> String {
    match amount.0 {
        0 => "$0.00".to_owned(),
        1..1_000_000 => usd(amount),
        1_000_000..100_000_000_000 => money(amount, 4),
        _ => money(amount, 2),
    }
}

/// A span of time: `812 ms`, `1.23 s`, `4m 05s`, `3h 10m`, `2d 4h`.
#[must_use]
pub fn duration_ms(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms} ms"),
        1..60 => format!("{:.2} s", ms as f64 / 1e3),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// A span of whole seconds: `35 s`, `4m 05s`.
#[must_use]
pub fn seconds(seconds: u64) -> String {
    if seconds < 60 { format!("{seconds} s") } else { duration_ms(seconds.saturating_mul(1000)) }
}

/// A moment in UTC: the time alone on the same day, the date before it otherwise.
#[must_use]
pub fn moment(at: Timestamp, now: Timestamp) -> String {
    let (at, now) = (at.to_rfc3339(), now.to_rfc3339());
    let (Some((day, time)), Some((today, _))) = (at.split_once('T'), now.split_once('T')) else { return at };
    let time = time.get(..8).unwrap_or(time);
    if day == today { time.to_owned() } else { format!("{day} {time}") }
}

/// How a call ended, in the word that records use.
#[must_use]
pub fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Complete => "complete",
        Ending::UpstreamError => "upstream_error",
        Ending::UpstreamGone => "upstream_gone",
        Ending::TimedOut => "timed_out",
        Ending::ClientGone => "client_gone",
        Ending::Refused => "refused",
        Ending::Killed => "killed",
        Ending::CutOff => "cut off",
        Ending::Lost => "lost",
    }
}

/// Why something was stopped, in words; a reason that a person gave is told as it is.
#[must_use]
pub fn reason(word: &str) -> &str {
    match word {
        "loop_detected" => "Going in circles",
        "run_killed" => "Run was killed before",
        "run_paused" => "Run waits for approval",
        "run_limit_exceeded" => "Run limit reached",
        "step_limit" => "Too many steps",
        "timeout" => "Took too long",
        "budget_exceeded" => "Budget used up",
        "agent_inactive" => "Agent is inactive",
        "outside_allowed_hours" => "Outside allowed hours",
        "rate_limited" => "Too many requests",
        "model_not_allowed" => "Model not allowed",
        "dlp_blocked" => "Sensitive data",
        "authentication_error" => "Wrong or missing key",
        "manual" => "Stopped by hand",
        "" => "No reason given",
        other => other,
    }
}

/// What was done, in words.
#[must_use]
pub fn act(what: ActKind) -> &'static str {
    match what {
        ActKind::Kill => "killed",
        ActKind::Pause => "paused",
        ActKind::Resume => "resumed",
        ActKind::Approve => "approved",
        ActKind::Lift => "kill lifted",
        ActKind::Activate => "activated",
        ActKind::Deactivate => "deactivated",
        ActKind::SetPolicy => "policy set",
        ActKind::AdjustBudget => "budget adjusted",
        ActKind::BudgetReached => "budget reached",
        ActKind::CreateKey => "key created",
        ActKind::RevokeKey => "key revoked",
        ActKind::RotateKey => "key rotated",
        ActKind::CreateToken => "token created",
        ActKind::RevokeToken => "token revoked",
        ActKind::TestAlert => "alert tested",
        ActKind::StartCommand => "command started",
        ActKind::EndCommand => "command ended",
        ActKind::SetAlerts => "alerts set",
        ActKind::ResendAlert => "alert sent again",
        ActKind::SetKillSwitch => "kill switch set",
    }
}

/// What was done, to what, by whom and why: `killed run:bot/task by anna: too much`.
#[must_use]
pub fn act_told(act: &Act) -> String {
    let Act { what, by, target, reason, detail, .. } = act;
    let amount = |name: &str| detail.as_ref()?.get(name)?.as_i64().map(NanoUsd);
    let told = match (what, amount("amount_nano_usd").zip(amount("after_nano_usd"))) {
        // It names its account and its limit itself, and nobody did it.
        (ActKind::BudgetReached, _) => return format!("{}: {target}: {reason}", self::act(*what)),
        (ActKind::AdjustBudget, Some((amount, after))) => {
            let sign = if amount > NanoUsd::ZERO { "+" } else { "" };
            format!("{}: {target} {sign}{} to {} by {by}", self::act(*what), usd(amount), usd(after))
        }
        _ => format!("{} {target} by {by}", self::act(*what)),
    };
    if reason.is_empty() { told } else { format!("{told}: {reason}") }
}

/// What a limit in shadow would have done to a call: `would block (budget_exceeded: daily)`.
#[must_use]
pub fn would_block(would: &WouldBlock) -> String {
    match &would.exceeded_limit {
        Some(limit) => format!("would block ({}: {limit})", would.reason),
        None => format!("would block ({})", would.reason),
    }
}

/// What was found of secrets and personal data, by kind: `redacted OPENAI_KEY, 2 EMAIL`.
#[must_use]
pub fn sightings(sightings: &Sightings) -> Vec<String> {
    let outcomes = [
        (Outcome::Blocked, "blocked"),
        (Outcome::Redacted, "redacted"),
        (Outcome::Covered, "covered"),
        (Outcome::Logged, "saw"),
    ];
    let of = |outcome: Outcome| {
        let mut kinds: BTreeMap<&str, u32> = BTreeMap::new();
        let those = sightings.list.iter().filter(|seen| seen.outcome == outcome);
        those.for_each(|seen| *kinds.entry(&seen.entity).or_default() += 1);
        let kinds = kinds.into_iter().map(|(kind, count)| match count {
            1 => kind.to_owned(),
            _ => format!("{count} {kind}"),
        });
        kinds.collect::<Vec<_>>().join(", ")
    };
    let told = outcomes.into_iter().map(|(outcome, word)| (word, of(outcome)));
    told.filter(|(_, kinds)| !kinds.is_empty()).map(|(word, kinds)| format!("{word} {kinds}")).collect()
}

/// What detection did to a step, in short: `warned (progress: repeated_step)`.
#[must_use]
pub fn verdict(verdict: &Verdict) -> String {
    let what = match verdict.action {
        Action::Warn => "warned",
        Action::Nudge => "nudged",
        Action::Throttle => "throttled",
        Action::Reject => "stopped",
        Action::Pause => "run paused",
        Action::KillRun => "run killed",
        Action::DeactivateAgent => "agent deactivated",
    };
    format!("{what} ({})", rule(verdict))
}

/// What a rule in shadow would have done to a step.
#[must_use]
pub fn shadow(verdict: &Verdict) -> String {
    format!("would stop ({})", rule(verdict))
}

/// A number as short as it can be told: `4`, `0.86`.
#[must_use]
pub fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn rule(verdict: &Verdict) -> String {
    format!("{}: {}", verdict.finding.detector.as_str(), verdict.finding.loop_type)
}

/// A text without what would move the cursor, change colours or turn the direction of writing on a terminal.
#[must_use]
pub fn plain(text: &str) -> String {
    let is_trick = |c: char| {
        c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if is_trick(c) { '\u{fffd}' } else { c }).collect()
}

/// Rounded half up, once, from the exact amount.
fn money(amount: NanoUsd, places: u32) -> String {
    let sign = if amount.0 < 0 { "-" } else { "" };
    let unit = 10_u64.pow(9 - places);
    let rounded = (amount.0.unsigned_abs() + unit / 2) / unit;
    let whole = 10_u64.pow(places);
    format!("{sign}${}.{:0width$}", count(rounded / whole), rounded % whole, width = places as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_on_a_page_is_short_and_never_zero_unless_it_is() {
        let shown = [0, 49_999, 50_000, 95_870_000, 2_558_450_000].map(|nano| usd_cell(NanoUsd(nano)));
        assert_eq!(shown, ["$0", "<$0.0001", "$0.0001", "$0.0959", "$2.5585"]);
        let shown = [0, 10, 127_556_000, 5_741_199_000, 60_000_000_000, -2_500_000_000].map(|n| usd_round(NanoUsd(n)));
        assert_eq!(shown, ["$0.00", "<$0.0001", "$0.1276", "$5.74", "$60.00", "-$2.50"]);
    }

    #[test]
    fn one_of_something_is_not_several() {
        assert_eq!([0, 1, 2000].map(|number| counted(number, "call")), ["0 calls", "1 call", "2,000 calls"]);
    }

    #[test]
    fn numbers_have_their_thousands_apart() {
        let shown = [0, 999, 1000, 1_234_567].map(count);
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
        let short = [9_999, 10_000, 1_234_567, 2_000_000_000].map(short_count);
        assert_eq!(short, ["9,999", "10.0k", "1.23M", "2.00B"]);
    }

    #[test]
    fn money_never_looks_like_nothing_unless_it_is() {
        let shown = [0, 1, 499, 500, 3_120_000, -3_120_000, 1_234_567_890_123].map(|n| usd(NanoUsd(n)));
        assert_eq!(
            shown,
            ["$0.000000", "<$0.000001", "<$0.000001", "$0.000001", "$0.003120", "-$0.003120", "$1,234.567890"]
        );
        let headline = [0, 75_000, 1_250_000_000, 123_456_000_000].map(|n| usd_headline(NanoUsd(n)));
        assert_eq!(headline, ["$0.00", "$0.000075", "$1.2500", "$123.46"]);
        assert_eq!(money(NanoUsd(i64::MAX), 2), "$9,223,372,036.85");
    }

    #[test]
    fn spans_of_time_keep_two_units() {
        let shown = [0, 999, 1_234, 65_000, 3_660_000, 180_000_000].map(duration_ms);
        assert_eq!(shown, ["0 ms", "999 ms", "1.23 s", "1m 05s", "1h 01m", "2d 2h"]);
        assert_eq!([0, 59, 65].map(seconds), ["0 s", "59 s", "1m 05s"]);
    }

    #[test]
    fn a_moment_shows_its_day_unless_it_is_today() {
        let now = Timestamp(1_700_000_000_000);
        assert_eq!(moment(Timestamp(1_699_999_999_123), now), "22:13:19");
        assert_eq!(moment(Timestamp(1_699_900_000_000), now), "2023-11-13 18:26:40");
    }

    #[test]
    fn numbers_lose_what_says_nothing() {
        assert_eq!([4.0, 0.856, 10.5, 100.0, 0.0].map(number), ["4", "0.86", "10.5", "100", "0"]);
    }

    #[test]
    fn terminal_tricks_are_taken_out() {
        assert_eq!(plain("a\u{1b}[31mb\u{202e}c é"), "a\u{fffd}[31mb\u{fffd}c é");
    }
}

#[cfg(test)]
mod sightings_tests {
    use sprag_core::dlp::{Direction, Sighting};

    use super::*;

    #[test]
    fn findings_are_told_by_outcome_and_kind() {
        let mut all = Sightings::default();
        for (entity, outcome) in [
            ("EMAIL", Outcome::Covered),
            ("OPENAI_KEY", Outcome::Redacted),
            ("EMAIL", Outcome::Covered),
            ("JWT", Outcome::Logged),
        ] {
            let (entity, direction, path, hint) = (entity.to_owned(), Direction::Request, String::new(), String::new());
            all.note(Sighting { entity, direction, outcome, path, start: 0, length: 1, hint });
        }
        assert_eq!(sightings(&all), ["redacted OPENAI_KEY", "covered 2 EMAIL", "saw JWT"]);
    }
}
