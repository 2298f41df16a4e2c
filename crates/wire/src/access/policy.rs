//! Policies in IAM's JSON form.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value as Json;

use super::condition::Condition;
use super::pattern::{self, PATTERN_MAX_BYTES};
use super::permission::{Permission, Resource};

/// The longest policy.
const POLICY_MAX_BYTES: usize = 64 * 1024;
const VERSIONS: [&str; 2] = ["2012-10-17", "2008-10-17"];

/// The permissions of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    statements: Vec<Statement>,
}

/// Why a policy is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("the policy is longer than {POLICY_MAX_BYTES} bytes")]
    TooLong,
    #[error("invalid policy JSON: {0}")]
    Json(String),
    #[error("unknown policy version {0:?}; use 2012-10-17")]
    Version(String),
    #[error("a statement must have either {0} or {1}")]
    OneOf(&'static str, &'static str),
    #[error("the pattern {0:?} is too long")]
    Pattern(String),
    #[error("unknown condition operator {0:?}")]
    Operator(String),
    #[error("unknown condition key {0:?}")]
    Key(String),
    #[error("unknown variable {0:?}")]
    Variable(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Effect {
    Allow,
    Deny,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Statement {
    effect: Effect,
    actions: Patterns,
    resources: Patterns,
    conditions: Vec<Condition>,
}

/// Patterns of which at least one must match, or none if inverted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Patterns {
    patterns: Vec<String>,
    inverted: bool,
}

/// The decision of a policy on a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Allowed,
    /// No statement allows it.
    NotAllowed,
    /// A statement denies it, even if another one allows it.
    Denied,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Document {
    version: Option<String>,
    #[serde(rename = "Id")]
    _id: Option<String>,
    statement: OneOrMany<StatementInput>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct StatementInput {
    #[serde(rename = "Sid")]
    _sid: Option<String>,
    effect: Effect,
    action: Option<OneOrMany<String>>,
    not_action: Option<OneOrMany<String>>,
    resource: Option<OneOrMany<String>>,
    not_resource: Option<OneOrMany<String>>,
    #[serde(default)]
    condition: Members<Members<Json>>,
}

/// The members of a JSON object in their order. A repeated name is an error, because only one of its values could count.
#[derive(Debug)]
struct Members<T>(Vec<(String, T)>);

impl<T> Default for Members<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor(PhantomData))
    }
}

struct MembersVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for MembersVisitor<T> {
    type Value = Members<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<T>, A::Error> {
        let mut members: Vec<(String, T)> = Vec::new();
        while let Some((name, value)) = map.next_entry()? {
            if members.iter().any(|(known, _)| *known == name) {
                return Err(A::Error::custom(format_args!("{name:?} is repeated")));
            }
            members.push((name, value));
        }
        Ok(Members(members))
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(one) => vec![one],
            Self::Many(many) => many,
        }
    }
}

impl Policy {
    /// Parses a policy. `user_name` is the value of `${aws:username}`.
    ///
    /// # Errors
    /// If it is invalid or has unknown parts. Ignoring an unknown part could permit too much.
    pub fn parse(text: &str, user_name: &str) -> Result<Self, PolicyError> {
        if text.len() > POLICY_MAX_BYTES {
            return Err(PolicyError::TooLong);
        }
        let document: Document =
            serde_json::from_str(text).map_err(|error| PolicyError::Json(error.to_string()))?;
        if let Some(version) = document.version
            && !VERSIONS.contains(&version.as_str())
        {
            return Err(PolicyError::Version(version));
        }
        let statements = document
            .statement
            .into_vec()
            .into_iter()
            .map(|statement| Statement::read(statement, user_name))
            .collect::<Result<_, _>>()?;
        Ok(Self { statements })
    }

    /// The decision on a permission. One Deny overrides every Allow.
    pub(super) fn decide(&self, permission: &Permission) -> Decision {
        let mut decision = Decision::NotAllowed;
        for statement in &self.statements {
            if !statement.applies(permission) {
                continue;
            }
            match statement.effect {
                Effect::Deny => return Decision::Denied,
                Effect::Allow => decision = Decision::Allowed,
            }
        }
        decision
    }
}

