//! Admin tokens in the catalog: found by their secret, kept over restarts, bounded, and what the disk may refuse.
#![expect(clippy::unwrap_used, reason = "a test may end by a panic and print")]

use std::path::Path;
use std::sync::Arc;

use sprag_core::limits::{ADMIN_TOKENS, ENDED_KEY_DAYS};
use sprag_core::policy::{AdminToken, Role};
use sprag_core::time::Timestamp;
use sprag_store::catalog::{Bounds, TokenEntry};
use sprag_store::{Catalog, DataDir, StoreError};

const LONG: i64 = (ENDED_KEY_DAYS as i64 + 2) * 24 * 60 * 60 * 1000;

fn open_with(path: &Path, bounds: Bounds) -> Catalog {
    Catalog::open(Arc::new(DataDir::open(path).unwrap()), bounds, Timestamp(0), |_| {}).unwrap()
}

fn open(path: &Path) -> Catalog {
    open_with(path, Bounds::default())
}

/// The token of a number; its secret has the hash `[number; 32]`.
fn entry(number: u8, name: &str, at: i64) -> TokenEntry {
    let token = AdminToken {
        id: format!("tok-{number:08}"),
        name: name.into(),
        role: Role::Viewer,
        prefix: "sprag-tok-abcd".into(),
        created_at: Timestamp(at),
        expires_at: None,
        revoked_at: None,
    };
    TokenEntry { token, hash: [number; 32] }
}

#[test]
fn a_token_is_found_by_its_secret_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    catalog.add_token(entry(1, "anna", 0)).unwrap();
    catalog.add_token(entry(2, "ben", 0)).unwrap();
    catalog.change_token("tok-00000002", |token| token.revoked(Timestamp(5))).unwrap().unwrap();
    let check = |catalog: &Catalog| {
        let snapshot = catalog.snapshot();
        assert_eq!(**snapshot.token_of_secret(&[1; 32]).unwrap(), entry(1, "anna", 0));
        assert_eq!(snapshot.token("tok-00000002").unwrap().token.revoked_at, Some(Timestamp(5)));
        assert!(snapshot.token_of_secret(&[3; 32]).is_none() && snapshot.token("tok-00000003").is_none());
        assert_eq!(snapshot.tokens().count(), 2);
    };
    check(&catalog);
    drop(catalog);
    check(&open(dir.path()));
}

#[test]
fn a_name_has_one_token_that_opens() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    catalog.add_token(entry(1, "anna", 0)).unwrap();
    let taken = catalog.add_token(entry(2, "Anna", 1)).unwrap_err();
    assert!(matches!(&taken, StoreError::NameTaken(name) if name == "anna"), "{taken}");
    catalog.change_token("tok-00000001", |token| token.revoked(Timestamp(2))).unwrap();
    catalog.add_token(entry(2, "Anna", 3)).unwrap();
    let ids = catalog.add_token(entry(1, "carl", 3)).unwrap_err();
    assert!(matches!(ids, StoreError::Database { .. }), "ids are given once: {ids}");
    let secrets = catalog.add_token(TokenEntry { hash: [2; 32], ..entry(9, "carl", 3) }).unwrap_err();
    assert!(matches!(secrets, StoreError::Database { .. }), "and so are secrets: {secrets}");
}

#[test]
fn there_is_room_for_so_many_and_those_long_over_leave_first() {
    assert_eq!(Bounds::default().tokens, ADMIN_TOKENS);
    let dir = tempfile::tempdir().unwrap();
    let catalog = open_with(dir.path(), Bounds { tokens: 2, ..Bounds::default() });
    catalog.add_token(entry(1, "anna", 0)).unwrap();
    catalog.add_token(entry(2, "ben", 0)).unwrap();
    catalog.change_token("tok-00000001", |token| token.revoked(Timestamp(5))).unwrap();
    let error = catalog.add_token(entry(3, "carl", 6)).unwrap_err();
    assert!(matches!(error, StoreError::Full { most: 2, .. }), "{error}");
    catalog.add_token(entry(3, "carl", LONG)).unwrap();
    let snapshot = catalog.snapshot();
    assert!(snapshot.token("tok-00000001").is_none() && snapshot.token_of_secret(&[1; 32]).is_none());
    drop(catalog);
    assert_eq!(open(dir.path()).snapshot().tokens().count(), 2);
}

#[test]
fn what_the_disk_refuses_is_not_made_but_a_revocation_holds() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(dir.path());
    catalog.add_token(entry(1, "anna", 0)).unwrap();
    let other = rusqlite::Connection::open(dir.path().join("catalog.db")).unwrap();
    let trigger = "CREATE TRIGGER no_tokens BEFORE INSERT ON tokens BEGIN SELECT RAISE(ABORT, 'no room'); END";
    other.execute_batch(trigger).unwrap();
    assert!(catalog.add_token(entry(2, "ben", 0)).is_err());
    assert!(catalog.snapshot().token("tok-00000002").is_none());
    let change = |token: &AdminToken| AdminToken { role: Role::Admin, ..token.clone() };
    assert!(catalog.change_token("tok-00000001", change).is_err());
    assert_eq!(catalog.snapshot().token("tok-00000001").unwrap().token.role, Role::Viewer);
    assert!(catalog.change_token("tok-00000001", |token| token.revoked(Timestamp(5))).is_err());
    assert_eq!(catalog.snapshot().token("tok-00000001").unwrap().token.revoked_at, Some(Timestamp(5)));
}
