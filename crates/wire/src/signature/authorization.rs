//! The Authorization header and its errors.

use super::{ALGORITHM, SERVICE, TERMINATOR};
use crate::failure::Failure;

/// A parsed Authorization header.
#[derive(Debug)]
pub(super) struct Authorization<'a> {
    pub(super) access_key_id: &'a str,
    pub(super) date: &'a str,
    pub(super) region: &'a str,
    service: &'a str,
    terminator: &'a str,
    /// Lower case, as given.
    pub(super) signed_headers: Vec<&'a str>,
    pub(super) signature: &'a str,
}

impl<'a> Authorization<'a> {
    pub(super) fn parse(header: &'a str, has_date: bool) -> Result<Self, Failure> {
        let incomplete = |text: String| Failure::unsigned("IncompleteSignatureException", text);
        let (algorithm, parameters) = header.split_once(' ').unwrap_or((header, ""));
        let parameter = |name: &str| {
            parameters
                .split([',', ' '])
                .filter_map(|pair| pair.trim().split_once('='))
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value)
                .filter(|value| !value.is_empty())
        };
        let (credential, signature, signed_headers) = (
            parameter("Credential"),
            parameter("Signature"),
            parameter("SignedHeaders"),
        );
        let mut missing = String::new();
        for (name, value) in [
            ("Credential", credential),
            ("Signature", signature),
            ("SignedHeaders", signed_headers),
        ] {
            if value.is_none() {
                missing.push_str(&format!(
                    "Authorization header requires '{name}' parameter. "
                ));
            }
        }
        if !has_date {
            missing.push_str(
                "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. ",
            );
        }
        let (Some(credential), Some(signature), Some(signed_headers), true) =
            (credential, signature, signed_headers, has_date)
        else {
            return Err(incomplete(format!("{missing}Authorization={header}")));
        };
        if algorithm != ALGORITHM {
            return Err(incomplete(format!(
                "Unsupported AWS 'algorithm': '{algorithm}' (only {ALGORITHM} for now). "
            )));
        }
        Self::from_parts(
            credential,
            signed_headers,
            signature,
            &[("host", "Host"), ("x-amz-date", "X-Amz-Date")],
        )
    }

    /// An authorization from its parts. The `required` headers must be signed.
    pub(super) fn from_parts(
        credential: &'a str,
        signed_headers: &'a str,
        signature: &'a str,
        required: &[(&str, &str)],
    ) -> Result<Self, Failure> {
        let signed_headers: Vec<_> = signed_headers.split(';').collect();
        for &(required, shown) in required {
            if !signed_headers
                .iter()
                .any(|name| name.eq_ignore_ascii_case(required))
            {
                return Err(Failure::unsigned(
                    "InvalidSignatureException",
                    format!("'{shown}' must be a 'SignedHeader' in the AWS Authorization."),
                ));
            }
        }
        let parts: Vec<_> = credential.trim_end_matches('/').split('/').collect();
        let [access_key_id, date, region, service, terminator] = parts[..] else {
            return Err(Failure::unsigned(
                "IncompleteSignatureException",
                format!(
                    "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got '{credential}'"
                ),
            ));
        };
        Ok(Self {
            access_key_id,
            date,
            region,
            service,
            terminator,
            signed_headers,
            signature,
        })
    }

    /// Checks the scope of the signature. Every region is valid.
    pub(super) fn check_scope(&self, request_date: &str) -> Result<(), Failure> {
        let mut text = String::new();
        if self.service != SERVICE {
            text.push_str(&format!(
                "Credential should be scoped to correct service: '{SERVICE}'. "
            ));
        }
        if self.terminator != TERMINATOR {
            text.push_str(&format!(
                "Credential should be scoped with a valid terminator: '{TERMINATOR}', not '{}'. ",
                self.terminator
            ));
        }
        if self.date != request_date {
            text.push_str(&format!(
                "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '{}' != '{request_date}'. ",
                self.date
            ));
        }
        if text.is_empty() {
            return Ok(());
        }
        Err(Failure::unsigned("InvalidSignatureException", text))
    }

    pub(super) fn scope(&self) -> String {
        format!(
            "{}/{}/{}/{}",
            self.date, self.region, self.service, self.terminator
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_headers_name_missing_parts() {
        for (header, has_date, text) in [
            (
                "AWS4-",
                false,
                "Authorization header requires 'Credential' parameter. Authorization header requires 'Signature' parameter. Authorization header requires 'SignedHeaders' parameter. Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. Authorization=AWS4-",
            ),
            (
                "AWS4- Signature=b, Credential=a",
                true,
                "Authorization header requires 'SignedHeaders' parameter. Authorization=AWS4- Signature=b, Credential=a",
            ),
            (
                "AWS4-X Signature=b, Credential=a, SignedHeaders=host",
                true,
                "Unsupported AWS 'algorithm': 'AWS4-X' (only AWS4-HMAC-SHA256 for now). ",
            ),
            (
                "AWS4-HMAC-SHA256 Signature=b, Credential=a/b, SignedHeaders=host;x-amz-date",
                true,
                "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got 'a/b'",
            ),
        ] {
            let failure = Authorization::parse(header, has_date).expect_err("incomplete");
            assert_eq!(failure.kind(), "IncompleteSignatureException");
            assert_eq!(failure.text(), Some(text));
        }
    }

    #[test]
    fn other_service_or_day_is_rejected() {
        let header = "AWS4-HMAC-SHA256 Credential=id/20200101/eu-west-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=x";
        let authorization = Authorization::parse(header, true).expect("complete");
        let text = authorization.check_scope("20200102").expect_err("refused");
        assert_eq!(
            text.text(),
            Some(
                "Credential should be scoped to correct service: 'dynamodb'. Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '20200101' != '20200102'. "
            )
        );
    }
}
