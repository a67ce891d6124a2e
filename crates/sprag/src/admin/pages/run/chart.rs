//! How a value went over the requests of a run, as a drawing.

use std::fmt::Write;

use super::picture::Tick;

/// The page's room for a drawing, and for the values in it.
const WIDTH: f64 = 400.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 150.0;
/// Stretches of requests that are told apart: of more requests than these the highest in each counts.
const STRETCHES: usize = 160;
const TICKS: usize = 8;

/// A value at one request.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) step: u32,
    pub(super) value: f64,
    /// The value as people read it.
    pub(super) shown: String,
}

/// A drawing, ready for a page.
pub(in crate::admin::pages) struct Chart {
    pub(in crate::admin::pages) line: String,
    pub(in crate::admin::pages) area: String,
    /// Where the threshold lies.
    pub(in crate::admin::pages) threshold: Option<String>,
    /// Where the highest value lies, and how much it is; where there is a threshold that says enough.
    pub(in crate::admin::pages) peak: Option<(String, String)>,
    /// The first value at or above it.
    pub(in crate::admin::pages) reached: Option<(String, String)>,
    pub(in crate::admin::pages) bands: Vec<Band>,
    pub(in crate::admin::pages) ticks: Vec<Tick>,
    /// The last value.
    pub(in crate::admin::pages) last: String,
    /// In words, for those who do not see it.
    pub(in crate::admin::pages) summary: String,
}

/// A stretch that says its value to who points at it.
pub(in crate::admin::pages) struct Band {
    pub(in crate::admin::pages) x: String,
    pub(in crate::admin::pages) width: String,
    pub(in crate::admin::pages) title: String,
}

impl Chart {
    /// Draws values over requests, oldest first; None without any.
    pub(super) fn new(points: &[Point], threshold: Option<f64>) -> Option<Chart> {
        let points = thinned(points);
        let (first, last) = (points.first()?, points.last()?);
        let highest = points.iter().map(|point| point.value).fold(threshold.unwrap_or(0.0), f64::max);
        let top = if highest > 0.0 { highest * 1.12 } else { 1.0 };
        let y = |value: f64| BOTTOM - (value / top).clamp(0.0, 1.0) * (BOTTOM - TOP);
        let width = WIDTH / points.len() as f64;
        let mut line = String::new();
        for (at, point) in points.iter().enumerate() {
            let (x, y) = (at as f64 * width, y(point.value));
            let _ = match at {
                0 => write!(line, "M0 {y:.1}H{width:.1}"),
                _ => write!(line, "V{y:.1}H{:.1}", x + width),
            };
        }
        let band = |(at, point): (usize, &&Point)| Band {
            x: format!("{:.1}", at as f64 * width),
            width: format!("{width:.1}"),
            title: format!("Step {}: {}", point.step, point.shown),
        };
        let tick =
            |at: usize| Tick { at: format!("{:.1}", (at as f64 + 0.5) * width), label: points[at].step.to_string() };
        let peak = points.iter().max_by(|a, b| a.value.total_cmp(&b.value));
        let peak = peak.filter(|point| threshold.is_none() && point.value > 0.0);
        let reached = points.iter().position(|point| threshold.is_some_and(|least| point.value >= least));
        Some(Chart {
            area: format!("{line}V{BOTTOM}H0z"),
            line,
            threshold: threshold.map(|value| format!("{:.1}", y(value))),
            peak: peak.map(|point| (format!("{:.1}", y(point.value)), point.shown.clone())),
            reached: reached
                .map(|at| (format!("{:.1}", (at as f64 + 0.5) * width), format!("{:.1}", y(points[at].value)))),
            bands: points.iter().enumerate().map(band).collect(),
            ticks: (0..points.len()).step_by(points.len().div_ceil(TICKS)).map(tick).collect(),
            last: last.shown.clone(),
            summary: format!("from {} at step {} to {} at step {}", first.shown, first.step, last.shown, last.step),
        })
    }
}

/// At most so many points: the highest of each stretch.
fn thinned(points: &[Point]) -> Vec<&Point> {
    let length = points.len().div_ceil(STRETCHES).max(1);
    let highest = |stretch: &'_ [Point]| -> Option<usize> {
        (0..stretch.len()).max_by(|a, b| stretch[*a].value.total_cmp(&stretch[*b].value))
    };
    points.chunks(length).filter_map(|stretch| highest(stretch).map(|at| &stretch[at])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[f64]) -> Vec<Point> {
        let point = |(at, value): (usize, &f64)| Point { step: at as u32 + 1, value: *value, shown: value.to_string() };
        values.iter().enumerate().map(point).collect()
    }

    #[test]
    fn a_line_goes_in_steps_and_its_threshold_is_on_the_page() {
        let chart = Chart::new(&points(&[0.0, 0.5, 1.0, 0.25]), Some(1.0)).unwrap();
        assert_eq!(chart.line, "M0 150.0H100.0V89.3H200.0V28.6H300.0V119.6H400.0");
        assert_eq!(chart.threshold.as_deref(), Some("28.6"));
        assert_eq!(chart.reached, Some(("250.0".into(), "28.6".into())));
        assert_eq!(chart.bands[2].title, "Step 3: 1");
        assert_eq!(chart.summary, "from 0 at step 1 to 0.25 at step 4");
        assert!(Chart::new(&[], Some(1.0)).is_none());
    }

    #[test]
    fn a_line_of_zeros_lies_at_the_bottom() {
        let chart = Chart::new(&points(&[0.0, 0.0]), None).unwrap();
        assert_eq!((chart.line.as_str(), chart.reached), ("M0 150.0H200.0V150.0H400.0", None));
        assert_eq!(chart.peak, None);
        let chart = Chart::new(&points(&[0.5, 2.0]), None).unwrap();
        assert_eq!(chart.peak, Some(("28.6".into(), "2".into())), "the scale");
    }

    #[test]
    fn of_many_points_the_highest_stay() {
        let mut values = vec![0.1; STRETCHES];
        assert_eq!(thinned(&points(&values)).len(), STRETCHES, "at the bound");
        values.extend(vec![0.1; STRETCHES * 3]);
        values[77] = 0.9;
        let points = points(&values);
        let kept = thinned(&points);
        assert!(kept.len() <= STRETCHES && kept.iter().any(|point| point.step == 78), "past it");
    }
}
