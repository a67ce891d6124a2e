//! Pages are made apart from calls.

use std::fs;

use crate::world::World;

/// Name and nice value of every thread of this process.
fn threads() -> Vec<(String, i64)> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let read = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        let (before, after) = stat.rsplit_once(')')?;
        let name = before.split_once('(')?.1.to_owned();
        // The fields after the name begin with the third.
        let nice = after.split_whitespace().nth(19 - 3)?.parse().ok()?;
        Some((name, nice))
    };
    tasks.filter_map(|task| read(task.ok()?)).collect()
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn pages_are_made_by_threads_that_stand_back() {
    let world = World::start().await;
    let cookie = world.sign_in().await;
    assert_eq!(world.ask("/runs").header("cookie", &cookie).fetch().await.unwrap().status, 200);
    assert_eq!(world.call(&[]).await.status, 200);
    let threads = threads();
    let (admin, others): (Vec<_>, Vec<_>) = threads.iter().partition(|(name, _)| name == "sprag-admin");
    assert!(!admin.is_empty(), "{threads:?}");
    assert!(admin.iter().all(|(_, nice)| *nice == 10), "{threads:?}");
    // What the whole process was given, where it is not the usual.
    let given = i64::from(rustix::process::getpriority_process(None).unwrap());
    assert!(others.iter().all(|(_, nice)| *nice == given), "{threads:?}");
}
