//! Vans: each keeps a connection over MQTT and publishes its telemetry with QoS 1, which the rule that
//! ships with the server stores. A server cannot know a message again: one whose acknowledgement was
//! lost is stored again when it is published again.

use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::dice::Dice;
use super::fleet::{AnswerError, Call, Fleet, Found, OverMqtt, Page, Publication, Speech};

/// The largest page that the server gives.
const PAGE_LIMIT: u32 = 1000;
const HVAC_MODES: [&str; 4] = ["off", "heat", "cool", "vent"];
/// What the rule adds to a message.
const ADDED: [&str; 4] = ["thing_name", "timestamp", "message_type", "ttl"];

/// A fleet of vans with names that no other run has.
pub(super) struct Vans {
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
    pub(super) fn new(seed: u64, run: i64, broker: String) -> Self {
        Self { seed, run, broker }
    }

    fn thing(&self, device: u32) -> String {
        format!("van-{}-{device}", self.run)
    }

    fn message(&self, device: u32, window: u32) -> Value {
        let mut dice = Dice::new([self.seed, u64::from(device), u64::from(window), 21]);
        // Tenths that are never whole: the decimal that is sent is the one that is read back, while 12.0
        // would come back as 12.
        let tenths = |from: u32, dice: &mut Dice| {
            f64::from((from + dice.below(5)) * 10 + 1 + dice.below(9)) / 10.0
        };
        json!({
            "number": window,
            "battery_voltage": tenths(11, &mut dice),
            "inside_temperature": tenths(15, &mut dice),
            "speed_kmh": dice.below(131),
            "hvac_mode": HVAC_MODES[dice.below(4) as usize],
            "location": {"lat": tenths(38, &mut dice), "lon": -tenths(104, &mut dice)},
            "doors_open": [],
        })
    }
}

impl Fleet for Vans {
    fn keeps_repeats(&self) -> bool {
        true
    }

    fn speech(&self) -> Speech<'_> {
        Speech::Mqtt(self)
    }

    fn page(&self, device: u32, cursor: Option<&str>) -> Call {
        let thing = self.thing(device);
        let cursor = cursor.map_or(String::new(), |cursor| format!("&cursor={cursor}"));
        let path = format!(
            "/v1/telemetry/{thing}?message_type=telemetry&order=asc&limit={PAGE_LIMIT}{cursor}"
        );
        Call::new(Method::GET, path, None)
    }

    fn read_page(&self, device: u32, answer: &[u8]) -> Result<Page, AnswerError> {
        let list: MessageList = serde_json::from_slice(answer)?;
        let found = list.messages.into_iter().map(|mut message| {
            for name in ADDED {
                message.remove(name);
            }
            let number = message.get("number").and_then(Value::as_u64);
            let Some(window) = number.and_then(|number| u32::try_from(number).ok()) else {
                return Found::Foreign;
            };
            if Value::Object(message) == self.message(device, window) {
                Found::Intact(window)
            } else {
                Found::Altered(window)
            }
        });
        Ok(Page {
            found: found.collect(),
            next_cursor: list.next_cursor,
        })
    }

    fn advice(&self) -> Option<String> {
        Some(format!(
            "vans published to {}: it must be the server's own MQTT port, and its rule telemetry as it ships",
            self.broker
        ))
    }
}

impl OverMqtt for Vans {
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
    fn a_message_is_known_again_and_a_changed_one_is_not() {
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
        let found = [Found::Intact(7), Found::Altered(7), Found::Foreign];
        assert_eq!(
            (page.found, page.next_cursor.as_deref()),
            (found.to_vec(), Some("c"))
        );
    }
}
