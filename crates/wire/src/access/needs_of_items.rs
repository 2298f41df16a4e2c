//! What requests about items need.

use homeport_item::expression::{
    Condition, KeyConditions, Placeholders, Projection, Update, UpdateOperand,
};
use homeport_item::{Item, Value};
use serde_json::{Map, Value as Json};

use super::needs::{Need, Reader, has, object, text};
use super::request_context::{RequestContext, Values};

type Request = Map<String, Json>;

/// A request for one item, or for a page.
pub(super) fn single(reader: &Reader<'_>, operation: &str, request: &Request) -> Need {
    let table = text(request, "TableName").unwrap_or_default();
    let index = text(request, "IndexName");
    let leading_keys = match operation {
        "Query" => query_keys(reader, table, index, request),
        "Scan" => Values::Absent,
        "PutItem" => leading_key(reader, table, object(request, "Item")),
        _ => leading_key(reader, table, object(request, "Key")),
    };
    let resource = match index {
        Some(index) => reader.index_arn(table, index),
        None => reader.table_arn(table),
    };
    Need {
        action: format!("dynamodb:{operation}"),
        resource,
        context: RequestContext {
            leading_keys,
            ..context(operation, request)
        },
    }
}

/// A batch: one need for each table.
pub(super) fn batch(reader: &Reader<'_>, request: &Request) -> Vec<Need> {
    let tables = object(request, "RequestItems");
    tables
        .into_iter()
        .flatten()
        .map(|(table, part)| {
            let (keys, attributes) = match part {
                Json::Object(part) => (
                    list(part.get("Keys"), |key| {
                        leading_key(reader, table, key.as_object())
                    }),
                    context(reader.operation, part).attributes,
                ),
                Json::Array(writes) => writes.iter().fold(
                    (Values::Absent, Values::Absent),
                    |(keys, attributes), write| {
                        let (key, names) = written(reader, table, write);
                        (keys.with(key), attributes.with(names))
                    },
                ),
                _ => (Values::Unknown, Values::Unknown),
            };
            Need {
                action: format!("dynamodb:{}", reader.operation),
                resource: reader.table_arn(table),
                context: RequestContext {
                    leading_keys: keys,
                    attributes,
                    return_consumed_capacity: given(request, "ReturnConsumedCapacity"),
                    ..RequestContext::default()
                },
            }
        })
        .collect()
}

/// One write of a batch.
fn written(reader: &Reader<'_>, table: &str, write: &Json) -> (Values, Values) {
    let member = |outer: &str, inner: &str| write.get(outer).and_then(|request| request.get(inner));
    let found: Vec<&Json> = [member("PutRequest", "Item"), member("DeleteRequest", "Key")]
        .into_iter()
        .flatten()
        .collect();
    if found.is_empty() {
        return (Values::Unknown, Values::Unknown);
    }
    found.into_iter().map(Json::as_object).fold(
        (Values::Absent, Values::Absent),
        |(keys, names), attributes| {
            let key = leading_key(reader, table, attributes);
            (keys.with(key), names.with(names_of(attributes)))
        },
    )
}

/// A transaction: one need for each action, named after what it does to its item.
pub(super) fn transaction(reader: &Reader<'_>, request: &Request) -> Vec<Need> {
    const ACTIONS: [(&str, &str); 5] = [
        ("Get", "GetItem"),
        ("Put", "PutItem"),
        ("Update", "UpdateItem"),
        ("Delete", "DeleteItem"),
        ("ConditionCheck", "ConditionCheckItem"),
    ];
    let elements = request.get("TransactItems").and_then(Json::as_array);
    let mut needs = Vec::new();
    for element in elements.into_iter().flatten() {
        for (member, operation) in ACTIONS {
            if let Some(action) = element.get(member).and_then(Json::as_object) {
                let mut need = single(reader, operation, action);
                need.context.enclosing_operation = Values::one(reader.operation);
                needs.push(need);
            }
        }
    }
    needs
}

fn list(given: Option<&Json>, read: impl Fn(&Json) -> Values) -> Values {
    match given {
        Some(Json::Array(elements)) => elements
            .iter()
            .fold(Values::Absent, |values, element| values.with(read(element))),
        _ => Values::Unknown,
    }
}

/// The partition key of an item or a key.
fn leading_key(reader: &Reader<'_>, table: &str, attributes: Option<&Request>) -> Values {
    let value = reader
        .partition_name(table, None)
        .and_then(|name| attributes?.get(&name))
        .and_then(|value| serde_json::from_value::<Value>(value.clone()).ok());
    value.map_or(Values::Unknown, |value| key_text(&value))
}

/// A key's value as policies write it.
pub(super) fn key_text(value: &Value) -> Values {
    use base64::Engine as _;
    match value {
        Value::S(text) => Values::one(text),
        Value::N(number) => Values::one(&number.to_string()),
        Value::B(bytes) => Values::one(&base64::engine::general_purpose::STANDARD.encode(bytes)),
        _ => Values::Unknown,
    }
}

