//! All kills in force, arranged so that a request finds the one that concerns it without a search.
//!
//! A set is a value: changing a copy leaves the original as it was. Copies share what did not change, so that one more
//! killed run does not cost the copying of all of them.

use std::collections::HashMap;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::kill::Kill;
use super::scope::{Descriptor, KillScope};
use crate::id::{AgentName, RunId};
use crate::time::Timestamp;

/// Parts into which killed runs are divided: what one more of them copies.
const PARTS: usize = 256;

/// A set of kills, at most one of each scope.
#[derive(Clone, Debug)]
pub struct Kills {
    everything: Option<Arc<Kill>>,
    agents: Arc<HashMap<AgentName, Arc<Kill>>>,
    keys: Arc<HashMap<String, Arc<Kill>>>,
    /// By what is looked at, then by its value.
    carried: Arc<HashMap<Descriptor, HashMap<String, Arc<Kill>>>>,
    /// What holds for a path only, by the path.
    routes: Arc<HashMap<String, Kills>>,
    /// By the hash of the run's id, then by the id; several agents may have a run of the same id.
    runs: Vec<Arc<HashMap<RunId, Vec<Arc<Kill>>>>>,
    run_count: usize,
}

/// What a request is, as far as kills care.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// Who calls.
    pub agent: &'a AgentName,
    /// The run of the call and the runs above it, nearest first.
    pub runs: &'a [RunId],
    /// The ids of all its credentials; asked for only when one is killed.
    pub keys: &'a dyn Fn() -> Vec<String>,
    /// All values of something that it carries; asked for only when calls with it are killed.
    pub carried: &'a dyn Fn(&Descriptor) -> Vec<String>,
    /// The paths that it goes by: as it was sent, and as the provider sees it.
    pub paths: &'a [&'a str],
}

impl Default for Kills {
    fn default() -> Kills {
        Kills {
            everything: None,
            agents: Arc::default(),
            keys: Arc::default(),
            carried: Arc::default(),
            routes: Arc::default(),
            runs: vec![Arc::default(); PARTS],
            run_count: 0,
        }
    }
}

impl Kills {
    /// The kill that stops a request: the widest first, then the one of its own run, then those above.
    #[must_use]
    pub fn find(&self, subject: &Subject<'_>, now: Timestamp) -> Option<&Arc<Kill>> {
        let in_force = |kill: &&Arc<Kill>| kill.is_in_force(now);
        self.everything
            .as_ref()
            .filter(in_force)
            .or_else(|| self.find_key(subject, now))
            .or_else(|| self.agents.get(subject.agent).filter(in_force))
            .or_else(|| self.find_on_route(subject, now))
            .or_else(|| self.find_carried(subject, now))
            .or_else(|| subject.runs.iter().find_map(|run| self.of_run(subject.agent, run).filter(in_force)))
    }

    /// The kill of a run itself, in force or not.
    #[must_use]
    pub fn of_run(&self, agent: &AgentName, run: &RunId) -> Option<&Arc<Kill>> {
        if self.run_count == 0 {
            return None;
        }
        let kills = self.runs[part(run)].get(run)?;
        kills.iter().find(|kill| kill.scope.agent() == Some(agent))
    }

    /// The kill of a scope, in force or not.
    #[must_use]
    pub fn of_scope(&self, scope: &KillScope) -> Option<&Arc<Kill>> {
        match scope {
            KillScope::Everything => self.everything.as_ref(),
            KillScope::Agent(agent) => self.agents.get(agent),
            KillScope::Run { agent, run } => self.of_run(agent, run),
            KillScope::Key(id) => self.keys.get(id),
            KillScope::Carrying { descriptor, value } => self.carried.get(descriptor)?.get(value),
            KillScope::On { route, scope } => {
                // The kills of a route are known by the rest of their scope.
                self.routes.get(route)?.of_scope(scope)
            }
        }
    }

    /// Puts a kill in, in place of an earlier one of its scope.
    pub fn insert(&mut self, kill: Arc<Kill>) {
        let scope = kill.scope.clone();
        self.insert_as(&scope, kill);
    }

