//! Series as the charts of a page take them, and in words for who does not see them.

use serde::Serialize;
use sprag_core::money::NanoUsd;
use sprag_store::history::{Bucket, Series, Span};

use crate::show;

/// A chart: what the script draws, and what it shows in a sentence.
pub(super) struct Chart {
    pub(super) plan: String,
    pub(super) told: String,
}

#[derive(Serialize)]
struct Plan<'a> {
    kind: &'a str,
    unit: &'a str,
    /// Seconds since the Unix epoch.
    x: Vec<i64>,
    series: Vec<Line<'a>>,
}

#[derive(Serialize)]
struct Line<'a> {
    label: &'a str,
    tone: &'a str,
    values: Vec<f64>,
}

/// What was spent.
pub(super) fn spend(series: &Series, span: Span) -> Chart {
    let dollars = |bucket: &Bucket| bucket.cost.0 as f64 / 1e9;
    let sum = NanoUsd(series.buckets.iter().fold(0_i64, |sum, bucket| sum.saturating_add(bucket.cost.0)));
    let most = series.buckets.iter().map(|bucket| bucket.cost).max().unwrap_or_default();
    let told = format!("{} {}, at most {} {}", show::usd_round(sum), when(span), show::usd_round(most), step(series));
    Chart::new("bars", "usd", series, vec![line("Spend", "accent", series, dollars)], told)
}

/// What was asked, and what of it was refused.
pub(super) fn requests(series: &Series, span: Span) -> Chart {
    let sum = |count: fn(&Bucket) -> u64| series.buckets.iter().map(count).fold(0, u64::saturating_add);
    let (asked, stopped) = (sum(|bucket| bucket.requests), sum(|bucket| bucket.blocked));
    let told = format!("{} {}, {} stopped", show::counted(asked, "request"), when(span), show::count(stopped));
    let lines = vec![
        line("Requests", "accent", series, |bucket| bucket.requests as f64),
        line("Stopped", "bad", series, |bucket| bucket.blocked as f64),
    ];
    Chart::new("bars", "count", series, lines, told)
}

impl Chart {
    fn new(kind: &str, unit: &str, series: &Series, lines: Vec<Line<'_>>, told: String) -> Chart {
        let x = series.buckets.iter().map(|bucket| bucket.at.0.div_euclid(1000)).collect();
        let plan = serde_json::to_string(&Plan { kind, unit, x, series: lines }).unwrap_or_default();
        Chart { plan, told }
    }
}

fn line<'a>(label: &'a str, tone: &'a str, series: &Series, value: impl Fn(&Bucket) -> f64) -> Line<'a> {
    Line { label, tone, values: series.buckets.iter().map(value).collect() }
}

fn when(span: Span) -> &'static str {
    match span {
        Span::Hour => "in the last hour",
        Span::Day => "in the last 24 hours",
        Span::Month => "in the last 30 days",
    }
}

fn step(series: &Series) -> &'static str {
    match series.bucket_ms {
        60_000 => "in a minute",
        900_000 => "in 15 minutes",
        _ => "in a day",
    }
}
