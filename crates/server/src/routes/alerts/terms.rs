//! What a definition says, as JSON: read into the system's types and shown from them.

use std::collections::BTreeSet;

use homeport_systems::alerts::{
    Absence, Condition, DefinitionTerms, Devices, Direction, Filter, Quiet, Rate, Side, SourceKind,
    Target, Threshold, WebhookSecret,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::decimal::Decimal;
use crate::forms::alerts as forms;
use crate::object;
use crate::problem::Problem;
use crate::whole::WholeNumber;

/// What an operator says about a definition.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewAlertDefinition)]
pub(super) struct TermsBody {
    /// What people call it
    #[schema(schema_with = forms::name)]
    name: String,
    /// Whether it is in force; it is unless said otherwise
    enabled: Option<bool>,
    source: SourceWord,
    /// Only items whose attribute has this text are looked at
    #[serde(rename = "where", default)]
    #[schema(nullable)]
    filter: Option<FilterBody>,
    #[schema(schema_with = forms::devices, required = false)]
    #[serde(default)]
    devices: Option<DevicesBody>,
    #[schema(schema_with = forms::condition)]
    condition: ConditionBody,
    /// When nobody is told anything: what is open at its end is told then
    quiet: Option<QuietBody>,
    /// How long after one notification of a device the next may follow, in seconds
    #[schema(value_type = Option<u32>, maximum = 2_678_400)]
    min_interval_secs: Option<WholeNumber>,
    #[schema(schema_with = forms::targets, required = false)]
    #[serde(default)]
    targets: Option<Vec<TargetBody>>,
}

/// What a definition says, as it is shown: secrets are left out.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertDefinitionTerms)]
pub(super) struct ShownTerms {
    name: String,
    enabled: bool,
    source: SourceWord,
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    filter: Option<FilterBody>,
    /// All unless given
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = forms::devices, required = false)]
    devices: Option<DevicesBody>,
    #[schema(schema_with = forms::condition)]
    condition: ConditionBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    quiet: Option<QuietBody>,
    min_interval_secs: u32,
    /// A webhook's secret is never shown
    #[schema(schema_with = forms::targets)]
    targets: Vec<TargetBody>,
}

/// Where the values are
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = AlertSource)]
pub(super) enum SourceWord {
    Telemetry,
    Sensors,
    Records,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertFilter)]
pub(super) struct FilterBody {
    #[schema(schema_with = forms::attribute)]
    attribute: String,
    #[schema(schema_with = forms::name)]
    equals: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DevicesBody {
    Listed(BTreeSet<String>),
    Prefix(String),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ConditionBody {
    #[serde(deserialize_with = "object::deserialize")]
    Threshold(ThresholdBody),
    #[serde(deserialize_with = "object::deserialize")]
    Absence(AbsenceBody),
    #[serde(deserialize_with = "object::deserialize")]
    Rate(RateBody),
}

/// A value beyond a limit, which is over when it has come back to another one
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertThreshold)]
pub(in crate::routes) struct ThresholdBody {
    #[schema(schema_with = forms::attribute)]
    attribute: String,
    /// Which side is wrong
    side: SideWord,
    /// Beyond this, not at it, a value is wrong
    #[schema(schema_with = forms::decimal)]
    raise: Decimal,
    /// At this or better the alert is over; the value that raises unless given
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = forms::decimal_or_null, required = false)]
    clear: Option<Decimal>,
    /// How long values must have been wrong, by their own times; 0 unless given
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, maximum = 2_678_400)]
    for_secs: Option<WholeNumber>,
    /// How many values in a row must be wrong; 1 unless given
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 10_000)]
    count: Option<WholeNumber>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = AlertSide)]
pub(in crate::routes) enum SideWord {
    Below,
    Above,
}

/// Nothing of a device for some time
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertAbsence)]
pub(in crate::routes) struct AbsenceBody {
    #[schema(value_type = u32, minimum = 5, maximum = 2_678_400)]
    after_secs: WholeNumber,
}

/// A value that changes too fast
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertRate)]
pub(in crate::routes) struct RateBody {
    #[schema(schema_with = forms::attribute)]
    attribute: String,
    direction: DirectionWord,
    /// Faster than this a minute is wrong; more than 0
    #[schema(schema_with = forms::decimal)]
    per_minute: Decimal,
    /// At this or slower the alert is over; `per_minute` unless given
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = forms::decimal_or_null, required = false)]
    clear_per_minute: Option<Decimal>,
    /// How far back a value is compared with
    #[schema(value_type = u32, minimum = 2, maximum = 2_678_400)]
    window_secs: WholeNumber,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = AlertDirection)]
