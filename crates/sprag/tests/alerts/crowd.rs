//! Many messages to one server at once.

use futures_util::future::join_all;
use sprag_core::limits::ALERT_CONNECTIONS;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::configured::Configured;

#[tokio::test(flavor = "multi_thread")]
async fn one_server_gets_a_bounded_number_of_connections_at_a_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let text =
        format!("[alerts.channels.ops]\ntype = \"webhook\"\nurl = \"http://{address}/\"\nallow_private = true\n");
    let place = Configured::start(&text).await;
    let count = 3 * ALERT_CONNECTIONS;
    let all = join_all((0..count).map(|_| place.sprag.app.test_channel("ops", "anna")));
    let serving = async {
        let mut open: Vec<TcpStream> = Vec::new();
        for served in 0..count {
            // All that may be open at once are, before the first is answered.
            while open.len() < ALERT_CONNECTIONS.min(count - served) {
                open.push(listener.accept().await.unwrap().0);
            }
            let mut oldest = open.remove(0);
            // Nobody else comes while all places are taken.
            let more = tokio::time::timeout(std::time::Duration::from_millis(20), listener.accept()).await;
            assert!(more.is_err(), "more than {ALERT_CONNECTIONS} connections");
            assert!(oldest.read(&mut [0; 4096]).await.unwrap() > 0);
            oldest.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        }
    };
    let (sent, ()) = tokio::join!(all, serving);
    assert!(sent.into_iter().all(|sent| sent.unwrap().unwrap().1.is_none()));
}
