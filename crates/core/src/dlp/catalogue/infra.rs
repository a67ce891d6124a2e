//! Addresses inside a network.

use super::{optional, row};
use crate::dlp::kind::{Family, Kind};

pub(super) const KINDS: &[Kind] = &[
    row(
        "INTERNAL_URL",
        Family::Infra,
        "URL inside a network",
        "a host with a private address, or under `.internal`, `.corp`, `.lan` …",
    ),
    row("PRIVATE_IP", Family::Infra, "Private IP address", "10/8, 172.16/12 or 192.168/16 (RFC 1918)"),
    optional("IPV6_ULA", Family::Infra, "Private IPv6 address", "fc00::/7 (RFC 4193)"),
    optional("MAC_ADDRESS", Family::Infra, "Hardware address", "six pairs of hex digits with `:` or `-`"),
    optional("PUBLIC_IP", Family::Infra, "Public IP address", "any other IPv4 address of a machine"),
];
