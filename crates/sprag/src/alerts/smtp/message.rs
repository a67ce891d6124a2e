//! The mail as it goes out. Nothing in it can end it, or add to its head: lettre encodes what is not plain.

use std::time::{Duration, SystemTime};

use lettre::Address;
use lettre::message::header::{Header, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message, MultiPart, SinglePart};
use sprag_core::alerts::forms::Email;
use sprag_core::time::Timestamp;

use super::Failure;
use crate::config::Mail;

/// Says that no person wrote it, so that nobody's absence answers it (RFC 3834).
#[derive(Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<AutoSubmitted, Box<dyn std::error::Error + Send + Sync>> {
        Ok(AutoSubmitted)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(AutoSubmitted::name(), "auto-generated".to_owned())
    }
}

/// The message with its head. All that changes from one try to the next is the date.
pub(super) fn written(mail: &Mail, message: &Email, id: &str, now: Timestamp) -> Result<Vec<u8>, Failure> {
    let host = mail.from.rsplit_once('@').map_or("sprag", |(_, host)| host);
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(now.0).unwrap_or(0));
    let mut builder = Message::builder()
        .from(Mailbox::new(Some("Sprag".to_owned()), address(&mail.from)?))
        .subject(message.subject.as_str())
        .date(at)
        .message_id(Some(format!("<{id}@{host}>")))
        .header(AutoSubmitted);
    for to in &mail.to {
        builder = builder.to(Mailbox::new(None, address(to)?));
    }
    let parts = MultiPart::alternative()
        .boundary(id)
        .singlepart(SinglePart::plain(message.text.clone()))
        .singlepart(SinglePart::html(message.html.clone()));
    let whole = builder.multipart(parts);
    whole.map(|whole| whole.formatted()).map_err(|error| Failure::Final(format!("no mail can be made of it: {error}")))
}

/// An address of the configuration, which has been checked there.
pub(super) fn address(text: &str) -> Result<Address, Failure> {
    text.parse().map_err(|_| Failure::Final("an address of this channel is not one of a mailbox".to_owned()))
}
