//! Client tokens: a transaction with a token is carried out once within ten minutes, however often it is
//! sent. The token is written together with the transaction, so it survives a crash.

use homeport_store::StoreError;

use crate::commit::group::Group;
use crate::commit::prepare::ClientToken;
use crate::commit::token_digest;
use crate::error::unavailable;
use crate::storage::vault::{UserKey, UserValue};

/// How long a token is remembered.
pub(crate) const TOKEN_LIFETIME_MS: i64 = 10 * 60 * 1000;

const BY_TOKEN: u8 = 0;
const BY_TIME: u8 = 1;

/// Whether a transaction's token was seen before.
pub(crate) enum Repeat {
    No,
    /// With the same transaction, which has been carried out.
    Same,
    Different,
}

pub(crate) fn seen(group: &Group<'_>, token: &ClientToken) -> Result<Repeat, StoreError> {
    let key = token_key(&token.text);
    let Some(value) = group.load_token(&key).map_err(unavailable)? else {
        return Ok(Repeat::No);
    };
    let seen = SeenToken::decode(&value)
        .ok_or_else(|| unavailable("a client token's record is damaged"))?;
    if group.commit_ms().saturating_sub(seen.at_ms) >= TOKEN_LIFETIME_MS {
        return Ok(Repeat::No);
    }
    Ok(seen.compare(token.digest))
}

pub(crate) fn remember(group: &mut Group<'_>, token: &ClientToken) {
    let at_ms = group.commit_ms();
    let mut value = vec![token_digest::VERSION];
    value.extend_from_slice(&token.digest.to_be_bytes());
    value.extend_from_slice(&at_ms.to_be_bytes());
    group.write_token(token_key(&token.text), value.into());
    group.write_token(time_key(at_ms, &token.text), UserValue::from(&b""[..]));
}

/// The record of a token: `[version] · digest(16) · at_ms(8)`. A digest without a version can only be
/// computed by the program that wrote it.
struct SeenToken {
    digest: SeenDigest,
    at_ms: i64,
}

#[derive(Debug, PartialEq, Eq)]
enum SeenDigest {
    Comparable(u128),
    /// Written before digests had a version.
    Unversioned,
    /// Of an unknown version, or damaged.
    Unknown,
}

impl SeenToken {
    fn compare(&self, digest: u128) -> Repeat {
        match self.digest {
            SeenDigest::Comparable(seen) if seen == digest => Repeat::Same,
            // Carrying out a transaction twice is worse than mistaking another one for a repeat.
            SeenDigest::Unversioned => Repeat::Same,
            // An error makes the caller investigate; success would hide a transaction that was never carried
            // out.
            SeenDigest::Comparable(_) | SeenDigest::Unknown => Repeat::Different,
        }
    }

    fn decode(value: &[u8]) -> Option<Self> {
        let (rest, at_ms) = value.split_last_chunk::<8>()?;
        let at_ms = i64::from_be_bytes(*at_ms);
        let (version, digest) = rest.split_at_checked(rest.len().checked_sub(16)?)?;
        let digest = u128::from_be_bytes(digest.try_into().ok()?);
        let digest = match version {
            [token_digest::VERSION] => SeenDigest::Comparable(digest),
            [] => SeenDigest::Unversioned,
            [_] => SeenDigest::Unknown,
            _ => return None,
        };
        Some(Self { digest, at_ms })
    }
}

fn token_key(token: &str) -> UserKey {
    [&[BY_TOKEN], token.as_bytes()].concat().into()
}

fn time_key(at_ms: i64, token: &str) -> UserKey {
    [&[BY_TIME], at_ms.to_be_bytes().as_slice(), token.as_bytes()]
        .concat()
        .into()
}

/// The range of keys by time for tokens that were seen between two times.
pub(crate) fn time_range(from_ms: i64, to_ms: i64) -> std::ops::Range<Vec<u8>> {
    let key = |at_ms: i64| [&[BY_TIME], at_ms.to_be_bytes().as_slice()].concat();
    key(from_ms)..key(to_ms)
}

/// The time and the token's own key, from a key by time.
pub(crate) fn token_of_time_key(key: &[u8]) -> Option<(i64, UserKey)> {
    let at_ms = key.get(1..9)?.try_into().ok().map(i64::from_be_bytes)?;
    let token = std::str::from_utf8(key.get(9..)?).ok()?;
    Some((at_ms, token_key(token)))
}

/// When the token in `value` was seen.
pub(crate) fn seen_at_ms(value: &[u8]) -> Option<i64> {
    SeenToken::decode(value).map(|seen| seen.at_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_token_counts_as_repeat() {
        let older = [[7; 16].as_slice(), &5_i64.to_be_bytes()].concat();
        let seen = SeenToken::decode(&older).unwrap();
        assert_eq!((&seen.digest, seen.at_ms), (&SeenDigest::Unversioned, 5));
        assert!(matches!(seen.compare(1), Repeat::Same));
        let newer = [&[token_digest::VERSION], older.as_slice()].concat();
        let seen = SeenToken::decode(&newer).unwrap();
        let digest = u128::from_be_bytes([7; 16]);
        assert_eq!(
            (&seen.digest, seen.at_ms),
            (&SeenDigest::Comparable(digest), 5)
        );
        assert!(matches!(seen.compare(digest), Repeat::Same));
        assert!(matches!(seen.compare(1), Repeat::Different));
        assert!(SeenToken::decode(b"short").is_none());
        assert!(SeenToken::decode(&[0; 26]).is_none());
    }

    #[test]
    fn token_of_unknown_version_is_no_repeat() {
        let older = [[7; 16].as_slice(), &5_i64.to_be_bytes()].concat();
        let digest = u128::from_be_bytes([7; 16]);
        let damaged = [&[token_digest::VERSION ^ 0x40], older.as_slice()].concat();
        let seen = SeenToken::decode(&damaged).unwrap();
        assert!(matches!(seen.compare(digest), Repeat::Different));
    }
}
