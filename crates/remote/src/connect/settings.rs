//! Connection settings and table options.

use std::collections::BTreeMap;
use std::fmt;

use homeport_item::schema::StreamView;

/// Connection settings. The default is Amazon DynamoDB with the environment and profile of the
/// user.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// An endpoint other than Amazon's, such as `http://127.0.0.1:8000`. If `None`,
    /// `AWS_ENDPOINT_URL_DYNAMODB`, `AWS_ENDPOINT_URL` or the profile may set one.
    pub endpoint_url: Option<String>,
    /// The region, such as `eu-central-1`. If `None`, it comes from `AWS_REGION`, the profile or
    /// the instance metadata; connecting fails without one.
    pub region: Option<String>,
    /// The credentials. If `None`, the SDK's default chain provides them: environment, profile, web
    /// identity, container, instance. That is the right choice on AWS.
    pub access_key: Option<AccessKey>,
    /// Options of tables beyond their schema.
    pub tables: TableOptions,
}

/// Options that `ensure_tables` sets on new tables and adds to existing ones. Nothing is ever
/// removed: an option that is off leaves a table unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableOptions {
    /// Enables point-in-time recovery, which keeps 35 days of history.
    pub point_in_time_recovery: bool,
    /// Encrypts with this KMS key, given by its id or ARN, not an alias. Without it, DynamoDB
    /// encrypts with its own key at no charge.
    pub kms_key_id: Option<String>,
    /// The stream of tables whose schema has none.
    pub stream: Option<StreamView>,
    /// Tags, for example for cost allocation and permissions.
    pub tags: BTreeMap<String, String>,
    /// Enables deletion protection.
    pub deletion_protection: bool,
}

/// An access key id and its secret.
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
    fn debug_output_hides_the_secret() {
        let settings = Settings {
            access_key: Some(AccessKey::new("id", "s3cret")),
            ..Settings::default()
        };
        assert!(!format!("{settings:?}").contains("s3cret"));
    }
}
