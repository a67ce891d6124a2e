//! Nodes that work on one run, and what they share.

use sprag_core::loops::{Arrival, Departure, Look, Rules, RunWatch, decide, read_turn};

use crate::recorded::Exchange;

/// Where a run was stopped, and why.
pub(crate) type Stop = (u32, String);

/// Three nodes, and the watch that they share as bytes.
#[derive(Default)]
pub(crate) struct Cluster {
    nodes: [Node; 3],
    shared: Option<Vec<u8>>,
    version: u64,
    pub(crate) merges: usize,
}

#[derive(Default)]
struct Node {
    watch: RunWatch,
    version: u64,
    /// It has seen what the others have not.
    is_ahead: bool,
}

impl Cluster {
    /// Takes over what the others have seen.
    pub(crate) fn fetch(&mut self, node: usize) {
        let Node { watch, version, is_ahead } = &mut self.nodes[node];
        if *version == self.version {
            return;
        }
        let theirs = RunWatch::unpack(self.shared.as_deref().unwrap()).unwrap();
        self.merges += usize::from(*is_ahead);
        *watch = if *is_ahead { RunWatch::merge(watch, theirs) } else { theirs };
        *version = self.version;
    }

    /// A request arrives at a node: why it is refused.
    pub(crate) fn arrive(&mut self, node: usize, exchange: &Exchange, step: u32, ask: &Asks<'_>) -> Option<String> {
        self.nodes[node].is_ahead = true;
        self.nodes[node].watch.share(step);
        ask.arrive(&mut self.nodes[node].watch, exchange, step).1
    }

    /// Its answer is over, and only this node knows of it.
    pub(crate) fn depart(&mut self, node: usize, exchange: &Exchange, step: u32) {
        exchange.depart(&mut self.nodes[node].watch, step);
    }

    /// Lets the others know.
    pub(crate) fn send(&mut self, node: usize) {
        self.fetch(node);
        self.version += 1;
        let Node { watch, version, is_ahead } = &mut self.nodes[node];
        (*version, *is_ahead) = (self.version, false);
        self.shared = Some(watch.pack());
    }
}

/// How requests are judged.
pub(crate) struct Asks<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) is_declared: bool,
}

impl Asks<'_> {
    /// What detection sees in a request, and why it is refused.
    pub(crate) fn arrive(&self, watch: &mut RunWatch, exchange: &Exchange, step: u32) -> (Look, Option<String>) {
        exchange.with_call(|call, end| {
            let turn = read_turn(call, false);
            let arrival = Arrival { step, now: exchange.now, end, turn: &turn, is_declared: self.is_declared };
            let look = watch.arrive(&arrival, self.rules);
            let decision = decide(look.findings.clone(), self.rules, watch.strikes(), step);
            let why = decision.enforced.filter(|verdict| verdict.action.stops());
            (look, why.map(|verdict| format!("{}: {}", verdict.finding.loop_type, verdict.finding.proof.summary)))
        })
    }

    /// Where a run is stopped that stays on one node.
    pub(crate) fn alone(&self, exchanges: &[&Exchange]) -> Option<Stop> {
        let mut watch = RunWatch::default();
        (1..).zip(exchanges).find_map(|(step, exchange)| {
            let (_, why) = self.arrive(&mut watch, exchange, step);
            exchange.depart(&mut watch, step);
            why.map(|why| (step, why))
        })
    }
}

impl Exchange {
    pub(crate) fn departure(&self, step: u32) -> Departure<'_> {
        let (reply, is_answered) = (&self.reply, self.is_answered);
        Departure { step, now: self.now, reply, is_answered, cost: None, tokens: 900 }
    }

    pub(crate) fn depart(&self, watch: &mut RunWatch, step: u32) {
        watch.depart(&self.departure(step));
    }
}

/// Chance that is the same each time.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    pub(crate) fn is(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn node(&mut self) -> usize {
        [0, 1, 2][self.below(3) as usize]
    }
}