impl Statement {
    fn read(given: StatementInput, user_name: &str) -> Result<Self, PolicyError> {
        let mut conditions = Vec::new();
        for (operator, Members(keys)) in given.condition.0 {
            for (key, wanted) in keys {
                let wanted = wanted_values(wanted)?;
                conditions.push(Condition::new(&operator, &key, wanted, user_name)?);
            }
        }
        Ok(Self {
            effect: given.effect,
            actions: Patterns::read(
                ("Action", given.action),
                ("NotAction", given.not_action),
                user_name,
            )?,
            resources: Patterns::read(
                ("Resource", given.resource),
                ("NotResource", given.not_resource),
                user_name,
            )?,
            conditions,
        })
    }

    fn applies(&self, permission: &Permission) -> bool {
        let action = permission.action.to_ascii_lowercase();
        self.actions
            .any(|pattern| pattern::matches(&pattern.to_ascii_lowercase(), &action))
            && self.covers(&permission.resource)
            && self
                .conditions
                .iter()
                .all(|condition| condition.holds(&permission.context, self.effect))
    }

    /// Whether the statement covers a resource. For a prefix, an Allow must cover all of its resources, and a Deny any of them.
    fn covers(&self, resource: &Resource) -> bool {
        let prefix = match resource {
            Resource::One(arn) => {
                return self.resources.any(|pattern| pattern::covers(pattern, arn));
            }
            Resource::Prefix(prefix) => prefix,
        };
        let needs_all = (self.effect == Effect::Allow) != self.resources.inverted;
        self.resources.any(|pattern| match needs_all {
            true => pattern::covers_all(pattern, prefix),
            false => pattern::covers_some(pattern, prefix),
        })
    }
}

/// Values of a condition: texts, numbers and booleans, one or several.
fn wanted_values(given: Json) -> Result<Vec<String>, PolicyError> {
    let one = |value: Json| match value {
        Json::String(text) => Ok(text),
        Json::Bool(flag) => Ok(flag.to_string()),
        Json::Number(number) => Ok(number.to_string()),
        other => Err(PolicyError::Json(format!(
            "{other} is not a value of a condition"
        ))),
    };
    match given {
        Json::Array(values) => values.into_iter().map(one).collect(),
        value => Ok(vec![one(value)?]),
    }
}

