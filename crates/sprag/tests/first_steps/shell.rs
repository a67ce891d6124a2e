//! Completions, manual pages, and what the program says of itself.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::{sprag, text};

#[test]
fn bash_completes_commands_and_their_flags() {
    let dir = tempfile::tempdir().unwrap();
    let script = sprag(dir.path(), &["completions", "bash"]).stdout;
    let ask =
        "\nCOMP_WORDS=(sprag de) COMP_CWORD=1 COMP_LINE='sprag de'; _sprag sprag de sprag; echo \"${COMPREPLY[@]}\"
COMP_WORDS=(sprag demo --sp) COMP_CWORD=2; _sprag sprag --sp demo; echo \"${COMPREPLY[@]}\"\n";
    let mut bash = Command::new("bash").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(&[&script, ask.as_bytes()].concat()).unwrap();
    let output = bash.wait_with_output().unwrap();
    assert!(output.status.success());
    let said = text(&output.stdout);
    let mut lines = said.lines();
    assert!(lines.next().unwrap().split(' ').any(|word| word == "demo"), "{said}");
    assert_eq!(lines.next(), Some("--speed"), "{said}");
}

#[test]
fn there_is_a_script_for_every_shell_and_a_word_for_others() {
    let dir = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = sprag(dir.path(), &["completions", shell]);
        assert!(output.status.success() && text(&output.stdout).contains("replay"), "{shell}");
    }
    assert_eq!(sprag(dir.path(), &["completions", "tcsh"]).status.code(), Some(2));
}

#[test]
fn every_command_has_a_manual_page() {
    let dir = tempfile::tempdir().unwrap();
    let page = text(&sprag(dir.path(), &["man"]).stdout);
    assert!(page.contains(".TH sprag 1") && page.contains("replay"), "{page}");
    assert!(sprag(dir.path(), &["man", "pages"]).status.success());
    for name in ["sprag", "sprag-demo", "sprag-replay", "sprag-agents-set", "sprag-kill"] {
        assert!(dir.path().join("pages").join(format!("{name}.1")).is_file(), "{name}");
    }
}

#[test]
fn the_version_says_what_was_built() {
    let dir = tempfile::tempdir().unwrap();
    let short = text(&sprag(dir.path(), &["-V"]).stdout);
    assert_eq!(short.trim(), format!("sprag {}", env!("CARGO_PKG_VERSION")));
    let long = text(&sprag(dir.path(), &["--version"]).stdout);
    for word in ["commit", "target", "profile", "compiler rustc"] {
        assert!(long.contains(word), "{long}");
    }
}
