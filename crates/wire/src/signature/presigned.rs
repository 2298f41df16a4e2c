//! Presigned requests: the signature and its time of validity are in the URI.

use hyper::http::request::Parts;
use sha2::{Digest as _, Sha256};

use super::authorization::Authorization;
use super::{
    ALGORITHM, SKEW_MAX_SECS, check_not_in_future, check_signature, credential, date, parse_date,
};
use crate::config::{Config, Credential};
use crate::failure::Failure;

/// The longest validity of a signature: seven days.
const EXPIRES_MAX_SECS: i64 = 604_800;

const ALGORITHM_PARAMETER: &str = "X-Amz-Algorithm";
const CREDENTIAL: &str = "X-Amz-Credential";
const SIGNATURE: &str = "X-Amz-Signature";
const SIGNED_HEADERS: &str = "X-Amz-SignedHeaders";
const DATE: &str = "X-Amz-Date";
const EXPIRES: &str = "X-Amz-Expires";
const TARGET: &str = "X-Amz-Target";

/// Whether the signature is in the URI.
pub(super) fn is_presigned(head: &Parts) -> bool {
    [ALGORITHM_PARAMETER, CREDENTIAL, SIGNATURE]
        .iter()
        .any(|name| parameter(head, name).is_some())
}

/// The operation in the URI of a presigned request, where signers move headers to.
pub(crate) fn target(head: &Parts) -> Option<String> {
    is_presigned(head)
        .then(|| parameter(head, TARGET))
        .flatten()
}

/// Checks a presigned request; without a body, everything but the signature itself.
pub(super) fn check<'c>(
    config: &'c Config,
    head: &Parts,
    body: Option<&[u8]>,
) -> Result<&'c Credential, Failure> {
    let names = [
        ALGORITHM_PARAMETER,
        CREDENTIAL,
        SIGNATURE,
        SIGNED_HEADERS,
        DATE,
    ];
    let given = names.map(|name| parameter(head, name).filter(|value| !value.is_empty()));
    let [
        Some(algorithm),
        Some(credential_text),
        Some(signature),
        Some(signed_headers),
        Some(amz_date),
    ] = given
    else {
        let mut text = String::new();
        for (name, _) in names
            .iter()
            .zip(&given)
            .filter(|(_, given)| given.is_none())
        {
            text.push_str(&format!(
                "AWS query-string parameters must include '{name}'. "
            ));
        }
        text.push_str("Re-examine the query-string parameters.");
        return Err(Failure::unsigned("IncompleteSignatureException", text));
    };
    if algorithm != ALGORITHM {
        return Err(Failure::unsigned(
            "IncompleteSignatureException",
            format!("Unsupported AWS 'algorithm': '{algorithm}' (only {ALGORITHM} for now). "),
        ));
    }
    let at_secs = parse_date(&amz_date)?;
    // IMPORTANT: the operation must be signed too. Otherwise a leaked URI would permit every operation.
    let required = [("host", "Host"), ("x-amz-target", "X-Amz-Target")];
    let in_uri = usize::from(parameter(head, TARGET).is_some());
    let authorization = Authorization::from_parts(
        &credential_text,
        &signed_headers,
        &signature,
        &required[..required.len() - in_uri],
    )?;
    authorization.check_scope(&amz_date[..8])?;
    check_age(
        &amz_date,
        at_secs,
        parameter(head, EXPIRES).as_deref(),
        config.clock.now_ms().div_euclid(1000),
    )?;
    let found = credential(config, authorization.access_key_id)?;
    let Some(body) = body else {
        return Ok(found);
    };
    let body_hash = hex::encode(Sha256::digest(body));
    check_signature(found, &authorization, head, &amz_date, &body_hash)?;
    Ok(found)
}

fn check_age(
    amz_date: &str,
    at_secs: i64,
    expires: Option<&str>,
    now_secs: i64,
) -> Result<(), Failure> {
    let refused = |text: String| Err(Failure::unsigned("InvalidSignatureException", text));
    let expires_secs = match expires {
        // The default is the validity of a signature in a header.
        None => SKEW_MAX_SECS,
        Some(text) => match text.parse() {
            Ok(secs) if (1..=EXPIRES_MAX_SECS).contains(&secs) => secs,
            _ => {
                return refused(format!(
                    "X-Amz-Expires must be between 1 and {EXPIRES_MAX_SECS} seconds"
                ));
            }
        },
    };
    if now_secs > at_secs + expires_secs {
        return refused(format!(
            "Signature expired: {amz_date} is now earlier than {} ({} - {expires_secs} sec.)",
            date::format(now_secs - expires_secs),
            date::format(now_secs)
        ));
    }
    check_not_in_future(amz_date, at_secs, now_secs)
}

