//! Converts stream records to changes.

use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_dynamodbstreams::types::{
    AttributeValue as StreamValue, Identity, OperationType, Record,
};
use homeport_item::Item;
use homeport_store::{Change, ChangeKind, StoreError};

use crate::convert::value::{Attributes, item, unreadable};

/// The principal that deletes expired items.
const EXPIRY_PRINCIPAL: &str = "dynamodb.amazonaws.com";
const EXPIRY_TYPE: &str = "Service";

/// The sequence number of a record, and the change.
pub(super) fn change(record: Record) -> Result<(String, Change), StoreError> {
    let kind = match record.event_name {
        Some(OperationType::Insert) => ChangeKind::Insert,
        Some(OperationType::Modify) => ChangeKind::Modify,
        Some(OperationType::Remove) => ChangeKind::Remove,
        other => return Err(unreadable(format!("unknown record kind: {other:?}"))),
    };
    let by_expiry =
        kind == ChangeKind::Remove && record.user_identity.as_ref().is_some_and(is_expiry);
    let stored = record
        .dynamodb
        .ok_or_else(|| unreadable("a record without content"))?;
    let number = stored
        .sequence_number
        .ok_or_else(|| unreadable("a record without number"))?;
    let at = stored.approximate_creation_date_time;
    let at_ms = at.and_then(|at| at.to_millis().ok());
    let image = |image: Option<HashMap<_, _>>| image.map(converted).transpose();
    let change = Change {
        at_ms: at_ms.ok_or_else(|| unreadable("a record without time"))?,
        kind,
        by_expiry,
        key: image(stored.keys)?.ok_or_else(|| unreadable("a record without key"))?,
        old: image(stored.old_image)?,
        new: image(stored.new_image)?,
    };
    Ok((number, change))
}

fn is_expiry(identity: &Identity) -> bool {
    identity.principal_id.as_deref() == Some(EXPIRY_PRINCIPAL)
        && identity.r#type.as_deref() == Some(EXPIRY_TYPE)
}

fn converted(image: HashMap<String, StreamValue>) -> Result<Item, StoreError> {
    item(attributes(image)?)
}

fn attributes(image: HashMap<String, StreamValue>) -> Result<Attributes, StoreError> {
    image
        .into_iter()
        .map(|(name, value)| Ok((name, attribute(value)?)))
        .collect()
}

/// The SDK has different but equal types for values in tables and in streams.
fn attribute(value: StreamValue) -> Result<AttributeValue, StoreError> {
    let blob = |blob: aws_sdk_dynamodbstreams::primitives::Blob| Blob::new(blob.into_inner());
    Ok(match value {
        StreamValue::S(text) => AttributeValue::S(text),
        StreamValue::N(text) => AttributeValue::N(text),
        StreamValue::B(bytes) => AttributeValue::B(blob(bytes)),
        StreamValue::Bool(value) => AttributeValue::Bool(value),
        StreamValue::Null(value) => AttributeValue::Null(value),
        StreamValue::M(map) => AttributeValue::M(attributes(map)?),
        StreamValue::L(list) => {
            AttributeValue::L(list.into_iter().map(attribute).collect::<Result<_, _>>()?)
        }
        StreamValue::Ss(members) => AttributeValue::Ss(members),
        StreamValue::Ns(members) => AttributeValue::Ns(members),
        StreamValue::Bs(members) => AttributeValue::Bs(members.into_iter().map(blob).collect()),
        other => return Err(unreadable(format!("unknown attribute type: {other:?}"))),
    })
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodbstreams::primitives::{Blob as StreamBlob, DateTime};
    use aws_sdk_dynamodbstreams::types::StreamRecord;
    use homeport_item::{Map, Value};

    use super::*;

    fn record(kind: OperationType, identity: Option<(&str, &str)>) -> Record {
        let key = || StreamValue::S("a".to_owned());
        let stored = StreamRecord::builder()
            .approximate_creation_date_time(DateTime::from_millis(1_800_000_000_000))
            .keys("id", key())
            .old_image("id", key())
            .old_image("b", StreamValue::B(StreamBlob::new([1, 2])))
            .old_image("n", StreamValue::N("1.50".to_owned()))
            .old_image("s", StreamValue::Ss(vec!["x".to_owned()]))
            .old_image(
                "m",
                StreamValue::M(HashMap::from([(
                    "l".to_owned(),
                    StreamValue::L(vec![StreamValue::Null(true), StreamValue::Bool(true)]),
                )])),
            )
            .sequence_number("4711")
            .build();
        let identity = identity.map(|(principal, kind)| {
            Identity::builder()
                .principal_id(principal)
                .r#type(kind)
                .build()
        });
        Record::builder()
            .event_name(kind)
            .dynamodb(stored)
            .set_user_identity(identity)
            .build()
    }

    #[test]
    fn record_becomes_change_with_images() {
        let (number, change) = change(record(OperationType::Remove, None)).unwrap();
        assert_eq!(number, "4711");
        let list = Value::L(vec![Value::Null, Value::Bool(true)]);
        let old = Item::new()
            .with("id", "a")
            .with("b", Value::B(vec![1, 2]))
            .with("n", "1.5".parse::<homeport_item::Number>().unwrap())
            .with("s", Value::string_set(["x"]).unwrap())
            .with("m", Value::M(Map::from([("l".to_owned(), list)])));
        let expected = Change {
            at_ms: 1_800_000_000_000,
            kind: ChangeKind::Remove,
            by_expiry: false,
            key: Item::new().with("id", "a"),
            old: Some(old),
            new: None,
        };
        assert_eq!(change, expected);
    }

    #[test]
    fn only_deletes_by_the_service_are_expiry() {
        let by_expiry = |kind, identity| change(record(kind, identity)).unwrap().1.by_expiry;
        let service = Some((EXPIRY_PRINCIPAL, EXPIRY_TYPE));
        assert!(by_expiry(OperationType::Remove, service));
        assert!(!by_expiry(OperationType::Modify, service));
        assert!(!by_expiry(OperationType::Remove, None));
        for identity in [("dynamodb.amazonaws.com", "User"), ("someone", "Service")] {
            assert!(!by_expiry(OperationType::Remove, Some(identity)));
        }
    }

    #[test]
    fn incomplete_record_is_an_error() {
        let empty = Record::builder().event_name(OperationType::Insert).build();
        assert!(matches!(change(empty), Err(StoreError::Unavailable(_))));
    }
}
