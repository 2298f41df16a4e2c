//! Notifications in the format that SNS posts over HTTP, so that receivers of AWS topics understand
//! them. They are signed like all requests of rules, not with an AWS certificate.

use serde::Deserialize;
use serde_json::json;

use crate::ids::UuidV4;
use crate::rules::definitions::document::SnsFormat;
use crate::time::{EpochMillis, UtcMillis};

/// SNS's protocol names of HTTP receivers, in order of preference.
const RECEIVERS: [&str; 3] = ["https", "http", "default"];

/// A message for each kind of receiver.
#[derive(Deserialize)]
#[serde(transparent)]
struct Messages(serde_json::Map<String, serde_json::Value>);

/// The SNS headers of a notification.
pub(in crate::rules) fn headers(topic_arn: &str) -> Vec<(String, String)> {
    let headers = [
        ("x-amz-sns-message-type", "Notification"),
        ("x-amz-sns-topic-arn", topic_arn),
    ];
    headers
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

/// The body of a notification.
///
/// # Errors
/// When the result is not a valid message.
pub(in crate::rules) fn notification(
    topic_arn: &str,
    format: SnsFormat,
    result: &[u8],
    at: EpochMillis,
) -> Result<Vec<u8>, String> {
    let text = std::str::from_utf8(result)
        .map_err(|_| "a notification is text, and the result is not".to_owned())?;
    let message = match format {
        SnsFormat::Raw => text.to_owned(),
        SnsFormat::Json => for_receiver(text)?,
    };
    let body = json!({
        "Type": "Notification",
        "MessageId": UuidV4::random().to_string(),
        "TopicArn": topic_arn,
        "Message": message,
        "Timestamp": UtcMillis::new(at).to_string(),
    });
    Ok(body.to_string().into_bytes())
}

fn for_receiver(text: &str) -> Result<String, String> {
    let wrong = "messageFormat JSON takes an object with a text as its member default";
    let Messages(messages) = serde_json::from_str(text).map_err(|_| wrong.to_owned())?;
    if !messages
        .get("default")
        .is_some_and(serde_json::Value::is_string)
    {
        return Err(wrong.to_owned());
    }
    let mut found = RECEIVERS
        .iter()
        .filter_map(|name| messages.get(*name)?.as_str());
    found
        .next()
        .map(str::to_owned)
        .ok_or_else(|| wrong.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(format: SnsFormat, result: &str) -> Result<String, String> {
        let at = EpochMillis(1_800_000_000_000);
        let body = notification("arn:aws:sns:x:1:t", format, result.as_bytes(), at)?;
        let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(body["Type"], "Notification");
        assert_eq!(body["TopicArn"], "arn:aws:sns:x:1:t");
        assert_eq!(body["Timestamp"], "2027-01-15T08:00:00.000Z");
        Ok(body["Message"].as_str().expect("a text").to_owned())
    }

    #[test]
    fn message_is_the_result_or_its_http_part() {
        use SnsFormat::{Json, Raw};
        assert_eq!(message(Raw, "{\"a\":1}").as_deref(), Ok("{\"a\":1}"));
        let all = "{\"default\":\"d\",\"https\":\"h\",\"email\":\"e\"}";
        assert_eq!(message(Json, all).as_deref(), Ok("h"));
        assert_eq!(message(Json, "{\"default\":\"d\"}").as_deref(), Ok("d"));
        for wrong in ["{}", "{\"https\":\"h\"}", "{\"default\":1}", "1"] {
            assert!(message(Json, wrong).is_err(), "{wrong}");
        }
    }
}
