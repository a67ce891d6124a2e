//! Virtual keys in the catalog: found by either secret, kept over restarts, bounded, and what the disk may refuse.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use std::path::Path;
use std::sync::Arc;

use sprag_core::id::AgentName;
use sprag_core::limits::VIRTUAL_KEYS;
use sprag_core::policy::{Budget, SecretPlace, VirtualKey};
use sprag_core::time::Timestamp;
use sprag_store::catalog::{Bounds, KeyEntry, SecretHash};
use sprag_store::{Catalog, DataDir, StoreError};

const DAY: i64 = 24 * 60 * 60 * 1000;

fn open_with(path: &Path, bounds: Bounds) -> Catalog {
    Catalog::open(Arc::new(DataDir::open(path).unwrap()), bounds, Timestamp(0), |_| {}).unwrap()
}

fn open(path: &Path) -> Catalog {
    open_with(path, Bounds::default())
}

/// The key of a number; its secret has the hash `[number; 32]`.
fn entry(number: u8, at: i64) -> KeyEntry {
    let key = VirtualKey {
        id: format!("key-{number:08}"),
        agent: AgentName::parse("bot").unwrap(),
        name: "night shift".into(),
        hint: "wxyz".into(),
        created_at: Timestamp(at),
        expires_at: Some(Timestamp(at + DAY)),
        revoked_at: None,
        previous: None,
        budget: Budget::default(),
    };
    KeyEntry { key, hash: [number; 32], previous_hash: None }
}

fn found(catalog: &Catalog, hash: SecretHash) -> Option<(String, SecretPlace)> {
    catalog.snapshot().key_of_secret(&hash).map(|(entry, place)| (entry.key.id.clone(), place))
}

fn rotate(catalog: &Catalog, id: &str, hash: SecretHash) -> Result<Option<Arc<KeyEntry>>, StoreError> {
    catalog.change_key(id, |old| {
        let key = old.key.rotated("abcd".into(), Timestamp(9));
        Some(KeyEntry { key, hash, previous_hash: Some(old.hash) })
    })
}

fn revoke(catalog: &Catalog, id: &str) -> Result<Option<Arc<KeyEntry>>, StoreError> {
    catalog.change_key(id, |old| Some(KeyEntry { key: old.key.revoked(Timestamp(5)), ..old.clone() }))
}

fn ids(catalog: &Catalog) -> Vec<String> {
    let mut ids: Vec<_> = catalog.snapshot().keys().map(|entry| entry.key.id.clone()).collect();
    ids.sort_unstable();
    ids
}

/// Makes the disk refuse keys, or no longer.
fn refuse(path: &Path, is_refusing: bool) {
    let other = rusqlite::Connection::open(path.join("catalog.db")).unwrap();
    let sql = match is_refusing {
        true => "CREATE TRIGGER no_keys BEFORE INSERT ON keys BEGIN SELECT RAISE(ABORT, 'no room'); END",
        false => "DROP TRIGGER no_keys",
    };
    other.execute_batch(sql).unwrap();
}

#[test]
fn a_key_is_found_by_its_last_two_secrets_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    catalog.add_key(entry(1, 0)).unwrap();
    catalog.add_key(entry(2, 0)).unwrap();
    rotate(&catalog, "key-00000001", [11; 32]).unwrap().unwrap();
    rotate(&catalog, "key-00000001", [12; 32]).unwrap().unwrap();
    let check = |catalog: &Catalog| {
        assert_eq!(found(catalog, [12; 32]), Some(("key-00000001".into(), SecretPlace::Current)));
        assert_eq!(found(catalog, [11; 32]), Some(("key-00000001".into(), SecretPlace::Previous)));
        assert_eq!(found(catalog, [1; 32]), None, "no third one");
        assert_eq!(found(catalog, [2; 32]), Some(("key-00000002".into(), SecretPlace::Current)));
        assert_eq!(catalog.snapshot().key("key-00000001").unwrap().key.hint, "abcd");
        assert_eq!(ids(catalog), ["key-00000001", "key-00000002"]);
    };
    check(&catalog);
    assert!(rotate(&catalog, "key-00000009", [3; 32]).unwrap().is_none(), "there is no such key");
    drop(catalog);
    check(&open(dir.path()));
}

#[test]
fn an_id_or_a_secret_is_never_taken_twice() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    catalog.add_key(entry(1, 0)).unwrap();
    catalog.add_key(entry(2, 0)).unwrap();
    assert!(catalog.add_key(KeyEntry { hash: [9; 32], ..entry(1, 0) }).is_err());
    assert!(catalog.add_key(KeyEntry { hash: [1; 32], ..entry(3, 0) }).is_err());
    assert!(rotate(&catalog, "key-00000002", [1; 32]).is_err());
    assert_eq!(found(&catalog, [1; 32]), Some(("key-00000001".into(), SecretPlace::Current)));
    assert_eq!(ids(&catalog), ["key-00000001", "key-00000002"]);
}

#[test]
fn what_the_disk_refuses_stops_but_never_opens() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    catalog.add_key(entry(1, 0)).unwrap();
    refuse(dir.path(), true);
    assert!(catalog.add_key(entry(2, 0)).is_err());
    assert!(rotate(&catalog, "key-00000001", [11; 32]).is_err());
    assert_eq!((found(&catalog, [2; 32]), found(&catalog, [11; 32])), (None, None));
    assert!(revoke(&catalog, "key-00000001").is_err(), "it is told");
    let revoked_at = |catalog: &Catalog| catalog.snapshot().key("key-00000001").unwrap().key.revoked_at;
    assert_eq!(revoked_at(&catalog), Some(Timestamp(5)), "and holds");
    refuse(dir.path(), false);
    revoke(&catalog, "key-00000001").unwrap().unwrap();
    drop(catalog);
    assert_eq!(revoked_at(&open(dir.path())), Some(Timestamp(5)), "asked again, it is written");
}

#[test]
fn so_many_keys_and_no_more() {
    assert_eq!(Bounds::default().keys, VIRTUAL_KEYS);
    let dir = tempfile::tempdir().unwrap();
    let catalog = open_with(dir.path(), Bounds { keys: 2, ..Bounds::default() });
    // Both end after a day.
    catalog.add_key(entry(1, 0)).unwrap();
    catalog.add_key(entry(2, DAY)).unwrap();
    let error = catalog.add_key(entry(3, 91 * DAY)).unwrap_err();
    assert!(matches!(error, StoreError::Full { most: 2, .. }), "{error}");
    assert!(error.to_string().contains("2 virtual keys already"), "{error}");
    // The first is over for more than ninety days then, the second is not.
    catalog.add_key(entry(3, 91 * DAY + 1)).unwrap();
    assert_eq!(ids(&catalog), ["key-00000002", "key-00000003"]);
    assert_eq!(found(&catalog, [1; 32]), None);
    drop(catalog);
    assert_eq!(ids(&open(dir.path())), ["key-00000002", "key-00000003"]);
}
