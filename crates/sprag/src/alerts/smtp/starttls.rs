//! What is said in the clear before STARTTLS: no more than it takes.
//!
//! lettre could do this too, but it keeps what a server (or whoever stands in between) said behind its answer in the
//! clear, and takes it for said under TLS. Why it is done here: docs/decisions/0007.

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::Failure;

/// Longest line of an answer, and most lines of one.
const LINE_BYTES: u64 = 4096;
const LINES: usize = 100;

/// Speaks until the server waits for TLS.
pub(super) async fn ask(stream: TcpStream, hello: &str) -> Result<TcpStream, Failure> {
    let mut pipe = BufReader::new(stream);
    answer(&mut pipe, "the connection", 220).await?;
    say(&mut pipe, &format!("EHLO {hello}\r\n")).await?;
    let offers = answer(&mut pipe, "EHLO", 250).await?;
    if !offers.iter().any(|offer| offer.eq_ignore_ascii_case(b"STARTTLS")) {
        return Err(Failure::MayPass("the mail server does not offer STARTTLS; nothing was sent".to_owned()));
    }
    say(&mut pipe, "STARTTLS\r\n").await?;
    answer(&mut pipe, "STARTTLS", 220).await?;
    // Bytes from before the encryption must not count as said under it.
    if !pipe.buffer().is_empty() {
        return Err(Failure::MayPass("the mail server spoke on before the encryption stood".to_owned()));
    }
    Ok(pipe.into_inner())
}

async fn say(pipe: &mut BufReader<TcpStream>, line: &str) -> Result<(), Failure> {
    pipe.get_mut().write_all(line.as_bytes()).await.map_err(gone)
}

/// The lines of an answer, without its code.
async fn answer(pipe: &mut BufReader<TcpStream>, what: &str, code: u16) -> Result<Vec<Vec<u8>>, Failure> {
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        let read = (&mut *pipe).take(LINE_BYTES).read_until(b'\n', &mut line).await.map_err(gone)?;
        if read == 0 || lines.len() == LINES || !line.ends_with(b"\n") {
            return Err(gone(std::io::Error::other("its answer is not whole")));
        }
        let line = line.trim_ascii_end();
        let found: u16 = line.get(..3).and_then(|code| std::str::from_utf8(code).ok()?.parse().ok()).unwrap_or(0);
        if found != code {
            return Err(Failure::MayPass(format!("the mail server answered {found} to {what}")));
        }
        lines.push(line.get(4..).unwrap_or_default().to_vec());
        if line.get(3) != Some(&b'-') {
            return Ok(lines);
        }
    }
}

fn gone(error: std::io::Error) -> Failure {
    Failure::MayPass(format!("the mail server is gone: {error}"))
}
