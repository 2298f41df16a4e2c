//! BatchWriteItem: several independent puts and deletes.

use std::borrow::Cow;

use homeport_item::json;
use homeport_item::schema::KeyError;
use homeport_store::{Action, BATCH_WRITE_MAX, Delete, Put, StoreError, WriteError};
use serde::Deserialize;

use super::writing::{self, Collections};
use crate::access::{self, Permission, Request, RequestContext, Resources, Values};
use crate::capacity::{ConsumedByTable, Split, Wanted};
use crate::constraints::{Constraints, RETURN_CAPACITY, RETURN_METRICS};
use crate::failure::Failure;
use crate::input::{Attributes, Element, Field, List, Mapping, Named, Text, Wording};
use crate::output::{self, Object};
use crate::service::Service;
use crate::table_name;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    request_items: Option<Mapping<'a, List<Element<WriteRequest>>>>,
    #[serde(borrow)]
    return_consumed_capacity: Option<Text<'a>>,
    #[serde(borrow)]
    return_item_collection_metrics: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct WriteRequest {
    put_request: Option<Field<PutRequest>>,
    delete_request: Option<Field<DeleteRequest>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PutRequest {
    item: Option<Attributes>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DeleteRequest {
    key: Option<Attributes>,
}

impl Named for WriteRequest {
    const NAME: &'static str = "WriteRequest";
}

impl Named for PutRequest {
    const NAME: &'static str = "PutRequest";
}

impl Named for DeleteRequest {
    const NAME: &'static str = "DeleteRequest";
}

/// A write with the table name or ARN of the request.
#[derive(Debug, Clone)]
struct NamedWrite {
    name: String,
    action: Action,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        let items = self.request_items.iter();
        let items = items.flat_map(|items| items.first(BATCH_WRITE_MAX));
        let part = |(name, requests): &(Cow<'_, str>, List<Element<WriteRequest>>)| {
            let name = Text(Cow::Borrowed(name.as_ref()));
            let table = Some(&name);
            let mut context = RequestContext {
                return_consumed_capacity: Values::given(self.return_consumed_capacity.as_ref()),
                ..RequestContext::default()
            };
            for Element(request) in requests.first(BATCH_WRITE_MAX) {
                let put = request.put_request.as_ref();
                let delete = request.delete_request.as_ref();
                let put = put.and_then(|Field(put)| put.item.as_ref());
                let delete = delete.and_then(|Field(delete)| delete.key.as_ref());
                if put.is_none() && delete.is_none() {
                    context.leading_keys = Values::Unknown;
                    context.attributes = Values::Unknown;
                }
                for attributes in [put, delete].into_iter().flatten() {
                    let leading_key = resources.leading_key(table, Some(attributes));
                    let names = access::attributes_of(Some(attributes));
                    context.leading_keys = context.leading_keys.with(leading_key);
                    context.attributes = context.attributes.with(names);
                }
            }
            resources.table(table).with(context)
        };
        items.map(part).collect()
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let wanted = Wanted::of(input.return_consumed_capacity.as_ref());
    let metrics = writing::wants_metrics(input.return_item_collection_metrics.as_ref());
    let writes = check(input)?;
    check_keys(service, &writes)?;
    let actions = writes.iter().map(|write| write.action.clone()).collect();
    let outcomes = service
        .engine()
        .write_each(actions, wanted.anything())
        .await?;
    let mut consumed = ConsumedByTable::default();
    let mut collections = Collections::default();
    let mut unprocessed: Vec<&NamedWrite> = Vec::new();
    for (write, outcome) in writes.iter().zip(outcomes) {
        let written = match outcome {
            Ok(written) => written,
            Err(WriteError::Store(StoreError::Throttled)) => {
                unprocessed.push(write);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(cost) = written.cost {
            consumed.of(write.action.table()).add_write(&cost, 1.0);
        }
        if metrics {
            collections.add(service, &write.name, &write.action)?;
        }
    }
    if unprocessed.len() == writes.len() {
        // If nothing could be written, DynamoDB returns an error.
        return Err(StoreError::Throttled.into());
    }
    Ok(respond(&unprocessed, &consumed, &collections, wanted))
}

/// Checks the keys of the items to put: for a missing key or one of another type, DynamoDB has another text here than in
/// PutItem.
fn check_keys(service: &Service, writes: &[NamedWrite]) -> Result<(), Failure> {
    for write in writes {
        if let Action::Put(put) = &write.action {
            let view = service.engine().table(&put.table)?;
            if matches!(
                view.schema().key.values(&put.item),
                Err(KeyError::Missing(_) | KeyError::WrongKind { .. })
            ) {
                return Err(Failure::validation(
                    KeyError::DoesNotMatchSchema.to_string(),
                ));
            }
        }
    }
    Ok(())
}

fn respond(
    unprocessed: &[&NamedWrite],
    consumed: &ConsumedByTable<'_>,
    collections: &Collections,
    wanted: Wanted,
) -> Vec<u8> {
    let mut by_table: Vec<(&str, Vec<&Action>)> = Vec::new();
    for write in unprocessed {
        match by_table.iter_mut().find(|(name, _)| *name == write.name) {
            Some((_, actions)) => actions.push(&write.action),
            None => by_table.push((&write.name, vec![&write.action])),
        }
    }
    let mut out = Vec::with_capacity(128);
    let mut object = Object::new(&mut out);
    object.object("UnprocessedItems", |tables| {
        for (name, actions) in by_table {
            output::list(tables.member(name), actions, write_request);
        }
    });
    consumed.write(&mut object, wanted, Split::None);
    collections.write(&mut object);
    object.end();
    out
}

fn write_request(action: &Action, out: &mut Vec<u8>) {
    let (request, member, attributes) = match action {
        Action::Put(put) => ("PutRequest", "Item", &put.item),
        Action::Delete(delete) => ("DeleteRequest", "Key", &delete.key),
        // A batch has only puts and deletes.
        Action::Update(_) | Action::Check(_) => return,
    };
    let mut object = Object::new(out);
    object.object(request, |object| {
        json::write_item(attributes, object.member(member));
    });
    object.end();
}

fn check(input: Input<'_>) -> Result<Vec<NamedWrite>, Failure> {
    let items = match input.request_items {
        Some(items) if !items.0.is_empty() => items.0,
        _ => {
            return Err(Failure::validation(
                "The requestItems parameter is required for BatchWriteItem",
            ));
        }
    };
    let mut constraints = Constraints::new();
    constraints.one_of(
        "returnConsumedCapacity",
        input.return_consumed_capacity.as_ref(),
        RETURN_CAPACITY,
    );
    constraints.one_of(
        "returnItemCollectionMetrics",
        input.return_item_collection_metrics.as_ref(),
        RETURN_METRICS,
    );
    for (name, requests) in &items {
        if requests.0.is_empty() || requests.0.len() > BATCH_WRITE_MAX {
            let shown = if requests.0.is_empty() { "" } else { "..." };
            let shown = format!("{{{name}=[{shown}]}}");
            constraints.map_values("requestItems", &shown, 1, BATCH_WRITE_MAX);
        }
        for (at, Element(request)) in requests.0.iter().enumerate() {
            let path = format!("requestItems.{name}.member.{}.member", at + 1);
            if let Some(Field(put)) = &request.put_request {
                constraints.not_null(&format!("{path}.putRequest.item"), put.item.as_ref());
            }
            if let Some(Field(delete)) = &request.delete_request {
                constraints.not_null(&format!("{path}.deleteRequest.key"), delete.key.as_ref());
            }
        }
    }
    constraints.finish()?;
    let unnamed = items
        .iter()
        .find(|(name, _)| table_name::check_items_name("requestItems", name).is_err());
    if let Some((name, requests)) = unnamed {
        let mut constraints = Constraints::new();
        constraints.map_keys("requestItems", &shown_requests(name, &requests.0));
        constraints.finish()?;
    }
    let mut writes = Vec::new();
    for (name, requests) in items {
        let table = table_name::check_items_name("requestItems", &name)?;
        for Element(request) in requests.0 {
            let action = action(table, request)?;
            writes.push(NamedWrite {
                name: name.to_string(),
                action,
            });
        }
    }
    if writes.len() > BATCH_WRITE_MAX {
        return Err(Failure::validation(
            "Too many items requested for the BatchWriteItem call",
        ));
    }
    Ok(writes)
}

/// The first request of a table as a violation shows it, without values.
fn shown_requests(name: &str, requests: &[Element<WriteRequest>]) -> String {
    let shown = requests.first().map_or(String::new(), |Element(request)| {
        let (kind, given) = match (&request.put_request, &request.delete_request) {
            (Some(Field(put)), _) => ("putRequest=PutRequest(item", put.item.as_ref()),
            (None, Some(Field(delete))) => ("deleteRequest=DeleteRequest(key", delete.key.as_ref()),
            (None, None) => return "WriteRequest()".to_owned(),
        };
        let names: Vec<String> = match given {
            Some(Attributes(Ok(item))) => {
                item.iter().map(|(name, _)| format!("{name}=...")).collect()
            }
            _ => vec!["...".to_owned()],
        };
        format!("WriteRequest({kind}={{{}}}))", names.join(", "))
    });
    let more = if requests.len() > 1 { ", ..." } else { "" };
    format!("{{{name}=[{shown}{more}]}}")
}

fn action(table: &str, request: WriteRequest) -> Result<Action, Failure> {
    match (request.put_request, request.delete_request) {
        (Some(Field(put)), None) => {
            let item = writing::attributes(put.item, Wording::Older)?;
            item.check()?;
            Ok(Put::new(table, item).into())
        }
        (None, Some(Field(delete))) => {
            let key = writing::attributes(delete.key, Wording::Older)?;
            Ok(Delete::new(table, key).into())
        }
        _ => Err(Failure::validation(
            "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;

    #[test]
    fn invalid_batch_writes_get_dynamodb_errors() {
        let many = vec![r#"{"PutRequest":{"Item":{"a":{"S":"x"}}}}"#; 26].join(",");
        let too_many = format!(r#"{{"RequestItems":{{"abc":[{many}]}}}}"#);
        for (body, text) in [
            (
                "{}",
                "The requestItems parameter is required for BatchWriteItem",
            ),
            (
                &too_many,
                "1 validation error detected: Value '{abc=[...]}' at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must have length greater than or equal to 1]",
            ),
            (
                r#"{"RequestItems":{"abc":[{"PutRequest":{}}]}}"#,
                "1 validation error detected: Value null at 'requestItems.abc.member.1.member.putRequest.item' failed to satisfy constraint: Member must not be null",
            ),
            (
                r#"{"RequestItems":{"abc":[{}]}}"#,
                "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes",
            ),
            (
                r#"{"RequestItems":{"abc":[{"PutRequest":{"Item":{"a":{"SS":[]}}}}]}}"#,
                "One or more parameter values were invalid: An string set  may not be empty",
            ),
        ] {
            let input = input::read(body.as_bytes()).expect("well-formed");
            let failure = check(input).expect_err("refused");
            assert_eq!(failure.text(), Some(text), "{body}");
        }
    }

    #[test]
    fn unprocessed_writes_are_returned_as_requested() {
        let body = br#"{"RequestItems":{"abc":[{"PutRequest":{"Item":{"a":{"S":"x"}}}},{"DeleteRequest":{"Key":{"a":{"S":"y"}}}}]}}"#;
        let writes = check(input::read(body).expect("well-formed")).expect("valid");
        let unprocessed: Vec<_> = writes.iter().collect();
        let json = respond(
            &unprocessed,
            &ConsumedByTable::default(),
            &Collections::default(),
            Wanted::Nothing,
        );
        assert_eq!(
            String::from_utf8_lossy(&json),
            r#"{"UnprocessedItems":{"abc":[{"PutRequest":{"Item":{"a":{"S":"x"}}}},{"DeleteRequest":{"Key":{"a":{"S":"y"}}}}]}}"#
        );
    }
}
