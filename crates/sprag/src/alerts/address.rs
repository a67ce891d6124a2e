//! Where a channel leads: names are looked up here, and the address that was checked is the one that is called.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::Failure;

/// The addresses of a host. One that lies in a private network makes all of them unusable, unless that is allowed.
pub(super) async fn look_up(host: &str, port: u16, allow_private: bool) -> Result<Vec<SocketAddr>, Failure> {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::net::lookup_host((name, port)).await;
    let addresses: Vec<SocketAddr> =
        found.map_err(|error| Failure::MayPass(format!("{name} cannot be looked up: {error}")))?.collect();
    if addresses.is_empty() {
        return Err(Failure::MayPass(format!("{name} has no address")));
    }
    match addresses.iter().find(|address| !allow_private && !is_public(address.ip())) {
        Some(private) => {
            let ip = private.ip().to_string();
            let led = if ip == name { ip } else { format!("{name} leads to {ip}, which") };
            Err(Failure::Final(format!(
                "{led} is not a public address; set allow_private = true for this channel if that is meant"
            )))
        }
        None => Ok(addresses),
    }
}

/// Whether an address belongs to the open internet.
fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let is_special = match a {
        0 | 10 | 127 | 224.. => true,
        100 => (64..128).contains(&b),
        169 => b == 254,
        172 => (16..32).contains(&b),
        192 => b == 168 || (b == 0 && (c == 0 || c == 2)) || (b == 88 && c == 99),
        198 => b == 18 || b == 19 || (b == 51 && c == 100),
        203 => b == 0 && c == 113,
        _ => false,
    };
    !is_special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let parts = ip.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match parts {
        // Addresses of IPv4 in other clothes: mapped, compatible, translated, 6to4.
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] => is_public_v4(v4(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(v4(high, low)),
        [0x64, 0xff9b, ..] => false,
        [0x2002, high, low, ..] => is_public_v4(v4(high, low)),
        // Teredo, and what is for documents.
        [0x2001, 0 | 0xdb8, ..] | [0x3fff, ..] => false,
        // Only these are given out to the internet.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_open_internet_is_public() {
        for text in ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:1.1.1.1"] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
            "224.0.0.1",
            "255.255.255.255",
            "192.0.0.192",
            "198.18.0.1",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[tokio::test]
    async fn every_spelling_is_checked_after_it_is_looked_up() {
        for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "127.1"] {
            match look_up(host, 80, false).await {
                Err(Failure::Final(said)) => assert!(said.contains("allow_private"), "{said}"),
                // Not every system knows the odd spellings.
                Err(Failure::MayPass(said)) => assert!(said.contains("looked up"), "{host}: {said}"),
                Ok(found) => panic!("{host}: {found:?}"),
            }
        }
        assert!(look_up("127.0.0.1", 80, true).await.is_ok());
    }
}
