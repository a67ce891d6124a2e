//! What can be seen of Sprag from outside.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::secret::Secret;

/// Metrics for Prometheus and traces for OpenTelemetry.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Show /metrics without a token. Only where the admin listener cannot be reached from other machines.
    pub metrics_open: bool,
    /// Count requests, stops, tokens and cost by agent too: a thousand agents, further ones together.
    pub metrics_by_agent: bool,
    /// Where traces are sent: a collector that takes OTLP over HTTP. Without one there are no traces.
    #[schemars(example = &"http://127.0.0.1:4318")]
    pub otlp: Option<String>,
    /// Headers to set on every request to the collector.
    pub otlp_headers: BTreeMap<String, Secret>,
    /// What traces call this service.
    pub service_name: String,
    /// Share of the traces that begin here which is recorded, from 0 to 1. Of others their caller decides.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sample_ratio: f64,
}

impl Default for Telemetry {
    fn default() -> Telemetry {
        Telemetry {
            metrics_open: false,
            metrics_by_agent: false,
            otlp: None,
            otlp_headers: BTreeMap::new(),
            service_name: "sprag".to_owned(),
            sample_ratio: 1.0,
        }
    }
}
