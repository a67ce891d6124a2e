//! What things are called in Redis. The part in braces decides where a key lies in a cluster.
//!
//! A call writes dozens of these: they are put together from their parts. Formatting them was a seventh of what a node did for a call.

use sprag_core::id::{AgentName, RunId};
use sprag_core::loops::{Mode, RepeatRule};
use sprag_core::policy::{AccountId, Holder, LimitKey, Window};

use xxhash_rust::xxh3::xxh3_64;

use super::packed::hex;
use crate::state::RateAsk;

/// The form of what is kept. Another form has another number.
const VERSION: &str = "sprag:2";

/// A key, and what all keys begin with that lie in the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) prefix: String,
    pub(super) key: String,
}

/// What all keys of an agent begin with.
pub(super) fn of_agent(agent: &AgentName) -> String {
    [VERSION, ":{a:", agent.as_str(), "}"].concat()
}

pub(super) fn agent(prefix: &str) -> String {
    [prefix, ":agent"].concat()
}

pub(super) fn run(prefix: &str, id: &str) -> String {
    [prefix, ":run:", id].concat()
}

/// What a call noted when it began.
pub(super) fn call(prefix: &str, id: &str) -> String {
    [prefix, ":call:", id].concat()
}

/// What detection keeps of an agent.
pub(super) fn agent_watch(prefix: &str) -> String {
    [prefix, ":agent-watch"].concat()
}

/// What detection keeps of a run.
pub(super) fn run_watch(prefix: &str, id: &str) -> String {
    [prefix, ":watch:", id].concat()
}

/// What calls of the agent to a model use.
pub(super) fn habits(prefix: &str, model: &str) -> String {
    [prefix, ":habits:", &hex(xxh3_64(model.as_bytes()))].concat()
}

/// A clue that leads to a run.
pub(super) fn clue(prefix: &str, hash: u64) -> String {
    [prefix, ":c:", &hex(hash)].concat()
}

/// A clue by which runs are offered.
pub(super) fn offer(prefix: &str, hash: u64) -> String {
    [prefix, ":o:", &hex(hash)].concat()
}

pub(super) fn account(id: &AccountId) -> Place {
    let prefix = match &id.holder {
        Holder::Run(agent, _) | Holder::Agent(agent) => of_agent(agent),
        Holder::Key(key) => [VERSION, ":{k:", key, "}"].concat(),
        Holder::Everything => [VERSION, ":{everything}"].concat(),
    };
    let kind = account_kind(id);
    let key = match &id.holder {
        Holder::Run(_, run) => run_account(&prefix, id, run),
        Holder::Key(_) | Holder::Agent(_) | Holder::Everything => [&prefix, ":money:", kind].concat(),
    };
    Place { prefix, key }
}

/// The account of a run like this one: of the same window and mode.
pub(super) fn run_account(prefix: &str, like: &AccountId, run: &RunId) -> String {
    run_account_of(prefix, account_kind(like), run.as_str())
}

/// The same, of a kind.
pub(super) fn run_account_of(prefix: &str, kind: &str, run: &str) -> String {
    [prefix, ":money:", kind, ":", run].concat()
}

/// The window of an account, and whether it is in shadow.
pub(super) fn account_kind(id: &AccountId) -> &'static str {
    match (id.window, id.is_shadow) {
        (window, false) => window.as_str(),
        (Window::Run, true) => "run-shadow",
        (Window::Day, true) => "daily-shadow",
        (Window::Month, true) => "monthly-shadow",
    }
}

/// The counter of a rate. Where agents have one each, it lies with all else of the agent.
pub(super) fn rate(ask: &RateAsk<'_>, agent: &str) -> Place {
    let prefix = match ask.rule.limit_keys.contains(&LimitKey::Agent) {
        true => agent.to_owned(),
        false => [VERSION, ":{r:", &hex(ask.bucket), "}"].concat(),
    };
    let key = [&prefix, ":rate:", &hex(ask.bucket)].concat();
    Place { prefix, key }
}

/// The counter of an identical request, and that of all requests. Those whose windows are in requests lie together.
pub(super) fn repeat(fingerprint: u64, rule: &RepeatRule) -> (Place, String) {
    let prefix = match rule.common.window.requests {
        0 => format!("{VERSION}:{{p:{fingerprint:016x}}}"),
        _ => format!("{VERSION}:{{repeat}}"),
    };
    let mode = if rule.common.mode == Mode::Shadow { "shadow" } else { "enforce" };
    let key = format!("{prefix}:repeat:{mode}:{fingerprint:016x}");
    let hits = format!("{prefix}:hits:{mode}");
    (Place { prefix, key }, hits)
}

/// What all keys begin with that lie where this one does.
pub(super) fn prefix_of(key: &str) -> &str {
    key.split_once('}').map_or(key, |(tag, _)| &key[..=tag.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account_key(holder: Holder, window: Window, is_shadow: bool) -> String {
        account(&AccountId { holder, window, is_shadow }).key
    }

    #[test]
    fn no_two_accounts_share_a_key() {
        let agent = AgentName::parse("bot").unwrap();
        let run = |id: &str| Holder::Run(agent.clone(), RunId::parse(id).unwrap());
        let keys = [
            account_key(run("x"), Window::Run, false),
            account_key(run("x"), Window::Run, true),
            account_key(run("shadow:x"), Window::Run, false),
            account_key(run("x-shadow"), Window::Run, false),
            account_key(Holder::Agent(agent.clone()), Window::Day, false),
            account_key(Holder::Agent(agent.clone()), Window::Day, true),
            account_key(Holder::Agent(agent.clone()), Window::Month, false),
            account_key(Holder::Key("bot".into()), Window::Day, false),
            account_key(Holder::Everything, Window::Day, false),
        ];
        for (place, key) in keys.iter().enumerate() {
            assert!(!keys[..place].contains(key), "{key}");
            assert!(key.starts_with("sprag:2:{"), "{key}");
            assert!(key.starts_with(prefix_of(key)) && prefix_of(key).ends_with('}'), "{key}");
        }
    }
}
