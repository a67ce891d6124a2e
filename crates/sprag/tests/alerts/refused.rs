//! Where alerts must not go.

use std::sync::Arc;

use crate::configured::Configured;
use crate::receiver::Receiver;

/// Why a test of the only channel failed.
async fn tried(url: &str, more: &str) -> Option<String> {
    let text = format!("[alerts.channels.ops]\ntype = \"webhook\"\nurl = \"{url}\"\n{more}\n");
    let place = Configured::start(&text).await;
    let app: &Arc<_> = &place.sprag.app;
    app.test_channel("ops", "anna").await.unwrap().unwrap().1
}

#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_are_refused_unless_they_are_allowed() {
    let receiver = Receiver::start().await;
    let port = receiver.address.port();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::1]", "169.254.169.254", "10.0.0.1", "0.0.0.0"] {
        let error = tried(&format!("http://{host}:{port}/"), "").await.unwrap();
        assert!(error.contains("not a public address") && error.contains("allow_private"), "{host}: {error}");
    }
    assert_eq!(receiver.messages().len(), 0);
    assert_eq!(tried(&receiver.url("/"), "allow_private = true").await, None);
    assert_eq!(receiver.messages().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_not_followed() {
    let inside = Receiver::start().await;
    let location: &'static str = format!("302 Found\r\nlocation: {}", inside.url("/admin")).leak();
    let outside = Receiver::answering("127.0.0.1:0".parse().unwrap(), location).await;
    let error = tried(&outside.url("/"), "allow_private = true").await.unwrap();
    assert!(error.contains("302") && error.contains("not followed"), "{error}");
    assert_eq!((outside.messages().len(), inside.messages().len()), (1, 0));
}
