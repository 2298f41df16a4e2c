//! BatchGetItem: reads several items by their keys.

use std::borrow::Cow;

use homeport_item::expression::Projection;
use homeport_item::{Item, json};
use homeport_store::{BATCH_GET_MAX, Get};
use serde::Deserialize;

use super::reading;
use crate::access::{self, Expressions, Permission, Request, RequestContext, Resources, Values};
use crate::capacity::{self, Consumed, ConsumedByTable, Split, Wanted};
use crate::constraints::{Constraints, RETURN_CAPACITY};
use crate::expressions;
use crate::failure::Failure;
use crate::input::{self, Attributes, Element, Flag, List, Mapping, Named, Problem, Text, Wording};
use crate::legacy;
use crate::output::{self, Object};
use crate::service::Service;
use crate::table_name;

/// The total size of the items in one response. The keys of further items are returned as unprocessed.
const ANSWER_MAX_BYTES: usize = 16 * 1024 * 1024;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    request_items: Option<Mapping<'a, Element<KeysAndAttributes<'a>>>>,
    #[serde(borrow)]
    return_consumed_capacity: Option<Text<'a>>,
    /// The JSON text. The violation for an invalid table name shows the member as it was sent.
    #[serde(skip)]
    body: &'a [u8],
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct KeysAndAttributes<'a> {
    keys: Option<List<Attributes>>,
    consistent_read: Option<Flag>,
    #[serde(borrow)]
    projection_expression: Option<Text<'a>>,
    #[serde(borrow)]
    expression_attribute_names: Option<Mapping<'a, Text<'a>>>,
    #[serde(borrow)]
    attributes_to_get: Option<legacy::AttributesToGet<'a>>,
}

impl Named for KeysAndAttributes<'_> {
    const NAME: &'static str = "KeysAndAttributes";
}

/// One table's part of a request.
#[derive(Debug)]
struct Part {
    /// The name or ARN in the request.
    name: String,
    table: String,
    keys: Vec<Item>,
    projection: Option<Projection>,
    consistent: bool,
    /// The projection parameters of the request, returned with unprocessed keys.
    attributes_to_get: Option<Vec<String>>,
    projection_expression: Option<String>,
    attribute_names: Option<Vec<(String, String)>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn read(body: &'a [u8]) -> Result<Self, Failure> {
        let input: Self = input::read(body)?;
        Ok(Self { body, ..input })
    }

    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        let items = self.request_items.iter();
        let items = items.flat_map(|items| items.first(BATCH_GET_MAX));
        let part = |(name, Element(part)): &(Cow<'_, str>, Element<KeysAndAttributes<'_>>)| {
            let name = Text(Cow::Borrowed(name.as_ref()));
            let table = Some(&name);
            let named = part.projection_expression.is_some() || part.attributes_to_get.is_some();
            let expressions = Expressions {
                names: part.expression_attribute_names.as_ref(),
                projection: part.projection_expression.as_ref(),
                ..Expressions::default()
            };
            let keys = part.keys.as_ref().map(|keys| keys.first(BATCH_GET_MAX));
            let mut context = RequestContext {
                leading_keys: keys.map_or(Values::Unknown, |_| Values::Absent),
                attributes: access::listed(part.attributes_to_get.as_ref())
                    .with(expressions.attributes()),
                select: Values::select(None, named, false),
                return_consumed_capacity: Values::given(self.return_consumed_capacity.as_ref()),
                ..RequestContext::default()
            };
            for key in keys.into_iter().flatten() {
                let leading_key = resources.leading_key(table, Some(key));
                context.leading_keys = context.leading_keys.with(leading_key);
                context.attributes = context.attributes.with(access::attributes_of(Some(key)));
            }
            resources.table(table).with(context)
        };
        items.map(part).collect()
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let wanted = Wanted::of(input.return_consumed_capacity.as_ref());
    let parts = check(&input, input.body)?;
    // A hundred items may be 40 MB on disk.
    service
        .run_blocking(move |service| respond(service, &parts, wanted))
        .await
}

