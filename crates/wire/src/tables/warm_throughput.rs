//! Warm throughput: the units per second that a table or an index can handle instantly. It is stored and described, but
//! has no effect.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::settings::{Billing, Throughput};
use crate::failure::Failure;
use crate::input::{Field, Long, Named};

/// The initial warm throughput of tables and indexes with on-demand billing.
const ON_DEMAND: WarmThroughput = WarmThroughput {
    read: 12_000,
    write: 4_000,
};
const ON_DEMAND_HELP: &str = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html#on-demand-capacity-mode-initial";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct WarmInput {
    read_units_per_second: Option<Long>,
    write_units_per_second: Option<Long>,
}

impl Named for WarmInput {
    const NAME: &'static str = "WarmThroughput";
}

impl WarmInput {
    pub(crate) fn is_empty(&self) -> bool {
        self.read_units_per_second.is_none() && self.write_units_per_second.is_none()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub(crate) struct WarmThroughput {
    pub(crate) read: i64,
    pub(crate) write: i64,
}

/// The table or index in messages.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject<'a> {
    Table,
    Index(&'a str),
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table => formatter.write_str("table"),
            Self::Index(name) => write!(formatter, "index {name}"),
        }
    }
}

impl WarmThroughput {
    /// The minimum of a table or an index.
    pub(crate) fn minimum(billing: Billing, throughput: Throughput) -> Self {
        match billing {
            Billing::PayPerRequest => ON_DEMAND,
            Billing::Provisioned => Self {
                read: throughput.read,
                write: throughput.write,
            },
        }
    }

    #[must_use]
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            read: self.read.max(other.read),
            write: self.write.max(other.write),
        }
    }

    /// The warm throughput that a request gives a new table or index.
    pub(crate) fn of_new(
        given: Option<&Field<WarmInput>>,
        billing: Billing,
        throughput: Throughput,
        subject: Subject<'_>,
    ) -> Result<Option<Self>, Failure> {
        let Some(Field(given)) = given.filter(|Field(given)| !given.is_empty()) else {
            return Ok(None);
        };
        let minimum = Self::minimum(billing, throughput);
        minimum
            .raised_to(given, |unit| {
                let than = match (billing, unit) {
                    (Billing::PayPerRequest, _) => {
                        format!("initial throughput for OnDemand. See: {ON_DEMAND_HELP}")
                    }
                    (Billing::Provisioned, Unit::Read) => {
                        "ReadCapacityUnits of ProvisionedThroughput".to_owned()
                    }
                    (Billing::Provisioned, Unit::Write) => {
                        "WriteCapacityUnits of ProvisionedThroughput".to_owned()
                    }
                };
                format!(
                    "Requested {} for WarmThroughput for {subject} is lower than {than}",
                    unit.name()
                )
            })
            .map(Some)
    }

    /// The warm throughput after a change, which cannot lower it.
    pub(crate) fn changed(self, given: &WarmInput, subject: Subject<'_>) -> Result<Self, Failure> {
        self.raised_to(given, |unit| {
            format!(
                "Requested {} for WarmThroughput for {subject} is lower than current WarmThroughput, decreasing WarmThroughput is not supported",
                unit.name()
            )
        })
    }

    fn raised_to(
        self,
        given: &WarmInput,
        refusal: impl Fn(Unit) -> String,
    ) -> Result<Self, Failure> {
        let raised = |unit, current, wanted: Option<Long>| match wanted {
            Some(Long(wanted)) if wanted < current => Err(Failure::invalid_values(refusal(unit))),
            Some(Long(wanted)) => Ok(wanted),
            None => Ok(current),
        };
        Ok(Self {
            read: raised(Unit::Read, self.read, given.read_units_per_second)?,
            write: raised(Unit::Write, self.write, given.write_units_per_second)?,
        })
    }
}

#[derive(Debug, Clone, Copy)]
enum Unit {
    Read,
    Write,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "ReadUnitsPerSecond",
            Self::Write => "WriteUnitsPerSecond",
        }
    }
}
