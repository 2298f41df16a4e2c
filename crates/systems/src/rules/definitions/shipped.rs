//! The rules that ship with Homeport. They store telemetry, status and alerts of things in the table of
//! telemetry. They are created once and can be changed and deleted like any other rule.

use super::compiled::SQL_VERSION;
use super::document::{ActionDocument, DynamoDbV2Document, PutItemDocument, RuleDocument};
use super::name::RuleName;

/// The statement of the design document, verbatim.
const TELEMETRY: &str = "SELECT \n\
\x20 topic(2) as thing_name,           -- Extract from topic: van/THING_NAME/telemetry\n\
\x20 timestamp() as timestamp,         -- IoT Core timestamp\n\
\x20 'telemetry' as message_type,      -- Hardcode type\n\
\x20 * ,                               -- All payload fields\n\
\x20 timestamp() + 2592000000 as ttl  -- Expire after 30 days\n\
FROM 'van/+/telemetry'";
const STATUS: &str = "SELECT topic(2) AS thing_name, timestamp() AS timestamp, 'status' AS message_type, *,\n\
\x20 timestamp() + 2592000000 AS ttl\n\
FROM 'van/+/status'";
const ALERTS: &str = "SELECT topic(2) AS thing_name, timestamp() AS timestamp, 'alert' AS message_type, *,\n\
\x20 timestamp() + 2592000000 AS ttl\n\
FROM 'van/+/alerts'";

/// The shipped rules for a table of telemetry.
#[must_use]
pub fn shipped(telemetry_table: &str) -> Vec<(RuleName, RuleDocument)> {
    [
        ("telemetry", TELEMETRY, "Telemetry of things, for 30 days"),
        ("status", STATUS, "Status messages of things, for 30 days"),
        ("alerts", ALERTS, "Alerts that things send, for 30 days"),
    ]
    .into_iter()
    .filter_map(|(name, sql, description)| {
        let put_item = DynamoDbV2Document {
            role_arn: None,
            put_item: PutItemDocument {
                table_name: telemetry_table.to_owned(),
            },
        };
        let document = RuleDocument {
            sql: sql.to_owned(),
            description: Some(description.to_owned()),
            rule_disabled: false,
            aws_iot_sql_version: Some(SQL_VERSION.to_owned()),
            actions: vec![ActionDocument {
                dynamodb_v2: Some(put_item),
                ..ActionDocument::default()
            }],
            error_action: None,
        };
        Some((name.parse().ok()?, document))
    })
    .collect()
}
