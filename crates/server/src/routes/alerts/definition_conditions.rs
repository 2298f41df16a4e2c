//! The conditions of alert definitions as JSON.

use homeport_systems::alerts::{
    Absence, Condition, Equality, Fault, Rate, Threshold, ValueChange, WantedValue,
};
use homeport_systems::sensors::InvalidField;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::openapi::enums::{AlertDirection, AlertOperator, AlertSide};
use crate::openapi::schemas::alerts as schemas;
use crate::problem::Problem;
use crate::request::{Decimal, WholeNumber, json_object};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ConditionBody {
    #[serde(deserialize_with = "json_object::deserialize")]
    Threshold(ThresholdBody),
    #[serde(deserialize_with = "json_object::deserialize")]
    Absence(AbsenceBody),
    #[serde(deserialize_with = "json_object::deserialize")]
    Rate(RateBody),
    #[serde(deserialize_with = "json_object::deserialize")]
    Equality(EqualityBody),
    #[serde(deserialize_with = "json_object::deserialize")]
    Change(ChangeBody),
    #[serde(deserialize_with = "json_object::deserialize")]
    Fault(FaultBody),
}

/// A value beyond a threshold; the alert clears when the value is back at another one
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertThreshold)]
pub(crate) struct ThresholdBody {
    #[schema(schema_with = schemas::attribute)]
    attribute: String,
    /// The side of the threshold that raises the alert
    side: AlertSide,
    /// Threshold; a value beyond it raises the alert
    #[schema(schema_with = schemas::decimal)]
    raise: Decimal,
    /// The alert clears at this value; default `raise`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::decimal_or_null, required = false)]
    clear: Option<Decimal>,
    /// How long values must be beyond the threshold, by their own times; default 0
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, maximum = 2_678_400)]
    for_secs: Option<WholeNumber>,
    /// How many consecutive values must be beyond the threshold; default 1
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 10_000)]
    count: Option<WholeNumber>,
}

/// No data from a device for some time
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertAbsence)]
pub(crate) struct AbsenceBody {
    #[schema(value_type = u32, minimum = 5, maximum = 2_678_400)]
    after_secs: WholeNumber,
}

/// A value that changes too fast
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertRate)]
pub(crate) struct RateBody {
    #[schema(schema_with = schemas::attribute)]
    attribute: String,
    direction: AlertDirection,
    /// Change per minute that raises the alert if exceeded; greater than 0
    #[schema(schema_with = schemas::decimal)]
    per_minute: Decimal,
    /// The alert clears at this change per minute; default `per_minute`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::decimal_or_null, required = false)]
    clear_per_minute: Option<Decimal>,
    /// Age of the value to compare with, at most
    #[schema(value_type = u32, minimum = 2, maximum = 2_678_400)]
    window_secs: WholeNumber,
}

/// An attribute that equals a value, or differs from it; the alert clears when that is over
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertEquality)]
pub(crate) struct EqualityBody {
    #[schema(schema_with = schemas::attribute)]
    attribute: String,
    operator: AlertOperator,
    #[schema(schema_with = schemas::scalar)]
    value: ScalarBody,
    /// How long the condition must hold, by the times of the values; default 0
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, maximum = 2_678_400)]
    for_secs: Option<WholeNumber>,
    /// For how many consecutive values it must hold; default 1
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 10_000)]
    count: Option<WholeNumber>,
}

/// An attribute whose value is another one than before
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertChange)]
pub(crate) struct ChangeBody {
    #[schema(schema_with = schemas::attribute)]
    attribute: String,
    /// The alert clears with the first unchanged value that is this much newer than the change; default 0
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, maximum = 2_678_400)]
    clear_after_secs: Option<WholeNumber>,
}

/// An attribute that reports a fault: one that is not empty, false, 0, `none` or `ok`
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertFault)]
pub(crate) struct FaultBody {
    #[schema(schema_with = schemas::fault_attribute)]
    attribute: String,
    /// How long a fault must be reported, by the times of the values; default 0
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, maximum = 2_678_400)]
    for_secs: Option<WholeNumber>,
    /// In how many consecutive values there must be a fault; default 1
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 10_000)]
    count: Option<WholeNumber>,
}

/// A text, a number or a boolean.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ScalarBody {
    Text(String),
    Number(Decimal),
    Boolean(bool),
}

