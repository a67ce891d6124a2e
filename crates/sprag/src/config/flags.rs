//! Flags that stand above the file and the environment.

use std::path::PathBuf;
use std::str::FromStr;

use super::presets::preset;

/// The flags of every command that reads the configuration.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Flags {
    /// Configuration file [default: sprag.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address of the proxy, such as 127.0.0.1:7070
    #[arg(long, value_name = "ADDR")]
    pub proxy: Option<String>,
    /// Address of the dashboard and the admin API, such as 127.0.0.1:7071
    #[arg(long, value_name = "ADDR")]
    pub admin: Option<String>,
    /// Directory for the database and the admin token
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Base URL of a provider, as NAME=URL or NAME=URL,dialect=anthropic; may be repeated
    #[arg(long = "provider", value_name = "NAME=URL")]
    pub providers: Vec<ProviderFlag>,
}

/// `NAME=URL`, with the dialect where it is not the preset's or OpenAI's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderFlag {
    /// The provider's name.
    pub name: String,
    /// Its base URL.
    pub base_url: String,
    /// Its dialect, if given.
    pub dialect: Option<String>,
}

impl FromStr for ProviderFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<ProviderFlag, String> {
        let form = || "expected NAME=URL or NAME=URL,dialect=openai|anthropic|gemini".to_owned();
        let (name, rest) = text.split_once('=').ok_or_else(form)?;
        let (base_url, dialect) = match rest.split_once(",dialect=") {
            Some((base_url, dialect)) => (base_url, Some(dialect.to_owned())),
            None => (rest, None),
        };
        if name.is_empty() || base_url.is_empty() || base_url.contains(',') {
            return Err(form());
        }
        Ok(ProviderFlag { name: name.to_owned(), base_url: base_url.to_owned(), dialect })
    }
}

impl Flags {
    /// The flags as keys and values: path, value, flag.
    pub(crate) fn layer(&self) -> Vec<(Vec<String>, toml::Value, &'static str)> {
        let path = |parts: &[&str]| parts.iter().map(|&part| part.to_owned()).collect::<Vec<_>>();
        let mut layer = Vec::new();
        if let Some(listen) = &self.proxy {
            layer.push((path(&["proxy", "listen"]), listen.as_str().into(), "--proxy"));
        }
        if let Some(listen) = &self.admin {
            layer.push((path(&["admin", "listen"]), listen.as_str().into(), "--admin"));
        }
        if let Some(dir) = &self.data {
            layer.push((path(&["data", "dir"]), dir.to_string_lossy().as_ref().into(), "--data"));
        }
        for provider in &self.providers {
            let key = |key: &str| path(&["providers", &provider.name, key]);
            layer.push((key("base_url"), provider.base_url.as_str().into(), "--provider"));
            if let Some(dialect) = &provider.dialect {
                layer.push((key("dialect"), dialect.as_str().into(), "--provider"));
            }
        }
        layer
    }

    /// The providers that only a flag names, and that are therefore taken to speak OpenAI's dialect.
    pub(crate) fn undescribed_providers(&self) -> impl Iterator<Item = &str> {
        let is_undescribed = |flag: &&ProviderFlag| flag.dialect.is_none() && preset(&flag.name).is_none();
        self.providers.iter().filter(is_undescribed).map(|flag| flag.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema;

    /// The others are not held against the schema.
    #[test]
    fn every_flag_but_a_dialect_may_be_any_text() {
        let text = Some("x".to_owned());
        let providers = vec!["gw=http://h,dialect=anthropic".parse().unwrap()];
        let flags = Flags { proxy: text.clone(), admin: text, data: Some("x".into()), providers, ..Flags::default() };
        let layer = flags.layer();
        assert_eq!(layer.len(), 5, "each of them");
        for (path, value, flag) in layer {
            let node = schema::below(schema::root(), &path.join(".")).unwrap();
            let is_any_text = schema::types(node) == ["string"] && schema::choices(node).is_empty();
            assert!(value.is_str() && (is_any_text || path.ends_with(&["dialect".to_owned()])), "{flag}");
        }
    }

    #[test]
    fn reads_providers() {
        let flag = |name: &str, base_url: &str, dialect: Option<&str>| ProviderFlag {
            name: name.into(),
            base_url: base_url.into(),
            dialect: dialect.map(Into::into),
        };
        for (text, expected) in [
            ("openai=http://h:1", flag("openai", "http://h:1", None)),
            ("gw=http://h/a=b", flag("gw", "http://h/a=b", None)),
            ("gw=http://h,dialect=anthropic", flag("gw", "http://h", Some("anthropic"))),
        ] {
            assert_eq!(text.parse::<ProviderFlag>().as_ref(), Ok(&expected));
        }
        for text in ["", "openai", "=http://h", "openai=", "x=http://h,bogus=1"] {
            assert!(text.parse::<ProviderFlag>().is_err(), "{text}");
        }
    }
}
