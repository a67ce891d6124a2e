//! Ports that nobody takes away while nobody listens on them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use tokio::net::TcpSocket;

/// Connections that wait to be taken.
const WAITING: u32 = 128;
const ATTEMPTS: u32 = 100;

/// A port that is held, so that nobody else gets it, and that refuses every connection until somebody listens.
pub struct ClosedPort {
    socket: TcpSocket,
    /// Where nobody listens yet.
    pub address: SocketAddr,
}

impl ClosedPort {
    /// # Errors
    /// When no port is to be had.
    pub fn new() -> io::Result<ClosedPort> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = socket.local_addr()?;
        Ok(ClosedPort { socket, address })
    }

    /// Takes connections from now on.
    ///
    /// # Errors
    /// When the system does not let it.
    pub fn listen(self) -> io::Result<tokio::net::TcpListener> {
        self.socket.listen(WAITING)
    }
}

/// A port for a program that is ended and started again on it. Below the ports that the system hands out, so that no
/// connection takes it meanwhile. Ten thousand above it there is room as well: nodes of a Redis cluster speak there.
///
/// # Errors
/// When none is free.
pub(crate) fn free_port() -> io::Result<u16> {
    let mut last = io::Error::other("no port was tried");
    for _ in 0..ATTEMPTS {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, fastrand::u16(10_000..19_500))) {
            Ok(listener) => return Ok(listener.local_addr()?.port()),
            Err(error) => last = error,
        }
    }
    Err(last)
}
