//! The access policy of a device: which API keys may read and write it. Operators always may.
//!
//! A device without a policy is open to all keys that may access its group. With a policy, a key needs a statement that
//! allows what it does, and no statement may deny it. What cannot be understood allows nothing, and denies nothing.

use homeport_item::{Item, Map, Value};

use super::types::PolicyDocument;
use super::{Records, RecordsError, schema};

const STATEMENT: &str = "Statement";
const EFFECT: &str = "Effect";
const ACTION: &str = "Action";
const PRINCIPAL: &str = "Principal";
const ALLOW: &str = "Allow";
const DENY: &str = "Deny";
const ALL: &str = "*";

/// What a key does with a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyAction {
    Read,
    Write,
}

impl PolicyAction {
    fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

impl PolicyDocument {
    /// Whether the key with this id may do something.
    #[must_use]
    pub fn permits(&self, key_id: &str, action: PolicyAction) -> bool {
        let statements: &[Value] = match self.members().get(STATEMENT) {
            Some(Value::L(statements)) => statements,
            Some(statement) => std::slice::from_ref(statement),
            None => &[],
        };
        let applies = |effect: &str| {
            let statements = statements.iter().filter_map(Value::as_map);
            statements
                .filter(|statement| statement.get(EFFECT).and_then(Value::as_str) == Some(effect))
                .any(|statement| concerns(statement, key_id, action))
        };
        applies(ALLOW) && !applies(DENY)
    }
}

/// A statement without a principal concerns all keys.
fn concerns(statement: &Map, key_id: &str, action: PolicyAction) -> bool {
    let names = |member: &str, wanted: &str| match statement.get(member) {
        Some(Value::S(name)) => name == wanted || name == ALL,
        Some(Value::L(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .any(|name| name == wanted || name == ALL),
        _ => false,
    };
    names(ACTION, action.as_str())
        && (!statement.contains_key(PRINCIPAL) || names(PRINCIPAL, key_id))
}

impl Records {
    /// The record store as the key with this id may use it: device policies decide what it sees and writes.
    #[must_use]
    pub fn for_key(&self, key_id: impl Into<String>) -> Self {
        Self {
            key_id: Some(key_id.into()),
            ..self.clone()
        }
    }

    /// Whether the policy in a device's item permits an action.
    pub(super) fn is_permitted(&self, device: &Item, action: PolicyAction) -> bool {
        let (Some(key_id), Some(policy)) = (&self.key_id, device.get(schema::ACL_POLICY)) else {
            return true;
        };
        let policy = PolicyDocument::from_stored(policy);
        policy.is_some_and(|policy| policy.permits(key_id, action))
    }

    pub(super) fn check_policy(
        &self,
        device: &Item,
        action: PolicyAction,
    ) -> Result<(), RecordsError> {
        if self.is_permitted(device, action) {
            Ok(())
        } else {
            Err(RecordsError::PolicyDenied)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(members: &[(&str, Value)]) -> Value {
        let members = members.iter().cloned();
        Value::M(
            members
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    }

    fn policy(statements: Vec<Value>) -> PolicyDocument {
        let members = [(STATEMENT.to_owned(), Value::L(statements))];
        PolicyDocument::new(Map::from(members)).unwrap()
    }

    #[test]
    fn key_needs_an_allowing_statement() {
        let allow = map(&[
            (EFFECT, ALLOW.into()),
            (ACTION, Value::L(vec!["read".into()])),
            (PRINCIPAL, "k1".into()),
        ]);
        let read_only = policy(vec![allow.clone()]);
        assert!(read_only.permits("k1", PolicyAction::Read));
        assert!(!read_only.permits("k1", PolicyAction::Write));
        assert!(!read_only.permits("k2", PolicyAction::Read));
        let all = map(&[(EFFECT, ALLOW.into()), (ACTION, ALL.into())]);
        let deny = map(&[
            (EFFECT, DENY.into()),
            (ACTION, "write".into()),
            (PRINCIPAL, Value::L(vec!["k2".into()])),
        ]);
        let mixed = policy(vec![all, deny]);
        assert!(mixed.permits("k1", PolicyAction::Write));
        assert!(mixed.permits("k2", PolicyAction::Read));
        assert!(!mixed.permits("k2", PolicyAction::Write));
        for other in [vec![], vec![map(&[(EFFECT, ALLOW.into())])], vec![1.into()]] {
            assert!(!policy(other).permits("k1", PolicyAction::Read));
        }
    }
}
