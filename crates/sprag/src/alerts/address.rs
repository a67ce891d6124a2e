//! Where a channel leads: names are looked up here, once, and only the addresses that were checked can be called.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use url::Host;

use super::Failure;
use super::wire::Setup;

/// Addresses that alerts may go to. Nothing else makes them, and nothing connects to anything else: a name that leads
/// elsewhere the next time it is looked up changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Checked(Vec<SocketAddr>);

impl Checked {
    pub(super) fn addresses(&self) -> &[SocketAddr] {
        &self.0
    }
}

/// What an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// The open internet.
    Public,
    /// This machine or a private network: for those who allow it.
    Private,
    /// Something that no message is ever meant for.
    Closed(&'static str),
}

const METADATA: &str = "where clouds keep metadata";
const LINK: &str = "for one link, and where clouds keep metadata";
const NOBODY: &str = "of no machine";
const EXAMPLE: &str = "for examples and measurements";
const MANY: &str = "of many machines at once";
const RESERVED: &str = "not given out";

/// The addresses of a host. One that must not be called makes all of them unusable.
pub(super) async fn look_up(setup: &Setup, host: &str, port: u16, allow_private: bool) -> Result<Checked, Failure> {
    // Every spelling of a number is that number, whatever the system's resolver makes of it.
    let found: Vec<IpAddr> = match Host::parse(host) {
        Ok(Host::Ipv4(ip)) => vec![ip.into()],
        Ok(Host::Ipv6(ip)) => vec![ip.into()],
        Ok(Host::Domain(name)) if is_localhost(&name) => {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        }
        Ok(Host::Domain(name)) => {
            let found = (setup.look_up)(name).await;
            found.map_err(|error| Failure::MayPass(format!("{host} cannot be looked up: {error}")))?
        }
        Err(error) => return Err(Failure::Final(format!("{host} is not the name of a host: {error}"))),
    };
    if found.is_empty() {
        return Err(Failure::MayPass(format!("{host} has no address")));
    }
    for ip in &found {
        let led = if ip.to_string() == host { host.to_owned() } else { format!("{host} leads to {ip}, which") };
        match reach(*ip) {
            Reach::Private if !allow_private => {
                return Err(Failure::MayPass(format!(
                    "{led} is not a public address; set allow_private = true for this channel if that is meant"
                )));
            }
            Reach::Closed(what) => {
                return Err(Failure::MayPass(format!(
                    "{led} is not a public address but one {what}; alerts never go there, not even with allow_private"
                )));
            }
            Reach::Public | Reach::Private => {}
        }
    }
    Ok(Checked(found.into_iter().map(|ip| SocketAddr::new(ip, port)).collect()))
}

