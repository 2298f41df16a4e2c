//! Compressed request bodies: their encoding, and decoding within limits of size and time.

use std::io::{self, BufRead, Read};
use std::time::{Duration, Instant};

use bytes::Bytes;
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use hyper::header::{CONTENT_ENCODING, HeaderMap};

use crate::body::{BODY_MAX_BYTES, RequestBody};
use crate::failure::Failure;

/// The initial capacity for a decoded body.
const DECODED_START_BYTES: usize = 16 * 1024;
/// The longest time to decode a body. The largest normal bodies take a tenth of a second, but crafted ones, such as 16 MB of
/// empty blocks, would take minutes.
const DECODE_TIME_MAX: Duration = Duration::from_secs(5);
/// Compressed bytes that are decoded between two checks of the time.
const PIECE_BYTES: usize = 4096;

const UNSUPPORTED: &str = "Unsupported Content-Encoding; use gzip, deflate or none";
const UNDECODABLE: &str = "The body is not valid in the format that its Content-Encoding names";
const TOO_SLOW: &str = "The body takes too long to decode; send it without Content-Encoding";

/// The encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentCoding {
    Identity,
    Gzip,
    /// The zlib format, as HTTP defines it.
    Deflate,
    Unsupported,
}

impl ContentCoding {
    /// The encoding in the headers of a request. Several encodings are not supported.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut named = headers.get_all(CONTENT_ENCODING).iter();
        let (first, second) = (named.next(), named.next());
        let name = match first.map(|name| name.to_str()) {
            None => return Self::Identity,
            Some(Ok(name)) if second.is_none() => name.trim().to_ascii_lowercase(),
            Some(_) => return Self::Unsupported,
        };
        match name.as_str() {
            "" | "identity" => Self::Identity,
            "gzip" | "x-gzip" => Self::Gzip,
            "deflate" => Self::Deflate,
            _ => Self::Unsupported,
        }
    }

    /// Whether a body must be decompressed.
    pub(crate) fn is_compressed(self) -> bool {
        matches!(self, Self::Gzip | Self::Deflate)
    }

    /// The decoded body.
    // DIFFERENCE: for undecodable bodies DynamoDB returns an internal error, which clients retry.
    pub(crate) async fn decode(self, body: &RequestBody) -> Result<Bytes, Failure> {
        match self {
            Self::Identity => Ok(body.bytes.clone()),
            Self::Unsupported => Err(Failure::serialization(Some(UNSUPPORTED))),
            Self::Gzip | Self::Deflate => {
                // The clone keeps the memory of the body reserved, even if the client disconnects.
                let body = body.clone();
                let deadline = Instant::now() + DECODE_TIME_MAX;
                let decoding = move || self.decode_until(&body.bytes, deadline);
                tokio::task::spawn_blocking(decoding)
                    .await
                    .map_err(|error| Failure::internal(&error))?
                    .map(Bytes::from)
            }
        }
    }

    /// Decodes a compressed body.
    fn decode_until(self, body: &[u8], deadline: Instant) -> Result<Vec<u8>, Failure> {
        let mut input = Pieces {
            rest: body,
            deadline,
        };
        let decoded = match self {
            Self::Deflate => read_limited(ZlibDecoder::new(&mut input)),
            _ => read_limited(MultiGzDecoder::new(&mut input)),
        };
        match decoded {
            Ok(decoded) if decoded.len() > BODY_MAX_BYTES => Err(Failure::body_too_large()),
            // No stream at all, or bytes after its end.
            Ok(_) if body.is_empty() || !input.rest.is_empty() => {
                Err(Failure::serialization(Some(UNDECODABLE)))
            }
            Ok(decoded) => Ok(decoded),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Err(Failure::serialization(Some(TOO_SLOW)))
            }
            Err(_) => Err(Failure::serialization(Some(UNDECODABLE))),
        }
    }
}

/// Reads to the end, or until one byte beyond the size limit of bodies.
fn read_limited(decoder: impl Read) -> io::Result<Vec<u8>> {
    let limit = u64::try_from(BODY_MAX_BYTES).map_or(u64::MAX, |limit| limit + 1);
    let mut decoded = Vec::with_capacity(DECODED_START_BYTES);
    decoder.take(limit).read_to_end(&mut decoded)?;
    Ok(decoded)
}