    fn insert_as(&mut self, scope: &KillScope, kill: Arc<Kill>) {
        match scope {
            KillScope::Everything => self.everything = Some(kill),
            KillScope::Agent(agent) => {
                let agent = agent.clone();
                Arc::make_mut(&mut self.agents).insert(agent, kill);
            }
            KillScope::Key(id) => {
                let id = id.clone();
                Arc::make_mut(&mut self.keys).insert(id, kill);
            }
            KillScope::Carrying { descriptor, value } => {
                let (descriptor, value) = (descriptor.clone(), value.clone());
                Arc::make_mut(&mut self.carried).entry(descriptor).or_default().insert(value, kill);
            }
            KillScope::On { route, scope } => {
                Arc::make_mut(&mut self.routes).entry(route.clone()).or_default().insert_as(scope, kill);
            }
            KillScope::Run { agent, run } => {
                let (agent, run) = (agent.clone(), run.clone());
                let kills = Arc::make_mut(&mut self.runs[part(&run)]).entry(run).or_default();
                let before = kills.len();
                kills.retain(|known| known.scope.agent() != Some(&agent));
                kills.push(kill);
                self.run_count += kills.len() - before;
            }
        }
    }

    /// Takes the kill of a scope out.
    pub fn remove(&mut self, scope: &KillScope) -> Option<Arc<Kill>> {
        let removed = self.of_scope(scope)?.clone();
        match scope {
            KillScope::Everything => self.everything = None,
            KillScope::Agent(agent) => {
                Arc::make_mut(&mut self.agents).remove(agent);
            }
            KillScope::Key(id) => {
                Arc::make_mut(&mut self.keys).remove(id);
            }
            KillScope::Carrying { descriptor, value } => {
                let carried = Arc::make_mut(&mut self.carried);
                if let Some(values) = carried.get_mut(descriptor) {
                    values.remove(value);
                }
                carried.retain(|_, values| !values.is_empty());
            }
            KillScope::On { route, scope } => {
                let routes = Arc::make_mut(&mut self.routes);
                if let Some(kills) = routes.get_mut(route) {
                    kills.remove(scope);
                }
                routes.retain(|_, kills| kills.unlimited().next().is_some());
            }
            KillScope::Run { agent, run } => {
                let part = Arc::make_mut(&mut self.runs[part(run)]);
                if let Some(kills) = part.get_mut(run) {
                    kills.retain(|known| known.scope.agent() != Some(agent));
                    if kills.is_empty() {
                        part.remove(run);
                    }
                }
                self.run_count -= 1;
            }
        }
        Some(removed)
    }

    /// Every kill, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Kill>> {
        self.wide().chain(self.runs.iter().flat_map(|part| part.values().flatten()))
    }

    /// Every kill of something wider than a run, in no order.
    pub fn wide(&self) -> impl Iterator<Item = &Arc<Kill>> {
        self.unlimited().chain(self.routes.values().flat_map(Kills::unlimited))
    }

    /// Those that hold for every path.
    fn unlimited(&self) -> impl Iterator<Item = &Arc<Kill>> {
        let carried = self.carried.values().flat_map(HashMap::values);
        self.everything.iter().chain(self.agents.values()).chain(self.keys.values()).chain(carried)
    }

    /// Whether nothing is stopped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.run_count == 0
            && self.everything.is_none()
            && self.agents.is_empty()
            && self.keys.is_empty()
            && self.carried.is_empty()
            && self.routes.is_empty()
    }

    /// Killed runs.
    #[must_use]
    pub fn run_count(&self) -> usize {
        self.run_count
    }

    fn find_key(&self, subject: &Subject<'_>, now: Timestamp) -> Option<&Arc<Kill>> {
        if self.keys.is_empty() {
            return None;
        }
        (subject.keys)().iter().filter_map(|id| self.keys.get(id)).find(|kill| kill.is_in_force(now))
    }

    fn find_carried(&self, subject: &Subject<'_>, now: Timestamp) -> Option<&Arc<Kill>> {
        self.carried.iter().find_map(|(descriptor, kills)| {
            let sent = (subject.carried)(descriptor);
            sent.iter().filter_map(|value| kills.get(value)).find(|kill| kill.is_in_force(now))
        })
    }

    fn find_on_route(&self, subject: &Subject<'_>, now: Timestamp) -> Option<&Arc<Kill>> {
        if self.routes.is_empty() {
            return None;
        }
        let routes = subject.paths.iter().flat_map(|path| beginnings(path));
        routes.filter_map(|route| self.routes.get(route)).find_map(|kills| kills.find(subject, now))
    }
}

/// A path and the paths that it lies below, the longest first: `/a/b` gives `/a/b`, `/a/`, `/a` and `/`.
fn beginnings(path: &str) -> impl Iterator<Item = &str> {
    let above = path.rmatch_indices('/').flat_map(|(at, _)| [&path[..=at], &path[..at]]);
    std::iter::once(path).chain(above)
}

