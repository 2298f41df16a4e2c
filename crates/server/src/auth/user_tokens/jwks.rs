//! Public keys from a JWKS, which change from time to time. They are cached, and fetched again for an
//! unknown key id. Fetches are limited, because anyone can send unknown key ids.

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
use crate::outbound::{AllowedAddresses, HttpClient};

/// Age at which keys are fetched again.
const CACHE_MS: i64 = 60 * 60 * 1000;
/// Age up to which keys are used if fetching them fails.
const STALE_MS: i64 = 24 * 60 * 60 * 1000;
/// Minimum time between two fetches.
const FETCH_EVERY_MS: i64 = 30 * 1000;
const TIMEOUT: Duration = Duration::from_secs(5);
const BYTES_MAX: usize = 256 * 1024;
const KEYS_MAX: usize = 100;

/// Where the keys are.
pub(super) enum JwksLocation {
    File(PathBuf),
    Url {
        url: String,
        client: Box<HttpClient>,
    },
}

/// A cached set of public keys.
pub(super) struct Jwks {
    location: JwksLocation,
    algorithm: Algorithm,
    clock: Arc<dyn Clock>,
    cached: RwLock<Arc<CachedKeys>>,
    /// Time of the last attempt to fetch. Its lock is held during a fetch.
    tried_at_ms: tokio::sync::Mutex<Option<i64>>,
}

#[derive(Default)]
struct CachedKeys {
    keys: HashMap<Option<String>, Arc<DecodingKey>>,
    fetched_at_ms: Option<i64>,
}

impl JwksLocation {
    pub(super) fn url(url: String) -> Self {
        Self::Url {
            url,
            client: Box::new(HttpClient::new(AllowedAddresses::Any)),
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
            Self::Url { url, client } => {
                let request = Request::get(url)
                    .body(Full::new(Bytes::new()))
                    .map_err(|error| error.to_string())?;
                let response = client.send(request, TIMEOUT, BYTES_MAX).await;
                let response = response.map_err(|error| error.to_string())?;
                if !response.status.is_success() {
                    return Err(format!("status {}", response.status));
                }
                Ok(response.body.to_vec())
            }
        }
    }
}

impl Jwks {
    pub(super) fn new(location: JwksLocation, algorithm: Algorithm, clock: Arc<dyn Clock>) -> Self {
        Self {
            location,
            algorithm,
            clock,
            cached: RwLock::default(),
            tried_at_ms: tokio::sync::Mutex::new(None),
        }
    }

    /// The key with an id. Without an id, the only key of the set.
    pub(super) async fn key(&self, kid: Option<&str>) -> Result<Arc<DecodingKey>, UserTokenError> {
        if let Some(key) = self.find(kid, CACHE_MS) {
            return Ok(key);
        }
        let mut tried_at_ms = self.tried_at_ms.lock().await;
        // Another task may have fetched it while this one waited for the lock.
        if let Some(key) = self.find(kid, CACHE_MS) {
            return Ok(key);
        }
        let now_ms = self.clock.now_ms();
        let mut failure = None;
        if tried_at_ms.is_none_or(|at| now_ms.saturating_sub(at) >= FETCH_EVERY_MS || at > now_ms) {
            *tried_at_ms = Some(now_ms);
            match self
                .location
                .read()
                .await
                .and_then(|bytes| self.parse(&bytes))
            {
                Ok(keys) => self.replace(keys, now_ms),
                Err(error) => {
                    tracing::warn!(%error, "could not read the keys for user tokens");
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
                "the last attempt failed".to_owned(),
            )),
            None => Err(UserTokenError::Invalid("unknown key id in the token")),
        }
    }

    fn cached(&self) -> Arc<CachedKeys> {
        let cached = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&cached)
    }

    fn is_empty(&self) -> bool {
        self.cached().fetched_at_ms.is_none()
    }

    fn replace(&self, keys: HashMap<Option<String>, Arc<DecodingKey>>, now_ms: i64) {
        let mut cached = self.cached.write().unwrap_or_else(PoisonError::into_inner);
        *cached = Arc::new(CachedKeys {
            keys,
            fetched_at_ms: Some(now_ms),
        });
    }

    /// A cached key, if the cache is not older than `age_max_ms`.
    fn find(&self, kid: Option<&str>, age_max_ms: i64) -> Option<Arc<DecodingKey>> {
        let cached = self.cached();
        let age_ms = self.clock.now_ms().saturating_sub(cached.fetched_at_ms?);
        if age_ms > age_max_ms {
            return None;
        }
        match kid {
            Some(kid) => cached.keys.get(&Some(kid.to_owned())).cloned(),
            None if cached.keys.len() == 1 => cached.keys.values().next().cloned(),
            None => None,
        }
    }

    /// The keys of a set that fit the configured algorithm.
    fn parse(&self, bytes: &[u8]) -> Result<HashMap<Option<String>, Arc<DecodingKey>>, String> {
        let set: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let keys = set["keys"]
            .as_array()
            .ok_or("the member keys is missing or not an array")?;
        if keys.len() > KEYS_MAX {
            return Err(format!("more than {KEYS_MAX} keys"));
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
