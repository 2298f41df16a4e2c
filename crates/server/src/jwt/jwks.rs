//! Public keys that are published as a JWKS and change from time to time: kept for a while, and
//! fetched again for a key that is not known, but not as often as someone makes up names of keys.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::http::Request;
use bytes::Bytes;
use homeport_store::Clock;
use http_body_util::Full;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;

use super::UserTokenError;
use crate::outbound::{Outbound, Reach};

/// How long keys count without being fetched again.
const CACHE_MS: i64 = 60 * 60 * 1000;
/// How long they count on if fetching them fails.
const STALE_MS: i64 = 24 * 60 * 60 * 1000;
/// Between two fetches passes at least this.
const FETCH_EVERY_MS: i64 = 30 * 1000;
const TIMEOUT: Duration = Duration::from_secs(5);
const BYTES_MAX: usize = 256 * 1024;
const KEYS_MAX: usize = 100;

/// Where the keys are.
pub(super) enum Source {
    File(PathBuf),
    Url {
        url: String,
        outbound: Box<Outbound>,
    },
}

/// The keys.
pub(super) struct Jwks {
    source: Source,
    algorithm: Algorithm,
    clock: Arc<dyn Clock>,
    known: RwLock<Arc<Known>>,
    /// When it was last fetched, or tried to; whoever holds it fetches.
    tried_at_ms: tokio::sync::Mutex<Option<i64>>,
}

#[derive(Default)]
struct Known {
    keys: HashMap<Option<String>, Arc<DecodingKey>>,
    fetched_at_ms: Option<i64>,
}

impl Source {
    pub(super) fn url(url: String) -> Self {
        Self::Url {
            url,
            outbound: Box::new(Outbound::new(Reach::Anywhere)),
        }
    }

    async fn read(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::File(path) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || std::fs::read(path));
                let read = read.await.map_err(|error| error.to_string())?;
                read.map_err(|error| error.to_string())
            }
            Self::Url { url, outbound } => {
                let request = Request::get(url)
                    .body(Full::new(Bytes::new()))
                    .map_err(|error| error.to_string())?;
                let answer = outbound.send(request, TIMEOUT, BYTES_MAX).await;
                let answer = answer.map_err(|error| error.to_string())?;
                if !answer.status.is_success() {
                    return Err(format!("status {}", answer.status));
                }
                Ok(answer.body.to_vec())
            }
        }
    }
}

impl Jwks {
    pub(super) fn new(source: Source, algorithm: Algorithm, clock: Arc<dyn Clock>) -> Self {
        Self {
            source,
            algorithm,
            clock,
            known: RwLock::default(),
            tried_at_ms: tokio::sync::Mutex::new(None),
        }
    }

    /// The key with an id; without one, the only key there is.
    pub(super) async fn key(&self, kid: Option<&str>) -> Result<Arc<DecodingKey>, UserTokenError> {
        if let Some(key) = self.find(kid, CACHE_MS) {
            return Ok(key);
        }
        let mut tried_at_ms = self.tried_at_ms.lock().await;
        // Whoever held the lock may have fetched it.
        if let Some(key) = self.find(kid, CACHE_MS) {
            return Ok(key);
        }
        let now_ms = self.clock.now_ms();
        let mut failure = None;
        if tried_at_ms.is_none_or(|at| now_ms.saturating_sub(at) >= FETCH_EVERY_MS || at > now_ms) {
            *tried_at_ms = Some(now_ms);
            match self
                .source
                .read()
                .await
                .and_then(|bytes| self.parse(&bytes))
            {
                Ok(keys) => self.replace(keys, now_ms),
                Err(error) => {
                    tracing::warn!(%error, "the keys of app users could not be read");
                    failure = Some(error);
                }
            }
        }
        if let Some(key) = self.find(kid, STALE_MS) {
            return Ok(key);
        }
        match failure {
            Some(error) => Err(UserTokenError::KeysUnavailable(error)),
            None if self.is_empty() => Err(UserTokenError::KeysUnavailable(
                "reading them failed a moment ago".to_owned(),
            )),
            None => Err(UserTokenError::Invalid("the token's key is not known")),
        }
    }

    fn known(&self) -> Arc<Known> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&known)
    }

    fn is_empty(&self) -> bool {
        self.known().fetched_at_ms.is_none()
    }

    fn replace(&self, keys: HashMap<Option<String>, Arc<DecodingKey>>, now_ms: i64) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        *known = Arc::new(Known {
            keys,
            fetched_at_ms: Some(now_ms),
        });
    }

    /// A key, if the keys are not older than `age_max_ms`.
    fn find(&self, kid: Option<&str>, age_max_ms: i64) -> Option<Arc<DecodingKey>> {
        let known = self.known();
        let age_ms = self.clock.now_ms().saturating_sub(known.fetched_at_ms?);
        if age_ms > age_max_ms {
            return None;
        }
        match kid {
            Some(kid) => known.keys.get(&Some(kid.to_owned())).cloned(),
            None if known.keys.len() == 1 => known.keys.values().next().cloned(),
            None => None,
        }
    }

    /// The keys that can sign with the configured algorithm; others in the set are for others.
    fn parse(&self, bytes: &[u8]) -> Result<HashMap<Option<String>, Arc<DecodingKey>>, String> {
        let set: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let keys = set["keys"].as_array().ok_or("there is no array of keys")?;
        if keys.len() > KEYS_MAX {
            return Err(format!("there are more than {KEYS_MAX} keys"));
        }
        let usable = keys.iter().filter_map(|key| {
            let jwk: Jwk = serde_json::from_value(key.clone()).ok()?;
            let fits = match (&jwk.algorithm, self.algorithm) {
                (AlgorithmParameters::RSA(_), Algorithm::RS256) => true,
                (AlgorithmParameters::EllipticCurve(curve), Algorithm::ES256) => {
                    curve.curve == EllipticCurve::P256
                }
                _ => false,
            };
            let names_another = jwk
                .common
                .key_algorithm
                .is_some_and(|named| named.to_string() != format!("{:?}", self.algorithm));
            let signs = matches!(
                jwk.common.public_key_use,
                None | Some(PublicKeyUse::Signature)
            );
            let usable = fits && signs && !names_another;
            let decoding = DecodingKey::from_jwk(&jwk).ok().filter(|_| usable)?;
            Some((jwk.common.key_id.clone(), Arc::new(decoding)))
        });
        Ok(usable.collect())
    }
}