fn respond(service: &Service, parts: &[Part], wanted: Wanted) -> Result<Vec<u8>, Failure> {
    for part in parts {
        let view = service.engine().table(&part.table)?;
        if let Some(projection) = &part.projection {
            expressions::check_key_paths(view.schema(), &projection.paths)?;
        }
    }
    let mut out = Vec::with_capacity(1024);
    let mut object = Object::new(&mut out);
    let mut bytes = 0;
    let mut unprocessed: Vec<(&Part, usize)> = Vec::new();
    let mut consumed = ConsumedByTable::default();
    let mut responses = Object::new(object.member("Responses"));
    for part in parts {
        let gets: Vec<Get> = part
            .keys
            .iter()
            .map(|key| Get::new(part.table.as_str(), key.clone()))
            .collect();
        let found = service.engine().get_stored_together(&gets)?;
        let mut units = 0.0;
        let mut done = 0;
        let list = responses.member(&part.name);
        let items = found.iter().map_while(|item| {
            if bytes >= ANSWER_MAX_BYTES {
                return None;
            }
            done += 1;
            let size = match item.as_ref().map(|item| item.size()).transpose() {
                Ok(size) => size.unwrap_or(0),
                Err(error) => return Some(Some(Err(Failure::from(error)))),
            };
            bytes += size;
            units += capacity::read_units(size, part.consistent);
            Some(item.as_ref().map(Ok))
        });
        output::try_list(list, items.flatten(), |item, out| {
            reading::write_item(item?, part.projection.as_ref(), out)
        })?;
        if done < part.keys.len() {
            unprocessed.push((part, done));
        }
        consumed.push(&part.table, Consumed::of_table(units));
    }
    responses.end();
    let mut unprocessed_keys = Object::new(object.member("UnprocessedKeys"));
    for (part, done) in unprocessed {
        write_unprocessed(part, done, unprocessed_keys.member(&part.name));
    }
    unprocessed_keys.end();
    consumed.write(&mut object, wanted, Split::None);
    object.end();
    Ok(out)
}

/// Writes the unprocessed keys of a part in the form of a request.
fn write_unprocessed(part: &Part, done: usize, out: &mut Vec<u8>) {
    let mut object = Object::new(out);
    output::list(object.member("Keys"), &part.keys[done..], json::write_item);
    if part.consistent {
        object.member("ConsistentRead").extend_from_slice(b"true");
    }
    if let Some(names) = &part.attributes_to_get {
        output::list(object.member("AttributesToGet"), names, |name, out| {
            json::write_string(name, out);
        });
    }
    if let Some(projection) = &part.projection_expression {
        object.text("ProjectionExpression", projection);
    }
    if let Some(names) = &part.attribute_names {
        object.object("ExpressionAttributeNames", |object| {
            for (key, name) in names {
                object.text(key, name);
            }
        });
    }
    object.end();
}

/// The member `RequestItems` as a violation shows it.
fn shown_items(body: &[u8]) -> String {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Shown {
        request_items: serde_json::Value,
    }
    serde_json::from_slice(body).map_or("{...}".to_owned(), |shown: Shown| {
        shown.request_items.to_string()
    })
}

fn check(input: &Input<'_>, body: &[u8]) -> Result<Vec<Part>, Failure> {
    let items = match &input.request_items {
        Some(items) if items.0.is_empty() => {
            return Err(Failure::validation(
                "1 validation error detected: Value at 'RequestItems' failed to satisfy constraint: Member must have length greater than or equal to 1",
            ));
        }
        Some(items) => &items.0,
        None => {
            return Err(Failure::validation(
                "The requestItems parameter is required for BatchGetItem",
            ));
        }
    };
    let mut constraints = Constraints::new();
    let is_name = |name: &str| table_name::check_items_name("requestItems", name).is_ok();
    if !items.iter().all(|(name, _)| is_name(name)) {
        constraints.map_keys("requestItems", &shown_items(body));
    }
    constraints.one_of(
        "returnConsumedCapacity",
        input.return_consumed_capacity.as_ref(),
        RETURN_CAPACITY,
    );
    for (name, Element(part)) in items {
        constrain(name, part, &mut constraints);
    }
    constraints.finish()?;
    let by_expression = items
        .iter()
        .any(|(_, Element(part))| part.projection_expression.is_some());
    let by_names = items
        .iter()
        .any(|(_, Element(part))| part.attributes_to_get.is_some());
    expressions::check_parameters(
        &[],
        &[("ProjectionExpression", by_expression)],
        &[("AttributesToGet", by_names)],
        false,
        false,
    )?;
    let mut count = 0;
    let mut parts = Vec::with_capacity(items.len());
    for (name, Element(part)) in items {
        let part = check_part(name, part)?;
        count += part.keys.len();
        parts.push(part);
    }
    if count > BATCH_GET_MAX {
        return Err(Failure::validation(
            "Too many items requested for the BatchGetItem call",
        ));
    }
    Ok(parts)
}

