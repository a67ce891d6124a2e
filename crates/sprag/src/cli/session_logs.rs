//! Where agents keep their session logs on this machine.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::config::Environment;

/// A folder of logs: the variable that moves its parent, where the parent is below the home folder, the folder.
const KNOWN: [(&str, &str, &str); 2] =
    [("CLAUDE_CONFIG_DIR", ".claude", "projects"), ("CODEX_HOME", ".codex", "sessions")];

/// The folders of logs that there are.
pub(super) fn session_logs(environment: &Environment) -> Result<Vec<PathBuf>> {
    let home = environment.get("HOME").map(PathBuf::from).unwrap_or_default();
    let folder = |(variable, below_home, logs): (&str, &str, &str)| {
        environment.get(variable).map_or_else(|| home.join(below_home), PathBuf::from).join(logs)
    };
    let looked = KNOWN.map(folder);
    let found: Vec<PathBuf> = looked.iter().filter(|path| path.is_dir()).cloned().collect();
    if found.is_empty() {
        let looked = looked.map(|path| path.display().to_string()).join(" and ");
        bail!("there are no session logs in {looked}; name the files or folders, as in `sprag replay FILE`");
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_found_below_home_and_where_a_variable_says() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let (home, elsewhere) = (home.path(), elsewhere.path());
        let of = |variables: &[(&str, &std::path::Path)]| {
            session_logs(&variables.iter().map(|(name, path)| (*name, path.to_str().unwrap())).collect())
        };
        let error = of(&[("HOME", home)]).unwrap_err().to_string();
        assert!(error.contains(".claude/projects") && error.contains(".codex/sessions"), "{error}");
        std::fs::create_dir_all(home.join(".claude/projects")).unwrap();
        std::fs::create_dir_all(elsewhere.join("sessions")).unwrap();
        assert_eq!(of(&[("HOME", home)]).unwrap(), [home.join(".claude/projects")]);
        let both = [home.join(".claude/projects"), elsewhere.join("sessions")];
        assert_eq!(of(&[("HOME", home), ("CODEX_HOME", elsewhere)]).unwrap(), both);
    }
}
