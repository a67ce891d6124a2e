//! One mail over SMTP. Without the encryption that was asked for nothing is sent.
//!
//! The words are lettre's; the connection is ours, to the address that was checked and encrypted by the name. Each
//! recipient is asked for by itself, so that one who is refused does not keep the mail from the others.

mod message;
mod starttls;
mod stream;

use std::collections::BTreeSet;
use std::time::Duration;

use lettre::Address;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, AsyncTokioStream};
use lettre::transport::smtp::commands::{Data, Mail as MailFrom, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use sprag_core::alerts::forms::Email;
use sprag_core::time::Timestamp;
use tokio::time::timeout;

use self::message::{address, written};
use self::stream::MailStream;
use super::Failure;
use super::address::look_up;
use super::connect::{connect, encrypt};
use super::wire::Wire;
use crate::config::file::MailSecurity;
use crate::config::{Channel, Mail};

/// How the goodbye goes does not matter.
const GOODBYE: Duration = Duration::from_secs(1);

/// A server that is ready for the message, and whom it takes it for.
struct Ready {
    server: AsyncSmtpConnection,
    taken: BTreeSet<String>,
    refused: Refused,
}

/// Recipients that the server refused.
#[derive(Debug, Default, PartialEq, Eq)]
struct Refused {
    for_good: BTreeSet<String>,
    for_now: BTreeSet<String>,
    /// The last answer of those that count most.
    code: String,
}

/// Sends a mail. Its id is the same each time: whoever has seen it drops it.
pub(super) async fn send(
    wire: &Wire,
    channel: &Channel,
    mail: &Mail,
    message: &Email,
    id: &str,
    now: Timestamp,
) -> Result<(), Failure> {
    let setup = wire.setup();
    let bytes = written(mail, message, id, now)?;
    // The same alert may go through two channels.
    let key = format!("{id}\n{}:{}\n{}\n{}", mail.host, mail.port, mail.from, mail.to.join("\n"));
    let done = wire.recipients_done(&key);
    let late = || Failure::MayPass(format!("the mail server took longer than {} seconds", setup.talk.as_secs()));
    let found = timeout(setup.talk, look_up(&setup, &mail.host, mail.port, channel.allow_private)).await;
    let checked = found.map_err(|_| late())??;
    // Not timed: others are under way there, each for a bounded time, and nothing is wrong with the server.
    let _place = wire.place_at(&checked).await;
    let ready = async {
        let stream = connect(&checked).await?;
        let server = greet(stream, channel, mail).await?;
        address_mail(server, mail, &done).await
    };
    let Ready { mut server, taken, refused } = timeout(setup.talk, ready).await.map_err(|_| late())??;
    if taken.is_empty() {
        return judge(done, refused).map(|()| wire.note_recipients(&key, BTreeSet::new()));
    }
    match timeout(setup.verdict, server.message(&bytes)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) if error.status().is_some() => return Err(failed(&error, "the message", true)),
        // It may have it and could not say so.
        _ => {
            return Err(Failure::MayPass(
                "the mail server did not say whether it took the message; it is sent again, with the same Message-ID"
                    .to_owned(),
            ));
        }
    }
    let _ = timeout(GOODBYE, server.quit()).await;
    let have_it: BTreeSet<String> = done.union(&taken).cloned().collect();
    let is_in_part = !refused.for_now.is_empty();
    let remembered = if is_in_part { have_it.union(&refused.for_good).cloned().collect() } else { BTreeSet::new() };
    wire.note_recipients(&key, remembered);
    judge(have_it, refused)
}

/// What a delivery came to, by who has the mail and who was refused.
fn judge(have_it: BTreeSet<String>, refused: Refused) -> Result<(), Failure> {
    let Refused { for_good, for_now, code } = refused;
    let all = have_it.len() + for_good.len() + for_now.len();
    if !for_now.is_empty() {
        let have = have_it.len();
        let said = format!("{have} of {all} recipients have it; the mail server answered {code} to another");
        return Err(if have == 0 { Failure::MayPass(said) } else { Failure::InPart(said) });
    }
    if have_it.is_empty() && !for_good.is_empty() {
        return Err(Failure::Final(format!("the mail server answered {code} to every recipient")));
    }
    if !for_good.is_empty() {
        let refused = for_good.len();
        tracing::warn!(recipients = all, refused, code, "a mail server refused some recipients of an alert");
    }
    Ok(())
}