/// Compressed bytes, in pieces; reading fails after the deadline.
struct Pieces<'a> {
    rest: &'a [u8],
    deadline: Instant,
}

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Pieces<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if Instant::now() >= self.deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(self.rest.get(..PIECE_BYTES).unwrap_or(self.rest))
    }

    fn consume(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use hyper::header::HeaderValue;

    use super::*;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(data).expect("in memory");
        encoder.finish().expect("in memory")
    }

    fn zlib(data: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(data).expect("in memory");
        encoder.finish().expect("in memory")
    }

    fn decode(coding: ContentCoding, body: &[u8]) -> Result<Vec<u8>, Failure> {
        coding.decode_until(body, Instant::now() + DECODE_TIME_MAX)
    }

    fn status(coding: ContentCoding, body: &[u8]) -> Option<u16> {
        decode(coding, body).err().map(|failure| failure.status())
    }

    /// A zlib stream of empty blocks, which takes much longer to decode than to send.
    fn empty_blocks(len: usize) -> Vec<u8> {
        let four_blocks = [0x02_u8, 0x08, 0x20, 0x80, 0x00];
        [&[0x78, 0x9c][..], &four_blocks.repeat(len / 5)].concat()
    }

    #[test]
    fn coding_names_ignore_case() {
        for (given, coding) in [
            (&[][..], ContentCoding::Identity),
            (&["identity"], ContentCoding::Identity),
            (&["gzip"], ContentCoding::Gzip),
            (&[" GZip "], ContentCoding::Gzip),
            (&["deflate"], ContentCoding::Deflate),
            (&["br"], ContentCoding::Unsupported),
            (&["gzip, gzip"], ContentCoding::Unsupported),
            (&["gzip", "gzip"], ContentCoding::Unsupported),
        ] {
            let mut headers = HeaderMap::new();
            for name in given {
                headers.append(CONTENT_ENCODING, HeaderValue::from_static(name));
            }
            assert_eq!(ContentCoding::of(&headers), coding, "{given:?}");
        }
    }

    #[test]
    fn complete_streams_are_decoded() {
        let body = b"{\"TableName\":\"abc\"}".repeat(5_000);
        let (front, back) = body.split_at(10);
        for (coding, encoded) in [
            (ContentCoding::Gzip, gzip(&body)),
            (ContentCoding::Gzip, [gzip(front), gzip(back)].concat()),
            (ContentCoding::Deflate, zlib(&body)),
        ] {
            let decoded = decode(coding, &encoded).expect("complete");
            assert!(decoded == body, "{coding:?}");
        }
        for (coding, encoded) in [
            (ContentCoding::Gzip, gzip(b"")),
            (ContentCoding::Deflate, zlib(b"")),
        ] {
            let decoded = decode(coding, &encoded).expect("complete");
            assert!(decoded.is_empty(), "{coding:?}");
        }
    }

    #[test]
    fn damaged_streams_are_rejected() {
        let body = b"{\"TableName\":\"abc\"}";
        let cut = |mut encoded: Vec<u8>| {
            encoded.pop();
            encoded
        };
        let with_junk = |encoded: Vec<u8>| [&encoded[..], b"junk"].concat();
        for (coding, encoded) in [
            (ContentCoding::Gzip, body.to_vec()),
            (ContentCoding::Gzip, Vec::new()),
            (ContentCoding::Gzip, cut(gzip(body))),
            (ContentCoding::Gzip, with_junk(gzip(body))),
            (ContentCoding::Gzip, zlib(body)),
            (ContentCoding::Deflate, body.to_vec()),
            (ContentCoding::Deflate, Vec::new()),
            (ContentCoding::Deflate, cut(zlib(body))),
            (ContentCoding::Deflate, with_junk(zlib(body))),
            (ContentCoding::Deflate, gzip(body)),
        ] {
            assert_eq!(status(coding, &encoded), Some(400), "{coding:?}");
        }
    }

    #[test]
    fn decoded_bodies_have_a_size_limit() {
        let most = vec![b' '; BODY_MAX_BYTES];
        let more = vec![b' '; 4 * BODY_MAX_BYTES];
        for (coding, encode) in [
            (ContentCoding::Gzip, gzip as fn(&[u8]) -> Vec<u8>),
            (ContentCoding::Deflate, zlib),
        ] {
            assert_eq!(status(coding, &encode(&most)), None, "{coding:?}");
            assert_eq!(status(coding, &encode(&more)), Some(413), "{coding:?}");
        }
    }

    #[test]
    fn decoding_has_a_time_limit() {
        let blocks = empty_blocks(BODY_MAX_BYTES);
        let deadline = Instant::now() + Duration::from_millis(10);
        let cut_off = ContentCoding::Deflate.decode_until(&blocks, deadline);
        let failure = cut_off.expect_err("too slow");
        assert_eq!(failure.text(), Some(TOO_SLOW));
        assert!(deadline.elapsed() < DECODE_TIME_MAX);
    }

    #[tokio::test]
    async fn decoding_does_not_block_the_runtime() {
        let body = RequestBody::new(Bytes::from(empty_blocks(64 * 1024)), None);
        let mut decoding = std::pin::pin!(ContentCoding::Deflate.decode(&body));
        tokio::select! {
            biased;
            _ = &mut decoding => panic!("decoded on the thread of the runtime"),
            () = tokio::task::yield_now() => {}
        }
        let failure = decoding.await.expect_err("incomplete");
        assert_eq!(failure.text(), Some(UNDECODABLE));
    }
}
