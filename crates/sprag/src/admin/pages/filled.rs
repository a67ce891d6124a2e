//! A form on its way through a page: what was sent, what is wrong with it, and the page that shows both again.
//!
//! Every page with a form goes the same way. `show` renders the page around [`Filled::nothing`]. A handler reads what was
//! sent, asks the API for it, and either leads on or renders the page again, with what was sent still in the fields and each
//! complaint at its own. Pages say which field a complaint is about; nothing here knows any field by name.

use axum::extract::{Form as Sent, FromRequest, Request};
use axum::http::StatusCode;

use super::PageProblem;
use super::field::{Field, Form, rest};
use crate::admin::problem::Problem;

/// What was sent, and what is wrong with it.
pub(super) struct Filled {
    /// What the page that shows it again answers with.
    pub(super) status: StatusCode,
    sent: Form,
    complaints: Vec<(String, String)>,
}

impl Filled {
    /// No form was sent: the fields hold what they hold.
    pub(super) fn nothing() -> Filled {
        Filled { status: StatusCode::OK, sent: Form::new(), complaints: Vec::new() }
    }

    /// What stands in a field, without the spaces around it; empty where there is no such field.
    pub(super) fn text(&self, name: &str) -> &str {
        self.sent.get(name).map(|text| text.trim()).unwrap_or_default()
    }

    /// The same, where something stands there.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// The same with something wrong about a field.
    pub(super) fn but(mut self, field: &str, told: impl Into<String>) -> Filled {
        self.status = StatusCode::BAD_REQUEST;
        self.complaints.push((field.to_owned(), told.into()));
        self
    }

    /// The same with what the API complains about, where `field_of` says from the key and the words which field is meant.
    /// What is no fault of the form stays a problem.
    pub(super) fn refused(
        mut self,
        problem: Problem,
        field_of: impl Fn(&str, &str) -> String,
    ) -> Result<Filled, PageProblem> {
        if ![StatusCode::BAD_REQUEST, StatusCode::CONFLICT, StatusCode::NOT_FOUND].contains(&problem.status) {
            return Err(problem.into());
        }
        self.status = problem.status;
        self.complaints.extend(problem.slips().into_iter().map(|(key, told)| (field_of(&key, &told), told)));
        Ok(self)
    }

    /// Nothing was found wrong.
    pub(super) fn is_fine(&self) -> bool {
        self.complaints.is_empty()
    }

    /// The fields with what was sent in them, each with the complaints about it.
    pub(super) fn fill(&mut self, fields: Vec<Field>) -> Vec<Field> {
        fields.into_iter().map(|field| field.brought(&self.sent, &mut self.complaints)).collect()
    }

    /// The complaints that no field has taken.
    pub(super) fn rest(self) -> Option<String> {
        rest(self.complaints)
    }
}

impl<S: Send + Sync> FromRequest<S> for Filled {
    type Rejection = PageProblem;

    async fn from_request(request: Request, state: &S) -> Result<Filled, PageProblem> {
        let Sent(sent) = Sent::<Form>::from_request(request, state)
            .await
            .map_err(|error| Problem::new(error.status(), error.body_text()))?;
        Ok(Filled { sent, ..Filled::nothing() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pairs: &[(&str, &str)]) -> Filled {
        let sent = pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        Filled { sent, ..Filled::nothing() }
    }

    #[test]
    fn what_was_sent_stays_in_its_field_with_what_is_wrong_with_it() {
        let sent = filled(&[("agent", " bot "), ("mode", "")]);
        assert_eq!((sent.text("agent"), sent.given("mode"), sent.text("way")), ("bot", None, ""));
        let mut sent = sent.but("agent", "nobody is called that").but("else", "and something else");
        assert!(!sent.is_fine() && sent.status == StatusCode::BAD_REQUEST);
        let fields = sent.fill(vec![Field::new("agent", "Agent"), Field::new("mode", "Mode")]);
        assert_eq!(
            (fields[0].value.as_str(), fields[0].complaint.as_deref()),
            (" bot ", Some("nobody is called that"))
        );
        assert_eq!(fields[1].complaint, None);
        assert_eq!(sent.rest().as_deref(), Some("and something else"));
    }

    #[test]
    fn only_faults_of_the_form_come_back_to_it() {
        let told = Problem::bad_request("`scope` is no scope");
        let mut refused = filled(&[]).refused(told, |key, _| format!("my-{key}")).ok().unwrap();
        assert!(refused.fill(vec![Field::new("my-scope", "Scope")])[0].complaint.is_some());
        let broken = Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the disk is gone");
        assert!(filled(&[]).refused(broken, |key, _| key.to_owned()).is_err());
    }
}