impl<'de> Deserialize<'de> for ScalarBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let json = raw.get();
        let parsed = match json.as_bytes().first() {
            Some(b'"') => serde_json::from_str(json).map(Self::Text),
            Some(b't' | b'f') => serde_json::from_str(json).map(Self::Boolean),
            _ => serde_json::from_str(json).map(Self::Number),
        };
        parsed.map_err(|_| {
            serde::de::Error::custom(
                "expected a text, a number of at most 38 digits, true or false",
            )
        })
    }
}

pub(super) fn whole_or(
    name: &str,
    number: Option<WholeNumber>,
    default: u32,
) -> Result<u32, Problem> {
    number.map_or(Ok(default), |number| number.up_to(name, u32::MAX))
}

impl TryFrom<ConditionBody> for Condition {
    type Error = Problem;

    fn try_from(body: ConditionBody) -> Result<Self, Problem> {
        Ok(match body {
            ConditionBody::Threshold(body) => Self::Threshold(Threshold {
                attribute: body.attribute.parse()?,
                side: body.side.0,
                raise: body.raise.0,
                clear: body.clear.unwrap_or(body.raise).0,
                min_secs: whole_or("for_secs", body.for_secs, 0)?,
                min_count: whole_or("count", body.count, 1)?,
            }),
            ConditionBody::Absence(body) => Self::Absence(Absence {
                after_secs: body.after_secs.up_to("after_secs", u32::MAX)?,
            }),
            ConditionBody::Rate(body) => Self::Rate(Rate {
                attribute: body.attribute.parse()?,
                direction: body.direction.0,
                per_minute: body.per_minute.0,
                clear_per_minute: body.clear_per_minute.unwrap_or(body.per_minute).0,
                window_secs: body.window_secs.up_to("window_secs", u32::MAX)?,
            }),
            ConditionBody::Equality(body) => Self::Equality(Equality {
                attribute: body.attribute.parse()?,
                operator: body.operator.0,
                value: body.value.try_into()?,
                min_secs: whole_or("for_secs", body.for_secs, 0)?,
                min_count: whole_or("count", body.count, 1)?,
            }),
            ConditionBody::Change(body) => Self::Change(ValueChange {
                attribute: body.attribute.parse()?,
                clear_after_secs: whole_or("clear_after_secs", body.clear_after_secs, 0)?,
            }),
            ConditionBody::Fault(body) => Self::Fault(Fault {
                attribute: body.attribute.parse()?,
                min_secs: whole_or("for_secs", body.for_secs, 0)?,
                min_count: whole_or("count", body.count, 1)?,
            }),
        })
    }
}

impl TryFrom<ScalarBody> for WantedValue {
    type Error = Problem;

    fn try_from(body: ScalarBody) -> Result<Self, Problem> {
        Ok(match body {
            ScalarBody::Number(number) => Self::Number(number.0),
            ScalarBody::Boolean(flag) => Self::Boolean(flag),
            ScalarBody::Text(text) => {
                Self::Text(text.parse().map_err(|error: InvalidField| InvalidField {
                    field: "value",
                    ..error
                })?)
            }
        })
    }
}

impl From<Condition> for ConditionBody {
    fn from(condition: Condition) -> Self {
        let number = |number: u32| WholeNumber(i64::from(number));
        match condition {
            Condition::Threshold(threshold) => Self::Threshold(ThresholdBody {
                attribute: threshold.attribute.into(),
                side: threshold.side.into(),
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
                direction: rate.direction.into(),
                per_minute: Decimal(rate.per_minute),
                clear_per_minute: Some(Decimal(rate.clear_per_minute)),
                window_secs: number(rate.window_secs),
            }),
            Condition::Equality(equality) => Self::Equality(EqualityBody {
                attribute: equality.attribute.into(),
                operator: equality.operator.into(),
                value: match equality.value {
                    WantedValue::Text(text) => ScalarBody::Text(text.into()),
                    WantedValue::Number(number) => ScalarBody::Number(Decimal(number)),
                    WantedValue::Boolean(flag) => ScalarBody::Boolean(flag),
                },
                for_secs: Some(number(equality.min_secs)),
                count: Some(number(equality.min_count)),
            }),
            Condition::Change(change) => Self::Change(ChangeBody {
                attribute: change.attribute.into(),
                clear_after_secs: Some(number(change.clear_after_secs)),
            }),
            Condition::Fault(fault) => Self::Fault(FaultBody {
                attribute: fault.attribute.into(),
                for_secs: Some(number(fault.min_secs)),
                count: Some(number(fault.min_count)),
            }),
        }
    }
}
