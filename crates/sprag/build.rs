//! Puts into the program what `sprag --version` says about its build.
//!
//! No name begins with `SPRAG_`: cargo gives these to tests as variables, and those are keys of the configuration.
//! Only a release looks at the commit: otherwise every commit would compile the whole program again.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=BUILD_COMMIT");
    let profile = env::var("PROFILE").unwrap_or_default();
    let commit = env::var("BUILD_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = commit.or_else(|| (profile == "release").then(commit_of_checkout).flatten());
    let target = env::var("TARGET").unwrap_or_default();
    let rustc = said(&env::var("RUSTC").unwrap_or_default(), &["--version"]).unwrap_or_default();
    println!("cargo::rustc-env=BUILT_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    println!("cargo::rustc-env=BUILT_TARGET={target}");
    println!("cargo::rustc-env=BUILT_PROFILE={profile}");
    println!("cargo::rustc-env=BUILT_RUSTC={rustc}");
}

/// The commit, with its day; a mark where the files differ from it.
fn commit_of_checkout() -> Option<String> {
    let head = said("git", &["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={head}");
    let commit = said("git", &["show", "--no-patch", "--format=%h %cs", "HEAD"])?;
    let is_clean = said("git", &["status", "--porcelain", "--untracked-files=no"]).is_some_and(|list| list.is_empty());
    Some(if is_clean { commit } else { format!("{commit} with changes") })
}

fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