/// Such names mean this machine, whatever a name server says.
fn is_localhost(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

fn reach(ip: IpAddr) -> Reach {
    match ip {
        IpAddr::V4(ip) => reach_v4(ip),
        IpAddr::V6(ip) => reach_v6(ip),
    }
}

fn reach_v4(ip: Ipv4Addr) -> Reach {
    match ip.octets() {
        [0, ..] => Reach::Closed(NOBODY),
        [168, 63, 129, 16] | [100, 100, 100, 200] | [192, 0, 0, _] => Reach::Closed(METADATA),
        [169, 254, ..] => Reach::Closed(LINK),
        [192, 0, 2, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => Reach::Closed(EXAMPLE),
        [224..=239, ..] | [255, 255, 255, 255] => Reach::Closed(MANY),
        [192, 88, 99, _] | [240..=255, ..] => Reach::Closed(RESERVED),
        [10 | 127, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Reach::Private,
        _ => Reach::Public,
    }
}

fn reach_v6(ip: Ipv6Addr) -> Reach {
    let v4 = |high: u16, low: u16| reach_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    // Through a translator only the open internet is called.
    let translated = |high: u16, low: u16| match v4(high, low) {
        Reach::Private => Reach::Closed("that is translated into a private one"),
        reach => reach,
    };
    match ip.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] => v4(high, low),
        [0, 0, 0, 0, 0, 0, 0, 1] => Reach::Private,
        [0, 0, 0, 0, 0, 0, 0, 0] => Reach::Closed(NOBODY),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => translated(high, low),
        [0xfd00, 0xec2, ..] => Reach::Closed(METADATA),
        [0xfc00..=0xfdff, ..] => Reach::Private,
        [0xfe80..=0xfebf, ..] => Reach::Closed(LINK),
        [0xff00..=0xffff, ..] => Reach::Closed(MANY),
        // Teredo hides an address of IPv4 in the rest.
        [0x2001, 0, ..] => Reach::Closed(RESERVED),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Reach::Closed(EXAMPLE),
        [0x2000..=0x3fff, ..] => Reach::Public,
        _ => Reach::Closed(RESERVED),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn only_the_open_internet_is_public_and_some_addresses_are_never_called() {
        for text in [
            "1.1.1.1",
            "93.184.216.34",
            "172.32.0.1",
            "100.128.0.1",
            "168.63.129.17",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::1",
        ] {
            assert_eq!(reach(text.parse().unwrap()), Reach::Public, "{text}");
        }
        for text in [
            "127.0.0.1",
            "127.9.9.9",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "100.127.255.255",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "fc00::1",
            "fd12::1",
        ] {
            assert_eq!(reach(text.parse().unwrap()), Reach::Private, "{text}");
        }
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "169.254.0.1",
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "192.0.2.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.250",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0.0.0.0",
            "::ffff:100.100.100.200",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2001:db8::1",
            "2001::1",
            "3fff::1",
            "5f00::1",
        ] {
            assert!(matches!(reach(text.parse().unwrap()), Reach::Closed(_)), "{text}");
        }
    }

    #[tokio::test]
    async fn every_spelling_is_the_number_that_it_means() {
        let setup = Setup { look_up: Box::new(|name| panic!("{name} was looked up")), ..Setup::default() };
        for host in [
            "127.0.0.1",
            "127.0.0.1.",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.1",
            "017700000001",
            "127.1",
            "localhost",
            "LOCALHOST",
            "localhost.",
            "db.localhost",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
        ] {
            match look_up(&setup, host, 80, false).await {
                Err(Failure::MayPass(said)) => assert!(said.contains("set allow_private"), "{host}: {said}"),
                other => panic!("{host}: {other:?}"),
            }
            assert!(look_up(&setup, host, 80, true).await.is_ok(), "{host}");
        }
        for host in
            ["2852039166", "0xa9fea9fe", "169.254.169.254", "[fd00:ec2::254]", "0", "0.0.0.0", "[64:ff9b::7f00:1]"]
        {
            match look_up(&setup, host, 80, true).await {
                Err(Failure::MayPass(said)) => assert!(said.contains("alerts never go there"), "{host}: {said}"),
                other => panic!("{host}: {other:?}"),
            }
        }
        assert!(matches!(look_up(&setup, "300.1.1.1", 80, true).await, Err(Failure::Final(_))));
    }

    #[tokio::test]
    async fn one_bad_address_spoils_all_and_a_name_is_looked_up_once() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let setup = Setup {
            look_up: Box::new(move |_| {
                let answers = [["93.184.216.34", "1.1.1.1"], ["93.184.216.34", "127.0.0.1"]];
                let answer = answers[count.fetch_add(1, Ordering::Relaxed).min(1)];
                Box::pin(async move { Ok(answer.map(|ip| ip.parse().unwrap()).to_vec()) })
            }),
            ..Setup::default()
        };
        let checked = look_up(&setup, "rebind.example", 443, false).await.unwrap();
        assert_eq!(checked.addresses(), ["93.184.216.34:443".parse().unwrap(), "1.1.1.1:443".parse().unwrap()]);
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert!(matches!(look_up(&setup, "rebind.example", 443, false).await, Err(Failure::MayPass(_))));
    }
}
