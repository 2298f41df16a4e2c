//! The reason codes of MQTT 5 that this server uses, and refusals with a reason code.

/// A reason code of MQTT 5. MQTT 3.1.1 has codes for a few of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mqtt) struct Reason(pub(in crate::mqtt) u8);

impl Reason {
    pub(in crate::mqtt) const SUCCESS: Self = Self(0x00);
    pub(in crate::mqtt) const DISCONNECT_WITH_WILL: Self = Self(0x04);
    pub(in crate::mqtt) const NO_SUBSCRIPTION_EXISTED: Self = Self(0x11);
    pub(in crate::mqtt) const MALFORMED: Self = Self(0x81);
    pub(in crate::mqtt) const PROTOCOL_ERROR: Self = Self(0x82);
    pub(in crate::mqtt) const UNSUPPORTED_VERSION: Self = Self(0x84);
    pub(in crate::mqtt) const CLIENT_ID_INVALID: Self = Self(0x85);
    pub(in crate::mqtt) const BAD_CREDENTIALS: Self = Self(0x86);
    pub(in crate::mqtt) const NOT_AUTHORIZED: Self = Self(0x87);
    pub(in crate::mqtt) const SERVER_UNAVAILABLE: Self = Self(0x88);
    pub(in crate::mqtt) const SERVER_BUSY: Self = Self(0x89);
    pub(in crate::mqtt) const SHUTTING_DOWN: Self = Self(0x8B);
    pub(in crate::mqtt) const BAD_AUTHENTICATION_METHOD: Self = Self(0x8C);
    pub(in crate::mqtt) const KEEP_ALIVE_TIMEOUT: Self = Self(0x8D);
    pub(in crate::mqtt) const TAKEN_OVER: Self = Self(0x8E);
    pub(in crate::mqtt) const FILTER_INVALID: Self = Self(0x8F);
    pub(in crate::mqtt) const TOPIC_INVALID: Self = Self(0x90);
    pub(in crate::mqtt) const TOPIC_ALIAS_INVALID: Self = Self(0x94);
    pub(in crate::mqtt) const PACKET_TOO_LARGE: Self = Self(0x95);
    pub(in crate::mqtt) const QUOTA_EXCEEDED: Self = Self(0x97);
    pub(in crate::mqtt) const ADMINISTRATIVE_ACTION: Self = Self(0x98);
    pub(in crate::mqtt) const PAYLOAD_INVALID: Self = Self(0x99);
    pub(in crate::mqtt) const QOS_NOT_SUPPORTED: Self = Self(0x9B);
    pub(in crate::mqtt) const CONNECTION_RATE_EXCEEDED: Self = Self(0x9F);

    pub(in crate::mqtt) fn is_failure(self) -> bool {
        self.0 >= 0x80
    }

    /// The corresponding return code of CONNACK in MQTT 3.1.1.
    pub(in crate::mqtt) fn connect_code_v3(self) -> u8 {
        match self {
            Self::SUCCESS => 0,
            Self::UNSUPPORTED_VERSION => 1,
            Self::CLIENT_ID_INVALID => 2,
            Self::BAD_CREDENTIALS => 4,
            Self::NOT_AUTHORIZED | Self::BAD_AUTHENTICATION_METHOD => 5,
            _ => 3,
        }
    }

    /// The reason of a return code of CONNACK in MQTT 3.1.1.
    pub(super) fn of_connect_code_v3(code: u8) -> Self {
        match code {
            0 => Self::SUCCESS,
            1 => Self::UNSUPPORTED_VERSION,
            2 => Self::CLIENT_ID_INVALID,
            4 => Self::BAD_CREDENTIALS,
            5 => Self::NOT_AUTHORIZED,
            _ => Self::SERVER_UNAVAILABLE,
        }
    }

    /// A name for metrics and logs.
    pub(in crate::mqtt) fn name(self) -> &'static str {
        match self {
            Self::SUCCESS => "success",
            Self::DISCONNECT_WITH_WILL => "disconnect_with_will",
            Self::MALFORMED => "malformed",
            Self::PROTOCOL_ERROR => "protocol_error",
            Self::UNSUPPORTED_VERSION => "unsupported_version",
            Self::CLIENT_ID_INVALID => "client_id_invalid",
            Self::BAD_CREDENTIALS => "bad_credentials",
            Self::NOT_AUTHORIZED => "not_authorized",
            Self::SERVER_UNAVAILABLE => "server_unavailable",
            Self::SERVER_BUSY => "server_busy",
            Self::SHUTTING_DOWN => "shutting_down",
            Self::BAD_AUTHENTICATION_METHOD => "bad_authentication_method",
            Self::KEEP_ALIVE_TIMEOUT => "keep_alive_timeout",
            Self::TAKEN_OVER => "taken_over",
            Self::FILTER_INVALID => "filter_invalid",
            Self::TOPIC_INVALID => "topic_invalid",
            Self::TOPIC_ALIAS_INVALID => "topic_alias_invalid",
            Self::PACKET_TOO_LARGE => "packet_too_large",
            Self::QUOTA_EXCEEDED => "quota_exceeded",
            Self::ADMINISTRATIVE_ACTION => "administrative_action",
            Self::PAYLOAD_INVALID => "payload_invalid",
            Self::QOS_NOT_SUPPORTED => "qos_not_supported",
            Self::CONNECTION_RATE_EXCEEDED => "connection_rate_exceeded",
            _ => "other",
        }
    }
}

/// Why a packet or a connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub(in crate::mqtt) struct Refusal {
    pub(in crate::mqtt) reason: Reason,
    pub(in crate::mqtt) detail: &'static str,
}

impl Refusal {
    pub(in crate::mqtt) fn new(reason: Reason, detail: &'static str) -> Self {
        Self { reason, detail }
    }

    pub(super) fn malformed(detail: &'static str) -> Self {
        Self::new(Reason::MALFORMED, detail)
    }

    pub(super) fn protocol(detail: &'static str) -> Self {
        Self::new(Reason::PROTOCOL_ERROR, detail)
    }
}