impl Patterns {
    fn read(
        (name, given): (&'static str, Option<OneOrMany<String>>),
        (inverse_name, inverse): (&'static str, Option<OneOrMany<String>>),
        user_name: &str,
    ) -> Result<Self, PolicyError> {
        let (given, inverted) = match (given, inverse) {
            (Some(given), None) => (given, false),
            (None, Some(given)) => (given, true),
            _ => return Err(PolicyError::OneOf(name, inverse_name)),
        };
        let mut patterns = Vec::new();
        for pattern in given.into_vec() {
            if pattern.len() > PATTERN_MAX_BYTES {
                return Err(PolicyError::Pattern(pattern.chars().take(80).collect()));
            }
            patterns.push(
                pattern::replace_variables(&pattern, user_name).map_err(PolicyError::Variable)?,
            );
        }
        Ok(Self { patterns, inverted })
    }

    fn any(&self, matches: impl Fn(&str) -> bool) -> bool {
        self.patterns.iter().any(|pattern| matches(pattern)) != self.inverted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::request_context::{RequestContext, Values};

    /// The policy in the documentation of the push system.
    const DOCUMENTED: &str = r#"{
      "Version": "2012-10-17",
      "Statement": [
        {
          "Effect": "Allow",
          "Action": [
            "dynamodb:PutItem",
            "dynamodb:GetItem",
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
            "dynamodb:Query"
          ],
          "Resource": "arn:aws:dynamodb:REGION:ACCOUNT:table/photoeditor-ENV-device-tokens"
        },
        {
          "Effect": "Allow",
          "Action": [
            "kms:Decrypt",
            "kms:GenerateDataKey"
          ],
          "Resource": "arn:aws:kms:REGION:ACCOUNT:key/KMS_KEY_ID"
        }
      ]
    }"#;

    fn decide(policy: &str, action: &str, resource: &str, context: &RequestContext) -> Decision {
        let policy = Policy::parse(policy, "ann").expect("a policy");
        let arn = format!("arn:aws:dynamodb:us-east-1:000000000000:{resource}");
        let permission = Permission::new(format!("dynamodb:{action}"), Resource::One(arn));
        policy.decide(&permission.with(context.clone()))
    }

    #[test]
    fn allow_covers_whole_prefix_and_deny_any_part() {
        let policy = r#"{"Statement":[
            {"Effect":"Allow","Action":"s3:*","Resource":["arn:aws:s3:::b/one/*","arn:aws:s3:::b/two"]},
            {"Effect":"Allow","Action":"s3:PutObject","NotResource":["arn:aws:s3:::b/*","arn:aws:s3:::c/kept/*"]},
            {"Effect":"Deny","Action":"s3:*","Resource":"arn:aws:s3:::b/one/secret/?"},
            {"Effect":"Deny","Action":"s3:PutObject","NotResource":["arn:aws:s3:::b/one/in/*","arn:aws:s3:::c/*"]}]}"#;
        let policy = Policy::parse(policy, "ann").expect("a policy");
        for (action, prefix, expected) in [
            ("GetObject", "b/one/open/", Decision::Allowed),
            // Other folders begin with this too.
            ("GetObject", "b/one", Decision::Denied),
            ("GetObject", "b/one/", Decision::Denied),
            ("GetObject", "b/one/secret/", Decision::Denied),
            ("GetObject", "b/one/secrets/", Decision::Allowed),
            ("GetObject", "b/two", Decision::NotAllowed),
            ("PutObject", "b/one/in/", Decision::Allowed),
            ("PutObject", "b/one/out/", Decision::Denied),
            ("PutObject", "c/open/", Decision::Allowed),
            ("PutObject", "c/ke", Decision::NotAllowed),
            ("PutObject", "c/kept/x/", Decision::NotAllowed),
        ] {
            let resource = Resource::Prefix(format!("arn:aws:s3:::{prefix}"));
            let permission = Permission::new(format!("s3:{action}"), resource);
            assert_eq!(policy.decide(&permission), expected, "{action} {prefix}");
        }
    }

    #[test]
    fn documented_policy_is_accepted() {
        let table = "table/photoeditor-ENV-device-tokens";
        let none = RequestContext::default();
        for (action, resource, expected) in [
            ("PutItem", table, Decision::Allowed),
            ("Query", table, Decision::Allowed),
            ("Scan", table, Decision::NotAllowed),
            ("DeleteTable", table, Decision::NotAllowed),
            ("PutItem", "table/other", Decision::NotAllowed),
        ] {
            assert_eq!(
                decide(DOCUMENTED, action, resource, &none),
                expected,
                "{action}"
            );
        }
    }