/// Gets a server to the point where it takes a mail, encrypted as asked for.
async fn greet(stream: tokio::net::TcpStream, channel: &Channel, mail: &Mail) -> Result<AsyncSmtpConnection, Failure> {
    let gone = |error: std::io::Error| Failure::MayPass(format!("the mail server is gone: {error}"));
    let peer = stream.peer_addr().map_err(gone)?;
    // A name would have to be one that the server can look up; this machine may have none.
    let hello = match stream.local_addr().map_err(gone)?.ip().to_canonical() {
        std::net::IpAddr::V4(ip) => ClientId::Ipv4(ip),
        std::net::IpAddr::V6(ip) => ClientId::Ipv6(ip),
    };
    let ca_file = channel.ca_file.as_deref();
    let stream: Box<dyn AsyncTokioStream> = match mail.security {
        MailSecurity::None => Box::new(MailStream::new(stream, peer)),
        MailSecurity::Tls => Box::new(MailStream::new(encrypt(stream, &mail.host, ca_file).await?, peer)),
        MailSecurity::Starttls => {
            let stream = starttls::ask(stream, &hello.to_string()).await?;
            Box::new(MailStream::greeted(encrypt(stream, &mail.host, ca_file).await?, peer))
        }
    };
    let connected = AsyncSmtpConnection::connect_with_transport(stream, &hello).await;
    let mut server = connected.map_err(|error| failed(&error, "the greeting", false))?;
    if let Some((name, password)) = &mail.login {
        let login = Credentials::new(name.clone(), password.reveal().to_owned());
        let offered = [Mechanism::Plain, Mechanism::Login];
        if !offered.iter().any(|way| server.server_info().supports_auth_mechanism(*way)) {
            return Err(Failure::MayPass("the mail server offers neither AUTH PLAIN nor AUTH LOGIN".to_owned()));
        }
        server.auth(&offered, &login).await.map_err(|error| failed(&error, "the password", false))?;
    }
    Ok(server)
}

/// Says who sends, asks for each recipient that has not got it yet, and gets ready for the message.
async fn address_mail(mut server: AsyncSmtpConnection, mail: &Mail, done: &BTreeSet<String>) -> Result<Ready, Failure> {
    let from = MailFrom::new(Some(address(&mail.from)?), Vec::new());
    server.command(from).await.map_err(|error| failed(&error, "the sender", false))?;
    let (mut taken, mut refused) = (BTreeSet::new(), Refused::default());
    for to in mail.to.iter().filter(|to| !done.contains(*to)) {
        let parsed: Address = address(to)?;
        match server.command(Rcpt::new(parsed, Vec::new())).await {
            Ok(_) => drop(taken.insert(to.clone())),
            Err(error) => match error.status() {
                // Without an answer the connection is of no use.
                None => return Err(failed(&error, "a recipient", false)),
                Some(code) if error.is_permanent() => {
                    refused.for_good.insert(to.clone());
                    if refused.for_now.is_empty() {
                        refused.code = code.to_string();
                    }
                }
                Some(code) => {
                    refused.for_now.insert(to.clone());
                    refused.code = code.to_string();
                }
            },
        }
    }
    if !taken.is_empty() {
        server.command(Data).await.map_err(|error| failed(&error, "DATA", false))?;
    }
    Ok(Ready { server, taken, refused })
}

/// Never repeats what was sent or said: both may hold addresses and passwords.
fn failed(error: &Error, what: &str, can_be_final: bool) -> Failure {
    match error.status() {
        Some(code) => {
            let said = format!("the mail server answered {code} to {what}");
            if can_be_final && error.is_permanent() { Failure::Final(said) } else { Failure::MayPass(said) }
        }
        None => {
            let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
            Failure::MayPass(format!("the mail server is gone at {what}: {cause}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn people(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_mail_is_final_only_when_everybody_was_refused_for_good() {
        let refused = |good: &[&str], now: &[&str]| Refused {
            for_good: people(good),
            for_now: people(now),
            code: "550".to_owned(),
        };
        assert_eq!(judge(people(&["a"]), refused(&[], &[])), Ok(()));
        assert_eq!(judge(people(&["a"]), refused(&["b"], &[])), Ok(()));
        assert!(matches!(judge(people(&[]), refused(&["a", "b"], &[])), Err(Failure::Final(_))));
        assert!(matches!(judge(people(&["a"]), refused(&[], &["b"])), Err(Failure::InPart(_))));
        assert!(matches!(judge(people(&[]), refused(&["a"], &["b"])), Err(Failure::MayPass(_))));
    }
}
