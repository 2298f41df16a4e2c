//! Vans: each keeps an MQTT connection and publishes telemetry with QoS 1, which the server's built-in rule stores. The
//! server cannot recognize a repeated message: one whose acknowledgement was lost is published and stored again.

use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Call, Fleet, MqttFleet, Page, Protocol, Publication, ReadBack, ResponseError, cursor_parameter,
};
use crate::random::SeededRandom;

/// The server's maximum page size.
const PAGE_LIMIT: u32 = 1000;
const HVAC_MODES: [&str; 4] = ["off", "heat", "cool", "vent"];
/// Attributes that the rule adds to a message.
const ADDED: [&str; 4] = ["thing_name", "timestamp", "message_type", "ttl"];

/// A fleet of vans, with names that are unique to the run.
pub(crate) struct Vans {
    seed: u64,
    run: i64,
    broker: String,
}

#[derive(Deserialize)]
struct MessageList {
    messages: Vec<serde_json::Map<String, Value>>,
    next_cursor: Option<String>,
}

impl Vans {
    pub(crate) fn new(seed: u64, run: i64, broker: String) -> Self {
        Self { seed, run, broker }
    }

    fn thing(&self, device: u32) -> String {
        format!("van-{}-{device}", self.run)
    }

    fn message(&self, device: u32, window: u32) -> Value {
        let mut random = SeededRandom::new([self.seed, u64::from(device), u64::from(window), 21]);
        // Tenths that are never whole, so that the decimal sent equals the one read back: 12.0 would return as 12.
        let tenths = |from: usize, random: &mut SeededRandom| {
            ((from + random.below(5)) * 10 + 1 + random.below(9)) as f64 / 10.0
        };
        json!({
            "number": window,
            "battery_voltage": tenths(11, &mut random),
            "inside_temperature": tenths(15, &mut random),
            "speed_kmh": random.below(131),
            "hvac_mode": random.pick(&HVAC_MODES),
            "location": {"lat": tenths(38, &mut random), "lon": -tenths(104, &mut random)},
            "doors_open": [],
        })
    }
}

impl Fleet for Vans {
    fn stores_repeats(&self) -> bool {
        true
    }

    fn protocol(&self) -> Protocol<'_> {
        Protocol::Mqtt(self)
    }

    fn page(&self, device: u32, cursor: Option<&str>) -> Call {
        let thing = self.thing(device);
        let cursor = cursor_parameter(cursor);
        let path = format!(
            "/v1/telemetry/{thing}?message_type=telemetry&order=asc&limit={PAGE_LIMIT}{cursor}"
        );
        Call::new(Method::GET, path, None)
    }

    fn read_page(&self, device: u32, answer: &[u8]) -> Result<Page, ResponseError> {
        let list: MessageList = serde_json::from_slice(answer)?;
        let found = list.messages.into_iter().map(|mut message| {
            for name in ADDED {
                message.remove(name);
            }
            let number = message.get("number").and_then(Value::as_u64);
            let Some(window) = number.and_then(|number| u32::try_from(number).ok()) else {
                return ReadBack::Foreign;
            };
            if Value::Object(message) == self.message(device, window) {
                ReadBack::Intact(window)
            } else {
                ReadBack::Altered(window)
            }
        });
        Ok(Page {
            found: found.collect(),
            next_cursor: list.next_cursor,
        })
    }

    fn advice(&self) -> Option<String> {
        Some(format!(
            "vans published to {}; check that it is the MQTT port of the server at --url, and that its rule telemetry is unchanged",
            self.broker
        ))
    }
}

impl MqttFleet for Vans {
    fn broker(&self) -> &str {
        &self.broker
    }

    fn client_id(&self, device: u32) -> String {
        self.thing(device)
    }

    fn publication(&self, device: u32, window: u32) -> Publication {
        Publication {
            topic: format!("van/{}/telemetry", self.thing(device)),
            payload: self.message(device, window).to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn altered_message_is_detected() {
        let vans = Vans::new(1, 1_800_000_000_000, "127.0.0.1:1883".to_owned());
        let publication = vans.publication(3, 7);
        assert_eq!(publication.topic, "van/van-1800000000000-3/telemetry");
        let mut stored: serde_json::Map<String, Value> =
            serde_json::from_str(&publication.payload).expect("JSON");
        stored.insert("thing_name".to_owned(), json!("van-1800000000000-3"));
        stored.insert("timestamp".to_owned(), json!(1_800_000_000_123_i64));
        stored.insert("message_type".to_owned(), json!("telemetry"));
        stored.insert("ttl".to_owned(), json!(1_802_592_000));
        let mut altered = stored.clone();
        altered.insert("speed_kmh".to_owned(), json!(-1));
        let foreign = serde_json::Map::new();
        let page = json!({"messages": [stored, altered, foreign], "next_cursor": "c"});
        let page = vans
            .read_page(3, page.to_string().as_bytes())
            .expect("a page");
        let found = [ReadBack::Intact(7), ReadBack::Altered(7), ReadBack::Foreign];
        assert_eq!(
            (page.found, page.next_cursor.as_deref()),
            (found.to_vec(), Some("c"))
        );
    }
}
