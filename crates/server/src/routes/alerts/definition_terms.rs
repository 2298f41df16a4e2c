//! The terms of alert definitions as JSON, parsed into the system's types and written from them.

use std::collections::BTreeSet;

use homeport_systems::alerts::{
    DefinitionTerms, Devices, Filter, Quiet, Severity, Target, WebhookSecret,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::definition_conditions::{ConditionBody, whole_or};
use crate::openapi::enums::{AlertSeverity, AlertSource};
use crate::openapi::schemas::alerts as schemas;
use crate::problem::Problem;
use crate::request::{WholeNumber, json_object};

/// An alert definition to store.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewAlertDefinition)]
pub(super) struct TermsBody {
    /// Name
    #[schema(schema_with = schemas::name)]
    name: String,
    /// Whether the definition is enabled; default true
    enabled: Option<bool>,
    /// Severity of its alerts; default `warning`. A change applies to alerts that are raised later
    severity: Option<AlertSeverity>,
    source: AlertSource,
    /// Watch only items whose attribute equals this text
    #[serde(rename = "where", default, deserialize_with = "json_object::optional")]
    #[schema(nullable)]
    filter: Option<FilterBody>,
    #[schema(schema_with = schemas::devices, required = false)]
    #[serde(default)]
    devices: Option<DevicesBody>,
    #[schema(schema_with = schemas::condition)]
    condition: ConditionBody,
    /// Hours without notifications; alerts that are open at their end are notified then
    #[serde(default, deserialize_with = "json_object::optional")]
    #[schema(nullable)]
    quiet: Option<QuietBody>,
    /// Minimum time between two notifications for a device, in seconds
    #[schema(value_type = Option<u32>, maximum = 2_678_400)]
    min_interval_secs: Option<WholeNumber>,
    #[schema(schema_with = schemas::targets, required = false)]
    #[serde(default)]
    targets: Option<Vec<TargetBody>>,
}

/// The terms of a definition without secrets.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertDefinitionTerms)]
pub(super) struct ShownTerms {
    name: String,
    enabled: bool,
    severity: AlertSeverity,
    source: AlertSource,
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    filter: Option<FilterBody>,
    /// All devices if absent
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::devices, required = false)]
    devices: Option<DevicesBody>,
    #[schema(schema_with = schemas::condition)]
    condition: ConditionBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    quiet: Option<QuietBody>,
    min_interval_secs: u32,
    /// A webhook's secret is never shown
    #[schema(schema_with = schemas::targets)]
    targets: Vec<TargetBody>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertFilter)]
pub(super) struct FilterBody {
    #[schema(schema_with = schemas::attribute)]
    attribute: String,
    #[schema(schema_with = schemas::name)]
    equals: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DevicesBody {
    Listed(BTreeSet<String>),
    Prefix(String),
}

/// Hours of the day; the end may be on the next day
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertQuiet)]
pub(super) struct QuietBody {
    #[schema(schema_with = schemas::minute)]
    from: String,
    #[schema(schema_with = schemas::minute)]
    to: String,
    #[schema(schema_with = schemas::zone)]
    zone: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TargetBody {
    #[serde(deserialize_with = "json_object::deserialize")]
    Push(PushBody),
    #[serde(deserialize_with = "json_object::deserialize")]
    Webhook(WebhookBody),
    #[serde(deserialize_with = "json_object::deserialize")]
    Mqtt(MqttBody),
    #[serde(deserialize_with = "json_object::deserialize")]
    Email(EmailBody),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PushBody {
    user_id: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WebhookBody {
    url: String,
    #[serde(skip_serializing)]
    secret: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MqttBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EmailBody {
    to: String,
}

impl std::fmt::Debug for WebhookBody {
    /// Omits the secret.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("WebhookBody")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl TryFrom<TermsBody> for DefinitionTerms {
    type Error = Problem;

    fn try_from(body: TermsBody) -> Result<Self, Problem> {
        let targets = body.targets.unwrap_or_default().into_iter();
        Ok(Self {
            name: body.name.parse()?,
            is_enabled: body.enabled.unwrap_or(true),
            severity: body
                .severity
                .map_or_else(Severity::default, |severity| severity.0),
            source: body.source.0,
            filter: match body.filter {
                Some(filter) => Some(Filter {
                    attribute: filter.attribute.parse()?,
                    equals: filter.equals.parse()?,
                }),
                None => None,
            },
            devices: match body.devices {
                None => Devices::All,
                Some(DevicesBody::Prefix(prefix)) => Devices::Prefix(prefix.parse()?),
                Some(DevicesBody::Listed(devices)) => {
                    let devices = devices.into_iter().map(|device| device.parse());
                    Devices::Listed(devices.collect::<Result<_, _>>()?)
                }
            },
            condition: body.condition.try_into()?,
            quiet: match body.quiet {
                Some(quiet) => Some(Quiet {
                    from: quiet.from.try_into()?,
                    to: quiet.to.try_into()?,
                    zone: quiet.zone.try_into()?,
                }),
                None => None,
            },
            min_interval_secs: whole_or("min_interval_secs", body.min_interval_secs, 0)?,
            targets: targets.map(Target::try_from).collect::<Result<_, _>>()?,
        })
    }
}

impl TryFrom<TargetBody> for Target {
    type Error = Problem;

    fn try_from(body: TargetBody) -> Result<Self, Problem> {
        Ok(match body {
            TargetBody::Push(body) => Self::Push {
                user_id: body.user_id,
            },
            TargetBody::Webhook(body) => Self::Webhook {
                url: body.url.parse()?,
                secret: body.secret.map(WebhookSecret::try_from).transpose()?,
            },
            TargetBody::Mqtt(body) => Self::Mqtt {
                topic: body.topic.map(|topic| topic.parse()).transpose()?,
            },
            TargetBody::Email(body) => Self::Email {
                to: body.to.parse()?,
            },
        })
    }
}

impl From<DefinitionTerms> for ShownTerms {
    fn from(terms: DefinitionTerms) -> Self {
        Self {
            name: terms.name.into(),
            enabled: terms.is_enabled,
            severity: terms.severity.into(),
            source: terms.source.into(),
            filter: terms.filter.map(|filter| FilterBody {
                attribute: filter.attribute.into(),
                equals: filter.equals.into(),
            }),
            devices: match terms.devices {
                Devices::All => None,
                Devices::Prefix(prefix) => Some(DevicesBody::Prefix(prefix.into())),
                Devices::Listed(devices) => {
                    let devices = devices.into_iter().map(String::from);
                    Some(DevicesBody::Listed(devices.collect()))
                }
            },
            condition: terms.condition.into(),
            quiet: terms.quiet.map(|quiet| QuietBody {
                from: quiet.from.into(),
                to: quiet.to.into(),
                zone: quiet.zone.into(),
            }),
            min_interval_secs: terms.min_interval_secs,
            targets: terms.targets.into_iter().map(TargetBody::from).collect(),
        }
    }
}

impl From<Target> for TargetBody {
    fn from(target: Target) -> Self {
        match target {
            Target::Push { user_id } => Self::Push(PushBody { user_id }),
            Target::Webhook { url, .. } => Self::Webhook(WebhookBody {
                url: url.into(),
                secret: None,
            }),
            Target::Mqtt { topic } => Self::Mqtt(MqttBody {
                topic: topic.map(String::from),
            }),
            Target::Email { to } => Self::Email(EmailBody { to: to.into() }),
        }
    }
}
