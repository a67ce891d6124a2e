//! One mail over SMTP: STARTTLS or TLS, then the message. Without the encryption that was asked for nothing is sent.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sprag_core::alerts::forms::Email;
use sprag_core::time::Timestamp;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use super::Failure;
use super::address::look_up;
use super::connect::{Pipe, connect, encrypt};
use crate::config::file::MailSecurity;
use crate::config::{Channel, Mail};

/// Longest line of an answer, and most lines of one.
const LINE_BYTES: u64 = 4096;
const LINES: usize = 100;
const RECIPIENT: &str = "a recipient";

/// Sends a mail. Its id is the same each time: whoever has seen it drops it.
pub(super) async fn send(
    channel: &Channel,
    mail: &Mail,
    message: &Email,
    id: &str,
    now: Timestamp,
) -> Result<(), Failure> {
    let addresses = look_up(&mail.host, mail.port, channel.allow_private).await?;
    let stream = connect(&addresses).await?;
    let text = written(mail, message, id, now);
    let ca_file = channel.ca_file.as_deref();
    match mail.security {
        MailSecurity::Tls => talk(Session::new(encrypt(stream, &mail.host, ca_file).await?), true, mail, &text).await,
        MailSecurity::None => talk(Session::new(stream), true, mail, &text).await,
        MailSecurity::Starttls => {
            let mut session = Session::new(stream);
            session.expect("the connection", 220).await?;
            let offers = session.ask("EHLO sprag", "EHLO", 250).await?;
            if !offers.iter().any(|offer| offer.eq_ignore_ascii_case("STARTTLS")) {
                return Err(Failure::MayPass("the mail server does not offer STARTTLS".to_owned()));
            }
            session.ask("STARTTLS", "STARTTLS", 220).await?;
            // Bytes from before the encryption must not count as said under it.
            if !session.pipe.buffer().is_empty() {
                return Err(Failure::MayPass("the mail server spoke before the encryption stood".to_owned()));
            }
            let pipe = encrypt(session.pipe.into_inner(), &mail.host, ca_file).await?;
            talk(Session::new(pipe), false, mail, &text).await
        }
    }
}

async fn talk<P: Pipe>(mut session: Session<P>, is_greeted: bool, mail: &Mail, text: &str) -> Result<(), Failure> {
    if is_greeted {
        session.expect("the connection", 220).await?;
    }
    session.ask("EHLO sprag", "EHLO", 250).await?;
    if let Some((name, password)) = &mail.login {
        let login = STANDARD.encode(format!("\0{name}\0{}", password.reveal()));
        session.ask(&format!("AUTH PLAIN {login}"), "the password", 235).await?;
    }
    session.ask(&format!("MAIL FROM:<{}>", mail.from), "the sender", 250).await?;
    let mut refused = None;
    let mut taken = 0;
    for to in &mail.to {
        match session.ask(&format!("RCPT TO:<{to}>"), RECIPIENT, 250).await {
            Ok(_) => taken += 1,
            // The others may take it.
            Err(Failure::Final(said)) => refused = Some(Failure::Final(said)),
            Err(other) => return Err(other),
        }
    }
    if let Some(refused) = refused.filter(|_| taken == 0) {
        return Err(refused);
    }
    session.ask("DATA", "DATA", 354).await?;
    session.ask(&format!("{text}."), "the message", 250).await?;
    // It is delivered; how the goodbye goes does not matter.
    let _ = session.ask("QUIT", "QUIT", 221).await;
    Ok(())
}

struct Session<P> {
    pipe: BufReader<P>,
}

impl<P: Pipe> Session<P> {
    fn new(pipe: P) -> Session<P> {
        Session { pipe: BufReader::new(pipe) }
    }

    async fn ask(&mut self, line: &str, what: &str, code: u16) -> Result<Vec<String>, Failure> {
        let sent = self.pipe.get_mut().write_all(format!("{line}\r\n").as_bytes()).await;
        let sent = match sent {
            Ok(()) => self.pipe.get_mut().flush().await,
            failed => failed,
        };
        sent.map_err(|error| Failure::MayPass(format!("the mail server is gone: {error}")))?;
        self.expect(what, code).await
    }

    /// The lines of an answer, without its code. Errors never repeat what was sent.
    async fn expect(&mut self, what: &str, code: u16) -> Result<Vec<String>, Failure> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let read = (&mut self.pipe).take(LINE_BYTES).read_line(&mut line).await;
            let gone = |said: String| Failure::MayPass(format!("the mail server is gone: {said}"));
            if read.map_err(|error| gone(error.to_string()))? == 0 || lines.len() == LINES {
                return Err(gone("its answer is not whole".to_owned()));
            }
            let line = line.trim_end();
            let found: u16 = line.get(..3).and_then(|code| code.parse().ok()).unwrap_or(0);
            if found != code {
                let said = format!("the mail server answered {found} to {what}");
                let is_final = found >= 500 && what == RECIPIENT;
                return Err(if is_final { Failure::Final(said) } else { Failure::MayPass(said) });
            }
            lines.push(line.get(4..).unwrap_or_default().to_owned());
            if line.as_bytes().get(3) != Some(&b'-') {
                return Ok(lines);
            }
        }
    }
}

/// The message with its head. Everything that is not ours is in base64: no line can end it or add to its head.
fn written(mail: &Mail, message: &Email, id: &str, now: Timestamp) -> String {
    let host = mail.from.rsplit_once('@').map_or("sprag", |(_, host)| host);
    let date = jiff::Timestamp::from_millisecond(now.0)
        .map(|at| at.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string())
        .unwrap_or_default();
    let mut text = String::new();
    let _ = write!(
        text,
        "From: Sprag <{}>\r\nTo: {}\r\nSubject: {}\r\nDate: {date}\r\nMessage-ID: <{id}@{host}>\r\n\
         Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/alternative; boundary=\"{id}\"\r\n\r\n",
        mail.from,
        mail.to.join(",\r\n "),
        encoded_words(&message.subject),
    );
    for (kind, part) in [("plain", &message.text), ("html", &message.html)] {
        let _ = write!(
            text,
            "--{id}\r\nContent-Type: text/{kind}; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n{}",
            folded(part)
        );
    }
    let _ = write!(text, "--{id}--\r\n");
    text
}

fn folded(text: &str) -> String {
    let encoded = STANDARD.encode(text);
    let lines = encoded.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line));
    lines.fold(String::new(), |text, line| text + &line + "\r\n")
}

/// A text for the head of a mail, whatever is in it.
fn encoded_words(text: &str) -> String {
    let mut words: Vec<String> = vec![String::new()];
    for c in text.chars() {
        match words.last_mut() {
            Some(word) if word.len() + c.len_utf8() <= 45 => word.push(c),
            _ => words.push(c.to_string()),
        }
    }
    let words: Vec<String> = words.iter().map(|word| format!("=?UTF-8?B?{}?=", STANDARD.encode(word))).collect();
    words.join("\r\n ")
}
