//! What narrows a query, with its values beside it.

use serde::Serialize;
use sprag_core::id::AgentName;

use crate::run_key::RunKey;

/// Conditions of a query and the parameters that they name. Conditions are texts of this program; values are not.
#[derive(Clone, Default)]
pub(super) struct Question {
    conditions: Vec<String>,
    params: Vec<(&'static str, String)>,
}

impl Question {
    /// A condition without a value.
    pub(super) fn only(&mut self, condition: impl Into<String>) {
        self.conditions.push(condition.into());
    }

    /// A condition that names one parameter.
    pub(super) fn and(&mut self, condition: &'static str, name: &'static str, value: impl ToString) {
        self.only(condition);
        self.set(name, value);
    }

    pub(super) fn and_maybe(&mut self, condition: &'static str, name: &'static str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.and(condition, name, value);
        }
    }

    /// A parameter for any part of the query.
    pub(super) fn set(&mut self, name: &'static str, value: impl ToString) {
        self.params.retain(|(known, _)| *known != name);
        self.params.push((name, value.to_string()));
    }

    /// A list as one parameter: `JSONExtract({name:String}, 'Array(…)')` makes it a list again.
    pub(super) fn set_list(&mut self, name: &'static str, values: &[impl Serialize]) {
        self.set(name, serde_json::to_string(values).unwrap_or_else(|_| "[]".to_owned()));
    }

    /// Narrows to one run. The hash comes first in what tables are ordered by or have an index on.
    pub(super) fn of_run(&mut self, run: &RunKey) {
        self.only("run_hash = cityHash64({run_agent:String}, {run:String})");
        self.and("agent = {run_agent:String}", "run_agent", &run.agent);
        self.and("run_id = {run:String}", "run", &run.id);
    }

    /// Narrows to some agents.
    pub(super) fn among(&mut self, names: &[AgentName]) {
        self.only("agent IN (SELECT arrayJoin(JSONExtract({names:String}, 'Array(String)')))");
        self.set_list("names", &names.iter().map(AgentName::as_str).collect::<Vec<_>>());
    }

    /// The `WHERE` clause.
    pub(super) fn filter(&self) -> String {
        if self.conditions.is_empty() { String::new() } else { format!("WHERE {}", self.conditions.join(" AND ")) }
    }

    pub(super) fn params(&self) -> &[(&'static str, String)] {
        &self.params
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sprag_core::id::RunId;

    #[test]
    fn values_stand_beside_the_query_and_never_in_it() {
        let hostile = "x' OR 1 = 1 --";
        let mut question = Question::default();
        question.and("model = {model:String}", "model", hostile);
        question.of_run(&RunKey { agent: AgentName::default(), id: RunId::parse(hostile).unwrap() });
        question.set_list("names", &[hostile, "y\"\\"]);
        assert!(!question.filter().contains("OR"), "{}", question.filter());
        assert_eq!(question.params()[0], ("model", hostile.to_owned()));
        let list = question.params().iter().find(|(name, _)| *name == "names").unwrap();
        assert_eq!(serde_json::from_str::<Vec<String>>(&list.1).unwrap(), [hostile, "y\"\\"]);
    }
}
