//! The accept loop and the socket under each connection.

use super::{World, handle};
use crate::log::ConnectionTicket;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Serves until told to stop. Connections are tasks of the caller's runtime and go with it.
pub(super) async fn accept(listener: TcpListener, world: Arc<World>, mut stopped: watch::Receiver<bool>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => return,
            accepted = listener.accept() => {
                // A failed accept concerns one client, or a lack of descriptors that passes.
                let Ok((stream, _)) = accepted else { continue };
                tokio::spawn(serve(stream, Arc::clone(&world)));
            }
        }
    }
}

async fn serve(stream: TcpStream, world: Arc<World>) {
    let _ = stream.set_nodelay(true);
    let reset = Arc::new(AtomicBool::new(false));
    let ticket = world.log.connected();
    let connection = ticket.number;
    let socket = Socket { stream, reset: Arc::clone(&reset), _ticket: ticket };
    let service =
        service_fn(move |request| handle::answer(request, Arc::clone(&world), connection, Arc::clone(&reset)));
    // An error here is a client that left or a cut that the script wanted; the log has it.
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(socket), service).await;
}

/// A socket that is reset rather than closed when the script says so.
struct Socket {
    stream: TcpStream,
    reset: Arc<AtomicBool>,
    _ticket: ConnectionTicket,
}

impl Socket {
    fn check(&self) -> io::Result<()> {
        match self.reset.load(Ordering::SeqCst) {
            true => Err(io::ErrorKind::ConnectionReset.into()),
            false => Ok(()),
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.reset.load(Ordering::SeqCst) {
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