fn part(run: &RunId) -> usize {
    xxh3_64(run.as_str().as_bytes()) as usize % PARTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::KillKind;

    fn kill(scope: &str) -> Arc<Kill> {
        Arc::new(Kill {
            id: scope.into(),
            scope: scope.parse().unwrap(),
            kind: KillKind::Kill,
            reason: "r".into(),
            by: "b".into(),
            at: Timestamp(1),
            expires_at: None,
            proof: None,
        })
    }

    fn set(scopes: &[&str]) -> Kills {
        let mut kills = Kills::default();
        scopes.iter().for_each(|scope| kills.insert(kill(scope)));
        kills
    }

    #[test]
    fn a_set_is_empty_only_without_a_kill_of_any_scope() {
        for scope in ["all", "agent:a", "run:a/r", "key:k", "header:x-tool=v", "/v1 all", "/v1 agent:a"] {
            let mut kills = set(&[scope]);
            assert!(!kills.is_empty(), "{scope}");
            kills.remove(&scope.parse().unwrap());
            assert!(kills.is_empty(), "{scope}");
        }
    }

    fn found(kills: &Kills) -> Option<String> {
        let runs = ["own", "parent", "top"].map(|id| RunId::parse(id).unwrap());
        let agent = AgentName::parse("bot").unwrap();
        // A second value hides nothing, whichever comes first.
        let carried = |descriptor: &Descriptor| match descriptor {
            Descriptor::Header(name) if name == "x-tool" => vec!["read".to_owned(), "search".to_owned()],
            Descriptor::Jwt(claim) if claim == "org" => vec!["acme".to_owned()],
            _ => vec![],
        };
        let keys = || vec!["k0".to_owned(), "k1".to_owned()];
        let subject = Subject {
            agent: &agent,
            runs: &runs,
            keys: &keys,
            carried: &carried,
            paths: &["/openai/v1/chat", "/v1/chat"],
        };
        kills.find(&subject, Timestamp(5)).map(|kill| kill.id.clone())
    }

    #[test]
    fn a_request_meets_the_kills_of_all_that_it_is() {
        for scope in ["all", "agent:bot", "key:k1", "header:x-tool=search", "run:bot/own", "run:bot/top"] {
            assert_eq!(found(&set(&[scope])).as_deref(), Some(scope));
        }
        for scope in ["jwt:org=acme", "/v1/chat all", "/v1 agent:bot", "/v1/ key:k1", "/openai jwt:org=acme", "/ all"] {
            assert_eq!(found(&set(&[scope])).as_deref(), Some(scope));
        }
        let others = ["agent:other", "key:k2", "header:x-tool=write", "header:y=search", "run:other/own", "run:bot/x"];
        let elsewhere = ["/v1/cha all", "/v1/chat/x all", "/v2 all", "/v1 agent:other", "query:org=acme", "jwt:org=x"];
        assert_eq!(found(&set(&elsewhere)), None);
        assert_eq!(found(&set(&others)), None);
        assert_eq!(found(&set(&["run:bot/parent", "run:bot/own", "run:other/own"])).as_deref(), Some("run:bot/own"));
        assert_eq!(found(&set(&["run:bot/own", "agent:bot", "all"])).as_deref(), Some("all"), "the widest first");
    }

    #[test]
    fn an_expired_kill_hides_no_other() {
        let mut kills = set(&["run:bot/parent"]);
        for scope in ["all", "agent:bot", "key:k1", "header:x-tool=search", "/v1 all", "run:bot/own"] {
            kills.insert(Arc::new(Kill { expires_at: Some(Timestamp(5)), ..(*kill(scope)).clone() }));
        }
        assert_eq!(found(&kills).as_deref(), Some("run:bot/parent"));
    }

    #[test]
    fn a_copy_is_changed_alone_and_everything_can_be_taken_out() {
        let scopes = [
            "all",
            "agent:bot",
            "key:k1",
            "header:x-tool=search",
            "/v1 all",
            "/v1 agent:bot",
            "run:bot/own",
            "run:other/own",
        ];
        let full = set(&scopes);
        assert_eq!((full.iter().count(), full.wide().count(), full.run_count()), (8, 6, 2));
        let mut emptied = full.clone();
        emptied.insert(kill("run:bot/own"));
        assert_eq!(emptied.run_count(), 2, "one of each scope");
        for scope in scopes {
            assert_eq!(emptied.remove(&scope.parse().unwrap()).unwrap().id, scope);
            assert!(emptied.remove(&scope.parse().unwrap()).is_none());
        }
        assert_eq!((emptied.iter().count(), emptied.run_count()), (0, 0));
        assert_eq!(full.iter().count(), 8);
        assert!(emptied.routes.is_empty() && emptied.carried.is_empty(), "nothing stays behind");
    }
}
