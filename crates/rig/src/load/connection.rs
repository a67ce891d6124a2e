//! One connection of a client: writes a request, reads an answer, and knows when each part came.
//!
//! Lean on purpose. The load shares a core with the mock, and what it takes itself, it cannot ask of a proxy.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const READ_BYTES: usize = 64 << 10;

/// What came of a request.
#[derive(Debug, Default)]
pub struct Exchange {
    pub status: u16,
    /// Until the first byte of the body.
    pub first: Duration,
    pub total: Duration,
    /// Events of a stream.
    pub events: usize,
    /// Filled where it was asked for.
    pub body: Vec<u8>,
}

pub struct Connection {
    address: SocketAddr,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

/// How the end of a body is known.
enum Length {
    Known(usize),
    Chunked(Chunks),
}

impl Connection {
    pub fn new(address: SocketAddr) -> Connection {
        Connection { address, stream: None, buffer: Vec::with_capacity(READ_BYTES) }
    }

    pub async fn open(&mut self) -> io::Result<()> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.address).await?;
            stream.set_nodelay(true)?;
            self.stream = Some(stream);
        }
        Ok(())
    }

    /// Sends a request and reads its answer. After an error the next request has a new connection.
    pub async fn exchange(&mut self, request: &[u8], keeps_body: bool) -> io::Result<Exchange> {
        self.open().await?;
        let Some(mut stream) = self.stream.take() else { return Err(io::ErrorKind::NotConnected.into()) };
        let (exchange, stays) = self.talk(&mut stream, request, keeps_body).await?;
        if stays {
            self.stream = Some(stream);
        }
        Ok(exchange)
    }

    /// Sends a request and goes away after so many events of the answer.
    pub async fn abandon(&mut self, request: &[u8], after_events: usize) -> io::Result<()> {
        self.open().await?;
        let Some(mut stream) = self.stream.take() else { return Err(io::ErrorKind::NotConnected.into()) };
        stream.write_all(request).await?;
        let mut events = EventCount::default();
        let mut piece = [0; 4096];
        while events.count < after_events {
            let read = stream.read(&mut piece).await?;
            // A provider that failed sends no events.
            if read == 0 || piece[..read].starts_with(b"HTTP/1.1 5") {
                break;
            }
            events.take(&piece[..read]);
        }
        Ok(())
    }

    async fn talk(&mut self, stream: &mut TcpStream, request: &[u8], keeps_body: bool) -> io::Result<(Exchange, bool)> {
        let began = Instant::now();
        stream.write_all(request).await?;
        self.buffer.clear();
        let mut exchange = Exchange::default();
        let (head, mut length, stays) = loop {
            read_more(stream, &mut self.buffer).await?;
            if let Some(head) = Head::read(&self.buffer)? {
                exchange.status = head.status;
                break (head.bytes, head.length, head.stays);
            }
        };
        self.buffer.drain(..head);
        let mut events = EventCount::default();
        loop {
            if !self.buffer.is_empty() && exchange.first.is_zero() {
                exchange.first = began.elapsed();
            }
            let is_over = match &mut length {
                Length::Known(left) => {
                    let take = self.buffer.len().min(*left);
                    *left -= take;
                    if keeps_body {
                        exchange.body.extend_from_slice(&self.buffer[..take]);
                    }
                    *left == 0
                }
                Length::Chunked(chunks) => chunks.take(&self.buffer, |data| {
                    events.take(data);
                    if keeps_body {
                        exchange.body.extend_from_slice(data);
                    }
                })?,
            };
            self.buffer.clear();
            if is_over {
                break;
            }
            read_more(stream, &mut self.buffer).await?;
        }
        exchange.total = began.elapsed();
        exchange.events = events.count;
        Ok((exchange, stays))
    }
}

async fn read_more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<()> {
    match stream.read_buf(buffer).await? {
        0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended in the middle of an answer")),
        _ => Ok(()),
    }
}

struct Head {
    bytes: usize,
    status: u16,
    length: Length,
    stays: bool,
}

