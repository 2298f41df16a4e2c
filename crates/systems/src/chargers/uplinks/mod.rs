//! Uplinks as AWS IoT Wireless delivers them, which become events. A payload decoder reads the payload; a payload
//! that is a JSON object needs none. An uplink that cannot be decoded is stored as an event of its own type.

mod message;

use homeport_item::{Map, Value};
use serde_json::value::RawValue;

use super::decoders::{DecoderName, EVENT_TYPE_DEFAULT};
use super::event::{EventDevice, EventUplink, NewEvent};
use super::ingest::EventOutcome;
use super::types::{DATA_DEPTH_MAX, EventData, EventType};
use super::{Chargers, ChargersError, schema};
use crate::plain_json;

pub use message::{InvalidUplink, PAYLOAD_BYTES_MAX, UPLINK_BYTES_MAX, Uplink};

/// The topic of uplinks. A message is the uplink of any device on the topic itself, and of one device on the topic
/// with its id as one more level.
pub const UPLINKS_TOPIC: &str = "chargers/uplinks";
/// The type of events from uplinks that cannot be decoded.
pub const UNDECODED: &str = "undecoded_uplink";
/// The member of their data that says why.
const UNDECODED_REASON: &str = "undecoded_reason";

/// The outcome for one uplink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UplinkOutcome {
    pub outcome: EventOutcome,
    /// Why the uplink was stored without being decoded.
    pub undecoded: Option<String>,
}

/// The event in a payload.
struct PayloadEvent {
    event_type: EventType,
    data: EventData,
    decoder: Option<(DecoderName, i64)>,
}

impl Chargers {
    /// Decodes and stores independent uplinks; the outcomes are in the same order.
    ///
    /// # Errors
    /// When the store fails. Uplinks without an outcome may or may not be stored and can be sent again.
    pub async fn ingest_uplinks(
        &self,
        uplinks: Vec<Uplink>,
    ) -> Result<Vec<UplinkOutcome>, ChargersError> {
        let decoders = self.decoders.current().await?;
        let (mut events, mut reasons) = (Vec::new(), Vec::new());
        for uplink in uplinks {
            let decoded = match json_event(&uplink.payload) {
                Some(event) => event,
                None => match decoders.decoder_of(&uplink) {
                    Some(loaded) => loaded
                        .decoder
                        .decode(&uplink.payload)
                        .map(|decoded| PayloadEvent {
                            event_type: decoded.event_type,
                            data: decoded.data,
                            decoder: Some((loaded.name.clone(), loaded.version)),
                        })
                        .map_err(|error| format!("decoder {}: {error}", loaded.name)),
                    None => Err("no decoder is for this uplink".to_owned()),
                },
            };
            reasons.push(decoded.as_ref().err().cloned());
            events.push(uplink.into_event(decoded.unwrap_or_else(undecoded)));
        }
        let outcomes = self.ingest(events).await?;
        let outcomes = outcomes.into_iter().zip(reasons);
        Ok(outcomes
            .map(|(outcome, undecoded)| UplinkOutcome { outcome, undecoded })
            .collect())
    }
}

impl Uplink {
    fn into_event(self, event: PayloadEvent) -> NewEvent {
        let mut stored = Map::from([(schema::UPLINK_MESSAGE.to_owned(), Value::M(self.message))]);
        if let Some((name, version)) = event.decoder {
            stored.insert(schema::UPLINK_DECODER, name.as_str().into());
            stored.insert(schema::UPLINK_DECODER_VERSION, version.into());
        }
        NewEvent {
            device: EventDevice::Wireless(self.wireless),
            event_type: event.event_type,
            occurred_at: self.received_at,
            sequence: self.sequence,
            data: event.data,
            uplink: Some(EventUplink {
                payload: self.payload,
                stored,
            }),
        }
    }
}

/// The event of a payload that is a JSON object with members; `None` for other payloads.
fn json_event(payload: &[u8]) -> Option<Result<PayloadEvent, String>> {
    let raw: &RawValue = serde_json::from_slice(payload).ok()?;
    if !raw.get().starts_with('{') {
        return None;
    }
    match plain_json::parse_members(raw, DATA_DEPTH_MAX) {
        // An empty object has two bytes, which a device may mean as numbers.
        Ok(members) if members.is_empty() => None,
        members => Some(members.and_then(event_of)),
    }
}

fn event_of(mut members: Map) -> Result<PayloadEvent, String> {
    let event_type = match members.remove(schema::EVENT_TYPE) {
        Some(Value::S(text)) => text,
        Some(_) => return Err("event_type: must be a text".to_owned()),
        None => EVENT_TYPE_DEFAULT.to_owned(),
    };
    let invalid = |error: crate::text::InvalidField| error.to_string();
    Ok(PayloadEvent {
        event_type: event_type.parse().map_err(invalid)?,
        data: EventData::new(members).map_err(invalid)?,
        decoder: None,
    })
}

fn undecoded(reason: String) -> PayloadEvent {
    let data = Map::from([(UNDECODED_REASON.to_owned(), reason.into())]);
    PayloadEvent {
        event_type: UNDECODED.parse().expect("a constant event type"),
        data: EventData::new(data).expect("a short reason"),
        decoder: None,
    }
}
