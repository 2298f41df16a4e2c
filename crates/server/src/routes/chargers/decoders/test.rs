//! `POST /v1/chargers/decoders/test`

use axum::Json;
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeport_systems::chargers::PAYLOAD_BYTES_MAX;
use homeport_systems::chargers::decoders::{
    DecodeError, Decoded, DecoderDocument, DecoderName, Decoders,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::needs::ManageRules;
use crate::auth::{Authenticated, Everywhere};
use crate::openapi::schemas::uplinks::{self as schemas, DecoderSchema};
use crate::problem::Problem;
use crate::request::plain_json::PlainValue;
use crate::request::{JsonBody, json_object};
use crate::state::AppState;

/// A decoder and a payload to test it on. Send the decoder itself or the name of a stored one, and the payload in one
/// of two forms.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChargerDecoderTest)]
pub(in crate::routes) struct TestDecoder {
    #[serde(default, deserialize_with = "json_object::optional")]
    #[schema(value_type = Option<DecoderSchema>)]
    decoder: Option<DecoderDocument>,
    #[schema(schema_with = schemas::decoder_name_or_null, required = false)]
    name: Option<String>,
    #[schema(schema_with = schemas::base64_or_null, required = false)]
    payload_base64: Option<String>,
    #[schema(schema_with = schemas::hex_or_null, required = false)]
    payload_hex: Option<String>,
}

/// The result of a test.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = ChargerDecoderTestResult)]
pub(in crate::routes) struct TestResult {
    /// Whether the decoder can read the payload
    decoded: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "telemetry")]
    event_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    data: Option<PlainValue>,
    /// The field that failed; `event_type`, `payload` or `data` for other failures
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "current_ma")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "needs bytes 2 to 3, and the payload has 2 bytes")]
    reason: Option<String>,
}

impl From<Result<Decoded, DecodeError>> for TestResult {
    fn from(result: Result<Decoded, DecodeError>) -> Self {
        match result {
            Ok(decoded) => Self {
                decoded: true,
                event_type: Some(decoded.event_type.to_string()),
                data: Some(PlainValue::members(decoded.data.members().clone())),
                ..Self::default()
            },
            Err(error) => Self {
                field: Some(error.field),
                reason: Some(error.reason),
                ..Self::default()
            },
        }
    }
}

/// Test a payload decoder; nothing is stored
#[utoipa::path(post, path = "/v1/chargers/decoders/test", tag = "chargers", security(("admin_token" = [])),
    request_body = TestDecoder, responses(
    (status = 200, description = "The event, or the field that failed", body = TestResult),
    (status = 400, description = "Invalid decoder or payload; the detail names the place"),
    (status = 404, description = "Decoder not found"),
))]
pub(in crate::routes) async fn test_decoder(
    _: Authenticated<Everywhere<ManageRules>>,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<TestDecoder>,
) -> Result<Json<TestResult>, Problem> {
    let payload = match (body.payload_base64, body.payload_hex) {
        (Some(text), None) => STANDARD
            .decode(text)
            .map_err(|error| Problem::invalid(format!("payload_base64 must be Base64: {error}"))),
        (None, Some(text)) => hex::decode(text).map_err(|error| {
            Problem::invalid(format!("payload_hex must be hexadecimal digits: {error}"))
        }),
        _ => Err(Problem::invalid(
            "send either payload_base64 or payload_hex",
        )),
    }?;
    if payload.len() > PAYLOAD_BYTES_MAX {
        return Err(Problem::invalid(format!(
            "a payload has at most {PAYLOAD_BYTES_MAX} bytes; this one has {}",
            payload.len()
        )));
    }
    let document = match (body.decoder, body.name) {
        (Some(document), None) => document,
        (None, Some(name)) => {
            let name: DecoderName = name.parse()?;
            state.chargers.decoders().get(&name).await?.document
        }
        _ => return Err(Problem::invalid("send either decoder or name")),
    };
    let decoder = Decoders::check(&document).map_err(Problem::from)?;
    Ok(Json(decoder.decode(&payload).into()))
}
