//! Renders the tables and permissions as Terraform.

use std::fmt::Write as _;

use homeport_item::schema::{IndexSchema, TableSchema};
use homeport_systems::schema::{System, UsedTable};

use crate::config::StoreSettings;

use super::policies::{self, Policy, Statement};
use super::{rights, shape};

pub(super) fn render(systems: &[System], settings: &StoreSettings) -> String {
    let mut text = head(settings);
    let tables = || systems.iter().flat_map(|system| &system.tables);
    for table in tables() {
        text.push('\n');
        resource(&mut text, table);
    }
    let policies = policies::policies(systems);
    for (at, policy) in policies.iter().enumerate() {
        describe_policy(&mut text, &policy_name(at), policy);
    }
    text.push_str("\noutput \"policy_arns\" {\n");
    text.push_str("  description = \"Attach all of them to the role that Homeport runs as.\"\n");
    let arns: Vec<_> = (0..policies.len())
        .map(|at| format!("aws_iam_policy.{}.arn", policy_name(at)))
        .collect();
    list(&mut text, "  ", "value", &arns);
    text.push_str("}\n");
    text
}

fn policy_name(at: usize) -> String {
    format!("homeport_{}", at + 1)
}

fn head(settings: &StoreSettings) -> String {
    let key = settings
        .kms_key_id
        .as_deref()
        .map_or_else(|| "null".to_owned(), quoted);
    let mut tags = String::from("{");
    for (at, (name, value)) in settings.tags.0.iter().enumerate() {
        let separator = if at == 0 { " " } else { ", " };
        let _ = write!(tags, "{separator}{} = {}", quoted(name), quoted(value));
    }
    tags.push_str(if tags.len() > 1 { " }" } else { "}" });
    let variables = [
        (
            "kms_key_arn",
            "string",
            key,
            "ARN of the KMS key that encrypts the tables; if null, a key that AWS owns.",
        ),
        (
            "point_in_time_recovery",
            "bool",
            settings.point_in_time_recovery.to_string(),
            "Whether tables can be restored to any second of the last 35 days.",
        ),
        (
            "deletion_protection",
            "bool",
            settings.deletion_protection.to_string(),
            "Whether tables are protected from being deleted.",
        ),
        (
            "tags",
            "map(string)",
            tags,
            "Tags of the tables and of the policies.",
        ),
    ];
    let mut text = String::from(
        "# Homeport's tables and the permissions it needs on them, as `homeport tables terraform` prints them.\n\n\
         terraform {\n  required_providers {\n    aws = {\n      source  = \"hashicorp/aws\"\n      version = \">= 5.0\"\n    }\n  }\n}\n",
    );
    for (name, kind, default, description) in variables {
        let _ = write!(
            text,
            "\nvariable \"{name}\" {{\n  type        = {kind}\n  default     = {default}\n  description = {}\n}}\n",
            quoted(description)
        );
    }
    text
}

fn reference(table: &TableSchema) -> String {
    format!("aws_dynamodb_table.{}", shape::snake(&table.name))
}

fn resource(text: &mut String, used: &UsedTable) {
    let table = &used.schema;
    let _ = writeln!(
        text,
        "resource \"aws_dynamodb_table\" \"{}\" {{",
        shape::snake(&table.name)
    );
    let mut settings = vec![
        ("name", quoted(&table.name)),
        ("billing_mode", quoted("PAY_PER_REQUEST")),
        ("hash_key", quoted(&table.key.partition.name)),
    ];
    if let Some(sort) = &table.key.sort {
        settings.push(("range_key", quoted(&sort.name)));
    }
    settings.push((
        "deletion_protection_enabled",
        "var.deletion_protection".to_owned(),
    ));
    if let Some(view) = table.stream {
        settings.push(("stream_enabled", "true".to_owned()));
        settings.push(("stream_view_type", quoted(shape::stream_view(view))));
    }
    settings.push(("tags", "var.tags".to_owned()));
    assign(text, "  ", &settings);
    for attribute in shape::key_attributes(table) {
        let kind = quoted(shape::kind(attribute.kind));
        block(
            text,
            "attribute",
            &[("name", quoted(&attribute.name)), ("type", kind)],
        );
    }
    for index in &table.indexes {
        describe_index(text, index);
    }
    if let Some(attribute) = &table.ttl_attribute {
        block(
            text,
            "ttl",
            &[
                ("attribute_name", quoted(attribute)),
                ("enabled", "true".to_owned()),
            ],
        );
    }
    let recovery = "var.point_in_time_recovery".to_owned();
    block(text, "point_in_time_recovery", &[("enabled", recovery)]);
    block(
        text,
        "server_side_encryption",
        &[
            ("enabled", "var.kms_key_arn != null".to_owned()),
            ("kms_key_arn", "var.kms_key_arn".to_owned()),
        ],
    );
    // A plan that would replace a table must not delete its data.
    let mut lifecycle = vec![("prevent_destroy", "true".to_owned())];
    if used.may_be_watched {
        // Alerts enable the stream when they need it, and a plan must not disable it again.
        let stream = "[stream_enabled, stream_view_type]".to_owned();
        lifecycle.push(("ignore_changes", stream));
    }
    block(text, "lifecycle", &lifecycle);
    text.push_str("}\n");
}

