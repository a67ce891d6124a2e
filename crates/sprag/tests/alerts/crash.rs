//! A receiver that is down, and a Sprag that is killed meanwhile: what was raised arrives once it is back.

use std::collections::BTreeSet;
use std::sync::Arc;

use sprag_store::outbox::DeliveryState;
use sprag_store::{DataDir, Outbox};
use sprag_testkit::{ClosedPort, Provider, Script};

use crate::binary::Binary;
use crate::receiver::Receiver;
use crate::{REJECTING, loop_until_refused};

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_survives_a_kill_and_arrives_when_its_receiver_is_back() {
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let port = ClosedPort::new().unwrap();
    let text = format!(
        "{REJECTING}[alerts.channels.ops]\ntype = \"webhook\"\nurl = \"http://{}/\"\nallow_private = true\n\
         [[alerts.rules]]\non = \"loop_detected\"\n",
        port.address
    );
    let mut binary = Binary::start(home.path(), &provider, &text);
    loop_until_refused(&binary.url(""), "task").await;
    binary.says("an alert could not be delivered", 1).await;
    binary.signal("KILL");
    assert_eq!(binary.exit_code().await, None);

    let receiver = Receiver::on(port.listen().unwrap());
    let mut binary = Binary::start(home.path(), &provider, &text);
    let first = receiver.has(1).await;
    assert_eq!(first[0].json()["state"], "firing");
    // The cooldown goes on: what is left of the loop is not told a second time.
    loop_until_refused(&binary.url(""), "task").await;
    binary.signal("TERM");
    assert_eq!(binary.exit_code().await, Some(0), "{}", binary.log());
    let messages = receiver.messages();
    let ids: BTreeSet<String> = messages.iter().map(|message| message.header("x-sprag-id")).collect();
    assert_eq!((messages.len(), ids.len()), (1, 1), "{messages:?}");
    let outbox = Outbox::open(Arc::new(DataDir::open(&binary.data()).unwrap())).unwrap();
    let alerts = outbox.list(None, 10).unwrap();
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    let delivery = &alerts[0].deliveries[0];
    assert!(delivery.state == DeliveryState::Delivered && delivery.attempts > 1, "{delivery:?}");
}
