//! Puts into the program what `sprag --version` says about its build, and into a release for Linux an order of its functions.
//!
//! No name begins with `SPRAG_`: cargo gives these to tests as variables, and those are keys of the configuration.
//! Only a release looks at the commit: otherwise every commit would compile the whole program again.

use std::collections::BTreeSet;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Functions that run in calls and at a start, one a line; `bench/order` writes it.
const AT_START: &str = "order.txt";

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
    println!("cargo::rerun-if-changed={AT_START}");
    println!("cargo::rerun-if-env-changed=BUILD_ORDER");
    if profile == "release" && takes_an_order() {
        order_functions();
    }
}

/// Whether the linker can be given an order. The one of GNU and the one of LLVM can; what else there is refuses the script.
fn takes_an_order() -> bool {
    let of = |name: &str| env::var(name).unwrap_or_default();
    let chosen = of("CARGO_ENCODED_RUSTFLAGS") + &of("RUSTC_LINKER");
    let is_other = ["mold", "wild", "gold"].iter().any(|other| chosen.contains(other));
    of("CARGO_CFG_TARGET_OS") == "linux" && !is_other && of("BUILD_ORDER") != "off"
}

/// Has the linker put what runs at a start side by side: the system brings a program into memory in stretches of 64 KB, and
/// touches nearly all of them where those functions lie anywhere.
///
/// A name ends with a hash that another compiler or another version of a library changes. So after the very functions come
/// those that have the same name but for the hash: a list that is out of date costs some MB and nothing else. A part of the
/// list, which begins with `#`, stays together.
fn order_functions() {
    let Ok(list) = fs::read_to_string(AT_START) else { return };
    // Of each part.
    let (mut exact, mut alike, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    for part in list.split('#') {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for name in part.lines().skip(1) {
            match name.rfind("17h").filter(|_| name.starts_with("_ZN")) {
                // Whatever optimisation at link time puts behind it.
                Some(hash) => {
                    own.push(format!("{name}*"));
                    if seen.insert(&name[..hash]) {
                        others.push(format!("{}17h*", &name[..hash]));
                    }
                }
                None => own.push(name.to_owned()),
            }
        }
        exact.push(own);
        alike.push(others);
    }
    let groups: String =
        exact.iter().chain(&alike).filter(|names| !names.is_empty()).map(|names| group(names)).collect();
    let script = format!("SECTIONS\n{{\n  .text.at_start :\n  {{\n{groups}  }}\n}}\nINSERT BEFORE .text;\n");
    let file = Path::new(&env::var("OUT_DIR").unwrap_or_default()).join("order.ld");
    if fs::write(&file, script).is_ok() {
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", file.display());
    }
}

/// Functions that stay together: what the profile found to run often first, and what it found to run rarely last.
fn group(names: &[String]) -> String {
    let mut group = String::new();
    for kind in ["hot.", "", "unlikely."] {
        let _ = writeln!(group, "    *(");
        for name in names {
            let _ = writeln!(group, "      .text.{kind}{name}");
        }
        let _ = writeln!(group, "    )");
    }
    group
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