fn describe_index(text: &mut String, index: &IndexSchema) {
    let (projection, names) = shape::projection(index);
    let mut settings = vec![("name", quoted(&index.name))];
    // A local index shares its table's partition key, which Terraform does not repeat.
    if !index.local {
        settings.push(("hash_key", quoted(&index.key.partition.name)));
    }
    if let Some(sort) = &index.key.sort {
        settings.push(("range_key", quoted(&sort.name)));
    }
    settings.push(("projection_type", quoted(projection)));
    if !names.is_empty() {
        let names: Vec<_> = names.iter().map(|name| quoted(name)).collect();
        settings.push(("non_key_attributes", format!("[{}]", names.join(", "))));
    }
    let kind = if index.local {
        "local_secondary_index"
    } else {
        "global_secondary_index"
    };
    block(text, kind, &settings);
}

fn describe_policy(text: &mut String, name: &str, policy: &Policy<'_>) {
    let _ = writeln!(text, "\ndata \"aws_iam_policy_document\" \"{name}\" {{");
    for (at, statement) in policy.statements.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        describe_statement(text, statement);
    }
    if policy.has_key {
        text.push('\n');
        key_statement(text);
    }
    text.push_str("}\n");
    let _ = writeln!(text, "\nresource \"aws_iam_policy\" \"{name}\" {{");
    assign(
        text,
        "  ",
        &[
            ("name_prefix", quoted("homeport-")),
            ("description", quoted("Homeport's access to its tables.")),
            (
                "policy",
                format!("data.aws_iam_policy_document.{name}.json"),
            ),
            ("tags", "var.tags".to_owned()),
        ],
    );
    text.push_str("}\n");
}

fn describe_statement(text: &mut String, statement: &Statement<'_>) {
    let actions = statement.actions.iter();
    let actions: Vec<_> = actions.map(|action| quoted(action)).collect();
    let resources = statement.resources.iter().map(|resource| {
        let arn = format!("{}.arn", reference(resource.table));
        match &resource.below {
            Some(below) => format!("\"${{{arn}}}/{below}\""),
            None => arn,
        }
    });
    let resources: Vec<_> = resources.collect();
    text.push_str("  statement {\n");
    list(text, "    ", "actions", &actions);
    list(text, "    ", "resources", &resources);
    text.push_str("  }\n");
}

/// The permissions on the key, if there is one.
fn key_statement(text: &mut String) {
    text.push_str("  dynamic \"statement\" {\n");
    text.push_str("    for_each = var.kms_key_arn == null ? [] : [var.kms_key_arn]\n");
    text.push_str("    content {\n");
    list(text, "      ", "actions", &rights::USE_KEY.map(quoted));
    text.push_str("      resources = [statement.value]\n      condition {\n");
    text.push_str("        test     = \"StringLike\"\n        variable = \"kms:ViaService\"\n");
    let _ = writeln!(text, "        values   = [{}]", quoted(rights::VIA_SERVICE));
    text.push_str("      }\n    }\n  }\n");
}

fn block(text: &mut String, name: &str, settings: &[(&str, String)]) {
    let _ = writeln!(text, "\n  {name} {{");
    assign(text, "    ", settings);
    text.push_str("  }\n");
}

/// Assignments with aligned equals signs, as Terraform formats them.
fn assign(text: &mut String, indent: &str, settings: &[(&str, String)]) {
    let width = settings.iter().map(|(name, _)| name.len()).max();
    let width = width.unwrap_or_default();
    for (name, value) in settings {
        let _ = writeln!(text, "{indent}{name:width$} = {value}");
    }
}

fn list(text: &mut String, indent: &str, name: &str, values: &[String]) {
    let _ = writeln!(text, "{indent}{name} = [");
    for value in values {
        let _ = writeln!(text, "{indent}  {value},");
    }
    let _ = writeln!(text, "{indent}]");
}

/// A quoted string without template sequences.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted.replace("${", "$${").replace("%{", "%%{")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_feature_is_rendered() {
        let rendered = render(&shape::sample::systems(), &shape::sample::settings());
        assert_eq!(rendered, include_str!("expected/sample.tf"));
    }

    #[test]
    fn text_cannot_contain_templates() {
        assert_eq!(quoted("a\"b\\c${d}%{e}\n"), r#""a\"b\\c$${d}%%{e}\n""#);
    }
}
