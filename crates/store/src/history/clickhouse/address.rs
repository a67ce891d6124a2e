//! Where a ClickHouse server is, as it is written in the configuration. The password stays inside.

use std::fmt;

use percent_encoding::percent_decode_str;
use url::Url;

/// The database that is used where the address names none.
const DATABASE: &str = "sprag";

/// A server, who asks it, and the database. Shown without the password.
#[derive(Clone, PartialEq, Eq)]
pub struct ClickHouseAddress {
    /// Scheme, host and port, with a slash at the end.
    pub(super) base: String,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) database: String,
    /// Settings of ClickHouse that go along with everything.
    pub(super) settings: Vec<(String, String)>,
}

impl ClickHouseAddress {
    /// Reads `http://user:password@host:8123/database?setting=value`.
    ///
    /// # Errors
    /// What is wrong with it, and what is expected; never the address itself, which may hold a password.
    pub fn parse(text: &str) -> Result<ClickHouseAddress, String> {
        const EXPECTED: &str = "expected an address like \"http://user:password@host:8123/database\"";
        let url = Url::parse(text).map_err(|error| format!("{error}; {EXPECTED}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("the scheme `{}` is not known: use http or https; {EXPECTED}", url.scheme()));
        }
        let host = url.host_str().ok_or_else(|| format!("there is no host in it; {EXPECTED}"))?;
        let usual_port = if url.scheme() == "https" { 8443 } else { 8123 };
        let port = explicit_port(text).unwrap_or(usual_port);
        let database = match url.path().trim_matches('/') {
            "" => DATABASE.to_owned(),
            path => decoded(path),
        };
        if !database.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            || !database.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        {
            return Err(format!(
                "`{database}` cannot be the name of the database: letters, digits and _ only; {EXPECTED}"
            ));
        }
        Ok(ClickHouseAddress {
            base: format!("{}://{host}:{port}/", url.scheme()),
            user: Some(decoded(url.username())).filter(|user| !user.is_empty()),
            password: url.password().map(decoded),
            database,
            settings: url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect(),
        })
    }
}

/// Without the password, and without settings, which may hold one.
impl fmt::Display for ClickHouseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.base, self.database)
    }
}

impl fmt::Debug for ClickHouseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClickHouseAddress({self})")
    }
}

/// The port as written: the library leaves out 80 and 443, which are not the usual ones here.
fn explicit_port(text: &str) -> Option<u16> {
    let rest = text.split_once("://")?.1;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    host.rsplit_once(':').filter(|(_, port)| !port.contains(']')).and_then(|(_, port)| port.parse().ok())
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_found_and_the_password_is_not_shown() {
        let address = ClickHouseAddress::parse("https://me:p%40ss@ch.example:9440/events?insert_quorum=2").unwrap();
        assert_eq!(address.base, "https://ch.example:9440/");
        assert_eq!((address.user.as_deref(), address.password.as_deref()), (Some("me"), Some("p@ss")));
        assert_eq!(address.database, "events");
        assert_eq!(address.settings, [("insert_quorum".to_owned(), "2".to_owned())]);
        assert_eq!(format!("{address} {address:?}"), {
            let shown = "https://ch.example:9440/events";
            format!("{shown} ClickHouseAddress({shown})")
        });
    }

    #[test]
    fn what_is_left_out_is_the_usual() {
        for (text, base, database) in [
            ("http://ch", "http://ch:8123/", "sprag"),
            ("http://ch/", "http://ch:8123/", "sprag"),
            ("https://ch/x_1", "https://ch:8443/", "x_1"),
            ("http://ch:80/x", "http://ch:80/", "x"),
            ("http://u:1@[::1]/x", "http://[::1]:8123/", "x"),
            ("http://[::1]:1234", "http://[::1]:1234/", "sprag"),
        ] {
            let address = ClickHouseAddress::parse(text).unwrap();
            assert_eq!((address.base.as_str(), address.database.as_str()), (base, database), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for (text, said) in [
            ("ch:8123", "scheme"),
            ("tcp://u:secret@ch:9000/x", "use http or https"),
            ("http://u:secret@/x", "host"),
            ("http://u:secret@ch/a-b", "letters, digits and _"),
            ("http://u:secret@ch/1x", "letters, digits and _"),
            ("", "expected an address"),
        ] {
            let error = ClickHouseAddress::parse(text).unwrap_err();
            assert!(error.contains(said) && error.contains("expected"), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
