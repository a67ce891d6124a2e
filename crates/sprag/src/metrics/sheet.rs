//! One family of metrics after the other, as the library writes them.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::durations::Counted;

/// Labels of a sample, by name.
pub(super) type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

/// Where families are written to. Names of counters stand here without the `_total` that they get.
pub(super) struct Sheet<'a>(pub(super) DescriptorEncoder<'a>);

impl Sheet<'_> {
    /// A counter without labels.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, f64>(&value, None)
    }

    /// A counter of seconds or dollars, without labels.
    pub(super) fn fractional_counter(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, f64>(&value, None)
    }

    /// A counter for each set of labels.
    pub(super) fn counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in samples {
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&value, None)?;
        }
        Ok(())
    }

    /// A counter of seconds or dollars for each set of labels.
    pub(super) fn fractional_counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, f64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in samples {
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&value, None)?;
        }
        Ok(())
    }

    /// A value that goes up and down.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: impl EncodeGaugeValue) -> fmt::Result {
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    /// One for each set of labels.
    pub(super) fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in samples {
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// A histogram without labels.
    pub(super) fn histogram(&mut self, name: &str, help: &str, counted: &Counted) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        metric.encode_histogram::<NoLabelSet>(counted.sum_seconds, counted.count, &counted.buckets, None)
    }

    /// One for each set of labels.
    pub(super) fn histograms<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, Counted)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, counted) in samples {
            let mut metric = family.encode_family(&labels)?;
            metric.encode_histogram::<NoLabelSet>(counted.sum_seconds, counted.count, &counted.buckets, None)?;
        }
        Ok(())
    }
}
