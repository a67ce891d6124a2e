//! Ports that nobody takes away while nobody listens on them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

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

/// A port for a program that is ended and started again on it. A socket that does not listen holds it against everybody
/// who asks for a free one, and lets those bind to it who say that they may share it, as servers do. It is below the ports
/// that the system hands out, so that no connection takes it meanwhile. Ten thousand above it there is room as well: nodes
/// of a Redis cluster speak there.
#[derive(Debug)]
pub struct HeldPort {
    _holder: TcpSocket,
    pub(crate) port: u16,
}

impl HeldPort {
    /// # Errors
    /// When none is free.
    pub fn new() -> io::Result<HeldPort> {
        let mut last = io::Error::other("no port was tried");
        for _ in 0..ATTEMPTS {
            let holder = TcpSocket::new_v4()?;
            let port = fastrand::u16(10_000..19_500);
            match holder.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))) {
                Ok(()) => {
                    // Not before: it would be given a port that another one holds.
                    holder.set_reuseaddr(true)?;
                    return Ok(HeldPort { _holder: holder, port });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Where its program is to listen.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_held_port_is_for_its_server_only() {
        let held = HeldPort::new().unwrap();
        let address = held.address();
        assert_eq!(TcpSocket::new_v4().unwrap().bind(address).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        // It comes, goes, and comes again.
        for _ in 0..2 {
            assert_eq!(TcpListener::bind(address).unwrap().local_addr().unwrap(), address);
        }
    }
}
