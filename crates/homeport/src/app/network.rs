//! Limits shared by all ports, from the settings and the limit on open files.

use std::time::Duration;

use homeport_server::{ConnectionLimits, Connections, ForwardedHeader, Limits, TrustedProxies};

use crate::config::{ForwardedHeaderSetting, Http, Network};
use crate::storage::descriptors::DescriptorLimit;

/// Total connections of all ports: the configured number, or fewer if there are not enough descriptors.
pub(crate) fn connections_max(settings: &Network, descriptors: DescriptorLimit) -> usize {
    let possible = descriptors.connections();
    match settings.connections {
        Some(set) => set.count().min(possible),
        None => possible,
    }
}

pub(crate) fn connections(settings: &Network, total_max: usize) -> Connections {
    let limits = ConnectionLimits {
        total_max,
        // So that one address cannot use all connections.
        per_address_max: settings
            .connections_per_address
            .count()
            .min((total_max / 2).max(1)),
        exempt: settings.exempt_addresses.clone(),
    };
    let proxies = TrustedProxies {
        addresses: settings.trusted_proxies.clone(),
        header: match settings.forwarded_header {
            ForwardedHeaderSetting::XForwardedFor => ForwardedHeader::XForwardedFor,
            ForwardedHeaderSetting::Forwarded => ForwardedHeader::Forwarded,
        },
    };
    Connections::new(limits, proxies)
}

pub(crate) fn header_timeout(settings: &Network) -> Duration {
    Duration::from_secs(settings.header_timeout_secs.get())
}

/// The limits of the HTTP port.
pub(crate) fn http_limits(http: &Http, network: &Network, connections: &Connections) -> Limits {
    Limits {
        connections_max: http.connections.count(),
        connections: connections.clone(),
        header_timeout: header_timeout(network),
        idle_timeout: Duration::from_secs(http.idle_timeout_secs.get()),
    }
}
