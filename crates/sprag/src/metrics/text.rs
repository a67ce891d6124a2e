//! The older text format, for those who do not ask for OpenMetrics: there a counter is called what its samples are
//! called, and nothing says that the page is over.

/// What follows the name of a counter in its samples.
const TOTAL: &str = "_total";

/// A page of OpenMetrics in the format that came before it.
pub(super) fn plain(page: &str) -> String {
    let mut out = String::with_capacity(page.len() + 1024);
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if line == "# EOF" {
            continue;
        }
        let type_line = if line.starts_with("# HELP ") { lines.peek().copied().unwrap_or_default() } else { line };
        let is_counter = type_line.starts_with("# TYPE ") && type_line.ends_with(" counter");
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some(mark @ "#"), Some(what @ ("HELP" | "TYPE")), Some(name), rest) if is_counter => {
                out.push_str(&format!("{mark} {what} {name}{TOTAL} {}", rest.unwrap_or_default()));
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_called_what_their_samples_are_called() {
        let page = "# HELP a_seconds Long.\n# TYPE a_seconds histogram\na_seconds_sum 1.0\n\
                    # HELP calls How many.\n# TYPE calls counter\ncalls_total{of=\"x # TYPE y counter\"} 3\n\
                    # HELP open Now.\n# TYPE open gauge\nopen 1\n# EOF\n";
        let expected = "# HELP a_seconds Long.\n# TYPE a_seconds histogram\na_seconds_sum 1.0\n\
                        # HELP calls_total How many.\n# TYPE calls_total counter\ncalls_total{of=\"x # TYPE y counter\"} 3\n\
                        # HELP open Now.\n# TYPE open gauge\nopen 1\n";
        assert_eq!(plain(page), expected);
    }
}