/// A decoded parameter of the URI.
fn parameter(head: &Parts, name: &str) -> Option<String> {
    head.uri.query()?.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        (key == name).then(|| decode(value))
    })
}

/// Decodes percent-encoding. Invalid sequences are kept.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes
            .get(at + 1..at + 3)
            .filter(|_| bytes[at] == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) => {
                out.push(code);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::canonical;
    use homeport_engine::ManualClock;
    use hyper::Request;
    use std::sync::Arc;

    const BODY: &[u8] = b"{\"TableName\":\"readings\"}";
    const NOW_MS: i64 = 1_700_000_000_000;
    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

    fn config(now_ms: i64) -> Config {
        Config {
            credentials: vec![Credential::new("AKIDEXAMPLE", SECRET)],
            clock: Arc::new(ManualClock::at_ms(now_ms)),
            ..Config::default()
        }
    }

    fn head(query: &str) -> Parts {
        let request = Request::builder()
            .method("POST")
            .uri(format!("/?{query}"))
            .header("host", "localhost:8000");
        request.body(()).expect("a request").into_parts().0
    }

    fn presigned(expires: &str) -> String {
        let scope = "20231114/us-east-1/dynamodb/aws4_request";
        let query = format!(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F{}&X-Amz-Date=20231114T221320Z&X-Amz-Expires={expires}&X-Amz-SignedHeaders=host&X-Amz-Target=DynamoDB_20120810.DescribeTable",
            scope.replace('/', "%2F")
        );
        let body_hash = hex::encode(Sha256::digest(BODY));
        let canonical_request = canonical::request(&head(&query), &["host"], &body_hash);
        let to_sign = canonical::string_to_sign("20231114T221320Z", scope, &canonical_request);
        let key = canonical::signing_key(SECRET, "20231114", "us-east-1");
        let signature = hex::encode(canonical::hmac(&key, to_sign.as_bytes()));
        format!("{query}&X-Amz-Signature={signature}")
    }

    fn verified(query: &str, body: &[u8], now_ms: i64) -> Result<(), String> {
        super::super::verify(&config(now_ms), &head(query), body)
            .map(|who| assert!(who.is_some()))
            .map_err(|failure| failure.text().unwrap_or_default().to_owned())
    }

    #[test]
    fn presigned_request_is_valid_until_it_expires() {
        let query = presigned("3600");
        assert_eq!(verified(&query, BODY, NOW_MS), Ok(()));
        assert_eq!(verified(&query, BODY, NOW_MS + 3_600_000), Ok(()));
        assert_eq!(
            verified(&query, BODY, NOW_MS + 3_601_000),
            Err("Signature expired: 20231114T221320Z is now earlier than 20231114T221321Z (20231114T231321Z - 3600 sec.)".to_owned())
        );
        assert!(verified(&query, BODY, NOW_MS - 16 * 60_000).is_err());
        assert_eq!(
            target(&head(&query)).as_deref(),
            Some("DynamoDB_20120810.DescribeTable")
        );
        assert_eq!(
            verified(&presigned("604801"), BODY, NOW_MS),
            Err("X-Amz-Expires must be between 1 and 604800 seconds".to_owned())
        );
    }

    #[test]
    fn changed_presigned_request_is_rejected() {
        let query = presigned("3600");
        let mismatch = verified(&query, b"{}", NOW_MS).expect_err("another body");
        assert!(mismatch.starts_with("The request signature we calculated does not match"));
        for (from, to) in [
            ("DescribeTable", "DeleteTable"),
            ("Expires=3600", "Expires=7200"),
        ] {
            assert_eq!(
                verified(&query.replace(from, to), BODY, NOW_MS),
                Err(mismatch.clone())
            );
        }
    }

    #[test]
    fn the_operation_must_be_signed() {
        let query = presigned("60").replace("&X-Amz-Target=DynamoDB_20120810.DescribeTable", "");
        assert_eq!(
            verified(&query, BODY, NOW_MS),
            Err("'X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization.".to_owned())
        );
    }

    #[test]
    fn missing_parameters_are_named() {
        assert_eq!(
            verified("X-Amz-Algorithm=AWS4-HMAC-SHA256", BODY, NOW_MS),
            Err("AWS query-string parameters must include 'X-Amz-Credential'. AWS query-string parameters must include 'X-Amz-Signature'. AWS query-string parameters must include 'X-Amz-SignedHeaders'. AWS query-string parameters must include 'X-Amz-Date'. Re-examine the query-string parameters.".to_owned())
        );
    }

    #[test]
    fn percent_encoding_is_decoded() {
        assert_eq!(decode("a%2Fb%zz%4"), "a/b%zz%4");
    }
}
