//! A disk that is full stops recording and nothing else.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use sprag_core::wire::Dialect;
use sprag_testkit::{Provider, Script, client};

use crate::binary::{Binary, events_of};
use crate::wire::request;

/// A file system of its own, taken away at the end.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path, options: &str) -> Option<Disk> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|done| done.status.success()).then(|| Disk(at.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

async fn calls(binary: &Binary, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let body = request(Dialect::OpenaiChat, false, "hello");
        let answer = client::post_json(binary.url("/v1/chat/completions"), &body).fetch().await.unwrap();
        assert_eq!(answer.status, 200);
        assert!(answer.json()["sprag"]["cost_usd"].is_number());
        ids.push(answer.header("x-sprag-request-id").to_owned());
    }
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_go_on_while_the_disk_is_full() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    fs::create_dir(&data).unwrap();
    let Some(_disk) = Disk::mount(&data, "size=8m") else {
        eprintln!("skipped: no right to mount a small file system");
        return;
    };
    let provider = Provider::start(Script::new()).unwrap();
    let mut binary = Binary::start(home.path(), &provider, "events.flush_ms = 50");
    let before = calls(&binary, 5).await;

    let filler = data.join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    // A page may be partly free: many calls fill what is left.
    calls(&binary, 200).await;
    binary.says("recording has stopped", 1).await;

    drop(file);
    fs::remove_file(&filler).unwrap();
    binary.says("recording again", 1).await;
    let after = calls(&binary, 20).await;
    binary.signal("TERM");
    assert_eq!(binary.exit_code().await, Some(0), "{}", binary.log());
    let recorded: Vec<String> = events_of(&data).into_iter().map(|event| event.id).collect();
    assert!(before.iter().all(|id| recorded.contains(id)));
    assert!(after.iter().all(|id| recorded.contains(id)), "recording goes on: {}", binary.log());
}
