//! Where alerts must not go.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sprag::alerts::Setup;
use tokio::net::TcpListener;

use crate::configured::Configured;
use crate::receiver::Receiver;

async fn place(url: &str, more: &str) -> Configured {
    Configured::start(&format!("[alerts.channels.ops]\ntype = \"webhook\"\nurl = \"{url}\"\n{more}\n")).await
}

/// Why a test of the only channel failed.
async fn tried(place: &Configured) -> Option<String> {
    place.sprag.app.test_channel("ops", "anna").await.unwrap().unwrap().1
}

/// Points the channel elsewhere: one Sprag tries all addresses.
fn lead(place: &Configured, url: &str, allow_private: bool) {
    let mut settings = (*place.sprag.app.settings.load_full()).clone();
    let text = format!("[alerts.channels.ops]\ntype = \"webhook\"\nurl = \"{url}\"\nallow_private = {allow_private}\n");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sprag.toml");
    std::fs::write(&file, text).unwrap();
    let flags = sprag::config::Flags { config: Some(file), ..Default::default() };
    let loaded = sprag::config::load(&sprag::config::Sources { flags, ..Default::default() });
    settings.alerts = loaded.map_err(|problems| problems.to_string()).unwrap().settings.alerts;
    place.sprag.app.replace_settings(settings).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_are_refused_unless_they_are_allowed() {
    let receiver = Receiver::start().await;
    let port = receiver.address.port();
    let place = place(&receiver.url("/"), "").await;
    for host in [
        "127.0.0.1",
        "localhost",
        "localhost.",
        "db.localhost",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "10.0.0.1",
        "100.64.0.1",
        "192.168.0.1",
        "[fd12::1]",
    ] {
        lead(&place, &format!("http://{host}:{port}/"), false);
        let error = tried(&place).await.unwrap();
        assert!(error.contains("not a public address") && error.contains("set allow_private"), "{host}: {error}");
    }
    assert_eq!(receiver.messages().len(), 0);
    lead(&place, &receiver.url("/"), true);
    assert_eq!(tried(&place).await, None);
    assert_eq!(receiver.messages().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn some_addresses_are_never_called() {
    let receiver = Receiver::start().await;
    let port = receiver.address.port();
    let place = place(&receiver.url("/"), "").await;
    for host in [
        "0.0.0.0",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "[::ffff:169.254.169.254]",
        "[fd00:ec2::254]",
        "168.63.129.16",
        "100.100.100.200",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "[::]",
        "[fe80::1]",
        "[ff02::1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:7f00:1::]",
    ] {
        for allow_private in [false, true] {
            lead(&place, &format!("http://{host}:{port}/"), allow_private);
            let error = tried(&place).await.unwrap();
            assert!(error.contains("not even with allow_private"), "{host}: {error}");
        }
    }
    assert_eq!(receiver.messages().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_not_followed() {
    let inside = Receiver::start().await;
    let location: &'static str = format!("302 Found\r\nlocation: {}", inside.url("/admin")).leak();
    let outside = Receiver::answering(location).await;
    let error = tried(&place(&outside.url("/"), "allow_private = true").await).await.unwrap();
    assert!(error.contains("302") && error.contains("not followed"), "{error}");
    assert_eq!((outside.messages().len(), inside.messages().len()), (1, 0));
}

/// A name server that answers differently each time, and counts.
fn rebinding(place: &Configured, answers: &'static [&'static str]) -> Arc<AtomicUsize> {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let look_up = move |name: String| -> sprag::alerts::Found {
        assert_eq!(name, "rebind.example");
        let answer: IpAddr = answers[count.fetch_add(1, Ordering::Relaxed).min(answers.len() - 1)].parse().unwrap();
        Box::pin(async move { Ok(vec![answer]) })
    };
    place.sprag.app.alerts.set_up(Setup { look_up: Box::new(look_up), ..Setup::default() });
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_goes_to_the_address_that_was_checked() {
    let first = Receiver::start().await;
    let port = first.address.port();
    // The same port of another address of this machine.
    let second = Receiver::on(TcpListener::bind(("127.0.0.2", port)).await.unwrap());
    let place = place(&format!("http://rebind.example:{port}/"), "allow_private = true").await;
    let asked = rebinding(&place, &["127.0.0.1", "127.0.0.2"]);
    assert_eq!(tried(&place).await, None);
    assert_eq!(asked.load(Ordering::Relaxed), 1, "one answer is checked and called");
    assert_eq!((first.messages().len(), second.messages().len()), (1, 0));
    assert_eq!(first.messages()[0].header("host"), format!("rebind.example:{port}"));

    // Each message is looked up and checked anew: public once is not public for good.
    lead(&place, &format!("http://rebind.example:{port}/"), false);
    let asked = rebinding(&place, &["127.0.0.1"]);
    let error = tried(&place).await.unwrap();
    assert!(error.contains("rebind.example leads to 127.0.0.1, which is not a public address"), "{error}");
    assert_eq!((asked.load(Ordering::Relaxed), first.messages().len()), (1, 1));
}
