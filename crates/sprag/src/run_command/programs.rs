//! The command: how it is started, and what is done for programs that read no variable.
//!
//! Codex takes its base URL from its configuration and from flags only, so a flag is added. It holds for an API key; who
//! is logged in with an account of ChatGPT talks to another service, which is left alone and said.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use super::processes;
use super::variables::Variables;
use crate::config::Environment;

/// A command that can be started.
pub(super) struct Program {
    path: OsString,
    arguments: Vec<OsString>,
    variables: Vec<(&'static str, String)>,
    /// What the user should know about it.
    pub(super) notes: Vec<String>,
}

/// A command that was started.
pub(super) struct Started {
    pub(super) child: Child,
    /// It leads a group of its own, and hears of the terminal's signals only through us.
    pub(super) has_own_group: bool,
}

impl Program {
    /// The command as it will be started.
    pub(super) fn of(command: &[OsString], variables: &Variables, environment: &Environment) -> Program {
        let (path, arguments) =
            command.split_first().map_or((OsString::new(), &[][..]), |(path, rest)| (path.clone(), rest));
        let mut program =
            Program { path, arguments: arguments.to_vec(), variables: variables.set.clone(), notes: Vec::new() };
        if program.name() == "codex" {
            program.lead_codex(&variables.openai, environment);
        }
        program
    }

    /// The name of the program, without its folder.
    pub(super) fn name(&self) -> String {
        let path = Path::new(&self.path);
        path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
    }

    /// The command line, as a shell reads it.
    pub(super) fn shown(&self) -> String {
        let words = [&self.path].into_iter().chain(&self.arguments);
        words.map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
    }

    /// Starts it, in a group of its own or in ours.
    ///
    /// # Errors
    /// When there is no such program, or it cannot be executed.
    pub(super) fn start(&self, has_own_group: bool) -> std::io::Result<Started> {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).envs(self.variables.iter().map(|(name, value)| (name, value)));
        if has_own_group {
            command.process_group(0);
        }
        processes::keep_orphans();
        Ok(Started { child: command.spawn()?, has_own_group })
    }

    fn lead_codex(&mut self, base: &str, environment: &Environment) {
        let says = |word: &str| self.arguments.iter().any(|argument| argument.to_string_lossy().contains(word));
        if says("openai_base_url") || says("model_provider") {
            self.notes.push("codex is told its provider on the command line, so Sprag leaves that alone".to_owned());
        } else if has_key(environment) {
            let flag = ["-c".into(), format!("openai_base_url=\"{base}\"").into()];
            self.arguments.splice(0..0, flag);
        } else {
            let login = "codex has no API key (OPENAI_API_KEY, CODEX_API_KEY or `codex login --with-api-key`); with a \
                         ChatGPT login its calls do not go through Sprag";
            self.notes.push(login.to_owned());
        }
    }
}

/// Whether Codex pays by an API key.
fn has_key(environment: &Environment) -> bool {
    if ["CODEX_API_KEY", "OPENAI_API_KEY"].iter().any(|name| environment.get(name).is_some()) {
        return true;
    }
    let home = environment.get("CODEX_HOME").map(PathBuf::from);
    let home = home.or_else(|| environment.get("HOME").map(|home| Path::new(home).join(".codex")));
    let login = home.and_then(|home| std::fs::read(home.join("auth.json")).ok());
    let login: Option<serde_json::Value> = login.and_then(|text| serde_json::from_slice(&text).ok());
    login.is_some_and(|login| login["OPENAI_API_KEY"].as_str().is_some_and(|key| !key.is_empty()))
}

/// A word as a shell takes it for one.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(command: &[&str], environment: &[(&str, &str)]) -> (String, usize) {
        let command: Vec<OsString> = command.iter().map(Into::into).collect();
        let variables = Variables { set: Vec::new(), openai: "http://h:1/v1".to_owned() };
        let program = Program::of(&command, &variables, &environment.iter().copied().collect());
        (program.shown(), program.notes.len())
    }

    #[test]
    fn codex_is_told_by_a_flag() {
        let key = [("OPENAI_API_KEY", "sk")];
        let led = "-c 'openai_base_url=\"http://h:1/v1\"'";
        assert_eq!(shown(&["codex", "exec", "do it"], &key), (format!("codex {led} exec 'do it'"), 0));
        assert_eq!(shown(&["/opt/bin/codex"], &key), (format!("/opt/bin/codex {led}"), 0));
        let (same, notes) = shown(&["codex", "-c", "model_provider=mine"], &key);
        assert_eq!((same.as_str(), notes), ("codex -c model_provider=mine", 1));
        assert_eq!(shown(&["codex", "exec"], &[]), ("codex exec".to_owned(), 1), "a login is left alone, and said");
        assert_eq!(shown(&["codexx"], &key), ("codexx".to_owned(), 0));
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("a-b_c./:=@%+,1"), "a-b_c./:=@%+,1");
        assert_eq!(quoted("it's $x"), r"'it'\''s $x'");
        assert_eq!(quoted(""), "''");
    }
}
