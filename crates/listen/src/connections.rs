//! Limits on the open connections of all ports: in total and per client network.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::addresses::{AddressRanges, TrustedProxies, client_network};

/// The limits on concurrent connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLimits {
    pub total_max: usize,
    /// Per address; with IPv6 per /64 network.
    pub per_address_max: usize,
    /// Addresses without the limit `per_address_max`. Trusted proxies do not have it either, because they connect for many
    /// clients.
    pub exempt: AddressRanges,
}

/// Counts the open connections of all ports. Clones share the counts.
#[derive(Debug, Clone)]
pub struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: ConnectionLimits,
    proxies: TrustedProxies,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    /// Only networks with at least one connection, so the map has at most one entry per connection.
    by_network: HashMap<IpAddr, usize>,
}

/// A permit for one connection, which counts until it is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    connections: Connections,
    is_in_total: bool,
    network: Option<IpAddr>,
}

/// Why a connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionRefused {
    #[error("the server has too many connections")]
    Full,
    #[error("this address has too many connections")]
    AddressFull,
}

impl Default for ConnectionLimits {
    /// No limits.
    fn default() -> Self {
        Self {
            total_max: usize::MAX,
            per_address_max: usize::MAX,
            exempt: AddressRanges::default(),
        }
    }
}

impl Default for Connections {
    fn default() -> Self {
        Self::new(ConnectionLimits::default(), TrustedProxies::default())
    }
}

impl Connections {
    #[must_use]
    pub fn new(limits: ConnectionLimits, proxies: TrustedProxies) -> Self {
        Self(Arc::new(Shared {
            limits,
            proxies,
            open: Mutex::default(),
        }))
    }

    #[must_use]
    pub fn proxies(&self) -> &TrustedProxies {
        &self.0.proxies
    }

    /// Counts a new connection.
    ///
    /// # Errors
    /// If there are too many connections.
    pub fn admit(&self, peer: IpAddr) -> Result<ConnectionPermit, ConnectionRefused> {
        let is_proxy = self.0.proxies.addresses.contains(peer);
        let network = self.limited_network(peer).filter(|_| !is_proxy);
        self.count(true, network)
    }

    /// Counts a connection of a proxy that serves one client against the limit of that client. The total already includes the
    /// connection.
    ///
    /// # Errors
    /// If the client has too many connections.
    pub fn admit_forwarded(
        &self,
        peer: IpAddr,
        client: IpAddr,
    ) -> Result<ConnectionPermit, ConnectionRefused> {
        let is_forwarded = self.0.proxies.addresses.contains(peer);
        let network = self.limited_network(client).filter(|_| is_forwarded);
        self.count(false, network)
    }

    fn limited_network(&self, address: IpAddr) -> Option<IpAddr> {
        let is_exempt = self.0.limits.exempt.contains(address);
        (!is_exempt).then(|| client_network(address))
    }

    fn count(
        &self,
        is_in_total: bool,
        network: Option<IpAddr>,
    ) -> Result<ConnectionPermit, ConnectionRefused> {
        let limits = &self.0.limits;
        let mut open = self.open();
        if is_in_total && open.total >= limits.total_max {
            return Err(ConnectionRefused::Full);
        }
        if let Some(network) = network {
            let count = open.by_network.get(&network).copied().unwrap_or_default();
            if count >= limits.per_address_max {
                return Err(ConnectionRefused::AddressFull);
            }
            open.by_network.insert(network, count + 1);
        }
        open.total += usize::from(is_in_total);
        Ok(ConnectionPermit {
            connections: self.clone(),
            is_in_total,
            network,
        })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.connections.open();
        open.total -= usize::from(self.is_in_total);
        if let Some(network) = self.network
            && let Some(count) = open.by_network.get_mut(&network)
        {
            *count -= 1;
            if *count == 0 {
                open.by_network.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn connections() -> Connections {
        let limits = ConnectionLimits {
            total_max: 5,
            per_address_max: 2,
            exempt: "127.0.0.0/8".parse().expect("a range"),
        };
        let proxies = TrustedProxies {
            addresses: "10.0.0.1".parse().expect("a range"),
            ..TrustedProxies::default()
        };
        Connections::new(limits, proxies)
    }

    #[test]
    fn one_network_cannot_take_all_connections() {
        let connections = connections();
        let mut held = Vec::new();
        for client in ["2001:db8::1", "2001:db8::2"] {
            held.push(connections.admit(address(client)).expect("below the limit"));
        }
        let refused = connections.admit(address("2001:db8::3")).err();
        assert_eq!(refused, Some(ConnectionRefused::AddressFull));
        for client in ["192.0.2.1", "127.0.0.1", "127.0.0.1"] {
            held.push(connections.admit(address(client)).expect("below the limit"));
        }
        let refused = connections.admit(address("192.0.2.2")).err();
        assert_eq!(refused, Some(ConnectionRefused::Full));
        held.clear();
        let open = connections.open();
        assert_eq!((open.total, open.by_network.len()), (0, 0));
    }

    #[test]
    fn proxies_are_not_limited_but_their_clients_are() {
        let connections = connections();
        let proxy = address("10.0.0.1");
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(connections.admit(proxy).expect("below the limit"));
        }
        let client = address("192.0.2.1");
        for _ in 0..2 {
            held.push(
                connections
                    .admit_forwarded(proxy, client)
                    .expect("below the limit"),
            );
        }
        let refused = connections.admit_forwarded(proxy, client).err();
        assert_eq!(refused, Some(ConnectionRefused::AddressFull));
        let other = connections.admit_forwarded(proxy, address("192.0.2.2"));
        held.push(other.expect("below the limit"));
        held.push(
            connections
                .admit(address("192.0.2.3"))
                .expect("below the limit"),
        );
        assert!(connections.admit(proxy).is_err());
    }
}
