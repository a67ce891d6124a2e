//! What rules in shadow would have done.

use serde::{Deserialize, Serialize};
use sprag_core::loops::{Detector, Proof};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_store::history::{ShadowDetector, ShadowLimit, ShadowReport, WouldStop};
use utoipa::ToSchema;

use super::Usd;

/// Where a run would have been stopped, and what that would have saved.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct WouldHaveStopped {
    /// The first step that would have been refused.
    pub(crate) step: u32,
    pub(crate) detector: Detector,
    pub(crate) loop_type: String,
    /// Calls from that one on.
    pub(crate) saved_steps: u64,
    pub(crate) saved_usd: Usd,
    pub(crate) saved_nano_usd: NanoUsd,
    pub(crate) proof: Proof,
}

/// What would have been stopped in a stretch of time.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ShadowSums {
    pub(crate) since: String,
    pub(crate) until: String,
    pub(crate) detectors: Vec<ShadowTotals>,
    pub(crate) limits: Vec<ShadowRefusals>,
    /// There was more than a report looks at; the oldest is left out.
    pub(crate) partial: bool,
}

/// What one detector would have stopped.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ShadowTotals {
    pub(crate) detector: String,
    pub(crate) runs: u64,
    pub(crate) saved_steps: u64,
    pub(crate) saved_usd: Usd,
    pub(crate) saved_nano_usd: NanoUsd,
}

/// What one limit would have refused.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ShadowRefusals {
    pub(crate) reason: String,
    pub(crate) exceeded_limit: Option<String>,
    pub(crate) requests: u64,
    pub(crate) runs: u64,
    /// What the requests cost that would have been refused.
    pub(crate) cost_usd: Usd,
    pub(crate) cost_nano_usd: NanoUsd,
}

impl From<WouldStop> for WouldHaveStopped {
    fn from(would: WouldStop) -> WouldHaveStopped {
        let finding = would.verdict.finding;
        WouldHaveStopped {
            step: would.step,
            detector: finding.detector,
            loop_type: finding.loop_type,
            saved_steps: would.saved_steps,
            saved_usd: Usd(would.saved),
            saved_nano_usd: would.saved,
            proof: finding.proof,
        }
    }
}

impl ShadowSums {
    pub(crate) fn new(since: Timestamp, until: Timestamp, report: ShadowReport) -> ShadowSums {
        ShadowSums {
            since: since.to_rfc3339(),
            until: until.to_rfc3339(),
            detectors: report.detectors.into_iter().map(ShadowTotals::from).collect(),
            limits: report.limits.into_iter().map(ShadowRefusals::from).collect(),
            partial: report.is_partial,
        }
    }
}

impl From<ShadowDetector> for ShadowTotals {
    fn from(of: ShadowDetector) -> ShadowTotals {
        ShadowTotals {
            detector: of.detector,
            runs: of.runs,
            saved_steps: of.saved_steps,
            saved_usd: Usd(of.saved),
            saved_nano_usd: of.saved,
        }
    }
}

impl From<ShadowLimit> for ShadowRefusals {
    fn from(of: ShadowLimit) -> ShadowRefusals {
        ShadowRefusals {
            reason: of.reason,
            exceeded_limit: of.exceeded_limit,
            requests: of.requests,
            runs: of.runs,
            cost_usd: Usd(of.cost),
            cost_nano_usd: of.cost,
        }
    }
}
