//! What Sprag writes to the terminal.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What Sprag writes to the terminal.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// "pretty" for people, "json" for machines, "auto": pretty on a terminal, json elsewhere.
    pub format: LogFormat,
    /// A level (error, warn, info, debug, trace), or one for each module: "info,sprag::gateway=debug".
    pub level: String,
    /// One line for each call: true, false, or "auto": only where the lines are pretty and on a terminal.
    pub calls: LogCalls,
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Pretty on a terminal, JSON elsewhere.
    Auto,
    /// For people.
    Pretty,
    /// One JSON object a line.
    Json,
}

/// Whether each call gets a line. Written as a boolean or as "auto".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogCalls {
    /// Where a person watches: a busy proxy would spend more on the lines than on the calls.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// `LogCalls` as it is written.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Switch(bool),
    Word(Word),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Auto,
}

impl Default for Log {
    fn default() -> Log {
        Log { format: LogFormat::Auto, level: "info".to_owned(), calls: LogCalls::Auto }
    }
}

impl Serialize for LogCalls {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = match self {
            LogCalls::Auto => Written::Word(Word::Auto),
            LogCalls::On => Written::Switch(true),
            LogCalls::Off => Written::Switch(false),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LogCalls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LogCalls, D::Error> {
        Ok(match Written::deserialize(deserializer)? {
            Written::Word(Word::Auto) => LogCalls::Auto,
            Written::Switch(true) => LogCalls::On,
            Written::Switch(false) => LogCalls::Off,
        })
    }
}

impl JsonSchema for LogCalls {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "LogCalls".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["boolean", "string"], "enum": [true, false, "auto"]})
    }
}
