//! The fields of a message in request bodies, which notifications and broadcasts share, and the header with the
//! idempotency key.

use axum::http::HeaderMap;
use homeport_systems::push::IdempotencyKey;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::problem::Problem;

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Content beside the text of a notification.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PushRichContent)]
pub(super) struct RichContent {
    /// URL of an image
    #[schema(example = "https://example.com/photo.jpg")]
    pub(super) image: String,
}

/// Declares a body with the fields of a message and others. Flattening one into the other would accept unknown
/// members.
macro_rules! message_body {
    ($(#[doc = $doc:literal])* $name:ident {
        $($(#[$meta:meta])* $field:ident: $type:ty,)*
    }) => {
        $(#[doc = $doc])*
        #[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        pub(in crate::routes) struct $name {
            $($(#[$meta])* $field: $type,)*
            #[schema(min_length = 1)]
            title: Option<String>,
            #[schema(min_length = 1)]
            body: Option<String>,
            subtitle: Option<String>,
            /// Data for the app
            #[schema(value_type = Option<Object>)]
            data: Option<serde_json::Map<String, serde_json::Value>>,
            #[schema(example = "default")]
            sound: Option<String>,
            #[schema(value_type = Option<u32>)]
            badge: Option<crate::request::WholeNumber>,
            /// How long Expo may retry delivery, in seconds
            #[schema(value_type = Option<u32>, maximum = 2_419_200)]
            ttl: Option<crate::request::WholeNumber>,
            /// Time at which the message expires, in seconds since 1970; `ttl` takes precedence
            #[schema(value_type = Option<u32>)]
            expiration: Option<crate::request::WholeNumber>,
            priority: Option<crate::openapi::enums::PushPriority>,
            interruption_level: Option<crate::openapi::enums::PushInterruptionLevel>,
            /// Android's notification channel
            #[schema(min_length = 1, max_length = 128)]
            channel_id: Option<String>,
            /// Category of the notification, which defines its buttons
            #[schema(min_length = 1, max_length = 128)]
            category_id: Option<String>,
            /// Android drawable that is shown as the icon
            #[schema(min_length = 1, max_length = 128)]
            icon: Option<String>,
            #[serde(default, deserialize_with = "crate::request::json_object::optional")]
            rich_content: Option<super::message_body::RichContent>,
            /// Whether an extension of the iOS app may change the notification
            mutable_content: Option<bool>,
            /// Wake the iOS app in the background
            #[serde(rename = "_contentAvailable")]
            content_available: Option<bool>,
        }

        impl $name {
            /// The message, which is not checked yet.
            fn message(self) -> Result<homeport_systems::push::NewMessage, Problem> {
                let number = |name, number: Option<crate::request::WholeNumber>| {
                    number
                        .map(|number| number.up_to(name, u32::MAX))
                        .transpose()
                };
                Ok(homeport_systems::push::NewMessage {
                    title: self.title,
                    body: self.body,
                    subtitle: self.subtitle,
                    data: self.data,
                    sound: self.sound,
                    badge: number("badge", self.badge)?,
                    ttl_secs: number("ttl", self.ttl)?,
                    expiration: number("expiration", self.expiration)?,
                    priority: self.priority.map(|priority| priority.0),
                    interruption_level: (self.interruption_level).map(|level| level.0),
                    channel_id: self.channel_id,
                    category_id: self.category_id,
                    icon: self.icon,
                    image: self.rich_content.map(|content| content.image),
                    is_mutable: self.mutable_content,
                    is_content_available: self.content_available,
                })
            }
        }
    };
}
pub(super) use message_body;

/// The idempotency key of a request.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Problem> {
    let value = headers.get(IDEMPOTENCY_KEY);
    let key = value.map(|value| String::from_utf8_lossy(value.as_bytes()).parse());
    Ok(key.transpose()?)
}
