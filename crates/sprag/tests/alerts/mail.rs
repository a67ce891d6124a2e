//! Mail over SMTP: encrypted or not at all, to all who can have it, and once.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sprag::alerts::Setup;

use crate::configured::Configured;
use crate::mail_server::{MailServer, Manners, Verdict, Way};

async fn place(server: &MailServer, security: &str, more: &str) -> Configured {
    let text = format!(
        "[alerts.channels.mail]\ntype = \"email\"\nserver = \"localhost:{}\"\nsecurity = \"{security}\"\n\
         from = \"sprag@example.com\"\nrecipients = [\"ops@example.com\", \"anna@example.com\"]\nallow_private = true\n\
         {more}\n",
        server.address.port()
    );
    Configured::start(&text).await
}

/// Why it did not arrive. As long as the clock stands still it is the same mail each time.
async fn tried(place: &Configured) -> Option<String> {
    place.sprag.app.test_channel("mail", "anna").await.unwrap().unwrap().1
}

const LOGIN: &str = "username = \"sprag\"\npassword = \"hunter2\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn mail_is_sent_under_tls_with_text_and_html() {
    for (way, security) in [(Way::Starttls, "starttls"), (Way::Tls, "tls")] {
        for auth in ["PLAIN", "LOGIN"] {
            let server = MailServer::behaving(way, Manners { auth, ..Manners::default() }).await;
            let ca_file = format!("{LOGIN}ca_file = {:?}", server.files.path().join("ca.pem"));
            assert_eq!(tried(&place(&server, security, &ca_file).await).await, None, "{security} {auth}");
            let talk = &server.has(1).await[0];
            if auth == "PLAIN" {
                let secret = STANDARD.encode("\0sprag\0hunter2");
                assert!(talk.secured.contains(&format!("AUTH PLAIN {secret}")), "{talk:?}");
            } else {
                let (name, secret) = (STANDARD.encode("sprag"), STANDARD.encode("hunter2"));
                assert!(talk.secured.contains(&name) && talk.secured.contains(&secret), "{talk:?}");
            }
            assert!(talk.clear.iter().all(|line| line == "EHLO [127.0.0.1]" || line == "STARTTLS"), "{talk:?}");
            assert_eq!(talk.recipients(), ["ops@example.com", "anna@example.com"]);
            assert!(talk.mail.contains("Message-ID: <alert_"), "{}", talk.mail);
            assert!(talk.mail.contains("Content-Type: text/plain; charset=utf-8"), "{}", talk.mail);
            assert!(talk.mail.contains("Content-Type: text/html; charset=utf-8"), "{}", talk.mail);
            assert!(
                talk.mail.contains("Sprag: test of mail") && talk.mail.contains("<!doctype html>"),
                "{}",
                talk.mail
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_without_the_encryption_that_was_asked_for() {
    let server = MailServer::start(Way::Clear).await;
    let error = tried(&place(&server, "starttls", LOGIN).await).await.unwrap();
    assert!(error.contains("does not offer STARTTLS"), "{error}");
    let server = MailServer::start(Way::Starttls).await;
    let error = tried(&place(&server, "starttls", LOGIN).await).await.unwrap();
    assert!(error.contains("no encrypted connection"), "a certificate of nobody is refused: {error}");
    // Whoever stands in between puts an answer behind the last one in the clear.
    let manners = Manners { injects: b"250 AUTH PLAIN\r\n", ..Manners::default() };
    let server = MailServer::behaving(Way::Starttls, manners).await;
    let ca_file = format!("{LOGIN}ca_file = {:?}", server.files.path().join("ca.pem"));
    let error = tried(&place(&server, "starttls", &ca_file).await).await.unwrap();
    assert!(error.contains("spoke on before the encryption"), "{error}");
    // The name in the certificate counts, not the address that was called.
    let server = MailServer::start(Way::Tls).await;
    let ca_file = format!("ca_file = {:?}", server.files.path().join("ca.pem"));
    let elsewhere = place(&server, "tls", &ca_file).await;
    let mut settings = (*elsewhere.sprag.app.settings.load_full()).clone();
    let mut channel = (*settings.alerts.channels["mail"]).clone();
    if let sprag::config::Target::Email(mail) = &mut channel.target {
        mail.host = "127.0.0.1".to_owned();
    }
    settings.alerts.channels.insert("mail".to_owned(), channel.into());
    elsewhere.sprag.app.replace_settings(settings).unwrap();
    let error = tried(&elsewhere).await.unwrap();
    assert!(error.contains("no encrypted connection"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_refused_recipient_does_not_keep_the_mail_from_the_others() {
    let recipient: fn(&str, usize) -> &'static [u8] =
        |to, _| if to.contains("ops@") { b"550 nobody h\xe4re\r\n" } else { b"251 will forward\r\n" };
    let server = MailServer::behaving(Way::Clear, Manners { recipient, ..Manners::default() }).await;
    assert_eq!(tried(&place(&server, "none", "").await).await, None);
    let talk = &server.has(1).await[0];
    assert!(talk.mail.contains("Sprag: test of mail"), "{talk:?}");

    let recipient: fn(&str, usize) -> &'static [u8] = |_, _| b"550 nobody\r\n";
    let server = MailServer::behaving(Way::Clear, Manners { recipient, ..Manners::default() }).await;
    let error = tried(&place(&server, "none", "").await).await.unwrap();
    assert!(error.contains("answered 550 to every recipient"), "{error}");
    assert_eq!(server.has(1).await[0].mail, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_refused_for_now_is_tried_again_without_the_others() {
    // The first to be asked for is put off.
    let recipient: fn(&str, usize) -> &'static [u8] =
        |_, asked| if asked == 1 { b"451 come back later\r\n" } else { b"250 fine\r\n" };
    let server = MailServer::behaving(Way::Clear, Manners { recipient, ..Manners::default() }).await;
    let place = place(&server, "none", "").await;
    let error = tried(&place).await.unwrap();
    assert!(error.contains("1 of 2 recipients have it") && error.contains("451"), "{error}");
    assert_eq!(tried(&place).await, None);
    let talks = server.has(2).await;
    assert_eq!(talks[0].recipients(), ["ops@example.com", "anna@example.com"]);
    assert_eq!(talks[1].recipients(), ["ops@example.com"], "anna has it");
}

fn message_id(mail: &str) -> &str {
    mail.lines().find(|line| line.starts_with("Message-ID: ")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_whose_fate_is_not_known_is_sent_again_as_the_same() {
    let server = MailServer::behaving(Way::Clear, Manners { verdict: Verdict::HangsUp, ..Manners::default() }).await;
    let place = place(&server, "none", "").await;
    for _ in 0..2 {
        let error = tried(&place).await.unwrap();
        assert!(error.contains("did not say whether it took the message"), "{error}");
    }
    let talks = server.has(2).await;
    assert_eq!(message_id(&talks[0].mail), message_id(&talks[1].mail));
    let server =
        MailServer::behaving(Way::Clear, Manners { verdict: Verdict::Says(b"554 spam\r\n"), ..Manners::default() });
    let error = tried(&self::place(&server.await, "none", "").await).await.unwrap();
    assert!(error.contains("answered 554 to the message"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_talk_and_the_word_on_the_message_have_a_limit_each() {
    let (short, long) = (Duration::from_millis(200), Duration::from_secs(600));
    for (is_silent_before, talk, verdict, expected) in
        [(true, short, long, "took longer than"), (false, long, short, "did not say whether it took the message")]
    {
        let manners = Manners { verdict: Verdict::SaysNothing(is_silent_before), ..Manners::default() };
        let server = MailServer::behaving(Way::Clear, manners).await;
        let place = place(&server, "none", "").await;
        place.sprag.app.alerts.set_up(Setup { talk, verdict, ..Setup::default() });
        let error = tried(&place).await.unwrap();
        assert!(error.contains(expected), "{error}");
    }
}