fn constrain(name: &str, part: &KeysAndAttributes<'_>, constraints: &mut Constraints) {
    let path = format!("requestItems.{name}.member.keys");
    constraints.not_null(&path, part.keys.as_ref());
    if part.attributes_to_get.is_some() {
        let path = format!("requestItems.{name}.member.attributesToGet");
        legacy::constrain_names(constraints, &path, part.attributes_to_get.as_ref());
    }
    let limit = match part.keys.as_ref().map(|keys| keys.0.len()) {
        Some(0) => "greater than or equal to 1".to_owned(),
        Some(count) if count > BATCH_GET_MAX => format!("less than or equal to {BATCH_GET_MAX}"),
        _ => return,
    };
    constraints.unnamed(&format!(
        "Value at 'RequestItems.{name}.member.Keys' failed to satisfy constraint: Member must have length {limit}"
    ));
}

fn check_part(name: &str, given: &KeysAndAttributes<'_>) -> Result<Part, Failure> {
    let expression = given.projection_expression.as_ref();
    let attribute_names = given.expression_attribute_names.as_ref();
    let attributes_to_get = given.attributes_to_get.as_ref();
    reading::check_projection(expression, attribute_names, attributes_to_get)?;
    let projection = reading::any_projection(expression, attribute_names, attributes_to_get)?;
    let keys = given
        .keys
        .iter()
        .flat_map(|keys| &keys.0)
        .map(|Attributes(key)| {
            let failure = |problem: Problem| problem.failure(Wording::Newer);
            key.clone().map_err(failure)
        })
        .collect::<Result<Vec<_>, _>>()?;
    for (at, key) in keys.iter().enumerate() {
        if keys[..at].contains(key) {
            return Err(Failure::validation(
                "Provided list of item keys contains duplicates",
            ));
        }
    }
    let owned = |text: &Text<'_>| text.as_str().to_owned();
    Ok(Part {
        name: name.to_owned(),
        table: table_name::check_items_name("requestItems", name)?.to_owned(),
        keys,
        projection,
        consistent: given.consistent_read.is_some_and(|flag| flag.0),
        attributes_to_get: attributes_to_get.map(|names| names.0.iter().map(owned).collect()),
        projection_expression: expression.map(owned),
        attribute_names: attribute_names.map(|names| {
            let pairs = names.0.iter();
            pairs
                .map(|(key, name)| (key.to_string(), owned(name)))
                .collect()
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_batch_gets_get_dynamodb_errors() {
        let many = vec![r#"{"a":{"S":"x"}}"#; 101].join(",");
        let too_many = format!(r#"{{"RequestItems":{{"abc":{{"Keys":[{many}]}}}}}}"#);
        for (body, text) in [
            (
                "{}",
                "The requestItems parameter is required for BatchGetItem",
            ),
            (
                r#"{"RequestItems":{}}"#,
                "1 validation error detected: Value at 'RequestItems' failed to satisfy constraint: Member must have length greater than or equal to 1",
            ),
            (
                r#"{"RequestItems":{"abc":{}}}"#,
                "1 validation error detected: Value null at 'requestItems.abc.member.keys' failed to satisfy constraint: Member must not be null",
            ),
            (
                r#"{"RequestItems":{"abc":{"Keys":[{"a":{"S":"x"}}],"AttributesToGet":["a","a"]}}}"#,
                "One or more parameter values were invalid: Duplicate value in attribute name: a",
            ),
            (
                r#"{"RequestItems":{"abc":{"Keys":[]}}}"#,
                "1 validation error detected: Value at 'RequestItems.abc.member.Keys' failed to satisfy constraint: Member must have length greater than or equal to 1",
            ),
            (
                r#"{"RequestItems":{"a!c":{"Keys":[{"a":{"S":"x"}}]}},"ReturnConsumedCapacity":"X"}"#,
                "2 validation errors detected: Value '{\"a!c\":{\"Keys\":[{\"a\":{\"S\":\"x\"}}]}}' at 'requestItems' failed to satisfy constraint: Map keys must satisfy constraint: [Member must have length less than or equal to 255, Member must have length greater than or equal to 3, Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]; Value 'X' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]",
            ),
            (
                r#"{"RequestItems":{"abc":{"Keys":[{"a":{"S":"x"}},{"a":{"S":"x"}}]}}}"#,
                "Provided list of item keys contains duplicates",
            ),
            (
                &too_many,
                "1 validation error detected: Value at 'RequestItems.abc.member.Keys' failed to satisfy constraint: Member must have length less than or equal to 100",
            ),
        ] {
            let input: Input<'_> = input::read(body.as_bytes()).expect("well-formed");
            let failure = check(&input, body.as_bytes()).expect_err("refused");
            assert_eq!(failure.text(), Some(text), "{body}");
        }
    }
}
