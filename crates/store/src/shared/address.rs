//! Where Redis is: one server, or several nodes of a cluster. A password in it is never shown.

use std::fmt;

/// Where Redis is.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// One URL for each node that may be asked first, as the library takes them.
    pub(crate) urls: Vec<String>,
    /// The nodes are a cluster.
    pub(crate) is_cluster: bool,
    shown: String,
}

/// A text that is no address of a Redis, with what is wrong about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    /// Another scheme, or none.
    #[error(
        "a Redis is given as redis://HOST:PORT/DB, or rediss:// for TLS; a cluster as redis+cluster://HOST:PORT,HOST:PORT \
         or rediss+cluster://"
    )]
    Scheme,
    /// The rest of it cannot be read.
    #[error("`{shown}` cannot be read as the address of a Redis: {problem}")]
    Rest {
        /// As given, without a password.
        shown: String,
        /// What is wrong.
        problem: String,
    },
}

impl Address {
    /// Reads `redis://USER:PASSWORD@HOST:PORT/DB`, `rediss://…` for TLS, and `redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT`
    /// (or `rediss+cluster://…`) for a cluster, of which any nodes are enough.
    ///
    /// # Errors
    /// What is wrong, without a password.
    pub fn parse(text: &str) -> Result<Address, BadAddress> {
        let (scheme, rest) = text.trim().split_once("://").ok_or(BadAddress::Scheme)?;
        let (plain, is_cluster) = match scheme {
            "redis" | "rediss" => (scheme, false),
            "redis+cluster" => ("redis", true),
            "rediss+cluster" => ("rediss", true),
            _ => return Err(BadAddress::Scheme),
        };
        // A password may hold an `@`; a host does not.
        let (user, places) = rest.rsplit_once('@').map_or((None, rest), |(user, places)| (Some(user), places));
        let shown_user = user.map_or("", |_| "***@");
        let shown = format!("{scheme}://{shown_user}{places}");
        let user = user.map_or_else(String::new, |user| format!("{user}@"));
        let urls: Vec<String> = match is_cluster {
            false => vec![format!("{plain}://{user}{places}")],
            true => places.split(',').map(|place| format!("{plain}://{user}{}", place.trim_matches('/'))).collect(),
        };
        for url in &urls {
            let bad = |problem: String| BadAddress::Rest { shown: shown.clone(), problem };
            redis::Client::open(url.as_str()).map_err(|error| bad(error.to_string().replace(url, &shown)))?;
        }
        Ok(Address { urls, is_cluster, shown })
    }

    /// The one server; none for a cluster.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        self.is_cluster
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for text in ["redis://:s3cr@t@h:1/2", "rediss://me:s3cr@t@h", "redis+cluster://me:s3cr@t@a:1,b:2"] {
            let address = Address::parse(text).unwrap();
            assert!(!format!("{address} {address:?}").contains("s3cr"), "{address}");
        }
        let error = Address::parse("redis://me:s3cr@t@h:port/").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cr"), "{error}");
        assert!(error.to_string().contains("redis://***@h:port/"), "{error}");
    }

    #[test]
    fn a_cluster_is_a_list() {
        let address = Address::parse("redis+cluster://me:pw@a:1,b:2/").unwrap();
        assert_eq!(address.urls, ["redis://me:pw@a:1", "redis://me:pw@b:2"]);
        assert!(address.is_cluster() && !Address::parse("redis://h").unwrap().is_cluster());
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "localhost:6379", "http://h", "redis+sentinel://h"] {
            assert_eq!(Address::parse(text), Err(BadAddress::Scheme), "{text}");
        }
    }
}
