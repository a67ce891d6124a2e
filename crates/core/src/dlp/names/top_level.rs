//! Top-level domains, told apart from endings of files and names in code.

/// Codes of countries (ISO 3166, IANA).
const COUNTRIES: &[u8] = b"acadaeafagaialamaoaqarasatauawaxazbabbbdbebfbgbhbibjbmbnbobrbsbtbwbybzcacccdcfcgchcickclcmcncocrcucvcwcxcyczdedjdkdmdodzeceeegereseteufifjfkfmfofrgagbgdgegfggghgiglgmgngpgqgrgsgtgugwgyhkhmhnhrhthuidieiliminioiqirisitjejmjojpkekgkhkikmknkpkrkwkykzlalblclilklrlsltlulvlymamcmdmemgmhmkmlmmmnmompmqmrmsmtmumvmwmxmymznancnenfngninlnonpnrnunzompapepfpgphpkplpmpnprpsptpwpyqarerorsrurwsasbscsdsesgshsisjskslsmsnsosrssstsusvsxsyszvatctdtftgthtjtktltmtntotrtttvtwtzuaugukusuyuzvcvevgvivnvuwfwsyeytzazmzw";

/// Endings of files, and names in code, that stand behind an `@` now and then.
const OTHER: &[&str] = &[
    "png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "bmp", "css", "scss", "less", "json", "html", "htm", "xml",
    "yaml", "yml", "toml", "lock", "txt", "csv", "log", "pdf", "jsx", "tsx", "mjs", "cjs", "vue", "wasm", "zip", "tar",
    "tgz", "exe", "dll", "jar", "service", "socket", "timer", "mount", "target", "slice", "shape", "mean", "sum",
    "dot", "length", "value", "name", "ref", "patch", "diff", "conf", "cfg", "ini", "env", "bin", "iso", "img", "map",
    "min", "latest", "next", "beta", "alpha", "data", "self", "class",
];

/// Whether this can be a top-level domain.
pub(super) fn is_top_level(label: &[u8]) -> bool {
    let mut lower = [0; 63];
    let Some(lower) = lower.get_mut(..label.len()) else { return false };
    lower.copy_from_slice(label);
    lower.make_ascii_lowercase();
    match lower.len() {
        0 | 1 => false,
        2 => COUNTRIES.chunks(2).any(|country| country == lower),
        _ if lower.starts_with(b"xn--") => lower.len() > 4,
        _ => lower.iter().all(u8::is_ascii_alphabetic) && !OTHER.iter().any(|other| other.as_bytes() == lower),
    }
}
