//! One command to a Redis and its answer, over a connection of its own.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What a Redis answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing.
    Nil,
    /// A number.
    Number(i64),
    /// A text, or bytes.
    Bytes(Vec<u8>),
    /// Several answers.
    List(Vec<Answer>),
    /// It refused.
    Error(String),
}

impl Answer {
    /// A single answer as text; empty for nothing and for a list.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Answer::Nil | Answer::List(_) => String::new(),
            Answer::Number(number) => number.to_string(),
            Answer::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Answer::Error(error) => error.clone(),
        }
    }

    /// A single answer as a number; 0 where it is none.
    #[must_use]
    pub fn number(&self) -> i64 {
        self.text().parse().unwrap_or(0)
    }

    /// The parts of a list; a single answer is its only part.
    #[must_use]
    pub fn list(self) -> Vec<Answer> {
        match self {
            Answer::List(parts) => parts,
            Answer::Nil => Vec::new(),
            other => vec![other],
        }
    }

    /// The bytes of a single answer.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        match self {
            Answer::Bytes(bytes) => bytes,
            other => other.text().into_bytes(),
        }
    }
}

/// Sends a command and waits for its answer.
///
/// # Errors
/// When nobody listens, or nothing comes for a few seconds.
pub fn ask(address: SocketAddr, words: &[&str]) -> io::Result<Answer> {
    let parts: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    ask_bytes(address, &parts)
}

/// As [`ask`], for words that are no text.
///
/// # Errors
/// When nobody listens, or nothing comes for a few seconds.
pub fn ask_bytes(address: SocketAddr, words: &[&[u8]]) -> io::Result<Answer> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut command = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        command.extend(format!("${}\r\n", word.len()).into_bytes());
        command.extend_from_slice(word);
        command.extend(b"\r\n");
    }
    stream.write_all(&command)?;
    read(&mut BufReader::new(stream))
}

fn read(from: &mut impl BufRead) -> io::Result<Answer> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let odd = || io::Error::new(io::ErrorKind::InvalidData, "not an answer of a Redis");
    let (kind, rest) = line.trim_end().split_at_checked(1).ok_or_else(odd)?;
    let length = || rest.parse::<i64>().map_err(|_| odd());
    match kind {
        "+" => Ok(Answer::Bytes(rest.as_bytes().to_vec())),
        "-" => Ok(Answer::Error(rest.to_owned())),
        ":" => Ok(Answer::Number(length()?)),
        "$" => match usize::try_from(length()?) {
            Err(_) => Ok(Answer::Nil),
            Ok(length) => {
                let mut bytes = vec![0; length + 2];
                from.read_exact(&mut bytes)?;
                bytes.truncate(length);
                Ok(Answer::Bytes(bytes))
            }
        },
        "*" => match usize::try_from(length()?) {
            Err(_) => Ok(Answer::Nil),
            Ok(length) => (0..length).map(|_| read(from)).collect::<io::Result<_>>().map(Answer::List),
        },
        _ => Err(odd()),
    }
}
