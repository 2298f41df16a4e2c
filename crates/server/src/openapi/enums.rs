//! Enums of the systems as the API writes them: one text for each value, in JSON and in the document.

use homeport_store::ChangeKind;
use homeport_systems::alerts::{Direction, EqualityOperator, PreviewLimit, Side, StateFilter};
use homeport_systems::browse::SortOperator;
use homeport_systems::export::Format;
use homeport_systems::fleet::{EntryType, Health, SYSTEMS, System, SystemName};
use homeport_systems::push::{
    BroadcastState, DeviceVerdict, InterruptionLevel, Platform, Priority,
};
use homeport_systems::severity::Severity;
use homeport_systems::time::Order;

use crate::mqtt::{ClientState, MqttVersion, TransportKind};

/// Declares a newtype that is read from one of several texts, and its schema.
macro_rules! api_choice {
    ($(#[doc = $doc:literal])* $name:ident as $schema:literal: $inner:ty {
        $($text:literal => $value:expr),+ $(,)?
    }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) struct $name(pub(crate) $inner);

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                match &*text {
                    $($text => Ok(Self($value)),)+
                    _ => Err(serde::de::Error::unknown_variant(&text, &[$($text),+])),
                }
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .enum_values(Some([$($text),+]))
                    .description(Some(concat!($($doc),*).trim()))
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                std::borrow::Cow::Borrowed($schema)
            }
        }
    };
}

/// Declares such a newtype that is also written; it has a text for every variant.
macro_rules! api_enum {
    ($(#[doc = $doc:literal])* $name:ident as $schema:literal: $inner:ident {
        $($text:literal => $variant:ident),+ $(,)?
    }) => {
        api_choice! { $(#[doc = $doc])* $name as $schema: $inner { $($text => $inner::$variant),+ } }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(match self.0 { $($inner::$variant => $text),+ })
            }
        }

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }
    };
}

/// Whether an alert is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AlertState {
    Open,
    Cleared,
}

api_choice! {
    /// The oldest or the newest item first
    OrderParameter as "Order": Order {
        "asc" => Order::OldestFirst,
        "desc" => Order::NewestFirst,
    }
}

/// Declares a newtype of a system's name, and its schema: the systems of the registry that match. Whether there
/// is such a system is checked where the name is used.
macro_rules! system_name {
    ($(#[doc = $doc:literal])* $name:ident, $matches:expr) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub(crate) struct $name(pub(crate) SystemName);

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                let is_match: fn(&System) -> bool = $matches;
                let systems = SYSTEMS.into_iter().filter(|system| is_match(system));
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .enum_values(Some(systems.map(|system| system.name.as_str())))
                    .description(Some(concat!($($doc),*).trim()))
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                std::borrow::Cow::Borrowed(stringify!($name))
            }
        }

        impl From<SystemName> for $name {
            fn from(name: SystemName) -> Self {
                Self(name)
            }
        }
    };
}

system_name! {
    /// A system that has devices
    DeviceSystem, |_| true
}

system_name! {
    /// A system whose devices store data over time
    ExportedSystem, |system| system.has_values
}

system_name! {
    /// Where the watched values are stored
    AlertSource, |system| system.alert_reaction.is_some()
}

api_enum! {
    /// Health of a device, judged by when it was last seen
    DeviceHealth as "DeviceHealth": Health {
        "online" => Online,
        "late" => Late,
        "silent" => Silent,
    }
}

api_enum! {
    /// Whether an MQTT client is connected
    MqttClientState as "MqttClientState": ClientState {
        "connected" => Connected,
        "offline" => Offline,
    }
}

api_enum! {
    /// How an MQTT client is connected
    MqttTransport as "MqttTransport": TransportKind {
        "tcp" => Tcp,
        "tls" => Tls,
        "websocket" => WebSocket,
    }
}

api_enum! {
    /// Version of MQTT
    MqttProtocolVersion as "MqttProtocolVersion": MqttVersion {
        "3.1.1" => V3,
        "5" => V5,
    }
}

api_enum! {
    /// Kind of a timeline entry
    TimelineEntryType as "TimelineEntryType": EntryType {
        "telemetry" => Telemetry,
        "state" => State,
        "ota" => Ota,
        "scheduler" => Scheduler,
        "alert" => Alert,
        "notification" => Notification,
        "command" => Command,
    }
}

