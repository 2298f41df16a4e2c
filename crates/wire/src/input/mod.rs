//! Reads the body of a request into the fields of its input, without a JSON tree in between, and with DynamoDB's texts for every
//! kind of invalid JSON.
//!
//! Problems with attribute values are only stored here, because DynamoDB reports them after the constraints on the other fields.

mod attribute;
mod containers;
mod nesting;
mod problem;
mod scalars;

pub(crate) use attribute::{Attribute, Attributes};
pub(crate) use containers::{Element, Field, List, Mapping, Named};
pub(crate) use nesting::is_very_deep;
pub(crate) use problem::{Problem, Wording};
pub(crate) use scalars::{Flag, Integer, Long, Text, Timestamp};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::failure::Failure;

/// Reads a request.
pub(crate) fn read<'de, T: Deserialize<'de>>(body: &'de [u8]) -> Result<T, Failure> {
    // Otherwise serde would read a list as the fields in their order, and name our types in its errors.
    match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'[' | b'"' | b'0'..=b'9' | b'-' | b't' | b'f' | b'n')
            if serde_json::from_slice::<IgnoredAny>(body).is_ok() =>
        {
            Err(Failure::serialization(Some("Unexpected field type")))
        }
        _ => serde_json::from_slice(body).map_err(|error| failure(&error)),
    }
}

fn failure(error: &serde_json::Error) -> Failure {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    if text == "recursion limit exceeded" {
        return Failure::validation("Nesting Levels have exceeded supported limits");
    }
    if error.is_data() {
        Failure::serialization(Some(text))
    } else {
        Failure::serialization(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Sample<'a> {
        #[serde(borrow)]
        text: Option<Text<'a>>,
        number: Option<Integer>,
        flag: Option<Flag>,
        #[serde(borrow)]
        list: Option<List<Text<'a>>>,
        attributes: Option<Attributes>,
        #[serde(borrow)]
        nested: Option<Field<Nested<'a>>>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Nested<'a> {
        #[serde(borrow)]
        inner: Option<Text<'a>>,
    }

    impl Named for Nested<'_> {
        const NAME: &'static str = "Nested";
    }

    #[track_caller]
    fn refused(body: &str) -> String {
        let failure = read::<Sample<'_>>(body.as_bytes()).expect_err("a wrong body");
        failure.text().unwrap_or("-").to_owned()
    }

    #[test]
    fn wrong_types_get_dynamodb_texts() {
        for (body, text) in [
            ("nonsense", "-"),
            ("{", "-"),
            ("[]", "Unexpected field type"),
            (r#" "x""#, "Unexpected field type"),
            ("5", "Unexpected field type"),
            ("[", "-"),
            (
                r#"{"Text":true}"#,
                "TRUE_VALUE cannot be converted to String",
            ),
            (
                r#"{"Text":false}"#,
                "FALSE_VALUE cannot be converted to String",
            ),
            (
                r#"{"Text":23}"#,
                "NUMBER_VALUE cannot be converted to String",
            ),
            (
                r#"{"Text":-23}"#,
                "NUMBER_VALUE cannot be converted to String",
            ),
            (
                r#"{"Text":3.5}"#,
                "DECIMAL_VALUE cannot be converted to String",
            ),
            (
                r#"{"Text":[]}"#,
                "Unrecognized collection type class java.lang.String",
            ),
            (
                r#"{"Text":{}}"#,
                "Start of structure or map found where not expected",
            ),
            (
                r#"{"Number":"1"}"#,
                "STRING_VALUE cannot be converted to Integer",
            ),
            (
                r#"{"Number":true}"#,
                "TRUE_VALUE cannot be converted to Integer",
            ),
            (
                r#"{"Number":[]}"#,
                "Unrecognized collection type class java.lang.Integer",
            ),
            (r#"{"Flag":"x"}"#, "Unexpected token received from parser"),
            (
                r#"{"Flag":1}"#,
                "NUMBER_VALUE cannot be converted to Boolean",
            ),
            (r#"{"List":"x"}"#, "Unexpected field type"),
            (
                r#"{"List":{}}"#,
                "Start of structure or map found where not expected",
            ),
            (
                r#"{"List":[1]}"#,
                "NUMBER_VALUE cannot be converted to String",
            ),
            (r#"{"Nested":"x"}"#, "Unexpected field type"),
            (
                r#"{"Nested":[]}"#,
                "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.Nested",
            ),
            (
                r#"{"Nested":{"Inner":1}}"#,
                "NUMBER_VALUE cannot be converted to String",
            ),
            (r#"{"Attributes":1}"#, "Unexpected field type"),
            (
                r#"{"Attributes":{"a":"x"}}"#,
                "Unexpected value type in payload",
            ),
            (
                r#"{"Attributes":[]}"#,
                "Unrecognized collection type java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>",
            ),
            (
                r#"{"Attributes":{"a":[]}}"#,
                "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue",
            ),
            (
                r#"{"Attributes":{"a":{"N":1}}}"#,
                "NUMBER_VALUE cannot be converted to String",
            ),
            (
                r#"{"Attributes":{"a":{"B":1}}}"#,
                "only base-64-encoded strings are convertible to bytes",
            ),
            (
                r#"{"Attributes":{"a":{"B":"23456"}}}"#,
                "Base64 encoded length is expected a multiple of 4 bytes but found: 5",
            ),
        ] {
            assert_eq!(refused(body), text, "{body}");
        }
    }

    #[test]
    fn null_and_unknown_members_count_as_missing() {
        let sample: Sample<'_> = read(
            br#"{"Text":null,"Other":[{}],"Number":2.9,"Flag":true,"List":["a"],"Nested":{}}"#,
        )
        .expect("a body");
        assert!(sample.text.is_none());
        assert!(sample.attributes.is_none());
        assert_eq!(sample.number.map(|number| number.0), Some(2));
        assert!(sample.flag.is_some_and(|flag| flag.0));
        assert_eq!(sample.list.map(|list| list.0.len()), Some(1));
        assert!(sample.nested.is_some_and(|nested| nested.0.inner.is_none()));
    }

    #[test]
    fn deep_nesting_ends_in_an_error() {
        let deep = format!(
            r#"{{"Attributes":{{"a":{}{{"S":"x"}}{}}}}}"#,
            r#"{"L":["#.repeat(5000),
            "]}".repeat(5000)
        );
        let sample: Sample<'_> = read(deep.as_bytes()).expect("well-formed");
        let problem = sample.attributes.expect("attributes").0;
        assert!(problem.expect_err("a problem").is_too_deep());
        let unknown = format!(r#"{{"Other":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
        assert!(read::<Sample<'_>>(unknown.as_bytes()).is_ok());
        let wrong = format!(r#"{{"Text":{}"#, "[".repeat(5000));
        assert_eq!(
            refused(&wrong),
            "Unrecognized collection type class java.lang.String"
        );
    }
}
