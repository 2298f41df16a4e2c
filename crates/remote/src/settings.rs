//! How to reach DynamoDB, and what tables get beyond their schema.

use std::collections::BTreeMap;
use std::fmt;

use homeport_item::schema::StreamView;

/// How to reach DynamoDB. The default is Amazon's own, as the environment and the profile of who
/// runs the program say.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Another endpoint than Amazon's, such as `http://127.0.0.1:8000`. Where it is absent,
    /// `AWS_ENDPOINT_URL_DYNAMODB`, `AWS_ENDPOINT_URL` and the profile may still name one.
    pub endpoint_url: Option<String>,
    /// The region, such as `eu-central-1`. Where it is absent, it comes from `AWS_REGION`, the
    /// profile or the machine's metadata; without any, connecting fails.
    pub region: Option<String>,
    /// Who is asking. Where it is absent, the SDK's default chain decides: environment, profile,
    /// web identity, container, machine. That is the right choice on AWS.
    pub access_key: Option<AccessKey>,
    /// What tables get beyond their schema.
    pub tables: TableOptions,
}

/// What `ensure_tables` gives to the tables that it creates, and adds to those that lack it.
/// Nothing is ever taken away: an option that is off leaves a table as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableOptions {
    /// Keep 35 days of history to restore from (point-in-time recovery).
    pub point_in_time_recovery: bool,
    /// Encrypt with this key of the Key Management Service: its id or its ARN, not an alias. Without
    /// it, DynamoDB encrypts with a key of its own, at no charge.
    pub kms_key_id: Option<String>,
    /// A stream for every table whose schema asks for none.
    pub stream: Option<StreamView>,
    /// Tags, by which costs and permissions can be told apart.
    pub tags: BTreeMap<String, String>,
    /// Refuse to delete the table until this is switched off.
    pub deletion_protection: bool,
}

/// An access key id with its secret.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessKey {
    pub id: String,
    pub(crate) secret: String,
}

impl AccessKey {
    pub fn new(id: impl Into<String>, secret: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            secret: secret.into(),
        }
    }
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AccessKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let settings = Settings {
            access_key: Some(AccessKey::new("id", "s3cret")),
            ..Settings::default()
        };
        assert!(!format!("{settings:?}").contains("s3cret"));
    }
}
