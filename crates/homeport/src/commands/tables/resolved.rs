//! Tests of the policies as IAM receives them: the printed Terraform and CloudFormation, with references resolved.

use std::collections::{BTreeMap, BTreeSet};

use homeport_systems::schema::{self, System, TableNames};
use serde_json::{Value, json};

use super::rights::{self, Part};
use super::{cloudformation, shape, terraform};
use crate::config::StoreSettings;

/// IAM's limit, without white space.
const QUOTA: usize = 6_144;
/// Limit for the default table names, of the ten policies that a role can have.
const POLICIES_MAX: usize = 3;
const TABLE_ARN: &str = "arn:aws-us-gov:dynamodb:ap-southeast-3:111122223333:table/";

/// A format: how it renders, and how to extract its policy documents.
type Form = (
    fn(&[System], &StoreSettings) -> String,
    fn(&str) -> Vec<Value>,
);
const FORMS: [Form; 2] = [
    (terraform::render, of_terraform),
    (cloudformation::render, of_cloudformation),
];

/// Settings with a key.
fn settings() -> StoreSettings {
    shape::sample::settings()
}

fn key() -> String {
    settings().kms_key_id.expect("there is one")
}

/// The policy documents of a template with a key.
fn of_cloudformation(text: &str) -> Vec<Value> {
    let template: Value = serde_json::from_str(text).expect("JSON");
    let resources = template["Resources"].as_object().expect("resources");
    let arn = |id: &str| {
        let name = &resources[id]["Properties"]["TableName"];
        format!("{TABLE_ARN}{}", name.as_str().expect("a table"))
    };
    let outputs = &template["Outputs"]["PolicyArns"]["Value"]["Fn::Join"][1];
    let outputs = outputs.as_array().expect("a list");
    let documents = outputs.iter().map(|output| {
        let id = output["Ref"].as_str().expect("a reference");
        let policy = &resources[id];
        assert_eq!(policy["Type"], "AWS::IAM::ManagedPolicy");
        resolve(&policy["Properties"]["PolicyDocument"], &arn)
    });
    let documents: Vec<_> = documents.collect();
    let is_policy = |resource: &&Value| resource["Type"] == "AWS::IAM::ManagedPolicy";
    assert_eq!(
        resources.values().filter(is_policy).count(),
        documents.len()
    );
    documents
}

fn resolve(value: &Value, arn: &impl Fn(&str) -> String) -> Value {
    let Some(members) = value.as_object() else {
        let values = value.as_array();
        return values.map_or_else(
            || value.clone(),
            |values| values.iter().map(|value| resolve(value, arn)).collect(),
        );
    };
    let single = members.iter().next().filter(|_| members.len() == 1);
    match single.map(|(name, value)| (name.as_str(), value)) {
        Some(("Fn::GetAtt", of)) => arn(of[0].as_str().expect("an id")).into(),
        Some(("Fn::Sub", text)) => {
            let text = text.as_str().expect("a text");
            let (id, below) = text
                .strip_prefix("${")
                .and_then(|text| text.split_once(".Arn}"))
                .expect("an ARN and more");
            format!("{}{below}", arn(id)).into()
        }
        Some(("Fn::If", of)) => resolve(&of[1], arn),
        Some(("Ref", id)) => {
            assert_eq!(id, "KmsKeyArn");
            key().into()
        }
        _ => members
            .iter()
            .map(|(name, value)| (name.clone(), resolve(value, arn)))
            .collect(),
    }
}

/// The policy documents of Terraform's data sources with a key.
fn of_terraform(text: &str) -> Vec<Value> {
    let blocks: Vec<_> = text.split("\n}\n").map(str::trim_start).collect();
    let named = |kind: &str| -> BTreeMap<String, &str> {
        let start = format!("{kind} \"");
        let of_kind = blocks
            .iter()
            .filter_map(|block| block.strip_prefix(start.as_str()));
        of_kind
            .map(|rest| rest.split_once("\" {\n").expect("a name"))
            .map(|(name, body)| (name.to_owned(), body))
            .collect()
    };
    let tables = named("resource \"aws_dynamodb_table\"");
    let arn = |reference: &str| {
        let reference = reference.strip_prefix("aws_dynamodb_table.");
        let id = reference.and_then(|rest| rest.strip_suffix(".arn"));
        let body = tables[id.expect("a table's ARN")];
        let name = body.split('"').nth(1).expect("its name comes first");
        format!("{TABLE_ARN}{name}")
    };
    let documents = named("data \"aws_iam_policy_document\"");
    let policies = named("resource \"aws_iam_policy\"");
    let output = named("output")["policy_arns"];
    assert_eq!(items(output, "value").len(), policies.len());
    assert_eq!(documents.len(), policies.len());
    let documents = policies.iter().map(|(name, policy)| {
        assert!(output.contains(&format!("aws_iam_policy.{name}.arn")));
        assert!(policy.contains(&format!("= data.aws_iam_policy_document.{name}.json")));
        let statements = documents[name].split("statement").skip(1);
        let statements = statements.filter(|statement| statement.contains("actions"));
        let statements: Vec<_> = statements.map(|text| statement(text, &arn)).collect();
        json!({ "Version": "2012-10-17", "Statement": statements })
    });
    documents.collect()
}

