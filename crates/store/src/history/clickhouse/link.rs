//! The way to a ClickHouse server: its HTTP interface, blocking, with time-outs and bounds.
//!
//! Any thread may use it; connections are shared. What is written may be sent again after a failure, for nothing that
//! Sprag writes counts twice; so nothing here tries to find out whether a lost answer meant yes.

use std::time::{Duration, Instant};

use sprag_core::limits::CLICKHOUSE_ANSWER_BYTES;
use ureq::http::Response;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body, Error};

use super::address::ClickHouseAddress;
use crate::error::StoreError;

const CONNECT: Duration = Duration::from_secs(3);
/// How much longer an insert may take.
const WRITES: u32 = 3;
/// Servers close idle connections after 3 seconds and more.
const IDLE: Duration = Duration::from_secs(2);
/// As much as is shown of what a server says.
const MESSAGE_CHARS: usize = 400;

/// Codes of ClickHouse for what nobody has to repair: time-outs, too much to do, being read-only or away for a while.
const PASSING_CODES: [u32; 11] = [159, 201, 202, 203, 209, 210, 241, 242, 243, 252, 999];
/// The database does not exist.
pub(super) const UNKNOWN_DATABASE: u32 = 81;

/// A server's HTTP interface.
pub(super) struct Link {
    agent: Agent,
    address: ClickHouseAddress,
    /// Longest time that an answer may take.
    patience: Duration,
}

/// Why something was not done.
#[derive(Debug)]
pub(super) struct Refused {
    /// The code of ClickHouse; none where it did not answer.
    pub(super) code: Option<u32>,
    message: String,
}

impl Link {
    #[cfg(test)]
    pub(super) fn new(address: ClickHouseAddress) -> Link {
        Link::with_patience(address, super::PATIENCE)
    }

    pub(super) fn with_patience(address: ClickHouseAddress, patience: Duration) -> Link {
        let config = Agent::config_builder()
            .timeout_connect(Some(CONNECT.min(patience)))
            .max_idle_age(IDLE)
            .max_redirects(0)
            .http_status_as_error(false)
            .proxy(None)
            .tls_config(TlsConfig::builder().root_certs(roots()).build())
            .user_agent(concat!("sprag/", env!("CARGO_PKG_VERSION")))
            .build();
        Link { agent: Agent::new_with_config(config), address, patience }
    }

    /// Whose link it is, for people.
    pub(super) fn address(&self) -> &ClickHouseAddress {
        &self.address
    }

    /// Asks something. Parameters stand in the query as `{name:Type}`; the answer has the query's FORMAT.
    pub(super) fn select(&self, sql: &str, params: &[(&str, String)]) -> Result<Vec<u8>, StoreError> {
        let mut pairs = vec![("readonly".to_owned(), "2".to_owned())];
        pairs.extend(params.iter().map(|(name, value)| (format!("param_{name}"), escaped(value))));
        let ask = || self.post(&pairs, sql.as_bytes(), true, self.patience);
        let begun = Instant::now();
        // The server may have closed a connection that stood idle. Asking again does no harm, but takes as long once more.
        let answer = ask().or_else(|refused| match refused.code.is_none() && begun.elapsed() < self.patience / 2 {
            true => ask(),
            false => Err(refused),
        });
        answer.map_err(|refused| self.error("be read", &refused))
    }

    /// Does something that changes the server.
    pub(super) fn command(&self, sql: &str) -> Result<(), Refused> {
        self.post(&[], sql.as_bytes(), true, WRITES * self.patience).map(drop)
    }

    /// The same, without a word about the database: it may not exist yet.
    pub(super) fn command_outside(&self, sql: &str) -> Result<(), Refused> {
        self.post(&[], sql.as_bytes(), false, WRITES * self.patience).map(drop)
    }

    /// Asks for one number.
    pub(super) fn number(&self, sql: &str) -> Result<u64, Refused> {
        let answer = self.text(sql)?;
        answer.trim().parse().map_err(|_| Refused { code: None, message: "it answered with no number".to_owned() })
    }