/// The partition that a query is about.
fn query_keys(reader: &Reader<'_>, table: &str, index: Option<&str>, request: &Request) -> Values {
    let Some(name) = reader.partition_name(table, index) else {
        return Values::Unknown;
    };
    if let Some(expression) = text(request, "KeyConditionExpression") {
        let found = placeholders(request)
            .and_then(|mut placeholders| KeyConditions::parse(expression, &mut placeholders).ok())
            .and_then(|conditions| conditions.equal_to(&name).cloned());
        return found.map_or(Values::Unknown, |value| key_text(&value));
    }
    let condition = object(request, "KeyConditions").and_then(|conditions| conditions.get(&name));
    let values = condition.and_then(|condition| condition.get("AttributeValueList"));
    match condition.and_then(|condition| condition.get("ComparisonOperator")) {
        Some(Json::String(operator)) if operator == "EQ" => list(values, |value| {
            serde_json::from_value::<Value>(value.clone())
                .map_or(Values::Unknown, |value| key_text(&value))
        }),
        _ => Values::Unknown,
    }
}

/// What conditions can ask about a request for items, apart from its keys.
fn context(operation: &str, request: &Request) -> RequestContext {
    let reads = matches!(operation, "GetItem" | "Query" | "Scan" | "BatchGetItem");
    let names_attributes = has(request, "ProjectionExpression") || has(request, "AttributesToGet");
    let select = match text(request, "Select") {
        Some(select) => Values::one(select),
        None if reads && names_attributes => Values::one("SPECIFIC_ATTRIBUTES"),
        None if reads && has(request, "IndexName") => Values::one("ALL_PROJECTED_ATTRIBUTES"),
        None if reads => Values::one("ALL_ATTRIBUTES"),
        None => Values::Absent,
    };
    RequestContext {
        attributes: attributes(request),
        select,
        return_values: given(request, "ReturnValues"),
        return_consumed_capacity: given(request, "ReturnConsumedCapacity"),
        ..RequestContext::default()
    }
}

fn given(request: &Request, name: &str) -> Values {
    text(request, name).map_or(Values::Absent, Values::one)
}

/// The top-level attributes that a request names anywhere.
fn attributes(request: &Request) -> Values {
    let mut names = Values::Absent;
    for member in [
        "Item",
        "Key",
        "Expected",
        "AttributeUpdates",
        "KeyConditions",
        "QueryFilter",
        "ScanFilter",
    ] {
        names = names.with(names_of(object(request, member)));
    }
    if let Some(Json::Array(attributes)) = request.get("AttributesToGet") {
        let attributes = attributes.iter().filter_map(Json::as_str);
        names = names.with(known(attributes));
    }
    names.with(expression_names(request).unwrap_or(Values::Unknown))
}

fn names_of(attributes: Option<&Request>) -> Values {
    attributes.map_or(Values::Absent, |attributes| {
        known(attributes.keys().map(String::as_str))
    })
}

fn known<'n>(names: impl Iterator<Item = &'n str>) -> Values {
    let names: Vec<String> = names.map(str::to_owned).collect();
    if names.is_empty() {
        return Values::Absent;
    }
    Values::Known(names)
}

/// The attributes that expressions name; nothing when one cannot be read.
fn expression_names(request: &Request) -> Option<Values> {
    let mut placeholders = placeholders(request)?;
    let mut names: Vec<String> = Vec::new();
    for member in ["ConditionExpression", "FilterExpression"] {
        if let Some(expression) = text(request, member) {
            let condition = Condition::parse(expression, &mut placeholders).ok()?;
            names.extend(condition.paths().iter().map(|path| path.name().to_owned()));
        }
    }
    if let Some(expression) = text(request, "KeyConditionExpression") {
        let conditions = KeyConditions::parse(expression, &mut placeholders).ok()?;
        names.extend(conditions.names().map(str::to_owned));
    }
    if let Some(expression) = text(request, "ProjectionExpression") {
        let projection = Projection::parse(expression, &mut placeholders).ok()?;
        names.extend(projection.paths.iter().map(|path| path.name().to_owned()));
    }
    if let Some(expression) = text(request, "UpdateExpression") {
        let update = Update::parse(expression, &mut placeholders).ok()?;
        names.extend(update_names(&update));
    }
    Some(known(names.iter().map(String::as_str)))
}

/// The attributes that an update changes or looks at.
pub(super) fn update_names(update: &Update) -> Vec<String> {
    let mut names: Vec<String> = update.paths().map(|path| path.name().to_owned()).collect();
    for (_, operand) in &update.set {
        operand_names(operand, &mut names);
    }
    names
}

fn operand_names(operand: &UpdateOperand, names: &mut Vec<String>) {
    match operand {
        UpdateOperand::Value(_) => {}
        UpdateOperand::Path(path) => names.push(path.name().to_owned()),
        UpdateOperand::IfNotExists(path, default) => {
            names.push(path.name().to_owned());
            operand_names(default, names);
        }
        UpdateOperand::ListAppend(left, right)
        | UpdateOperand::Plus(left, right)
        | UpdateOperand::Minus(left, right) => {
            operand_names(left, names);
            operand_names(right, names);
        }
    }
}

fn placeholders(request: &Request) -> Option<Placeholders> {
    let names: Vec<(String, String)> = match request.get("ExpressionAttributeNames") {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Object(names)) => names
            .iter()
            .map(|(key, name)| Some((key.clone(), name.as_str()?.to_owned())))
            .collect::<Option<_>>()?,
        Some(_) => return None,
    };
    let values: Vec<(String, Value)> = match request.get("ExpressionAttributeValues") {
        None | Some(Json::Null) => Vec::new(),
        Some(values) => {
            let values: Item = serde_json::from_value(values.clone()).ok()?;
            values
                .iter()
                .map(|(key, value)| (key.to_owned(), value.clone()))
                .collect()
        }
    };
    Placeholders::new(names, values).ok()
}
