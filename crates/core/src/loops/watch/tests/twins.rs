//! A watch that stays in memory beside one that is packed and unpacked before everything that happens to it.

use crate::loops::{AgentWatch, Arrival, Decision, Departure, Finding, Look, Rules, RunWatch, decide};

/// Two watches of one run that must always see the same.
#[derive(Default)]
pub(in crate::loops) struct Twins {
    stays: RunWatch,
    travels: RunWatch,
}

/// Two watches of one agent.
#[derive(Default)]
pub(in crate::loops) struct AgentTwins {
    stays: AgentWatch,
    travels: AgentWatch,
}

impl Twins {
    pub(in crate::loops) fn arrive(&mut self, arrival: &Arrival<'_>, rules: &Rules) -> Look {
        self.travel();
        let look = self.stays.arrive(arrival, rules);
        assert_eq!(self.travels.arrive(arrival, rules), look, "step {}", arrival.step);
        assert_eq!(self.travels.is_retry(), self.stays.is_retry());
        look
    }

    pub(in crate::loops) fn depart(&mut self, departure: &Departure<'_>) {
        self.travel();
        self.stays.depart(departure);
        self.travels.depart(departure);
    }

    pub(in crate::loops) fn decide(&mut self, findings: Vec<Finding>, rules: &Rules, step: u32) -> Decision {
        self.travel();
        let decision = decide(findings.clone(), rules, self.stays.strikes(), step);
        assert_eq!(decide(findings, rules, self.travels.strikes(), step), decision);
        assert_eq!(self.travels.strikes(), self.stays.strikes());
        decision
    }

    pub(in crate::loops) fn share(&mut self, step: u32) {
        self.travel();
        self.stays.share(step);
        self.travels.share(step);
    }

    pub(in crate::loops) fn refused(&mut self, step: u32) {
        self.travel();
        self.stays.refused(step);
        self.travels.refused(step);
    }

    pub(in crate::loops) fn forget(&mut self) {
        self.travel();
        self.stays.forget();
        self.travels.forget();
    }

    pub(in crate::loops) fn is_retry(&self) -> bool {
        self.stays.is_retry()
    }

    pub(in crate::loops) fn bytes(&self) -> usize {
        self.stays.bytes().max(self.travels.bytes())
    }

    /// The watch as bytes, which are those of both.
    pub(in crate::loops) fn pack(&self) -> Vec<u8> {
        let bytes = self.stays.pack();
        assert_eq!(self.travels.pack(), bytes);
        bytes
    }

    fn travel(&mut self) {
        self.travels = RunWatch::unpack(&self.travels.pack()).unwrap();
    }
}

impl AgentTwins {
    pub(in crate::loops) fn arrive(
        &mut self,
        run: u64,
        is_retry: bool,
        arrival: &Arrival<'_>,
        rules: &Rules,
    ) -> Vec<Finding> {
        self.travel();
        let findings = self.stays.arrive(run, is_retry, arrival, rules);
        assert_eq!(self.travels.arrive(run, is_retry, arrival, rules), findings, "step {}", arrival.step);
        assert_eq!(self.travels.tally(), self.stays.tally());
        findings
    }

    pub(in crate::loops) fn depart(&mut self, run: u64, departure: &Departure<'_>, rules: &Rules) {
        self.travel();
        self.stays.depart(run, departure, rules);
        self.travels.depart(run, departure, rules);
    }

    pub(in crate::loops) fn pack(&self) -> Vec<u8> {
        let bytes = self.stays.pack();
        assert_eq!(self.travels.pack(), bytes);
        bytes
    }

    fn travel(&mut self) {
        self.travels = AgentWatch::unpack(&self.travels.pack()).unwrap();
    }
}