pub(in crate::routes) enum DirectionWord {
    Rise,
    Fall,
    Either,
}

/// Hours of the day; the end may be on the next day
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertQuiet)]
pub(super) struct QuietBody {
    #[schema(schema_with = forms::minute)]
    from: String,
    #[schema(schema_with = forms::minute)]
    to: String,
    #[schema(schema_with = forms::zone)]
    zone: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TargetBody {
    #[serde(deserialize_with = "object::deserialize")]
    Push(PushBody),
    #[serde(deserialize_with = "object::deserialize")]
    Webhook(WebhookBody),
    #[serde(deserialize_with = "object::deserialize")]
    Mqtt(MqttBody),
    #[serde(deserialize_with = "object::deserialize")]
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
    /// Leaves the secret out.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("WebhookBody")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

fn whole(name: &str, number: Option<WholeNumber>, unless: u32) -> Result<u32, Problem> {
    number.map_or(Ok(unless), |number| number.up_to(name, u32::MAX))
}

impl TryFrom<TermsBody> for DefinitionTerms {
    type Error = Problem;

    fn try_from(body: TermsBody) -> Result<Self, Problem> {
        let targets = body.targets.unwrap_or_default().into_iter();
        Ok(Self {
            name: body.name.parse()?,
            is_enabled: body.enabled.unwrap_or(true),
            source: match body.source {
                SourceWord::Telemetry => SourceKind::Telemetry,
                SourceWord::Sensors => SourceKind::Sensors,
                SourceWord::Records => SourceKind::Records,
            },
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
            min_interval_secs: whole("min_interval_secs", body.min_interval_secs, 0)?,
            targets: targets.map(Target::try_from).collect::<Result<_, _>>()?,
        })
    }
}

impl TryFrom<ConditionBody> for Condition {
    type Error = Problem;

    fn try_from(body: ConditionBody) -> Result<Self, Problem> {
        Ok(match body {
            ConditionBody::Threshold(body) => Self::Threshold(Threshold {
                attribute: body.attribute.parse()?,
                side: match body.side {
                    SideWord::Below => Side::Below,
                    SideWord::Above => Side::Above,
                },
                raise: body.raise.0,
                clear: body.clear.unwrap_or(body.raise).0,
                min_secs: whole("for_secs", body.for_secs, 0)?,
                min_count: whole("count", body.count, 1)?,
            }),
            ConditionBody::Absence(body) => Self::Absence(Absence {
                after_secs: body.after_secs.up_to("after_secs", u32::MAX)?,
            }),
            ConditionBody::Rate(body) => Self::Rate(Rate {
                attribute: body.attribute.parse()?,
                direction: match body.direction {
                    DirectionWord::Rise => Direction::Rise,
                    DirectionWord::Fall => Direction::Fall,
                    DirectionWord::Either => Direction::Either,
                },
                per_minute: body.per_minute.0,
                clear_per_minute: body.clear_per_minute.unwrap_or(body.per_minute).0,
                window_secs: body.window_secs.up_to("window_secs", u32::MAX)?,
            }),
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

impl From<SourceKind> for SourceWord {
    fn from(kind: SourceKind) -> Self {
        match kind {
            SourceKind::Telemetry => Self::Telemetry,
            SourceKind::Sensors => Self::Sensors,
            SourceKind::Records => Self::Records,
        }
    }
}

impl From<Condition> for ConditionBody {
    fn from(condition: Condition) -> Self {
        let number = |number: u32| WholeNumber(i64::from(number));
        match condition {
            Condition::Threshold(threshold) => Self::Threshold(ThresholdBody {
                attribute: threshold.attribute.into(),
                side: match threshold.side {
                    Side::Below => SideWord::Below,
                    Side::Above => SideWord::Above,
                },
                raise: Decimal(threshold.raise),
                clear: Some(Decimal(threshold.clear)),
                for_secs: Some(number(threshold.min_secs)),
                count: Some(number(threshold.min_count)),
            }),
            Condition::Absence(absence) => Self::Absence(AbsenceBody {
                after_secs: number(absence.after_secs),
            }),
            Condition::Rate(rate) => Self::Rate(RateBody {
                attribute: rate.attribute.into(),
                direction: match rate.direction {
                    Direction::Rise => DirectionWord::Rise,
                    Direction::Fall => DirectionWord::Fall,
                    Direction::Either => DirectionWord::Either,
                },
                per_minute: Decimal(rate.per_minute),
                clear_per_minute: Some(Decimal(rate.clear_per_minute)),
                window_secs: number(rate.window_secs),
            }),
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
