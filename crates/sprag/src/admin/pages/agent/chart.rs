//! Charts, as the script that draws them reads them.

use serde::Serialize;

/// A chart over time.
#[derive(Debug, Serialize)]
pub(super) struct Chart {
    /// `line` or `bars`.
    kind: &'static str,
    /// `usd` or `count`.
    unit: &'static str,
    /// Seconds since the Unix epoch.
    x: Vec<i64>,
    series: Vec<Series>,
}

/// One line, or one kind of bars.
#[derive(Debug, Serialize)]
pub(super) struct Series {
    label: &'static str,
    tone: &'static str,
    values: Vec<f64>,
}

impl Chart {
    pub(super) fn new(kind: &'static str, unit: &'static str, x: Vec<i64>, series: Vec<Series>) -> Chart {
        Chart { kind, unit, x, series }
    }

    pub(super) fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// There is something to see.
    pub(super) fn has_any(&self) -> bool {
        self.series.iter().any(|series| series.values.iter().any(|value| *value > 0.0))
    }
}

impl Series {
    pub(super) fn new(label: &'static str, tone: &'static str, values: Vec<f64>) -> Series {
        Series { label, tone, values }
    }
}
