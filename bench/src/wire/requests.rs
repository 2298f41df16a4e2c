//! Requests as DynamoDB's clients send them, with the same bytes for every server.

use crate::load::template::{Body, Digits, Template};

/// Filled before the measurement, then only read.
pub(crate) const READINGS: &str = "bench_readings";
/// Only written.
pub(crate) const WRITTEN: &str = "bench_written";
/// Markers of transactions.
pub(crate) const BATCHES: &str = "bench_batches";

/// Number of partitions of readings.
pub(crate) const PARTITIONS: u64 = 100;
/// Readings per partition.
pub(crate) const READINGS_EACH: u64 = 200;
/// Readings per query.
pub(crate) const NEWEST: u64 = 100;
/// Readings per transaction, in addition to its marker.
pub(crate) const READINGS_PER_TRANSACTION: u64 = 25;

const NUMBER_WIDTH: usize = 12;

/// Servers without authentication still require a signature; all receive the same one.
const CREDENTIALS: &str = "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=0000000000000000000000000000000000000000000000000000000000000000";

/// A request for an operation.
pub(crate) fn request(operation: &str, body: &Body) -> Template {
    let headers = format!(
        "Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: DynamoDB_20120810.{operation}\r\nX-Amz-Date: 20260101T000000Z\r\nAuthorization: {CREDENTIALS}\r\n"
    );
    Template::post("/", &headers, body)
}

pub(crate) fn put_item() -> Template {
    let body = Body::default()
        .text(&format!("{{\"TableName\":\"{WRITTEN}\",\"Item\":"))
        .then(item(0))
        .text("}");
    request("PutItem", &body)
}

pub(crate) fn get_item(table: &str) -> Template {
    let body = Body::default()
        .text(&format!("{{\"TableName\":\"{table}\",\"Key\":{{"))
        .then(key(0))
        .text("},\"ConsistentRead\":true}");
    request("GetItem", &body)
}

pub(crate) fn query() -> Template {
    let body = Body::default()
        .text(&format!(
            "{{\"TableName\":\"{READINGS}\",\"KeyConditionExpression\":\"device_id = :device\",\"ExpressionAttributeValues\":{{\":device\":{{\"S\":\""
        ))
        .then(device())
        .text(&format!(
            "\"}}}},\"ScanIndexForward\":false,\"Limit\":{NEWEST}}}"
        ));
    request("Query", &body)
}

/// A marker that must be new, and readings.
pub(crate) fn transact_write_items() -> Template {
    let mut body = Body::default()
        .text(&format!(
            "{{\"TransactItems\":[{{\"Put\":{{\"TableName\":\"{BATCHES}\",\"Item\":{{\"batch_id\":{{\"S\":\"batch-"
        ))
        .digits(NUMBER_WIDTH, Digits::Plus(0))
        .text("\"}},\"ConditionExpression\":\"attribute_not_exists(batch_id)\"}}");
    for at in 0..READINGS_PER_TRANSACTION {
        body = body
            .text(&format!(
                ",{{\"Put\":{{\"TableName\":\"{WRITTEN}\",\"Item\":"
            ))
            .then(item(at))
            .text("}}");
    }
    request("TransactWriteItems", &body.text("]}"))
}

/// Fills a table with a batch of readings, from the request's number on.
pub(crate) fn batch_write_item(table: &str) -> Template {
    let mut body = Body::default().text(&format!("{{\"RequestItems\":{{\"{table}\":["));
    for at in 0..READINGS_PER_TRANSACTION {
        let comma = if at == 0 { "" } else { "," };
        body = body
            .text(&format!("{comma}{{\"PutRequest\":{{\"Item\":"))
            .then(item(at))
            .text("}}");
    }
    request("BatchWriteItem", &body.text("]}}"))
}

pub(crate) fn create_table(table: &str) -> Template {
    let (attributes, schema) = if table == BATCHES {
        (
            r#"{"AttributeName":"batch_id","AttributeType":"S"}"#,
            r#"{"AttributeName":"batch_id","KeyType":"HASH"}"#,
        )
    } else {
        (
            r#"{"AttributeName":"device_id","AttributeType":"S"},{"AttributeName":"at","AttributeType":"S"}"#,
            r#"{"AttributeName":"device_id","KeyType":"HASH"},{"AttributeName":"at","KeyType":"RANGE"}"#,
        )
    };
    let body = format!(
        "{{\"TableName\":\"{table}\",\"BillingMode\":\"PAY_PER_REQUEST\",\"AttributeDefinitions\":[{attributes}],\"KeySchema\":[{schema}]}}"
    );
    request("CreateTable", &Body::default().text(&body))
}

fn device() -> Body {
    Body::default().text("device-").digits(
        4,
        Digits::Group {
            size: READINGS_PER_TRANSACTION,
            count: PARTITIONS,
        },
    )
}

/// The key of the reading at position `at` from the request's number. Each device gets as many consecutive numbers as a
/// request has readings, so a request concerns one device.
fn key(at: u64) -> Body {
    Body::default()
        .text("\"device_id\":{\"S\":\"")
        .then(device())
        .text("\"},\"at\":{\"S\":\"")
        .digits(NUMBER_WIDTH, Digits::Plus(at))
        .text("\"}")
}

/// A reading with an item size of 400 bytes.
pub(crate) fn item(at: u64) -> Body {
    Body::default().text("{").then(key(at)).text(concat!(
        r#","timestamp_ms":{"N":"1767225600000"},"#,
        r#""batch_id":{"S":"AA:BB:CC:DD:EE:FF_7c9e6679-7425-40de-944b-e07fc1f90ae7_1704067200000"},"#,
        r#""boot_id":{"S":"7c9e6679-7425-40de-944b-e07fc1f90ae7"},"firmware_version":{"S":"1.0.16"},"#,
        r#""friendly_name":{"S":"greenhouse-sensor-01"},"sensors":{"M":{"bme280_temp_c":{"N":"22.5"},"#,
        r#""ds18b20_temp_c":{"N":"21.75"},"humidity_pct":{"N":"45.2"},"pressure_hpa":{"N":"1013.25"}}},"#,
        r#""sensor_status":{"M":{"bme280":{"S":"ok"},"ds18b20":{"S":"ok"}}},"#,
        r#""location":{"S":"greenhouse 2, third row, by a door"},"expiration_time":{"N":"4102444800"}}"#
    ))
}

#[cfg(test)]
mod tests {
    use homeport_item::Item;

    use super::*;

    #[test]
    fn an_item_counts_for_400_bytes() {
        let json = item(3).filled(4_000_000);
        let item: Item = serde_json::from_str(&json).expect("DynamoDB's JSON");
        assert_eq!(item.get("at"), Some(&"000004000003".into()));
        assert_eq!(item.get("device_id"), Some(&"device-0000".into()));
        assert_eq!(item.size(), 400);
    }
}
