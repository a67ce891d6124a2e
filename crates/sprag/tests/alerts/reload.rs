//! Channels and rules count as soon as the configuration does.

use sprag::config::{Flags, Sources, load};
use sprag_testkit::Script;

use crate::configured::Configured;
use crate::receiver::Receiver;
use crate::{REJECTING, loop_until_refused};

#[tokio::test(flavor = "multi_thread")]
async fn a_new_configuration_tells_from_then_on() {
    let receiver = Receiver::start().await;
    let place = Configured::start_with(Script::new(), REJECTING, false).await;
    loop_until_refused(&place.sprag.url(""), "before").await;

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sprag.toml");
    let text = format!(
        "[alerts.channels.ops]\ntype = \"webhook\"\nurl = \"{}\"\nallow_private = true\n\
         [[alerts.rules]]\non = \"loop_detected\"\n",
        receiver.url("/")
    );
    std::fs::write(&file, text).unwrap();
    let flags = Flags { config: Some(file), ..Flags::default() };
    let loaded = load(&Sources { flags, ..Sources::default() }).unwrap();
    let mut settings = (*place.sprag.app.settings.load_full()).clone();
    settings.alerts = loaded.settings.alerts;
    place.sprag.app.replace_settings(settings).unwrap();
    loop_until_refused(&place.sprag.url(""), "after").await;
    let messages = receiver.has(1).await;
    assert_eq!((messages.len(), &messages[0].json()["run"]), (1, &serde_json::json!("after")));
}
