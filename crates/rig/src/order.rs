//! Which functions of Sprag run when it starts and answers its first calls: the list by which a release is linked.
//!
//! The system brings a program into memory in stretches of 64 KB. What runs at a start is a sixth of the program, and where
//! it lies anywhere in between nearly all stretches are touched. Side by side it is a few MB. `crates/sprag/build.rs` makes
//! of the list what the linker understands. What calls run comes first, so that a call finds it close together; within the two
//! parts the order does not matter.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::instructions::tell;
use crate::load::{self, Plan};
use crate::mock::{Mock, Shape};
use crate::prompt::Prompt;
use crate::targets::{self, Seat, Sprag};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// The program: a release with its symbols, linked without a list.
    #[arg(long)]
    sprag: PathBuf,
    /// Where the list goes.
    #[arg(long)]
    out: PathBuf,
}

/// Fewer were found: the program has no symbols, or was linked by a list, and valgrind does not see its functions.
const FEWEST: usize = 1000;

pub fn run(options: &Options) -> Result<ExitCode> {
    let program =
        fs::canonicalize(&options.sprag).with_context(|| format!("{} is not there", options.sprag.display()))?;
    let listed =
        Command::new("nm").arg(&program).output().context("nm is missing; on Debian: apt-get install binutils")?;
    let symbols = String::from_utf8_lossy(&listed.stdout);
    let [at_start, in_calls] = functions(&program)?.map(|names| with_others(&names, &symbols));
    let at_start: BTreeSet<String> = at_start.difference(&in_calls).cloned().collect();
    let count = in_calls.len() + at_start.len();
    if count < FEWEST {
        bail!(
            "only {count} functions of {} were seen; build it with BUILD_ORDER=off and `-C strip=none`",
            program.display()
        );
    }
    let lines = |names: BTreeSet<String>| names.into_iter().map(|name| name + "\n").collect::<String>();
    let list = format!("# calls\n{}# start\n{}", lines(in_calls), lines(at_start));
    fs::write(&options.out, list).with_context(|| format!("{} cannot be written", options.out.display()))?;
    println!("{count} functions, written to {}", options.out.display());
    Ok(ExitCode::SUCCESS)
}

/// Names of the functions that run at the start, and of those that run in calls.
fn functions(program: &Path) -> Result<[BTreeSet<String>; 2]> {
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("calls");
    let mock = Mock::start(targets::free_address()?)?;
    let under = ["valgrind", "-q", "--tool=callgrind", "--demangle=no", "--compress-strings=no"].map(str::to_owned);
    let under = [&under[..], &[format!("--callgrind-out-file={}", out.display())]].concat();
    let seat = Seat { core: None, is_realtime: false };
    let how = Sprag { program, mock: mock.address, folder: folder.path(), seat, under: &under, config: "" };
    let sprag = targets::sprag(&how)?;
    tell(&sprag, "dump")?;
    for is_stream in [false, true] {
        mock.set(Shape::default());
        let mut plan = Plan::new(sprag.address, Prompt::chat(1024, 400, is_stream, 7));
        (plan.requests, plan.seconds, plan.timeout) = (10, 600.0, Duration::from_secs(300));
        if let Some(complaint) = load::run(&plan)?.complaint {
            bail!("a call failed: {complaint}");
        }
    }
    tell(&sprag, "dump")?;
    // Each dump begins where the one before it ended; what runs at the end of the program is in a third.
    let read = |nth| fs::read_to_string(out.with_extension(nth)).context("valgrind has written nothing");
    Ok([of_program(&read("1")?, program), of_program(&read("2")?, program)])
}

/// The functions of one program in what callgrind has written.
fn of_program(dump: &str, program: &Path) -> BTreeSet<String> {
    let (mut is_own, mut names) = (false, BTreeSet::new());
    for line in dump.lines() {
        if let Some(object) = line.strip_prefix("ob=") {
            is_own = Path::new(object) == program;
        } else if let Some(name) = line.strip_prefix("fn=").filter(|_| is_own) {
            // A function that calls itself is there once more, with a number.
            let name = bare(name.split('\'').next().unwrap_or_default());
            let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte));
            // Where there is no name an address stands.
            if is_name && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
                names.insert(name.to_owned());
            }
        }
    }
    names
}

/// A name without what optimisation at link time puts behind it: that is another one in the next build.
fn bare(name: &str) -> &str {
    name.split(".llvm.").next().unwrap_or_default()
}

/// The same with all other names of these functions. The compiler makes one of functions that are alike, callgrind knows it by
/// one of its names, and the linker by another. `symbols` is what `nm` says: an address, a kind and a name a line.
fn with_others(names: &BTreeSet<String>, symbols: &str) -> BTreeSet<String> {
    let mut by_address: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in symbols.lines() {
        let mut words = line.split_whitespace();
        if let (Some(address), Some("t" | "T" | "w" | "W"), Some(name)) = (words.next(), words.next(), words.next()) {
            by_address.entry(address).or_default().push(bare(name));
        }
    }
    let is_meant = |alike: &&Vec<&str>| alike.iter().any(|name| names.contains(*name));
    let others = by_address.values().filter(is_meant).flatten().map(|name| (*name).to_owned());
    names.iter().cloned().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_listed_by_all_its_names() {
        let symbols = "0010 t one.llvm.7\n0010 T two\n0020 t three\n0030 r two_of_data\n     U missing\n";
        let names = with_others(&BTreeSet::from(["two".to_owned()]), symbols);
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn only_what_ran_of_the_program_itself_is_listed() {
        let dump = "ob=/lib/libc.so.6\nfl=x.c\nfn=memcpy\n16 3\n\nob=/bin/sprag\nfl=???\nfn=_ZN5sprag3run17h0123456789abcdefE.llvm.77\n\
                    3 9\ncob=/lib/libc.so.6\ncfn=memcpy\ncalls=1 16\n3 4\nfn=walk'2\n4 1\nfn=walk\n4 1\nfn=(below main)\n1 1\nfn=0x0000000000c76120\n1 1\n";
        let names = of_program(dump, Path::new("/bin/sprag"));
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["_ZN5sprag3run17h0123456789abcdefE", "walk"]);
    }
}
