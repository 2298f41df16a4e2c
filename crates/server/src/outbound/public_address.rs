//! Which addresses are public. Loopback, private and link-local addresses are not: a request to one could
//! reach services that only the server can access.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host that has no public address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a public address")]
pub(crate) struct NotPublic(pub(crate) String);

/// Rejects a host that is an IP address and not public. Names are checked when they are resolved.
pub(crate) fn check_host(host: &str) -> Result<(), NotPublic> {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    match address.parse() {
        Ok(address) if !is_public(address) => Err(NotPublic(host.to_owned())),
        _ => Ok(()),
    }
}

pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_special = address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        // "This network" (RFC 791).
        || first == 0
        // Carrier-grade NAT (RFC 6598).
        || (first == 100 && (64..128).contains(&second))
        || (first == 192 && second == 0 && third == 0)
        // Benchmarks (RFC 2544).
        || (first == 198 && (18..20).contains(&second))
        // Reserved, and broadcast.
        || first >= 240;
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    if let Some(inner) = inner_v4(address) {
        return is_public_v4(inner);
    }
    let is_special = address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        // Site-local, deprecated (RFC 3879).
        || (first & 0xffc0) == 0xfec0
        // Documentation (RFC 3849).
        || (first == 0x2001 && second == 0x0db8);
    !is_special
}

/// The IPv4 address that is embedded in an IPv6 address.
fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([one, two], [three, four]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(one, two, three, four)
    };
    match [a, b, c, d, e, f] {
        // Mapped, translated and compatible addresses.
        [0, 0, 0, 0, 0, 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => Some(v4(high, low)),
        [0, 0, 0, 0, 0, 0] if high != 0 => Some(v4(high, low)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_not_public() {
        for (address, expected) in [
            ("1.1.1.1", true),
            ("172.32.0.1", true),
            ("100.128.0.1", true),
            ("2606:4700::1111", true),
            ("::ffff:1.1.1.1", true),
            ("127.0.0.1", false),
            ("10.1.2.3", false),
            ("172.16.0.1", false),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("192.0.0.8", false),
            ("198.18.0.1", false),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("::1", false),
            ("::", false),
            ("fe80::1", false),
            ("fd00::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
            ("::ffff:127.0.0.1", false),
            ("::127.0.0.1", false),
            ("64:ff9b::a00:1", false),
            ("2002:7f00:1::", false),
        ] {
            assert_eq!(
                is_public(address.parse().expect(address)),
                expected,
                "{address}"
            );
        }
    }

    #[test]
    fn hosts_that_are_addresses_are_checked() {
        assert!(check_host("127.0.0.1").is_err());
        assert!(check_host("[::1]").is_err());
        assert!(check_host("1.1.1.1").is_ok());
        assert!(check_host("localhost").is_ok());
    }
}
