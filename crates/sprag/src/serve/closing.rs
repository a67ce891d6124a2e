//! The end of a listener: connections whose handshake is complete are taken, new ones are not.
//!
//! A socket that is closed resets whatever waits in its queue, though each of these clients believes to be connected and may
//! have sent its request. So the queue is emptied first. Between the last look at it and the close one more may come in; on
//! Linux a filter keeps beginnings of handshakes out from before the first look, and handshakes under way get the time to end. Whose
//! beginning is dropped tries again after a second, as after any lost packet, and finds nobody there, or whoever has the
//! address by then. Elsewhere a moment between look and close remains.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

/// How long handshakes under way may take: one way there and back.
const HANDSHAKE: Duration = Duration::from_millis(200);

/// Takes the last connections and closes the listener.
pub(super) async fn close(listener: TcpListener, mut take: impl FnMut(TcpStream, SocketAddr)) {
    if keep_new_out(&listener) {
        let taking = async {
            while let Ok((stream, peer)) = listener.accept().await {
                take(stream, peer);
            }
        };
        let _ = tokio::time::timeout(HANDSHAKE, taking).await;
    }
    // The runtime may not have heard yet of what has arrived; the system knows.
    let Ok(listener) = listener.into_std() else { return };
    while let Ok((stream, peer)) = listener.accept() {
        if stream.set_nonblocking(true).is_ok()
            && let Ok(stream) = TcpStream::from_std(stream)
        {
            take(stream, peer);
        }
    }
}

/// Whether no handshake begins any more.
#[cfg(target_os = "linux")]
fn keep_new_out(listener: &TcpListener) -> bool {
    use socket2::{SockFilter, SockRef};

    /// A program of the kernel's packet filter, over the TCP header: a packet with SYN and without ACK is dropped.
    const WITHOUT_BEGINNINGS: [SockFilter; 5] = [
        SockFilter::new(0x30, 0, 0, 13),       // load the byte of flags
        SockFilter::new(0x54, 0, 0, 0x12),     // keep SYN and ACK
        SockFilter::new(0x15, 0, 1, 0x02),     // if it is SYN alone
        SockFilter::new(0x06, 0, 0, 0),        // drop the packet
        SockFilter::new(0x06, 0, 0, u32::MAX), // take all of it
    ];
    SockRef::from(listener).attach_filter(&WITHOUT_BEGINNINGS).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn keep_new_out(_: &TcpListener) -> bool {
    false
}