    /// Asks for lines, with tabs between their fields.
    pub(super) fn text(&self, sql: &str) -> Result<String, Refused> {
        let answer = self.post(&[], sql.as_bytes(), true, self.patience)?;
        String::from_utf8(answer).map_err(|_| Refused { code: None, message: "it answered with no text".to_owned() })
    }

    /// Inserts rows, in the format that the statement names. Where a name for the block is given, the server takes a
    /// block of a name that it remembers for done.
    pub(super) fn insert(&self, sql: &str, rows: &[u8], name: Option<&str>) -> Result<(), Refused> {
        // Late events may be of very many days.
        let any_days = ("max_partitions_per_insert_block".to_owned(), "0".to_owned());
        let mut pairs = vec![("query".to_owned(), sql.to_owned()), any_days];
        pairs.extend(name.map(|name| ("insert_deduplication_token".to_owned(), name.to_owned())));
        self.post(&pairs, rows, true, WRITES * self.patience).map(drop)
    }

    /// What was refused, as an error for people.
    pub(super) fn error(&self, action: &'static str, refused: &Refused) -> StoreError {
        let may_pass = refused.code.is_none_or(|code| PASSING_CODES.contains(&code));
        let what_to_do = match refused.code {
            None => "; check that it runs and that `[events] clickhouse` names it",
            Some(516 | 192 | 193 | 194) => "; check user and password in `[events] clickhouse`",
            Some(497) => "; give the user of `[events] clickhouse` the rights that docs/clickhouse.md names",
            Some(_) => "",
        };
        let message = format!("ClickHouse at {}: {}{what_to_do}", self.address, refused.message);
        StoreError::Database { action, message, may_pass }
    }

    fn post(
        &self,
        pairs: &[(String, String)],
        body: &[u8],
        is_inside: bool,
        patience: Duration,
    ) -> Result<Vec<u8>, Refused> {
        let request = self.agent.post(&self.address.base).config().timeout_global(Some(patience)).build();
        let mut request = request
            // A whole answer or an error, never an answer that ends in one.
            .query("wait_end_of_query", "1")
            .query_pairs(self.address.settings.iter().map(|(name, value)| (name, value)))
            .query_pairs(pairs.iter().map(|(name, value)| (name, value)));
        if is_inside {
            request = request.query("database", &self.address.database);
        }
        if let Some(user) = &self.address.user {
            request = request.header("x-clickhouse-user", user);
        }
        if let Some(password) = &self.address.password {
            request = request.header("x-clickhouse-key", password);
        }
        let mut response = request.send(body).map_err(|error| Refused::by_link(&error))?;
        if response.status().as_u16() != 200 {
            return Err(Refused::by_server(&mut response));
        }
        let answer = response.body_mut().with_config().limit(CLICKHOUSE_ANSWER_BYTES).read_to_vec();
        answer.map_err(|error| Refused::by_link(&error))
    }
}

impl Refused {
    fn by_link(error: &Error) -> Refused {
        Refused { code: None, message: error.to_string() }
    }

    fn by_server(response: &mut Response<Body>) -> Refused {
        let header = response.headers().get("x-clickhouse-exception-code");
        let code = header.and_then(|code| code.to_str().ok()).and_then(|code| code.parse().ok());
        let status = response.status();
        let said = response.body_mut().with_config().limit(CLICKHOUSE_ANSWER_BYTES).lossy_utf8(true).read_to_string();
        let said: String = said.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        let message: String = said.chars().take(MESSAGE_CHARS).collect();
        Refused { code, message: format!("{status}: {message}") }
    }
}

/// Whom the machine trusts; the usual authorities where it does not say.
fn roots() -> RootCerts {
    let found = rustls_native_certs::load_native_certs().certs;
    match found.is_empty() {
        true => RootCerts::WebPki,
        false => RootCerts::from(found.iter().map(|certificate| Certificate::from_der(certificate).to_owned())),
    }
}

/// A parameter's value in the form that ClickHouse reads it back from.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '\t' => text.push_str("\\t"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\0' => text.push_str("\\0"),
            c => text.push(c),
        }
    }
    text
}
