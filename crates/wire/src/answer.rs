//! HTTP responses with status, checksum, request id and compression.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::Full;
use hyper::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
};
use hyper::{Response, StatusCode, Version};

use crate::request_id;

pub(crate) type HttpAnswer = Response<Full<Bytes>>;

/// Shorter responses are not compressed.
const GZIP_MIN_BYTES: usize = 1024;

const CRC32: HeaderName = HeaderName::from_static("x-amz-crc32");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-amzn-requestid");

pub(crate) const AMZ_JSON: HeaderValue = HeaderValue::from_static("application/x-amz-json-1.0");
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) const PLAIN: HeaderValue = HeaderValue::from_static("text/plain");

/// Whether a client accepts compressed responses.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            parts
                .next()
                .is_some_and(|name| name.eq_ignore_ascii_case("gzip"))
                && !parts.any(|parameter| matches!(parameter, "q=0" | "q=0.0"))
        })
}

/// Builds a response.
pub(crate) fn answer(
    status: u16,
    content_type: HeaderValue,
    id: &[u8; request_id::LEN],
    body: Vec<u8>,
    gzip: bool,
) -> HttpAnswer {
    let compressed = if gzip && body.len() >= GZIP_MIN_BYTES {
        compress(&body)
    } else {
        None
    };
    let is_compressed = compressed.is_some();
    let body = Bytes::from(compressed.unwrap_or(body));
    // The checksum covers the compressed bytes.
    let checksum = crc32fast::hash(&body);
    let mut response = Response::new(Full::new(body));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.reserve(4);
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(CRC32, HeaderValue::from(checksum));
    if let Ok(id) = HeaderValue::from_bytes(id) {
        headers.insert(REQUEST_ID, id);
    }
    if is_compressed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Announces that the connection closes after this response, because the body of the request was not read. Otherwise the client
/// would send its next request on a closed connection.
pub(crate) fn closing(mut answer: HttpAnswer, version: Version) -> HttpAnswer {
    // HTTP/2 only ends the stream, and forbids the header.
    if version < Version::HTTP_2 {
        let close = HeaderValue::from_static("close");
        answer.headers_mut().insert(CONNECTION, close);
    }
    answer
}

fn compress(body: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body).ok()?;
    encoder.finish().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_used_only_if_accepted() {
        for (value, accepted) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("identity", false),
            ("gzip;q=0", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            assert_eq!(accepts_gzip(&headers), accepted, "{value}");
        }
        let id = [b'A'; request_id::LEN];
        let long = answer(200, AMZ_JSON, &id, vec![b'x'; 5000], true);
        assert!(long.headers().contains_key(CONTENT_ENCODING));
        let short = answer(200, AMZ_JSON, &id, b"{}".to_vec(), true);
        assert!(!short.headers().contains_key(CONTENT_ENCODING));
        assert_eq!(short.headers()[CRC32], "2745614147");
    }
}
