//! JWTs of app users. The signature algorithm is configured and never taken from the token: otherwise a
//! forged token could use a public key as an HMAC secret, or the algorithm `none`.

mod jwks;

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use homeport_store::Clock;
use homeport_systems::push::UserId;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::Deserialize;

use jwks::{Jwks, JwksLocation};

/// Longest token.
const TOKEN_LEN_MAX: usize = 8 * 1024;
/// Tolerated clock difference unless configured.
const LEEWAY_SECS_DEFAULT: i64 = 30;

/// The algorithm that signs tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserAlgorithm {
    Hs256,
    Rs256,
    Es256,
}

/// The keys that verify tokens.
#[derive(Clone)]
pub enum UserKeys {
    /// For HS256.
    Secret(String),
    /// Public keys in a JWKS file, which is read again regularly.
    JwksFile(PathBuf),
    /// Public keys at a URL.
    JwksUrl(String),
}

/// How tokens are verified.
#[derive(Debug, Clone)]
pub struct UserTokenSettings {
    pub algorithm: UserAlgorithm,
    pub keys: UserKeys,
    /// Any issuer if absent.
    pub issuer: Option<String>,
    /// Any audience if absent.
    pub audience: Option<String>,
    pub leeway_secs: i64,
}

impl UserTokenSettings {
    #[must_use]
    pub fn new(algorithm: UserAlgorithm, keys: UserKeys) -> Self {
        Self {
            algorithm,
            keys,
            issuer: None,
            audience: None,
            leeway_secs: LEEWAY_SECS_DEFAULT,
        }
    }
}

/// Whether a text has the form of a JWT, valid or not.
pub(crate) fn is_jwt(text: &str) -> bool {
    jsonwebtoken::decode_header(text).is_ok()
}

/// Verifies the tokens of app users.
pub struct UserTokens {
    algorithm: Algorithm,
    keys: Keys,
    issuer: Option<String>,
    audience: Option<String>,
    leeway_secs: i64,
    clock: Arc<dyn Clock>,
}

enum Keys {
    Secret(Arc<DecodingKey>),
    Jwks(Box<Jwks>),
}

/// Why a token was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UserTokenError {
    #[error("{0}")]
    Invalid(&'static str),
    #[error("the keys for user tokens cannot be read: {0}")]
    KeysUnavailable(String),
}

#[derive(Deserialize)]
struct Claims {
    sub: Option<String>,
    exp: Option<f64>,
    nbf: Option<f64>,
    iss: Option<String>,
    aud: Option<Audience>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl UserTokens {
    #[must_use]
    pub fn new(settings: UserTokenSettings, clock: Arc<dyn Clock>) -> Self {
        let algorithm = match settings.algorithm {
            UserAlgorithm::Hs256 => Algorithm::HS256,
            UserAlgorithm::Rs256 => Algorithm::RS256,
            UserAlgorithm::Es256 => Algorithm::ES256,
        };
        let jwks =
            |location| Keys::Jwks(Box::new(Jwks::new(location, algorithm, Arc::clone(&clock))));
        Self {
            keys: match settings.keys {
                UserKeys::Secret(secret) => {
                    Keys::Secret(Arc::new(DecodingKey::from_secret(secret.as_bytes())))
                }
                UserKeys::JwksFile(path) => jwks(JwksLocation::File(path)),
                UserKeys::JwksUrl(url) => jwks(JwksLocation::url(url)),
            },
            algorithm,
            issuer: settings.issuer,
            audience: settings.audience,
            leeway_secs: settings.leeway_secs,
            clock,
        }
    }

    /// The user of a valid token.
    pub(crate) async fn verify(&self, token: &str) -> Result<UserId, UserTokenError> {
        use UserTokenError::Invalid;
        if token.len() > TOKEN_LEN_MAX {
            return Err(Invalid("the token is too long"));
        }
        let header =
            jsonwebtoken::decode_header(token).map_err(|_| Invalid("the token is not a JWT"))?;
        if has_crit(token) {
            return Err(Invalid(
                "the token has a crit header, which is not supported",
            ));
        }
        if header.alg != self.algorithm {
            return Err(Invalid("the token is signed with another algorithm"));
        }
        let key = match &self.keys {
            Keys::Secret(key) => Arc::clone(key),
            Keys::Jwks(jwks) => jwks.key(header.kid.as_deref()).await?,
        };
        let mut signature_only = Validation::new(self.algorithm);
        signature_only.required_spec_claims.clear();
        // Times are checked below against the injected clock.
        signature_only.validate_exp = false;
        signature_only.validate_aud = false;
        let decoded = jsonwebtoken::decode::<Claims>(token, &key, &signature_only)
            .map_err(|_| Invalid("the token's signature or claims are invalid"))?;
        self.check(decoded.claims)
    }

    fn check(&self, claims: Claims) -> Result<UserId, UserTokenError> {
        use UserTokenError::Invalid;
        let now = self.clock.now_secs() as f64;
        let leeway = self.leeway_secs as f64;
        let expires = claims.exp.ok_or(Invalid("the token has no exp claim"))?;
        if expires + leeway <= now {
            return Err(Invalid("the token has expired"));
        }
        if claims.nbf.is_some_and(|begins| begins > now + leeway) {
            return Err(Invalid("the token is not valid yet"));
        }
        if self.issuer.is_some() && claims.iss != self.issuer {
            return Err(Invalid("the token is from another issuer"));
        }
        if let Some(wanted) = &self.audience {
            let is_meant = match &claims.aud {
                Some(Audience::One(one)) => one == wanted,
                Some(Audience::Several(several)) => several.contains(wanted),
                None => false,
            };
            if !is_meant {
                return Err(Invalid("the token is for another audience"));
            }
        }
        let sub = claims.sub.ok_or(Invalid("the token has no sub claim"))?;
        sub.parse()
            .map_err(|_| Invalid("the token's sub is not a valid user id"))
    }
}

/// Whether the header has a `crit` member. It names extensions; a recipient must reject a token with an
/// extension that it does not support (RFC 7515, 4.1.11). We support none, and an empty list is invalid.
fn has_crit(token: &str) -> bool {
    let header = token.split('.').next().unwrap_or_default();
    let Ok(header) = URL_SAFE_NO_PAD.decode(header) else {
        return false;
    };
    serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&header)
        .is_ok_and(|header| header.contains_key("crit"))
}

impl std::fmt::Debug for UserKeys {
    /// Leaves the secret out, and the URL, which may hold one.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Secret(_) => formatter.write_str("Secret(…)"),
            Self::JwksFile(path) => formatter.debug_tuple("JwksFile").field(path).finish(),
            Self::JwksUrl(_) => formatter.write_str("JwksUrl(…)"),
        }
    }
}

impl std::fmt::Debug for UserTokens {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("UserTokens")
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}
