//! Links in messages that approve, kill or resume a run. The link is the permission: it is signed with a key that only
//! this data directory has, ends after some hours, works once, and does nothing before somebody confirms.
//!
//! Links are made when a message is sent and stand in no record: whoever may only look at alerts must not find them.
//! The same alert gives the same links each time, on every channel.

use std::sync::Arc;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sprag_core::alerts::{ActLink, Alert, LinkAct, offered};
use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::ACT_TOKEN_BYTES;
use sprag_core::time::Timestamp;
use sprag_store::{DataDir, RunKey, UsedLinks};

use crate::app::App;
use crate::config::keep_link_key;

/// What is signed begins with this, so that no other signature of the key is one of a link.
const PURPOSE: &[u8] = b"sprag link 1\n";
/// Longest reason that a link carries.
const WHY_BYTES: usize = 120;

/// Makes links, and knows which were used.
pub(crate) struct Links {
    key: hmac::Key,
    pub(crate) used: Arc<UsedLinks>,
}

/// What a link lets somebody do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    pub(crate) act: LinkAct,
    agent: String,
    run: String,
    /// The alert that carried it.
    pub(crate) alert: String,
    /// What stopped the run when it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kill: Option<String>,
    /// Why the alert was sent.
    pub(crate) why: String,
    /// Until when it works, in milliseconds.
    until: i64,
}

/// A link as somebody brought it, with a signature that is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) claim: Claim,
    pub(crate) run: RunKey,
    /// What it is remembered by once it was used.
    pub(crate) id: String,
}

impl Links {
    /// Takes the key that is kept in the directory, or makes one.
    ///
    /// # Errors
    /// When key or used links can be neither read nor written.
    pub(crate) fn open(dir: Arc<DataDir>) -> Result<Links> {
        let key = keep_link_key(dir.path()).context("reading the key that links in alerts are signed with")?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.reveal().as_bytes());
        Ok(Links { key, used: Arc::new(UsedLinks::open(dir)?) })
    }

    /// The text that stands for a claim in an address.
    fn token(&self, claim: &Claim) -> String {
        let payload = serde_json::to_vec(claim).unwrap_or_default();
        let tag = hmac::sign(&self.key, &[PURPOSE, &payload].concat());
        format!("{}.{}", URL_SAFE_NO_PAD.encode(payload), URL_SAFE_NO_PAD.encode(tag))
    }

    /// What a token claims; nothing where its signature is wrong.
    pub(crate) fn read(&self, token: &str) -> Option<Opened> {
        let (payload, tag) = Some(token).filter(|token| token.len() <= ACT_TOKEN_BYTES)?.split_once('.')?;
        let (payload, tag) = (URL_SAFE_NO_PAD.decode(payload).ok()?, URL_SAFE_NO_PAD.decode(tag).ok()?);
        hmac::verify(&self.key, &[PURPOSE, &payload].concat(), &tag).ok()?;
        let claim: Claim = serde_json::from_slice(&payload).ok()?;
        let run = RunKey { agent: AgentName::parse(&claim.agent).ok()?, id: RunId::parse(&claim.run).ok()? };
        let id = Sha256::digest(&payload).iter().map(|byte| format!("{byte:02x}")).collect();
        Some(Opened { claim, run, id })
    }
}

impl Opened {
    pub(crate) fn until(&self) -> Timestamp {
        Timestamp(self.claim.until)
    }
}

impl App {
    /// The links that a message about an alert carries now. None without an address that they can begin with.
    pub(super) fn act_links(&self, alert: &Alert, now: Timestamp) -> Vec<ActLink> {
        let settings = self.settings.load();
        let (Some(base), Some(id)) = (&settings.alerts.dashboard_url, &alert.occurrence.run) else { return Vec::new() };
        let Ok(at) = alert.at.parse::<jiff::Timestamp>() else { return Vec::new() };
        let link_ms = i64::try_from(settings.alerts.link_ms).unwrap_or(i64::MAX);
        let until = at.as_millisecond().saturating_add(link_ms);
        let (Ok(agent), Ok(run)) = (AgentName::parse(&alert.occurrence.agent), RunId::parse(id)) else {
            return Vec::new();
        };
        if until <= now.0 || link_ms == 0 {
            return Vec::new();
        }
        let snapshot = self.catalog.snapshot();
        let stopped = snapshot.kills.of_run(&agent, &run).filter(|kill| kill.is_in_force(now));
        let reason = &alert.occurrence.reason;
        let claim = |act| Claim {
            act,
            agent: agent.to_string(),
            run: run.to_string(),
            alert: alert.id.clone(),
            kill: stopped.map(|kill| kill.id.clone()),
            why: reason[..reason.floor_char_boundary(WHY_BYTES)].to_owned(),
            until,
        };
        let link =
            |act: &LinkAct| ActLink { act: *act, url: format!("{base}/act?t={}", self.links.token(&claim(*act))) };
        offered(alert, stopped.map(|kill| &**kill)).iter().map(link).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(folder: &std::path::Path) -> Links {
        Links::open(Arc::new(DataDir::open(folder).unwrap())).unwrap()
    }

    fn claim() -> Claim {
        Claim {
            act: LinkAct::Kill,
            agent: "bot".to_owned(),
            run: "task".to_owned(),
            alert: "alert_1".to_owned(),
            kill: None,
            why: "because".to_owned(),
            until: 5,
        }
    }

    #[test]
    fn only_what_was_signed_here_is_read() {
        let (here, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let own = links(here.path());
        let token = own.token(&claim());
        assert_eq!(own.read(&token).unwrap().claim, claim());
        assert_eq!(links(elsewhere.path()).read(&token), None);
        for at in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(own.read(&changed), None, "{at}: {changed}");
        }
        for bad in ["", ".", "a.b", &token[1..], &token[..token.len() - 1], &format!("{token}A"), &"A".repeat(9999)] {
            assert_eq!(own.read(bad), None, "{bad}");
        }
        drop(own);
        assert_eq!(links(here.path()).read(&token).unwrap().claim, claim(), "the key stays");
    }

    #[cfg(unix)]
    #[test]
    fn the_key_is_for_the_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let _links = links(folder.path());
        let mode = std::fs::metadata(folder.path().join("link-key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
