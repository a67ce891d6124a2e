//! A configuration to begin with.

use crate::{sprag, text};

#[test]
fn without_questions_it_writes_what_the_program_takes_and_never_over_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let first = sprag(dir.path(), &["init", "--yes"]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let written = std::fs::read_to_string(dir.path().join("sprag.toml")).unwrap();
    assert!(written.contains("preset = \"balanced\"") && written.contains("# daily_limit"), "{written}");
    let check = sprag(dir.path(), &["check"]);
    assert!(check.status.success(), "{}{}", text(&check.stdout), text(&check.stderr));

    std::fs::write(dir.path().join("sprag.toml"), "# mine\n").unwrap();
    let again = sprag(dir.path(), &["init", "--yes"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("--force"), "{}", text(&again.stderr));
    assert_eq!(std::fs::read_to_string(dir.path().join("sprag.toml")).unwrap(), "# mine\n");
    assert!(sprag(dir.path(), &["init", "--yes", "--force"]).status.success());
    assert_eq!(std::fs::read_to_string(dir.path().join("sprag.toml")).unwrap(), written);
}

#[test]
fn where_nobody_can_answer_it_says_so_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let output = sprag(dir.path(), &["init"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("--yes"), "{}", text(&output.stderr));
    let missing = sprag(dir.path(), &["init", "--yes", "no/such/folder.toml"]);
    assert!(text(&missing.stderr).contains("there is no folder"), "{}", text(&missing.stderr));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
