//! User tokens verified with a JWKS from a URL, which changes.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use homeport_server::{RateLimit, UserAlgorithm, UserKeys, UserTokenSettings};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use crate::support::{NOW_MS, Server};

const NOW: i64 = NOW_MS / 1000;

/// Test keys on the curve P-256: the private key as PKCS #8, x and y in Base64.
pub(crate) struct Pair {
    kid: &'static str,
    private: &'static str,
    x: &'static str,
    y: &'static str,
}

pub(crate) const FIRST: Pair = Pair {
    kid: "first",
    private: "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg9776RVBn24Z9p5rxV83xR3ehVpIVz++EoISFr+ddE+2hRANCAARukpqgRtNAXuh8ic1poH0VZGZKNr2G6Tpwb1zhYSoAYZQnjFNHm/yjHHS+sZUxFrkf+JPaexAEaOS9AwJ6aoj5",
    x: "bpKaoEbTQF7ofInNaaB9FWRmSja9huk6cG9c4WEqAGE",
    y: "lCeMU0eb_KMcdL6xlTEWuR_4k9p7EARo5L0DAnpqiPk",
};
const SECOND: Pair = Pair {
    kid: "second",
    private: "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgq8RsG4GIzwpmlgUPj8b6P8eFe38E3PC1DaQdjcxtEZ6hRANCAAQVPLoJ+P7bwxHeGf6fVZQE4ClS3bKJI5on4TJHjvHjhqNcNEKXH/ukwUnEub6OXQAfVppjnQWSy60/yFCReLqC",
    x: "FTy6Cfj-28MR3hn-n1WUBOApUt2yiSOaJ-EyR47x44Y",
    y: "o1w0Qpcf-6TBScS5vo5dAB9WmmOdBZLLrT_IUJF4uoI",
};

impl Pair {
    pub(crate) fn public(&self) -> Value {
        json!({"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256",
               "kid": self.kid, "x": self.x, "y": self.y})
    }

    pub(crate) fn token(&self, kid: &str, claims: &Value) -> String {
        use base64::Engine as _;
        let der = base64::engine::general_purpose::STANDARD.decode(self.private);
        let key = EncodingKey::from_ec_der(&der.expect("Base64"));
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some(kid.to_owned());
        jsonwebtoken::encode(&header, claims, &key).expect("a token")
    }
}

/// The published keys, and how often they were fetched.
#[derive(Default)]
pub(crate) struct Published {
    pub(crate) keys: Vec<Value>,
    is_down: bool,
    asked: usize,
}

pub(crate) type Shared = Arc<Mutex<Published>>;

pub(crate) async fn publish(shared: &Shared) -> String {
    let serve = |State(shared): State<Shared>| async move {
        let mut published = shared.lock().expect("no panic");
        published.asked += 1;
        if published.is_down {
            return Err(axum::http::StatusCode::INTERNAL_SERVER_ERROR);
        }
        Ok(axum::Json(json!({"keys": published.keys})))
    };
    let router = Router::new()
        .route("/jwks.json", get(serve))
        .with_state(Arc::clone(shared));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/jwks.json")
}

async fn start(shared: &Shared) -> Server {
    let keys = UserKeys::JwksUrl(publish(shared).await);
    let settings = UserTokenSettings {
        issuer: Some("https://issuer.example".to_owned()),
        audience: Some("photoeditor".to_owned()),
        ..UserTokenSettings::new(UserAlgorithm::Es256, keys)
    };
    Server::start_with_users(RateLimit::default(), settings).await
}

pub(crate) fn claims() -> Value {
    json!({"sub": "user-1", "exp": NOW + 24 * 60 * 60, "iss": "https://issuer.example",
           "aud": ["other", "photoeditor"]})
}

pub(crate) async fn status(server: &Server, token: &str) -> (u16, Option<String>) {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let answer = server.send("GET", "/v1/push/devices", &headers, None).await;
    (
        answer.status,
        answer.body["code"].as_str().map(str::to_owned),
    )
}

/// The response to an invalid token.
pub(crate) fn refused() -> (u16, Option<String>) {
    (401, Some("TOKEN_INVALID".to_owned()))
}

pub(crate) fn asked(shared: &Shared) -> usize {
    shared.lock().expect("no panic").asked
}

#[tokio::test]
async fn unknown_key_ids_refetch_at_a_limited_rate() {
    let shared = Shared::default();
    let rsa = json!({"kty": "RSA", "kid": "rsa", "n": "AQAB", "e": "AQAB"});
    let unknown = json!({"kty": "of tomorrow", "kid": "x"});
    shared.lock().expect("no panic").keys = vec![rsa, unknown, FIRST.public()];
    let server = start(&shared).await;
    let first = FIRST.token("first", &claims());
    for _ in 0..3 {
        assert_eq!(status(&server, &first).await, (200, None));
    }
    assert_eq!(asked(&shared), 1, "kept");
    shared.lock().expect("no panic").keys = vec![SECOND.public()];
    let second = SECOND.token("second", &claims());
    assert_eq!(
        status(&server, &second).await,
        refused(),
        "too soon to ask again"
    );
    assert_eq!(asked(&shared), 1);
    server.clock.advance_ms(30_000);
    assert_eq!(status(&server, &second).await, (200, None));
    for number in 0..5 {
        let made_up = SECOND.token(&number.to_string(), &claims());
        assert_eq!(status(&server, &made_up).await, refused());
    }
    assert_eq!(asked(&shared), 2);
    assert_eq!(status(&server, &first).await, refused(), "rotated away");
    let forged = FIRST.token("second", &claims());
    assert_eq!(status(&server, &forged).await, refused());
}

#[tokio::test]
async fn unavailable_keys_are_503_cached_keys_work() {
    let shared = Shared::default();
    shared.lock().expect("no panic").keys = vec![FIRST.public()];
    shared.lock().expect("no panic").is_down = true;
    let server = start(&shared).await;
    let token = FIRST.token("first", &claims());
    let unavailable = (503, Some("KEYS_UNAVAILABLE".to_owned()));
    assert_eq!(status(&server, &token).await, unavailable);
    assert_eq!(status(&server, &token).await, unavailable);
    assert_eq!(asked(&shared), 1);
    shared.lock().expect("no panic").is_down = false;
    server.clock.advance_ms(30_000);
    assert_eq!(status(&server, &token).await, (200, None));
    shared.lock().expect("no panic").is_down = true;
    server.clock.advance_ms(2 * 60 * 60 * 1000);
    assert_eq!(
        status(&server, &token).await,
        (200, None),
        "stale is better than none"
    );
    assert_eq!(asked(&shared), 3);
}

#[tokio::test]
async fn wrong_issuer_audience_or_algorithm_is_rejected() {
    let shared = Shared::default();
    shared.lock().expect("no panic").keys = vec![FIRST.public()];
    let server = start(&shared).await;
    for (name, value) in [
        ("iss", json!("https://other.example")),
        ("aud", json!("other")),
        ("aud", Value::Null),
        ("exp", json!(NOW - 31)),
    ] {
        let mut wrong = claims();
        wrong[name] = value;
        let token = FIRST.token("first", &wrong);
        assert_eq!(status(&server, &token).await, refused(), "{wrong}");
    }
    // The public key as an HS256 secret: accepted by a verifier that trusts the header.
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some("first".to_owned());
    let key = EncodingKey::from_secret(FIRST.x.as_bytes());
    let confused = jsonwebtoken::encode(&header, &claims(), &key).expect("a token");
    assert_eq!(status(&server, &confused).await, refused());
}
