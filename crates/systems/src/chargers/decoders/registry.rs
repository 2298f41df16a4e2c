//! The loaded decoders, and the one that an uplink needs. A registry is immutable and replaced as a whole.

use std::collections::HashSet;

use super::compile::InvalidDecoder;
use super::decode::Decoder;
use super::document::{AppliesTo, DecoderDocument, Network};
use super::name::DecoderName;
use crate::chargers::types::{ChargerIds, DeviceName};
use crate::chargers::uplinks::Uplink;

/// Devices that a decoder names.
pub const DEVICES_MAX: usize = 1000;
/// Ports that a decoder names.
pub const PORTS_MAX: usize = 32;
/// Bytes of a decoder's prefix.
pub const PREFIX_BYTES_MAX: usize = 16;

/// The decoders in the order in which they are tried.
#[derive(Debug, Default)]
pub(in crate::chargers) struct Registry(Vec<Loaded>);

#[derive(Debug)]
pub(in crate::chargers) struct Loaded {
    pub(in crate::chargers) name: DecoderName,
    pub(in crate::chargers) version: i64,
    pub(in crate::chargers) decoder: Decoder,
    pub(super) selector: Selector,
}

/// The checked conditions of a decoder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Selector {
    wireless: HashSet<String>,
    sc_ids: HashSet<String>,
    network: Option<Network>,
    f_ports: Vec<u8>,
    prefix: Option<Vec<u8>>,
}

impl Selector {
    pub(super) fn new(document: &DecoderDocument) -> Result<Self, InvalidDecoder> {
        let invalid = |member: &str, reason: String| InvalidDecoder {
            place: format!("applies_to.{member}"),
            reason,
        };
        let AppliesTo {
            devices,
            network,
            f_ports,
            prefix,
        } = &document.applies_to;
        let mut selector = Self {
            network: *network,
            f_ports: f_ports.clone(),
            ..Self::default()
        };
        if devices.len() > DEVICES_MAX {
            return Err(invalid("devices", format!("at most {DEVICES_MAX} devices")));
        }
        for (at, device) in devices.iter().enumerate() {
            match device.parse() {
                Ok(DeviceName::Wireless(wireless)) => {
                    selector.wireless.insert(wireless.to_string());
                }
                Ok(DeviceName::ScId(sc_id)) => {
                    selector.sc_ids.insert(sc_id.to_string());
                }
                Err(error) => return Err(invalid(&format!("devices[{at}]"), error.to_string())),
            }
        }
        if f_ports.len() > PORTS_MAX {
            return Err(invalid("f_ports", format!("at most {PORTS_MAX} ports")));
        }
        if !f_ports.is_empty() && *network == Some(Network::Sidewalk) {
            let reason = "only uplinks of LoRaWAN have a port".to_owned();
            return Err(invalid("f_ports", reason));
        }
        if let Some(prefix) = prefix {
            let bytes = hex::decode(prefix).ok();
            let bytes = bytes.filter(|bytes| (1..=PREFIX_BYTES_MAX).contains(&bytes.len()));
            let bytes = bytes.ok_or_else(|| {
                let reason = format!("hexadecimal digits of 1 to {PREFIX_BYTES_MAX} bytes");
                invalid("prefix", reason)
            })?;
            selector.prefix = Some(bytes);
        }
        Ok(selector)
    }

    /// Decoders with more specific conditions are tried first.
    fn rank(&self) -> impl Ord + use<> {
        let names_devices = !self.wireless.is_empty() || !self.sc_ids.is_empty();
        let is_general = [
            names_devices,
            !self.f_ports.is_empty(),
            self.prefix.is_some(),
            self.network.is_some(),
        ];
        is_general.map(|is_specific| !is_specific)
    }

    fn includes(&self, uplink: &Uplink, decoder: &Decoder) -> bool {
        let names_devices = !self.wireless.is_empty() || !self.sc_ids.is_empty();
        let is_named = || {
            let ids = ChargerIds::from(uplink.wireless);
            self.wireless.contains(&uplink.wireless.to_string())
                || self.sc_ids.contains(ids.device_id.as_str())
        };
        let has_prefix = |prefix: &Vec<u8>| {
            let bytes = decoder.bytes(&uplink.payload);
            bytes.is_ok_and(|bytes| bytes.starts_with(prefix))
        };
        self.network.is_none_or(|network| network == uplink.network)
            && (self.f_ports.is_empty()
                || uplink
                    .f_port
                    .is_some_and(|port| self.f_ports.contains(&port)))
            && self.prefix.as_ref().is_none_or(has_prefix)
            && (!names_devices || is_named())
    }
}

impl Registry {
    pub(super) fn new(mut decoders: Vec<Loaded>) -> Self {
        let order = |loaded: &Loaded| (loaded.selector.rank(), loaded.name.clone());
        decoders.sort_by_cached_key(order);
        Self(decoders)
    }

    /// The decoder of an uplink.
    pub(in crate::chargers) fn decoder_of(&self, uplink: &Uplink) -> Option<&Loaded> {
        let mut decoders = self.0.iter();
        decoders.find(|loaded| loaded.selector.includes(uplink, &loaded.decoder))
    }
}
