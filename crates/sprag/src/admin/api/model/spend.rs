//! What happened over time.

use serde::{Deserialize, Serialize};
use sprag_core::money::NanoUsd;
use sprag_store::history::{Series, Span};

use super::Usd;

/// Requests, stops and money in even steps, the oldest first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub(crate) struct SpendSeries {
    pub(crate) span: Span,
    /// Length of a step.
    pub(crate) bucket_seconds: i64,
    /// Without gaps; the last one is not over yet.
    pub(crate) items: Vec<SpendBucket>,
}

/// One step.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub(crate) struct SpendBucket {
    /// When it began.
    pub(crate) at: String,
    pub(crate) requests: u64,
    /// Requests that were refused.
    pub(crate) blocked: u64,
    /// Requests that failed upstream.
    pub(crate) errors: u64,
    pub(crate) cost_usd: Usd,
    pub(crate) cost_nano_usd: NanoUsd,
}

impl SpendSeries {
    pub(in crate::admin::api) fn new(span: Span, series: &Series) -> SpendSeries {
        let bucket = |bucket: &sprag_store::history::Bucket| SpendBucket {
            at: bucket.at.to_rfc3339(),
            requests: bucket.requests,
            blocked: bucket.blocked,
            errors: bucket.errors,
            cost_usd: Usd(bucket.cost),
            cost_nano_usd: bucket.cost,
        };
        SpendSeries {
            span,
            bucket_seconds: series.bucket_ms / 1000,
            items: series.buckets.iter().map(bucket).collect(),
        }
    }
}
