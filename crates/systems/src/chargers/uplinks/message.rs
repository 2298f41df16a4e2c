//! An uplink message of AWS IoT Wireless: the device, the payload in Base64, and the metadata of Sidewalk or LoRaWAN.
//! Only members that Homeport uses are checked. All others are kept as they are, because AWS adds members.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeport_item::{Map, Value};
use serde_json::value::RawValue;

use crate::chargers::decoders::Network;
use crate::chargers::types::{DATA_DEPTH_MAX, WirelessDeviceId};
use crate::plain_json;
use crate::time::EpochMillis;

/// Bytes of a payload.
pub const PAYLOAD_BYTES_MAX: usize = 2048;
/// Bytes of a whole message.
pub const UPLINK_BYTES_MAX: usize = 16 * 1024;

/// An uplink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uplink {
    pub wireless: WirelessDeviceId,
    pub payload: Vec<u8>,
    pub network: Network,
    /// The time at which the network received it.
    pub received_at: Option<EpochMillis>,
    /// Sidewalk's sequence number, or LoRaWAN's frame counter.
    pub sequence: Option<u64>,
    /// LoRaWAN's port.
    pub f_port: Option<u8>,
    /// The whole message.
    pub(super) message: Map,
}

/// A message is not an uplink.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidUplink(String);

impl Uplink {
    /// # Errors
    /// When the message is not an uplink, or too large.
    pub fn parse(json: &[u8]) -> Result<Self, InvalidUplink> {
        if json.len() > UPLINK_BYTES_MAX {
            return Err(InvalidUplink(format!(
                "an uplink has at most {UPLINK_BYTES_MAX} bytes; this one has {}",
                json.len()
            )));
        }
        parse(json).map_err(InvalidUplink)
    }
}

fn parse(json: &[u8]) -> Result<Uplink, String> {
    let raw: &RawValue =
        serde_json::from_slice(json).map_err(|error| format!("an uplink must be JSON: {error}"))?;
    let message = plain_json::parse_members(raw, DATA_DEPTH_MAX)
        .map_err(|reason| format!("an uplink must be a JSON object: {reason}"))?;
    let wireless = text(&message, "WirelessDeviceId")?;
    let wireless = wireless.parse().map_err(|_| {
        "WirelessDeviceId must be a UUID as b319d001-6b08-4d88-b4ca-4d2d98a6d43c".to_owned()
    })?;
    let payload = STANDARD
        .decode(text(&message, "PayloadData")?)
        .map_err(|error| format!("PayloadData must be Base64: {error}"))?;
    if payload.len() > PAYLOAD_BYTES_MAX {
        return Err(format!(
            "PayloadData has at most {PAYLOAD_BYTES_MAX} bytes; this one has {}",
            payload.len()
        ));
    }
    let metadata = object(&message, "WirelessMetadata")?
        .ok_or_else(|| "WirelessMetadata is missing".to_owned())?;
    let sidewalk = object(metadata, "Sidewalk")?;
    let lorawan = object(metadata, "LoRaWAN")?;
    let (network, details, sequence) = match (sidewalk, lorawan) {
        (Some(details), None) => (Network::Sidewalk, details, "Seq"),
        (None, Some(details)) => (Network::LoRaWan, details, "FCnt"),
        _ => return Err("WirelessMetadata must have either Sidewalk or LoRaWAN".to_owned()),
    };
    // AWS's documentation writes it in both ways.
    let f_port = match whole(details, "FPort")? {
        Some(port) => Some(port),
        None => whole(details, "Fport")?,
    };
    let f_port = f_port.map(|port| u8::try_from(port).map_err(|_| "FPort must be 0 to 255"));
    Ok(Uplink {
        wireless,
        payload,
        network,
        received_at: timestamp(details)?,
        sequence: whole(details, sequence)?,
        f_port: f_port.transpose()?,
        message,
    })
}

fn text<'a>(members: &'a Map, name: &str) -> Result<&'a str, String> {
    match members.get(name) {
        Some(Value::S(text)) => Ok(text),
        Some(_) => Err(format!("{name} must be a text")),
        None => Err(format!("{name} is missing")),
    }
}

fn object<'a>(members: &'a Map, name: &str) -> Result<Option<&'a Map>, String> {
    match members.get(name) {
        Some(Value::M(object)) => Ok(Some(object)),
        Some(Value::Null) | None => Ok(None),
        Some(_) => Err(format!("{name} must be an object")),
    }
}

/// A whole number, which AWS also writes as a text.
fn whole(members: &Map, name: &str) -> Result<Option<u64>, String> {
    let number = match members.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::N(number)) => number.to_string().parse().ok(),
        Some(Value::S(text)) => text.parse().ok(),
        Some(_) => None,
    };
    number
        .map(Some)
        .ok_or_else(|| format!("{name} must be a whole number of at least 0"))
}

fn timestamp(members: &Map) -> Result<Option<EpochMillis>, String> {
    let time = match members.get("Timestamp") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::S(text)) => text.parse::<jiff::Timestamp>().ok(),
        Some(_) => None,
    };
    time.map(|time| Some(EpochMillis(time.as_millisecond())))
        .ok_or_else(|| "Timestamp must be a time as 2026-02-21T21:30:00.295912052Z".to_owned())
}