impl Head {
    /// None where more must be read.
    fn read(buffer: &[u8]) -> io::Result<Option<Head>> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(buffer).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let httparse::Status::Complete(bytes) = parsed else { return Ok(None) };
        let (mut length, mut stays) = (Length::Known(0), true);
        for header in &*response.headers {
            if header.name.eq_ignore_ascii_case("content-length") {
                let text = std::str::from_utf8(header.value).unwrap_or_default();
                length = Length::Known(text.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                length = Length::Chunked(Chunks::default());
            } else if header.name.eq_ignore_ascii_case("connection") {
                stays = !header.value.eq_ignore_ascii_case(b"close");
            }
        }
        Ok(Some(Head { bytes, status: response.code.unwrap_or(0), length, stays }))
    }
}

/// Chunked transfer coding, as it comes.
#[derive(Default)]
struct Chunks {
    state: ChunkState,
}

#[derive(Clone, Copy)]
enum ChunkState {
    Size(usize),
    /// After the size, up to the end of its line.
    Rest(usize),
    Data(usize),
    /// The line end after data.
    Gap,
    /// The empty line after the last chunk; how much of it is there.
    Last(usize),
}

impl Default for ChunkState {
    fn default() -> ChunkState {
        ChunkState::Size(0)
    }
}

impl Chunks {
    /// Gives the data; true when it was the last.
    fn take(&mut self, mut bytes: &[u8], mut give: impl FnMut(&[u8])) -> io::Result<bool> {
        while let Some((&first, rest)) = bytes.split_first() {
            self.state = match self.state {
                ChunkState::Size(size) => {
                    bytes = rest;
                    match char::from(first).to_digit(16) {
                        Some(digit) => ChunkState::Size(size * 16 + digit as usize),
                        None if first == b'\n' => after_size(size),
                        None if matches!(first, b'\r' | b';' | b' ') => ChunkState::Rest(size),
                        None => return Err(io::ErrorKind::InvalidData.into()),
                    }
                }
                ChunkState::Rest(size) => {
                    bytes = rest;
                    if first == b'\n' { after_size(size) } else { ChunkState::Rest(size) }
                }
                ChunkState::Data(left) => {
                    let take = left.min(bytes.len());
                    give(&bytes[..take]);
                    bytes = &bytes[take..];
                    if take == left { ChunkState::Gap } else { ChunkState::Data(left - take) }
                }
                ChunkState::Gap => {
                    bytes = rest;
                    if first == b'\n' { ChunkState::Size(0) } else { ChunkState::Gap }
                }
                ChunkState::Last(seen) => {
                    bytes = rest;
                    match first {
                        b'\n' if seen == 0 => return Ok(true),
                        b'\n' => ChunkState::Last(0),
                        b'\r' => ChunkState::Last(seen),
                        _ => ChunkState::Last(seen + 1),
                    }
                }
            };
        }
        Ok(false)
    }
}

fn after_size(size: usize) -> ChunkState {
    if size == 0 { ChunkState::Last(0) } else { ChunkState::Data(size) }
}

/// Counts the empty lines that end events, wherever the text is cut.
#[derive(Default)]
struct EventCount {
    count: usize,
    ends_in_newline: bool,
}

impl EventCount {
    fn take(&mut self, data: &[u8]) {
        if self.ends_in_newline && data.first() == Some(&b'\n') {
            self.count += 1;
        }
        self.count += memmem::find_iter(data, b"\n\n").count();
        self.ends_in_newline = data.last() == Some(&b'\n') && !data.ends_with(b"\n\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_read_wherever_they_are_cut() {
        let wire = b"5\r\nhello\r\n1;x=y\r\n \r\n6\r\nworld!\r\n0\r\nt: 1\r\n\r\n";
        for at in 0..wire.len() {
            let (mut chunks, mut text) = (Chunks::default(), Vec::new());
            assert!(!chunks.take(&wire[..at], |data| text.extend_from_slice(data)).unwrap());
            assert!(chunks.take(&wire[at..], |data| text.extend_from_slice(data)).unwrap(), "cut at {at}");
            assert_eq!(text, b"hello world!");
        }
    }

    #[test]
    fn events_are_counted_wherever_they_are_cut() {
        let wire = b"data: 1\n\nevent: a\ndata: 2\n\ndata: 3\n\n";
        for at in 0..wire.len() {
            let mut events = EventCount::default();
            events.take(&wire[..at]);
            events.take(&wire[at..]);
            assert_eq!(events.count, 3, "cut at {at}");
        }
    }
}
