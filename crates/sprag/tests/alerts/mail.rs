//! Mail over SMTP, encrypted or not at all.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::configured::Configured;
use crate::mail_server::{MailServer, Way};

async fn tried(server: &MailServer, security: &str, more: &str) -> Option<String> {
    let text = format!(
        "[alerts.channels.mail]\ntype = \"email\"\nserver = \"localhost:{}\"\nsecurity = \"{security}\"\n\
         from = \"sprag@example.com\"\nrecipients = [\"ops@example.com\", \"anna@example.com\"]\nallow_private = true\n\
         username = \"sprag\"\npassword = \"hunter2\"\n{more}\n",
        server.address.port()
    );
    let place = Configured::start(&text).await;
    place.sprag.app.test_channel("mail", "anna").await.unwrap().unwrap().1
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_is_sent_under_tls_with_text_and_html() {
    for (way, security) in [(Way::Starttls, "starttls"), (Way::Tls, "tls")] {
        let server = MailServer::start(way).await;
        let ca_file = format!("ca_file = {:?}", server.files.path().join("ca.pem"));
        assert_eq!(tried(&server, security, &ca_file).await, None, "{security}");
        let talk = &server.has(1).await[0];
        let secret = STANDARD.encode("\0sprag\0hunter2");
        assert!(talk.secured.contains(&format!("AUTH PLAIN {secret}")), "{talk:?}");
        assert!(talk.clear.iter().all(|line| line.starts_with("EHLO") || line == "STARTTLS"), "{talk:?}");
        assert!(talk.secured.contains(&"RCPT TO:<anna@example.com>".to_owned()), "{talk:?}");
        assert!(talk.mail.contains("Message-ID: <alert_"), "{}", talk.mail);
        let parts: Vec<String> = (talk.mail.split("base64\r\n\r\n").skip(1))
            .map(|part| part.split("--alert_").next().unwrap().replace("\r\n", ""))
            .map(|part| String::from_utf8(STANDARD.decode(part).unwrap()).unwrap())
            .collect();
        assert!(parts[0].starts_with("Sprag: test of mail") && parts[1].starts_with("<!doctype html>"), "{parts:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_without_the_encryption_that_was_asked_for() {
    let server = MailServer::start(Way::Clear).await;
    let error = tried(&server, "starttls", "").await.unwrap();
    assert!(error.contains("does not offer STARTTLS"), "{error}");
    let server = MailServer::start(Way::Starttls).await;
    let error = tried(&server, "starttls", "").await.unwrap();
    assert!(error.contains("no encrypted connection"), "a certificate of nobody is refused: {error}");
}
