//! Addresses of pages. Names travel in the query: a path could not carry a run called `..`.

use std::fmt::Write;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// `path` with a query of the parameters that have a value.
pub(super) fn to(path: &str, params: &[(&str, Option<&str>)]) -> String {
    let mut link = path.to_owned();
    let given = params.iter().filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)));
    for (at, (name, value)) in given.enumerate() {
        let mark = if at == 0 { '?' } else { '&' };
        let _ = write!(link, "{mark}{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
    }
    link
}

pub(super) fn to_run(agent: &str, id: &str) -> String {
    to("/run", &[("agent", Some(agent)), ("id", Some(id))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carries_any_name() {
        assert_eq!(to_run("bot", "a/b?c%20&d=é"), "/run?agent=bot&id=a%2Fb%3Fc%2520%26d%3D%C3%A9");
        assert_eq!(to("/runs", &[("agent", None), ("cursor", Some("1.2")), ("x", Some(""))]), "/runs?cursor=1%2E2");
    }
}
