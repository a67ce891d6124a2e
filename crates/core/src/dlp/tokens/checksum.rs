//! The checksums that some vendors put into their keys.

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Keys with a checksum are shorter than this. What is longer is not read through for nothing.
const LONGEST: usize = 255;

/// GitHub and npm: six characters, the CRC-32 of what stands behind the prefix, in base 62.
pub(in crate::dlp) fn is_github(key: &[u8]) -> bool {
    if key.len() > LONGEST {
        return false;
    }
    let Some(split) = key.iter().position(|byte| *byte == b'_') else { return false };
    let Some((body, sum)) = key[split + 1..].split_last_chunk::<6>() else { return false };
    in_base62(crc32fast::hash(body)) == *sum
}

/// Cloudflare: eight hexadecimal digits, the CRC-32 of the key before them.
pub(in crate::dlp) fn is_cloudflare(key: &[u8]) -> bool {
    let Some((body, sum)) = key.split_last_chunk::<8>().filter(|_| key.len() <= LONGEST) else { return false };
    let crc = |text: &[u8]| format!("{:08x}", crc32fast::hash(text)).into_bytes() == sum;
    let behind = body.iter().position(|byte| *byte == b'_').map_or(0, |split| split + 1);
    crc(body) || crc(&body[behind..])
}

/// GitLab's routable tokens end in `.`, two digits of length and seven of CRC-32, all in base 36.
pub(in crate::dlp) fn is_gitlab(key: &[u8]) -> bool {
    let Some((body, sum)) = key.split_last_chunk::<7>().filter(|_| key.len() <= LONGEST) else { return false };
    let sum = std::str::from_utf8(sum).ok().and_then(|sum| u32::from_str_radix(sum, 36).ok());
    body.iter().rev().nth(2) == Some(&b'.') && sum == Some(crc32fast::hash(body))
}

fn in_base62(mut number: u32) -> [u8; 6] {
    let mut out = [b'0'; 6];
    for place in out.iter_mut().rev() {
        *place = BASE62[(number % 62) as usize];
        number /= 62;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_documented_token_of_github_keeps_its_checksum() {
        // Split, so that nobody takes this file for a leak.
        let token = ["ghp_zQWBuTSOoRi4A9spHcVY5", "ncnsDkxkJ0mLq17"].concat();
        assert!(is_github(token.as_bytes()));
        assert!(!is_github(token.replace("zQ", "Qz").as_bytes()));
        assert!(!is_github(b"ghp_") && !is_github(b"ghp"));
    }

    #[test]
    fn checksums_made_here_hold_and_break() {
        let body = "cfut_0123456789abcdefghijABCDEFGHIJ0123456789";
        let key = format!("{body}{:08x}", crc32fast::hash(body.as_bytes()));
        assert!(is_cloudflare(key.as_bytes()) && !is_cloudflare(key.replace("ABC", "BAC").as_bytes()));
        assert!(!is_cloudflare(b"cfut_"));
        let body = "glpat-abcdefghijklmnopqrstuvwxyz0.0r";
        let mut number = crc32fast::hash(body.as_bytes());
        let mut sum = Vec::new();
        for _ in 0..7 {
            sum.insert(0, char::from_digit(number % 36, 36).unwrap());
            number /= 36;
        }
        let key = format!("{body}{}", sum.iter().collect::<String>());
        assert!(is_gitlab(key.as_bytes()) && !is_gitlab(key.replace("abc", "bac").as_bytes()));
        assert!(!is_gitlab(b"glpat-"));
    }
}