    #[test]
    fn deny_overrides_allow() {
        let policy = r#"{"Statement":[
            {"Effect":"Allow","Action":"dynamodb:*","Resource":"*"},
            {"Effect":"Deny","Action":"dynamodb:delete*","Resource":"arn:aws:dynamodb:*:*:table/kept"}]}"#;
        let none = RequestContext::default();
        assert_eq!(
            decide(policy, "DeleteItem", "table/kept", &none),
            Decision::Denied
        );
        assert_eq!(
            decide(policy, "DeleteItem", "table/other", &none),
            Decision::Allowed
        );
        assert_eq!(
            decide(policy, "PutItem", "table/kept", &none),
            Decision::Allowed
        );
    }

    #[test]
    fn inverted_patterns_match_the_rest() {
        let policy = r#"{"Version":"2012-10-17","Statement":{"Sid":"x","Effect":"Allow",
            "NotAction":["dynamodb:DeleteTable","dynamodb:Update*"],"NotResource":"arn:aws:dynamodb:*:*:table/secret"}}"#;
        let none = RequestContext::default();
        for (action, resource, expected) in [
            ("GetItem", "table/open", Decision::Allowed),
            ("GetItem", "table/secret", Decision::NotAllowed),
            ("UpdateTable", "table/open", Decision::NotAllowed),
        ] {
            assert_eq!(
                decide(policy, action, resource, &none),
                expected,
                "{action} {resource}"
            );
        }
    }

    #[test]
    fn all_conditions_must_hold() {
        let policy = r#"{"Statement":[{"Effect":"Allow","Action":["dynamodb:GetItem"],"Resource":"*","Condition":{
            "ForAllValues:StringEquals":{"dynamodb:LeadingKeys":["${aws:username}"],"dynamodb:Attributes":["id","note"]},
            "StringEqualsIfExists":{"dynamodb:Select":"SPECIFIC_ATTRIBUTES"}}}]}"#;
        let context = |keys: &str, attributes: &str, select: &str| RequestContext {
            leading_keys: Values::one(keys),
            attributes: Values::one(attributes),
            select: Values::one(select),
            ..RequestContext::default()
        };
        let specific = "SPECIFIC_ATTRIBUTES";
        for (context, expected) in [
            (context("ann", "note", specific), Decision::Allowed),
            (context("bob", "note", specific), Decision::NotAllowed),
            (context("ann", "secret", specific), Decision::NotAllowed),
            (
                context("ann", "note", "ALL_ATTRIBUTES"),
                Decision::NotAllowed,
            ),
        ] {
            assert_eq!(
                decide(policy, "GetItem", "table/t", &context),
                expected,
                "{context:?}"
            );
        }
    }

    #[test]
    fn invalid_policies_are_rejected() {
        for (policy, expected) in [
            (
                "nonsense",
                "invalid policy JSON: expected ident at line 1 column 2",
            ),
            (
                r#"{"Version":"2030-01-01","Statement":[]}"#,
                "unknown policy version \"2030-01-01\"; use 2012-10-17",
            ),
            (
                r#"{"Statement":[{"Effect":"Allow","Resource":"*"}]}"#,
                "a statement must have either Action or NotAction",
            ),
            (
                r#"{"Statement":[{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"IpAddress":{"aws:SourceIp":"::1"}}}]}"#,
                "unknown condition operator \"IpAddress\"",
            ),
            (
                r#"{"Statement":[{"Effect":"Deny","Action":"*","Resource":"*","Condition":{"Bool":{"aws:SecureTransport":"false"}}}]}"#,
                "unknown condition key \"aws:SecureTransport\"",
            ),
            (
                r#"{"Statement":[{"Effect":"Allow","Action":"*","Resource":"${aws:PrincipalTag/team}"}]}"#,
                "unknown variable \"aws:PrincipalTag/team\"",
            ),
        ] {
            assert_eq!(
                Policy::parse(policy, "ann")
                    .expect_err("refused")
                    .to_string(),
                expected
            );
        }
        for policy in [
            r#"{"Statement":[{"Effect":"allow","Action":"*","Resource":"*"}]}"#,
            r#"{"Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*"}]}"#,
            // Only one of the two conditions could count.
            r#"{"Statement":[{"Effect":"Allow","Action":"*","Resource":"*","Condition":{
                "StringEquals":{"dynamodb:LeadingKeys":"ann"},"StringEquals":{"dynamodb:Select":"COUNT"}}}]}"#,
            r#"{"Statement":[{"Effect":"Allow","Action":"*","Resource":"*","Condition":{
                "StringEquals":{"dynamodb:LeadingKeys":"ann","dynamodb:LeadingKeys":"bob"}}}]}"#,
        ] {
            assert!(
                matches!(Policy::parse(policy, "ann"), Err(PolicyError::Json(_))),
                "{policy}"
            );
        }
        assert_eq!(
            Policy::parse(&" ".repeat(70_000), "ann"),
            Err(PolicyError::TooLong)
        );
    }
}
