//! Authenticates callers by AWS Signature Version 4, in the Authorization header or, presigned, in the URI.

mod authorization;
mod canonical;
mod date;
mod presigned;

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName};
use hyper::http::request::Parts;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::config::{Config, Credential};
use crate::failure::Failure;
use authorization::Authorization;
pub(crate) use presigned::target;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SERVICE: &str = "dynamodb";
const TERMINATOR: &str = "aws4_request";
/// The largest difference between the time of a request and the server's.
const SKEW_MAX_SECS: i64 = 15 * 60;

const AMZ_DATE: HeaderName = HeaderName::from_static("x-amz-date");
const CONTENT_SHA256: HeaderName = HeaderName::from_static("x-amz-content-sha256");

/// Verifies a request's signature and returns its credential: none when no credentials are configured, since all callers
/// are allowed then.
pub(crate) fn verify<'c>(
    config: &'c Config,
    head: &Parts,
    body: &[u8],
) -> Result<Option<&'c Credential>, Failure> {
    check(config, head, Some(body))
}

/// Checks everything but the signature itself, which covers the body: the access key is known and the request is recent.
pub(crate) fn check_head(config: &Config, head: &Parts) -> Result<(), Failure> {
    check(config, head, None).map(drop)
}

// IMPORTANT: without a body the credential is not authenticated.
fn check<'c>(
    config: &'c Config,
    head: &Parts,
    body: Option<&[u8]>,
) -> Result<Option<&'c Credential>, Failure> {
    if config.credentials.is_empty() {
        return Ok(None);
    }
    let given = head
        .headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .map(str::trim);
    if presigned::is_presigned(head) {
        if given.is_some() {
            return Err(Failure::unsigned(
                "InvalidSignatureException",
                "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.",
            ));
        }
        return presigned::check(config, head, body).map(Some);
    }
    let given = given
        .filter(|value| value.starts_with("AWS4-"))
        .ok_or_else(|| {
            Failure::unsigned(
                "MissingAuthenticationTokenException",
                "Request is missing Authentication Token",
            )
        })?;
    let amz_date = text(&head.headers, &AMZ_DATE);
    let authorization = Authorization::parse(given, amz_date.is_some())?;
    let amz_date = amz_date.unwrap_or_default();
    let at_secs = parse_date(amz_date)?;
    check_time(amz_date, at_secs, config.clock.now_ms().div_euclid(1000))?;
    authorization.check_scope(&amz_date[..8])?;
    let credential = credential(config, authorization.access_key_id)?;
    let Some(body) = body else {
        return Ok(Some(credential));
    };
    let body_hash = hex::encode(Sha256::digest(body));
    if let Some(claimed) = text(&head.headers, &CONTENT_SHA256)
        && claimed != body_hash
    {
        return Err(mismatch());
    }
    check_signature(credential, &authorization, head, amz_date, &body_hash)?;
    Ok(Some(credential))
}

fn credential<'c>(config: &'c Config, access_key_id: &str) -> Result<&'c Credential, Failure> {
    config
        .credentials
        .iter()
        .find(|credential| credential.access_key_id == access_key_id)
        .ok_or_else(|| {
            Failure::unsigned(
                "UnrecognizedClientException",
                "The security token included in the request is invalid.",
            )
        })
}

fn check_signature(
    credential: &Credential,
    authorization: &Authorization<'_>,
    head: &Parts,
    amz_date: &str,
    body_hash: &str,
) -> Result<(), Failure> {
    let canonical = canonical::request(head, &authorization.signed_headers, body_hash);
    let to_sign = canonical::string_to_sign(amz_date, &authorization.scope(), &canonical);
    let key = canonical::signing_key(
        credential.secret(),
        authorization.date,
        authorization.region,
    );
    let expected = hex::encode(canonical::hmac(&key, to_sign.as_bytes()));
    // IMPORTANT: compared in constant time, so that an attacker cannot measure how much of a guessed signature is correct.
    if bool::from(
        expected
            .as_bytes()
            .ct_eq(authorization.signature.as_bytes()),
    ) {
        Ok(())
    } else {
        Err(mismatch())
    }
}

