//! The formats as regular expressions, to compare with an engine that knows nothing else.
//!
//! They say less than the rows do: no checksums, no judgement of what stands there.

use super::alphabet::Alphabet;
use super::format::{Format, OPEN, Part};
use crate::dlp::catalogue::VENDORS;

/// One for each format of a vendor's key, in the syntax of the `regex` crate for bytes without Unicode.
#[must_use]
pub fn vendor_patterns() -> Vec<String> {
    VENDORS.iter().flat_map(|table| table.iter()).flat_map(|vendor| vendor.formats).map(pattern).collect()
}

fn pattern(format: &Format) -> String {
    let prefixes: Vec<String> = format.prefixes.iter().map(|prefix| literal(prefix)).collect();
    let parts = format.parts().iter().map(|part| match *part {
        Part::Text(text) => literal(text),
        Part::Run { of, least, most: OPEN } => format!("{}{{{least},}}", class(of)),
        Part::Run { of, least, most } => format!("{}{{{least},{most}}}", class(of)),
    });
    format!("(?:{}){}", prefixes.join("|"), parts.collect::<String>())
}

fn literal(text: &str) -> String {
    text.bytes().map(|byte| format!("\\x{byte:02x}")).collect()
}

fn class(of: Alphabet) -> String {
    let bytes = (0..128).filter(|byte| of.has(*byte)).map(|byte| format!("\\x{byte:02x}"));
    format!("[{}]", bytes.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_become_patterns() {
        let patterns = vendor_patterns();
        assert!(patterns.len() > 100, "{}", patterns.len());
        let is_whole = |pattern: &str, text: &str| {
            let regex = regex_automata::meta::Regex::new(&format!("^(?-u:{pattern})$")).unwrap();
            regex.is_match(text)
        };
        let is_any = |text: &str| patterns.iter().any(|pattern| is_whole(pattern, text));
        assert!(is_any("AKIAQYLPMN5HFIQR7XYA"));
        assert!(!is_any("AKIAQYLPMN5HFIQR7XY") && !is_any("AKIA"));
    }
}
