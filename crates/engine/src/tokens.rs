//! Client tokens: a transaction that carries one happens once within ten minutes, however often
//! it is sent. What was seen is written with the transaction itself, so that it outlives a crash.

use homeport_store::StoreError;

use crate::error::unavailable;
use crate::group::Group;
use crate::prepare::Token;
use crate::vault::{UserKey, UserValue};

/// How long a token is remembered.
pub(crate) const TOKEN_LIFETIME_MS: i64 = 10 * 60 * 1000;

const BY_TOKEN: u8 = 0;
const BY_TIME: u8 = 1;

/// Whether a transaction's token was seen before.
pub(crate) enum Repeat {
    No,
    /// With the same transaction, which has happened.
    Same,
    Different,
}

pub(crate) fn seen(group: &Group<'_>, token: &Token) -> Result<Repeat, StoreError> {
    let key = token_key(&token.text);
    let Some(value) = group.load_token(&key).map_err(unavailable)? else {
        return Ok(Repeat::No);
    };
    let damaged = || unavailable("a client token's record is damaged");
    let (digest, at_ms) = value.split_first_chunk::<16>().ok_or_else(damaged)?;
    let at_ms = i64::from_be_bytes(at_ms.try_into().map_err(|_| damaged())?);
    if group.now_ms() - at_ms >= TOKEN_LIFETIME_MS {
        Ok(Repeat::No)
    } else if u128::from_be_bytes(*digest) == token.digest {
        Ok(Repeat::Same)
    } else {
        Ok(Repeat::Different)
    }
}

pub(crate) fn remember(group: &mut Group<'_>, token: &Token) {
    let at_ms = group.now_ms();
    let mut value = token.digest.to_be_bytes().to_vec();
    value.extend_from_slice(&at_ms.to_be_bytes());
    group.write_token(token_key(&token.text), value.into());
    group.write_token(time_key(at_ms, &token.text), UserValue::from(&b""[..]));
}

fn token_key(token: &str) -> UserKey {
    [&[BY_TOKEN], token.as_bytes()].concat().into()
}

fn time_key(at_ms: i64, token: &str) -> UserKey {
    [&[BY_TIME], at_ms.to_be_bytes().as_slice(), token.as_bytes()]
        .concat()
        .into()
}

/// The keys by time of tokens older than their lifetime, oldest first.
pub(crate) fn expired_range(now_ms: i64) -> std::ops::Range<Vec<u8>> {
    let end = (now_ms - TOKEN_LIFETIME_MS).max(0);
    vec![BY_TIME]..[&[BY_TIME], end.to_be_bytes().as_slice()].concat()
}

/// The time and the token's own key that a key by time leads to.
pub(crate) fn token_of_time_key(key: &[u8]) -> Option<(i64, UserKey)> {
    let at_ms = key.get(1..9)?.try_into().ok().map(i64::from_be_bytes)?;
    let token = std::str::from_utf8(key.get(9..)?).ok()?;
    Some((at_ms, token_key(token)))
}

/// When the token in `value` was seen.
pub(crate) fn seen_at_ms(value: &[u8]) -> Option<i64> {
    value.get(16..24)?.try_into().ok().map(i64::from_be_bytes)
}
