//! `sprag keys` against a live Sprag.

use std::process::Command;

use serde_json::{Value, json};

use crate::place::{Place, TOKEN};

/// Runs the program; gives what it printed and whether it succeeded.
async fn sprag(place: &Place, arguments: &[&str]) -> (bool, String) {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sprag"));
    command.args(arguments).args(["--admin", &place.sprag.admin.to_string()]);
    command.env_clear().env("HOME", home.path()).env("SPRAG_ADMIN_TOKEN", TOKEN).current_dir(home.path());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

async fn printed(place: &Place, arguments: &[&str]) -> String {
    let (is_ok, text) = sprag(place, arguments).await;
    assert!(is_ok, "{arguments:?}: {text}");
    text
}

fn secret_in(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| line.starts_with("sk-sprag-")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_made_listed_rotated_and_revoked() {
    let place = Place::start().await;
    assert_eq!(printed(&place, &["keys"]).await.lines().count(), 1, "only the titles");
    let limits = ["--max-run-cost", "1", "--daily-limit", "5.000005", "--monthly-limit", "50"];
    let order = ["keys", "create", "--agent", "bot", "--name", "ci", "--expires", "30d"];
    let made = printed(&place, &[&order[..], &limits].concat()).await;
    let secret = secret_in(&made);
    let id = made.split_whitespace().next().unwrap();
    assert!(made.starts_with(&format!("{id} of agent bot is made\n")), "{made}");
    assert!(made.contains("This is shown once."), "{made}");
    assert_eq!(place.refused(&[("x-api-key", secret)]).await, "");

    let listed = printed(&place, &["keys"]).await;
    let titles: Vec<_> = listed.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(titles, ["ID", "NAME", "AGENT", "STATE", "ENDS", "BUDGET", "HINT", "CREATED"]);
    let row = listed.lines().nth(1).unwrap();
    for cell in [id, "ci", "bot", "active", "2023-12-14T22:13:20.000Z", "/run, ", "/day, ", "/month", &secret[48..]] {
        assert!(row.contains(cell), "{cell}: {listed}");
    }
    assert!(!listed.contains("sk-sprag-"));
    assert_eq!(printed(&place, &["keys", "--agent", "other"]).await.lines().count(), 1);

    let rotated = printed(&place, &["keys", "rotate", id, "--grace", "1h"]).await;
    assert!(
        rotated.contains(&format!("The old secret (…{}) ends at 2023-11-14T23:13:20.000Z.", &secret[48..])),
        "{rotated}"
    );
    assert_eq!(place.refused(&[("x-api-key", secret_in(&rotated))]).await, "");
    let revoked: Value = serde_json::from_str(&printed(&place, &["keys", "revoke", id, "--json"]).await).unwrap();
    assert_eq!((&revoked["state"], &revoked["previous"]), (&json!("revoked"), &Value::Null), "both secrets ended");
    assert!(printed(&place, &["keys"]).await.contains("revoked"), "it stays listed");
    let json: Value = serde_json::from_str(&printed(&place, &["keys", "--json"]).await).unwrap();
    assert_eq!(json["items"][0]["id"], id);
    assert!(printed(&place, &["events"]).await.contains(&format!("key revoked key:{id} by admin")));

    for (arguments, word) in [
        (&["keys", "revoke", "none"][..], "no virtual key of this id"),
        (&["keys", "rotate", id], "this key was revoked"),
        (&["keys", "create", "--agent", "bot", "--expires", "soon"], "such as 30d"),
        (&["keys", "create"], "--agent"),
    ] {
        let (is_ok, text) = sprag(&place, arguments).await;
        assert!(!is_ok && text.contains(word), "{arguments:?}: {text}");
    }
}