api_enum! {
    /// How an item changed
    ItemChangeKind as "ChangeKind": ChangeKind {
        "insert" => Insert,
        "modify" => Modify,
        "remove" => Remove,
    }
}

api_choice! {
    /// File format of exported device data
    DeviceFileFormat as "FileFormat": Format {
        "csv" => Format::CSV,
        "ndjson" => Format::Ndjson,
        "parquet" => Format::Parquet,
    }
}

api_choice! {
    /// File format of exported items
    ItemFileFormat as "ItemFileFormat": Format {
        "csv" => Format::CSV,
        "ndjson" => Format::Ndjson,
    }
}

api_choice! {
    /// Comparison with the sort key
    KeyComparison as "SortOperator": SortOperator {
        "=" => SortOperator::Equal,
        "<" => SortOperator::Less,
        "<=" => SortOperator::LessOrEqual,
        ">" => SortOperator::Greater,
        ">=" => SortOperator::GreaterOrEqual,
        "begins_with" => SortOperator::BeginsWith,
        "between" => SortOperator::Between,
    }
}

api_choice! {
    /// Urgency of a notification
    PushPriority as "PushPriority": Priority {
        "default" => Priority::Default,
        "normal" => Priority::Normal,
        "high" => Priority::High,
    }
}

api_choice! {
    /// How urgently iOS shows a notification
    PushInterruptionLevel as "PushInterruptionLevel": InterruptionLevel {
        "active" => InterruptionLevel::Active,
        "critical" => InterruptionLevel::Critical,
        "passive" => InterruptionLevel::Passive,
        "time-sensitive" => InterruptionLevel::TimeSensitive,
    }
}

api_choice! {
    /// The devices that get a broadcast: those of one platform, or all
    PushAudience as "PushAudience": Option<Platform> {
        "all" => None,
        "ios" => Some(Platform::Ios),
        "android" => Some(Platform::Android),
    }
}

api_enum! {
    /// Where a broadcast is: it waits for earlier ones, runs, has ended, or was cancelled
    PushBroadcastState as "PushBroadcastState": BroadcastState {
        "queued" => Queued,
        "running" => Running,
        "finished" => Finished,
        "cancelled" => Cancelled,
    }
}

api_enum! {
    /// Whether a device gets notifications
    PushVerdict as "PushVerdict": DeviceVerdict {
        "ok" => Reachable,
        "inactive" => Inactive,
        "expired" => Expired,
        "invalid_token" => InvalidToken,
        "last_failed" => LastFailed,
    }
}

api_enum! {
    /// The side of the threshold that raises the alert
    AlertSide as "AlertSide": Side {
        "below" => Below,
        "above" => Above,
    }
}

api_enum! {
    /// The direction of change that raises the alert
    AlertDirection as "AlertDirection": Direction {
        "rise" => Rise,
        "fall" => Fall,
        "either" => Either,
    }
}

api_enum! {
    /// How the value is compared
    AlertOperator as "AlertOperator": EqualityOperator {
        "equals" => Equals,
        "differs" => Differs,
    }
}

api_enum! {
    /// How serious an alert is
    AlertSeverity as "Severity": Severity {
        "critical" => Critical,
        "warning" => Warning,
        "info" => Info,
    }
}

api_enum! {
    /// A limit of previews
    AlertPreviewLimit as "AlertPreviewLimit": PreviewLimit {
        "devices" => Devices,
        "items" => Items,
        "time" => Time,
        "alerts" => Alerts,
    }
}

/// What happened to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordResult {
    Stored,
    Duplicate,
    Rejected,
}

api_enum! {
    /// Whether the record is stored now, was stored before, or is invalid
    AddedRecordStatus as "AddedRecordStatus": RecordResult {
        "stored" => Stored,
        "duplicate" => Duplicate,
        "rejected" => Rejected,
    }
}

api_enum! {
    /// Whether the alert is open
    AlertStateBody as "AlertState": AlertState {
        "open" => Open,
        "cleared" => Cleared,
    }
}

api_choice! {
    /// Which alerts to list
    AlertStateFilter as "AlertStateFilter": StateFilter {
        "open" => StateFilter::Open,
        "cleared" => StateFilter::Cleared,
        "all" => StateFilter::All,
    }
}

/// Notifications that failed for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FailedDelivery;

api_choice! {
    /// Which notifications the alerts have
    AlertDeliveryFilter as "AlertDeliveryFilter": FailedDelivery {
        "failed" => FailedDelivery,
    }
}
