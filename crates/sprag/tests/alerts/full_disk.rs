//! A disk that is full makes no flood: what was sent is not sent again, and what happens meanwhile is told once.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use sprag_testkit::{Provider, Script};
use tokio::sync::watch;

use crate::binary::{Binary, wait_until};
use crate::receiver::Receiver;
use crate::{REJECTING, loop_of};

/// A file system of its own, taken away at the end.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path) -> Option<Disk> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|done| done.status.success()).then(|| Disk(at.to_owned()))
    }

    /// Until nothing fits any more.
    fn fill(&self) {
        let mut file = fs::File::create(self.filler()).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn free(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

fn text(receiver: &Receiver) -> String {
    format!(
        "{REJECTING}[alerts.channels.ops]\ntype = \"webhook\"\nurl = \"{}\"\nallow_private = true\n\
         [[alerts.rules]]\non = \"loop_detected\"\ncooldown_minutes = 1000\n",
        receiver.url("/")
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_sends_nothing_twice_and_nothing_in_a_flood() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    fs::create_dir(&data).unwrap();
    let Some(disk) = Disk::mount(&data) else {
        eprintln!("skipped: no right to mount a small file system");
        return;
    };
    let (release, gate) = watch::channel(false);
    let receiver = Receiver::holding(gate, |_| true).await;
    let provider = Provider::start(Script::new()).unwrap();
    let mut binary = Binary::start(home.path(), &provider, &text(&receiver));
    loop_of(&binary.url(""), "anna", "task").await;
    // It is on its way: on disk, and not answered yet.
    wait_until(|| receiver.arrived() == 1, || binary.log()).await;
    disk.fill();
    // A page may be partly free: what is written meanwhile fills what is left.
    for run in 0..100 {
        loop_of(&binary.url(""), "ben", &format!("task-{run}")).await;
    }
    binary.says("alerts cannot be put on record", 1).await;
    release.send(true).unwrap();
    receiver.has(1).await;
    binary.says("what became of an alert cannot be put on record; it is not sent again", 1).await;
    for run in 100..200 {
        loop_of(&binary.url(""), "ben", &format!("task-{run}")).await;
    }
    assert_eq!(receiver.arrived(), 1, "what was sent is not sent again");
    let said = binary.log();
    assert!(said.matches("alerts cannot be put on record").count() <= 2, "said once a minute: {said}");

    disk.free();
    let messages = receiver.has(2).await;
    assert_eq!(messages[1].json()["agent"], "ben", "what happened meanwhile is told when it can be");
    binary.signal("TERM");
    assert_eq!(binary.exit_code().await, Some(0), "{}", binary.log());
    assert_eq!(receiver.arrived(), 2, "{:?}", receiver.messages());
    let binary = Binary::start(home.path(), &provider, &text(&receiver));
    loop_of(&binary.url(""), "carl", "task").await;
    let messages = receiver.has(3).await;
    assert_eq!(messages[2].json()["agent"], "carl", "after a restart it was noted what became of both");
}