fn statement(text: &str, arn: &impl Fn(&str) -> String) -> Value {
    let actions = items(text, "actions");
    let actions: Vec<_> = actions
        .iter()
        .map(|action| action.trim_matches('"'))
        .collect();
    if actions.iter().all(|action| action.starts_with("kms:")) {
        return json!({
            "Sid": "", "Effect": "Allow", "Action": actions, "Resource": key(),
            "Condition": { "StringLike": { "kms:ViaService": "dynamodb.*.amazonaws.com" } },
        });
    }
    let resources = items(text, "resources").into_iter().map(|resource| {
        let quoted = resource.strip_prefix("\"${");
        match quoted.and_then(|rest| rest.strip_suffix('"')?.split_once('}')) {
            Some((reference, below)) => format!("{}{below}", arn(reference)),
            None => arn(resource),
        }
    });
    let resources: Vec<_> = resources.collect();
    json!({ "Sid": "", "Effect": "Allow", "Action": actions, "Resource": resources })
}

/// The items of a list with one item per line.
fn items<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let (_, rest) = text.split_once(&format!("{name} = [\n")).expect("a list");
    let (items, _) = rest.split_once(']').expect("its end");
    let items = items.lines().map(str::trim).filter(|line| !line.is_empty());
    items.map(|item| item.trim_end_matches(',')).collect()
}

/// Every allowed pair of action and resource.
fn allowed(documents: &[Value]) -> BTreeSet<(String, String)> {
    let texts = |value: &Value| -> Vec<String> {
        let one = value.as_str().map(|text| vec![text.to_owned()]);
        one.unwrap_or_else(|| serde_json::from_value(value.clone()).expect("texts"))
    };
    let statements = documents
        .iter()
        .flat_map(|document| document["Statement"].as_array().expect("statements"));
    let mut allowed = BTreeSet::new();
    for statement in statements {
        assert_eq!(statement["Effect"], "Allow");
        let actions = texts(&statement["Action"]);
        for resource in texts(&statement["Resource"]) {
            let pairs = actions
                .iter()
                .cloned()
                .map(|action| (action, resource.clone()));
            allowed.extend(pairs);
        }
        if actions.iter().any(|action| action.starts_with("kms:")) {
            let via = &statement["Condition"]["StringLike"]["kms:ViaService"];
            assert_eq!(via, rights::VIA_SERVICE);
        }
    }
    allowed
}

/// Every pair of action and resource that `rights` lists.
fn granted(systems: &[System]) -> BTreeSet<(String, String)> {
    let mut granted = BTreeSet::new();
    for grant in rights::grants(systems) {
        let table = format!("{TABLE_ARN}{}", grant.table.schema.name);
        let resources = match &grant.on {
            Part::Table => vec![table],
            Part::Indexes(indexes) => {
                let indexes = indexes.iter();
                indexes
                    .map(|index| format!("{table}/index/{index}"))
                    .collect()
            }
            Part::Streams => vec![format!("{table}/stream/*")],
        };
        for resource in resources {
            let actions = grant.actions.iter();
            granted.extend(actions.map(|action| ((*action).to_owned(), resource.clone())));
        }
    }
    granted.extend(rights::USE_KEY.map(|action| (action.to_owned(), key())));
    granted
}

/// The length as IAM counts it.
fn len(document: &Value) -> usize {
    let text = document.to_string();
    text.chars().filter(|char| !char.is_whitespace()).count()
}

#[test]
fn policies_grant_exactly_the_rights() {
    let systems = schema::systems(&TableNames::default());
    for (render, documents_of) in FORMS {
        let documents = documents_of(&render(&systems, &settings()));
        assert_eq!(allowed(&documents), granted(&systems));
    }
}

#[test]
fn policies_respect_the_limits_of_iam() {
    let systems = schema::systems(&TableNames::default());
    for (render, documents_of) in FORMS {
        let documents = documents_of(&render(&systems, &settings()));
        assert!(documents.len() <= POLICIES_MAX, "{}", documents.len());
        for document in &documents {
            assert!(len(document) <= QUOTA, "{}: {document}", len(document));
        }
    }
}

#[test]
fn longest_table_names_need_more_policies() {
    let longest = |name: char| String::from(name).repeat(255);
    let systems = schema::systems(&TableNames {
        records: longest('r'),
        device_tokens: longest('d'),
        telemetry: longest('t'),
        broadcast_index: true,
    });
    for (render, documents_of) in FORMS {
        let documents = documents_of(&render(&systems, &settings()));
        assert_eq!(allowed(&documents), granted(&systems));
        for document in &documents {
            assert!(len(document) <= QUOTA, "{}: {document}", len(document));
        }
    }
}

#[test]
fn large_system_is_split_over_policies() {
    let mut systems = shape::sample::systems();
    let table = systems[0].tables[0].clone();
    systems[0].tables.extend((0..30).map(|number| {
        let mut table = table.clone();
        table.schema.name = format!("many-things-{number}-{}", "x".repeat(100));
        table
    }));
    for (render, documents_of) in FORMS {
        let documents = documents_of(&render(&systems, &settings()));
        assert_eq!(allowed(&documents), granted(&systems));
        assert!(documents.len() > 1);
        for document in &documents {
            assert!(len(document) <= QUOTA, "{}: {document}", len(document));
        }
    }
}
