//! Messages as items.

use bytes::Bytes;
use homeport_item::{Item, Value};

use super::{Delivery, Message, Properties, Publisher, schema};
use crate::time::EpochMillis;

impl Delivery {
    /// The MQTT number.
    #[must_use]
    pub fn qos(self) -> u8 {
        match self {
            Self::AtMostOnce => 0,
            Self::AtLeastOnce => 1,
        }
    }

    pub(super) fn from_qos(qos: i64) -> Option<Self> {
        match qos {
            0 => Some(Self::AtMostOnce),
            1 => Some(Self::AtLeastOnce),
            _ => None,
        }
    }
}

/// The attributes of a message.
pub(super) fn to_item(message: &Message) -> Item {
    let mut item = Item::new()
        .with(schema::TOPIC, message.topic.as_str())
        .with(schema::PAYLOAD, Value::B(message.payload.to_vec()))
        .with(schema::QOS, i64::from(message.delivery.qos()))
        .with(schema::RETAIN, message.retain)
        .with(schema::RECEIVED_AT_MS, message.received_at.0);
    let mut text = |name: &str, text: &Option<String>| {
        if let Some(text) = text {
            item.insert(name, text.as_str());
        }
    };
    let properties = &message.properties;
    text(schema::PUBLISHER_CLIENT_ID, &message.publisher.client_id);
    text(schema::PRINCIPAL, &message.publisher.principal);
    text(schema::CONTENT_TYPE, &properties.content_type);
    text(schema::RESPONSE_TOPIC, &properties.response_topic);
    if let Some(data) = &properties.correlation_data {
        item.insert(schema::CORRELATION_DATA, Value::B(data.to_vec()));
    }
    if properties.payload_is_text {
        item.insert(schema::PAYLOAD_IS_TEXT, true);
    }
    if let Some(secs) = properties.expires_after_secs {
        item.insert(schema::EXPIRES_AFTER_SECS, i64::from(secs));
    }
    if !properties.user.is_empty() {
        let pair = |(name, value): &(String, String)| {
            Value::L(vec![name.as_str().into(), value.as_str().into()])
        };
        let pairs = properties.user.iter().map(pair).collect();
        item.insert(schema::USER_PROPERTIES, Value::L(pairs));
    }
    if message.hops > 0 {
        item.insert(schema::HOPS, i64::from(message.hops));
    }
    item
}

/// The message of an item; `None` for a malformed item.
pub(super) fn from_item(item: &Item) -> Option<Message> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(Message {
        topic: text(schema::TOPIC)?,
        payload: binary(item, schema::PAYLOAD)?,
        delivery: Delivery::from_qos(integer(item, schema::QOS)?)?,
        retain: item.get(schema::RETAIN).and_then(Value::as_bool)?,
        publisher: Publisher {
            client_id: text(schema::PUBLISHER_CLIENT_ID),
            principal: text(schema::PRINCIPAL),
        },
        received_at: EpochMillis(integer(item, schema::RECEIVED_AT_MS)?),
        properties: Properties {
            content_type: text(schema::CONTENT_TYPE),
            response_topic: text(schema::RESPONSE_TOPIC),
            correlation_data: binary(item, schema::CORRELATION_DATA),
            payload_is_text: item.get(schema::PAYLOAD_IS_TEXT).is_some(),
            expires_after_secs: integer(item, schema::EXPIRES_AFTER_SECS)
                .and_then(|secs| secs.try_into().ok()),
            user: user_properties(item)?,
        },
        hops: integer(item, schema::HOPS)
            .unwrap_or_default()
            .try_into()
            .ok()?,
    })
}

pub(super) fn integer(item: &Item, name: &str) -> Option<i64> {
    item.get(name)?.as_number()?.to_i64()
}

fn binary(item: &Item, name: &str) -> Option<Bytes> {
    match item.get(name)? {
        Value::B(bytes) => Some(Bytes::copy_from_slice(bytes)),
        _ => None,
    }
}

fn user_properties(item: &Item) -> Option<Vec<(String, String)>> {
    let Some(pairs) = item.get(schema::USER_PROPERTIES) else {
        return Some(Vec::new());
    };
    let pair = |pair: &Value| match pair.as_list()? {
        [name, value] => Some((name.as_str()?.to_owned(), value.as_str()?.to_owned())),
        _ => None,
    };
    pairs.as_list()?.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_round_trips() {
        let plain = Message {
            topic: "van/v1/status".to_owned(),
            payload: Bytes::new(),
            delivery: Delivery::AtMostOnce,
            retain: false,
            publisher: Publisher::default(),
            received_at: EpochMillis(1),
            properties: Properties::default(),
            hops: 0,
        };
        let full = Message {
            payload: Bytes::from_static(b"\x00\xff"),
            delivery: Delivery::AtLeastOnce,
            retain: true,
            publisher: Publisher {
                client_id: Some("v1".to_owned()),
                principal: Some("a-key".to_owned()),
            },
            properties: Properties {
                content_type: Some("text/plain".to_owned()),
                response_topic: Some("van/v1/answers".to_owned()),
                correlation_data: Some(Bytes::from_static(b"7")),
                payload_is_text: true,
                expires_after_secs: Some(60),
                user: vec![("a".to_owned(), String::new()); 2],
            },
            hops: 3,
            ..plain.clone()
        };
        for message in [plain, full] {
            assert_eq!(from_item(&to_item(&message)), Some(message));
        }
    }

    #[test]
    fn malformed_item_is_no_message() {
        assert_eq!(from_item(&Item::new()), None);
        let item = Item::new().with(schema::TOPIC, "van/v1/status");
        assert_eq!(from_item(&item), None);
    }
}