fn parse_date(amz_date: &str) -> Result<i64, Failure> {
    date::parse(amz_date).ok_or_else(|| {
        Failure::unsigned(
            "IncompleteSignatureException",
            format!("Date must be in ISO-8601 'basic format'. Got '{amz_date}'. See http://en.wikipedia.org/wiki/ISO_8601"),
        )
    })
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

// DIFFERENCE: DynamoDB adds the canonical request that it computed, which only helps authors of signers.
fn mismatch() -> Failure {
    Failure::unsigned(
        "InvalidSignatureException",
        "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.",
    )
}

fn check_time(amz_date: &str, at_secs: i64, now_secs: i64) -> Result<(), Failure> {
    if at_secs < now_secs - SKEW_MAX_SECS {
        return Err(Failure::unsigned(
            "InvalidSignatureException",
            format!(
                "Signature expired: {amz_date} is now earlier than {} ({} - 15 min.)",
                date::format(now_secs - SKEW_MAX_SECS),
                date::format(now_secs)
            ),
        ));
    }
    check_not_in_future(amz_date, at_secs, now_secs)
}

fn check_not_in_future(amz_date: &str, at_secs: i64, now_secs: i64) -> Result<(), Failure> {
    if at_secs <= now_secs + SKEW_MAX_SECS {
        return Ok(());
    }
    Err(Failure::unsigned(
        "InvalidSignatureException",
        format!(
            "Signature not yet current: {amz_date} is still later than {} ({} + 15 min.)",
            date::format(now_secs + SKEW_MAX_SECS),
            date::format(now_secs)
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Credential;
    use homeport_engine::ManualClock;
    use hyper::Request;
    use std::sync::Arc;

    const BODY: &[u8] = b"{\"TableName\":\"readings\"}";
    const NOW_MS: i64 = 1_700_000_000_000;

    fn config() -> Config {
        Config {
            credentials: vec![Credential::new(
                "AKIDEXAMPLE",
                "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            )],
            clock: Arc::new(ManualClock::at_ms(NOW_MS)),
            ..Config::default()
        }
    }

    /// A request with the given headers, as its parts.
    fn head(headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method("POST").uri("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request").into_parts().0
    }

    fn signed(secret: &str, signed_headers: &str) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("host", "localhost:8000".to_owned()),
            ("x-amz-date", "20231114T221320Z".to_owned()),
            ("x-amz-target", "DynamoDB_20120810.DescribeTable".to_owned()),
            ("content-type", "application/x-amz-json-1.0".to_owned()),
        ];
        let borrowed: Vec<_> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let names: Vec<&str> = signed_headers.split(';').collect();
        let body_hash = hex::encode(Sha256::digest(BODY));
        let canonical = canonical::request(&head(&borrowed), &names, &body_hash);
        let scope = "20231114/us-east-1/dynamodb/aws4_request";
        let to_sign = canonical::string_to_sign("20231114T221320Z", scope, &canonical);
        let key = canonical::signing_key(secret, "20231114", "us-east-1");
        let signature = hex::encode(canonical::hmac(&key, to_sign.as_bytes()));
        headers.push((
            "authorization",
            format!("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{scope}, SignedHeaders={signed_headers}, Signature={signature}"),
        ));
        headers
    }

    fn verified(headers: &[(&'static str, String)], body: &[u8]) -> Result<(), (String, String)> {
        let borrowed: Vec<_> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        verify(&config(), &head(&borrowed), body)
            .map(|who| assert!(who.is_some()))
            .map_err(|failure| {
                let text = failure.text().unwrap_or_default().to_owned();
                (failure.kind().to_owned(), text)
            })
    }

    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    const HEADERS: &str = "content-type;host;x-amz-date;x-amz-target";

    #[test]
    fn valid_signature_is_accepted() {
        assert_eq!(verified(&signed(SECRET, HEADERS), BODY), Ok(()));
    }

    #[test]
    fn signature_of_botocore_is_accepted() {
        // botocore 1.43.11 signed this request with this key at this time.
        let headers = [
            ("host", "localhost:8000".to_owned()),
            ("x-amz-target", "DynamoDB_20120810.DescribeTable".to_owned()),
            ("content-type", "application/x-amz-json-1.0".to_owned()),
            ("user-agent", "x".to_owned()),
            ("x-amz-date", "20231114T221320Z".to_owned()),
            (
                "authorization",
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20231114/us-east-1/dynamodb/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=3a388bb96fae05c84192e6b21393c20880408829d248401831e7389ae01085a8".to_owned(),
            ),
        ];
        assert_eq!(verified(&headers, BODY), Ok(()));
    }

    #[test]
    fn wrong_secret_body_or_header_is_rejected() {
        let kind = "InvalidSignatureException".to_owned();
        let refused = |result: Result<(), (String, String)>| result.expect_err("refused").0;
        assert_eq!(refused(verified(&signed("other", HEADERS), BODY)), kind);
        assert_eq!(refused(verified(&signed(SECRET, HEADERS), b"{}")), kind);
        let mut changed = signed(SECRET, HEADERS);
        changed[2].1 = "DynamoDB_20120810.DeleteTable".to_owned();
        assert_eq!(refused(verified(&changed, BODY)), kind);
        let mut unsigned = signed(SECRET, HEADERS);
        unsigned.push(("x-amz-content-sha256", "UNSIGNED-PAYLOAD".to_owned()));
        assert_eq!(refused(verified(&unsigned, BODY)), kind);
    }

    #[test]
    fn missing_parts_are_named() {
        assert_eq!(
            verified(&[], BODY),
            Err((
                "MissingAuthenticationTokenException".to_owned(),
                "Request is missing Authentication Token".to_owned()
            ))
        );
        let without_host = signed(SECRET, "x-amz-date");
        assert_eq!(
            verified(&without_host, BODY).expect_err("refused").1,
            "'Host' must be a 'SignedHeader' in the AWS Authorization."
        );
        let mut unknown = signed(SECRET, HEADERS);
        unknown[4].1 = unknown[4].1.replace("AKIDEXAMPLE", "SOMEONE");
        assert_eq!(
            verified(&unknown, BODY),
            Err((
                "UnrecognizedClientException".to_owned(),
                "The security token included in the request is invalid.".to_owned()
            ))
        );
    }

    #[test]
    fn signature_is_valid_for_fifteen_minutes() {
        let headers = signed(SECRET, HEADERS);
        let borrowed: Vec<_> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let at = |now_ms: i64| {
            let config = Config {
                clock: Arc::new(ManualClock::at_ms(now_ms)),
                ..config()
            };
            verify(&config, &head(&borrowed), BODY).map(|_| ())
        };
        let quarter_ms = SKEW_MAX_SECS * 1000;
        assert!(at(NOW_MS + quarter_ms).is_ok());
        assert!(at(NOW_MS - quarter_ms).is_ok());
        let late = at(NOW_MS + quarter_ms + 1000).expect_err("too late");
        assert_eq!(
            late.text(),
            Some(
                "Signature expired: 20231114T221320Z is now earlier than 20231114T221321Z (20231114T222821Z - 15 min.)"
            )
        );
        assert!(at(NOW_MS - quarter_ms - 1000).is_err());
    }

    #[test]
    fn every_caller_is_allowed_without_credentials() {
        assert!(verify(&Config::default(), &head(&[]), BODY).is_ok());
    }
}
