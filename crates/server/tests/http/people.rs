//! People: set-up, sign-in, roles, second factors, tokens and sessions.

use serde_json::{Value, json};

use crate::console_session::cookie;
use crate::support::{ADMIN, Answer, NOW_MS, Server};

pub(crate) const PASSWORD: &str = "correct horse battery";
const SAME_ORIGIN: (&str, &str) = ("sec-fetch-site", "same-origin");
const CONSOLE: (&str, &str) = ("x-homeport-console", "1");
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Creates a person with a role for the whole server.
pub(crate) async fn create(server: &Server, name: &str, role: &str) {
    create_with(server, name, json!([{"role": role}])).await;
}

pub(crate) async fn create_with(server: &Server, name: &str, roles: Value) {
    let body = json!({"name": name, "password": PASSWORD, "roles": roles});
    let created = server.as_admin("POST", "/v1/people", body).await;
    assert_eq!(created.status, 201, "{created:?}");
}

async fn try_sign_in(server: &Server, body: Value) -> Answer {
    let body = Some(body.to_string());
    server
        .send("POST", "/v1/session", &[SAME_ORIGIN], body)
        .await
}

/// Signs in and returns the cookie.
pub(crate) async fn sign_in(server: &Server, name: &str) -> String {
    let answer = try_sign_in(server, json!({"name": name, "password": PASSWORD})).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    cookie(&answer)
}

/// Sends a request as the console's page does.
pub(crate) async fn as_person(
    server: &Server,
    session: &str,
    method: &str,
    path: &str,
    body: Value,
) -> Answer {
    let headers = [("cookie", session), SAME_ORIGIN, CONSOLE];
    let body = (!body.is_null()).then(|| body.to_string());
    server.send(method, path, &headers, body).await
}

/// Creates a token of the person with this session.
pub(crate) async fn token(server: &Server, session: &str, role: &str) -> String {
    let body = json!({"name": "script", "role": {"role": role}, "days": 1});
    let created = as_person(server, session, "POST", "/v1/me/tokens", body).await;
    assert_eq!(created.status, 201, "{created:?}");
    created.body["token"].as_str().expect("a token").to_owned()
}

pub(crate) async fn as_bearer(server: &Server, token: &str, method: &str, path: &str) -> Answer {
    let token = format!("Bearer {token}");
    server
        .send(method, path, &[("authorization", &token)], None)
        .await
}

#[tokio::test]
async fn sign_in_answers_with_name_and_permissions() {
    let server = Server::start().await;
    create(&server, "anna", "viewer").await;
    let session = sign_in(&server, "anna").await;
    let shown = as_person(&server, &session, "GET", "/v1/session", Value::Null).await;
    assert_eq!(shown.body["name"], "anna");
    assert_eq!(shown.body["is_admin_token"], false);
    assert_eq!(shown.body["may"], json!(["read"]));
    let admin = try_sign_in(&server, json!({"token": ADMIN})).await;
    let shown = as_person(&server, &cookie(&admin), "GET", "/v1/session", Value::Null).await;
    assert_eq!(shown.body["name"], "admin");
    assert_eq!(shown.body["is_admin_token"], true);
    let may = shown.body["may_everywhere"].as_array().expect("a list");
    assert!(may.contains(&json!("manage_people")), "{may:?}");
}

#[tokio::test]
async fn incomplete_sign_in_is_explained() {
    let server = Server::start().await;
    for body in [
        json!({}),
        json!({"name": "anna"}),
        json!({"token": "a", "name": "anna", "password": "b"}),
    ] {
        let answer = try_sign_in(&server, body).await;
        assert_eq!(answer.problem(), (400, "INVALID_REQUEST"));
    }
}

#[tokio::test]
async fn wrong_passwords_are_limited() {
    let server = Server::start().await;
    create(&server, "anna", "viewer").await;
    for name in ["anna", "nobody", "anna"] {
        let answer = try_sign_in(&server, json!({"name": name, "password": "wrong"})).await;
        assert_eq!(answer.problem(), (401, "WRONG_PASSWORD"));
    }
    for _ in 0..7 {
        try_sign_in(&server, json!({"name": "anna", "password": "wrong"})).await;
    }
    let limited = try_sign_in(&server, json!({"name": "anna", "password": PASSWORD})).await;
    assert_eq!(limited.problem(), (429, "RATE_LIMITED"));
    assert!(limited.header("retry-after").is_some());
    server.clock.advance_ms(60_000);
    sign_in(&server, "anna").await;
}

#[tokio::test]
async fn setup_creates_the_first_administrator_once() {
    let server = Server::start().await;
    let link = server
        .people
        .begin_setup()
        .await
        .expect("begun")
        .expect("a token");
    let set_up = async |name: &str, password: &str| {
        let body = json!({"token": link, "name": name, "password": password}).to_string();
        server
            .send("POST", "/v1/setup", &[SAME_ORIGIN], Some(body))
            .await
    };
    assert_eq!(
        set_up("anna", "short").await.problem(),
        (400, "INVALID_PASSWORD")
    );
    let done = set_up("anna", PASSWORD).await;
    assert_eq!(done.status, 204, "{done:?}");
    let me = as_person(&server, &cookie(&done), "GET", "/v1/me", Value::Null).await;
    assert_eq!(me.body["roles"], json!([{"role": "administrator"}]));
    assert_eq!(
        set_up("bert", PASSWORD).await.problem(),
        (403, "SETUP_INVALID")
    );
    let elsewhere = [("sec-fetch-site", "cross-site")];
    let body = json!({"token": link, "name": "bert", "password": PASSWORD}).to_string();
    let cross = server
        .send("POST", "/v1/setup", &elsewhere, Some(body))
        .await;
    assert_eq!(cross.problem(), (403, "CROSS_SITE"));
}

#[tokio::test]
async fn administrators_manage_people() {
    let server = Server::start().await;
    create(&server, "root", "administrator").await;
    let session = sign_in(&server, "root").await;
    let ask = async |method: &str, path: &str, body| {
        as_person(&server, &session, method, path, body).await
    };
    let body = json!({"name": "anna@example.com", "roles": [{"role": "operator", "systems": ["sensors"]}]});
    let created = ask("POST", "/v1/people", body.clone()).await;
    assert_eq!(created.status, 201, "{created:?}");
    let generated = created.body["password"]
        .as_str()
        .expect("a password")
        .to_owned();
    let again = ask("POST", "/v1/people", body).await;
    assert_eq!(again.problem(), (409, "PERSON_EXISTS"));
    let listed = ask("GET", "/v1/people", Value::Null).await;
    let names: Vec<_> = listed.body["people"]
        .as_array()
        .expect("people")
        .iter()
        .map(|person| &person["name"])
        .collect();
    assert_eq!(names, ["anna@example.com", "root"]);
    assert!(!listed.body.to_string().contains("argon2"), "{listed:?}");
    let signed_in = try_sign_in(
        &server,
        json!({"name": "anna@example.com", "password": generated}),
    )
    .await;
    let anna = cookie(&signed_in);
    let sessions = ask("GET", "/v1/people/anna@example.com/sessions", Value::Null).await;
    assert_eq!(sessions.body["sessions"][0]["address"], "127.0.0.1");
    let ended = ask(
        "DELETE",
        "/v1/people/anna@example.com/sessions",
        Value::Null,
    )
    .await;
    assert_eq!(ended.status, 204);
    assert_eq!(
        as_person(&server, &anna, "GET", "/v1/me", Value::Null)
            .await
            .status,
        401
    );
    let reset = ask(
        "POST",
        "/v1/people/anna@example.com/reset-password",
        json!({"password": PASSWORD}),
    )
    .await;
    assert_eq!((reset.status, &reset.body["password"]), (200, &Value::Null));
    let anna = sign_in(&server, "anna@example.com").await;
    let change = json!({"is_enabled": false});
    let disabled = ask("PATCH", "/v1/people/anna@example.com", change.clone()).await;
    assert_eq!(disabled.body["is_enabled"], false, "{disabled:?}");
    assert_eq!(
        as_person(&server, &anna, "GET", "/v1/me", Value::Null)
            .await
            .status,
        401
    );
    let last = ask("PATCH", "/v1/people/root", change).await;
    assert_eq!(last.problem(), (409, "LAST_ADMINISTRATOR"));
    assert_eq!(
        ask("DELETE", "/v1/people/anna@example.com", Value::Null)
            .await
            .status,
        204
    );
    let missing = ask("GET", "/v1/people/anna@example.com", Value::Null).await;
    assert_eq!(missing.problem(), (404, "PERSON_NOT_FOUND"));
}

#[tokio::test]
async fn invalid_roles_are_named() {
    let server = Server::start().await;
    for (roles, expected) in [
        (json!([]), "1 to 10 roles"),
        (
            json!([{"role": "boss"}]),
            "viewer, operator or administrator",
        ),
        (
            json!([{"role": "viewer", "systems": ["sensor"]}]),
            "there is no system sensor",
        ),
        (
            json!([{"role": "viewer", "devices": ["AA"]}]),
            "invalid device AA",
        ),
        (
            json!([{"role": "administrator", "systems": ["push"]}]),
            "cannot be limited",
        ),
        (json!([{"role": "viewer", "tags": []}]), "tags"),
    ] {
        let body = json!({"name": "anna", "roles": roles});
        let answer = server.as_admin("POST", "/v1/people", body).await;
        assert_eq!(answer.problem(), (400, "INVALID_REQUEST"));
        let detail = answer.body["detail"].as_str().expect("a detail");
        assert!(detail.contains(expected), "{detail}");
    }
}

#[tokio::test]
async fn second_factor_is_required_after_confirmation() {
    let server = Server::start().await;
    create(&server, "anna", "viewer").await;
    let session = sign_in(&server, "anna").await;
    let ask = async |path: &str, body| as_person(&server, &session, "POST", path, body).await;
    let wrong = ask("/v1/me/second-factor", json!({"password": "wrong"})).await;
    assert_eq!(wrong.problem(), (403, "WRONG_PASSWORD"));
    let begun = ask("/v1/me/second-factor", json!({"password": PASSWORD})).await;
    assert!(
        begun.body["uri"]
            .as_str()
            .expect("a URI")
            .starts_with("otpauth://totp/Homeport:anna?")
    );
    let secret = begun.body["secret"].as_str().expect("a secret");
    let wrong = ask("/v1/me/second-factor/confirm", json!({"code": "12345"})).await;
    assert_eq!(wrong.problem(), (403, "WRONG_CODE"));
    let code = totp(secret, NOW_MS / 30_000);
    let confirmed = ask("/v1/me/second-factor/confirm", json!({"code": code})).await;
    let recovery = confirmed.body["recovery_codes"]
        .as_array()
        .expect("codes")
        .clone();
    assert_eq!(recovery.len(), 10);
    let sign_in = async |code: Value| {
        let body = json!({"name": "anna", "password": PASSWORD, "code": code});
        try_sign_in(&server, body).await
    };
    assert_eq!(sign_in(Value::Null).await.problem(), (401, "CODE_REQUIRED"));
    assert_eq!(sign_in(json!(code)).await.problem(), (401, "WRONG_CODE"));
    assert_eq!(sign_in(recovery[0].clone()).await.status, 204);
    assert_eq!(
        sign_in(recovery[0].clone()).await.problem(),
        (401, "WRONG_CODE")
    );
    server.clock.advance_ms(30_000);
    let next = totp(secret, NOW_MS / 30_000 + 1);
    assert_eq!(sign_in(json!(next)).await.status, 204);
    let reset = server
        .as_admin("POST", "/v1/people/anna/reset-second-factor", Value::Null)
        .await;
    assert_eq!(reset.body["has_second_factor"], false, "{reset:?}");
    assert_eq!(sign_in(Value::Null).await.status, 204);
}

/// The code of a step, for a secret in base32.
fn totp(secret: &str, step: i64) -> String {
    use hmac::Mac as _;
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bits: Vec<u8> = (secret.chars())
        .flat_map(|char| {
            let value = alphabet.find(char).expect("base32");
            (0..5).rev().map(move |at| u8::from(value >> at & 1 == 1))
        })
        .collect();
    let key: Vec<u8> = (bits.chunks_exact(8))
        .map(|byte| byte.iter().fold(0, |all, bit| all << 1 | bit))
        .collect();
    let mut mac = hmac::Hmac::<sha1::Sha1>::new_from_slice(&key).expect("a key");
    mac.update(&step.to_be_bytes());
    let digest = mac.finalize().into_bytes();
    let at = usize::from(digest[19] & 15);
    let number = u32::from_be_bytes(digest[at..at + 4].try_into().expect("four bytes"));
    format!("{:06}", (number & 0x7fff_ffff) % 1_000_000)
}

#[tokio::test]
async fn token_works_until_it_expires_or_is_revoked() {
    let server = Server::start().await;
    create(&server, "anna", "operator").await;
    let session = sign_in(&server, "anna").await;
    let raw = token(&server, &session, "viewer").await;
    assert!(raw.starts_with("hpt_"), "{raw}");
    let ask =
        async |raw: &str, method: &str, path: &str| as_bearer(&server, raw, method, path).await;
    assert_eq!(ask(&raw, "GET", "/v1/devices").await.status, 200);
    let refused = ask(&raw, "POST", "/v1/rules").await;
    assert_eq!(refused.problem(), (403, "ROLE_MISSING"));
    // A token cannot make further tokens.
    let more = ask(&raw, "POST", "/v1/me/tokens").await;
    assert_eq!(more.problem(), (403, "SESSION_ONLY"));
    let listed = as_person(&server, &session, "GET", "/v1/me/tokens", Value::Null).await;
    let shown = &listed.body["tokens"][0];
    assert_eq!(shown["name"], "script");
    assert!(shown["last_used_at"].is_string(), "{shown}");
    assert!(!listed.body.to_string().contains(&raw[4..]));
    let above = json!({"name": "a", "role": {"role": "administrator"}, "days": 1});
    let above = as_person(&server, &session, "POST", "/v1/me/tokens", above).await;
    assert_eq!(above.problem(), (400, "INVALID_REQUEST"));
    let path = format!("/v1/me/tokens/{}", shown["id"].as_str().expect("an id"));
    let revoked = as_person(&server, &session, "DELETE", &path, Value::Null).await;
    assert_eq!(revoked.status, 204, "{revoked:?}");
    assert_eq!(
        ask(&raw, "GET", "/v1/devices").await.problem(),
        (401, "TOKEN_INVALID")
    );
    let raw = token(&server, &session, "viewer").await;
    server.clock.advance_ms(DAY_MS);
    assert_eq!(
        ask(&raw, "GET", "/v1/devices").await.problem(),
        (401, "TOKEN_INVALID")
    );
}

#[tokio::test]
async fn own_sessions_are_listed_and_ended() {
    let server = Server::start().await;
    create(&server, "anna", "viewer").await;
    let (mine, other) = (
        sign_in(&server, "anna").await,
        sign_in(&server, "anna").await,
    );
    let listed = as_person(&server, &mine, "GET", "/v1/me/sessions", Value::Null).await;
    let sessions = listed.body["sessions"].as_array().expect("sessions");
    assert_eq!(sessions.len(), 2);
    let another = sessions
        .iter()
        .find(|session| session["is_current"] == false);
    let id = another.expect("another one")["id"].as_str().expect("an id");
    let path = format!("/v1/me/sessions/{id}");
    let ended = as_person(&server, &mine, "DELETE", &path, Value::Null).await;
    assert_eq!(ended.status, 204);
    assert_eq!(
        as_person(&server, &other, "GET", "/v1/me", Value::Null)
            .await
            .status,
        401
    );
    let again = as_person(&server, &mine, "DELETE", &path, Value::Null).await;
    assert_eq!(again.problem(), (404, "CREDENTIAL_NOT_FOUND"));
    let body = json!({"old_password": PASSWORD, "new_password": "another long password"});
    let changed = as_person(&server, &mine, "PUT", "/v1/me/password", body).await;
    assert_eq!(changed.status, 204, "{changed:?}");
    let old = try_sign_in(&server, json!({"name": "anna", "password": PASSWORD})).await;
    assert_eq!(old.problem(), (401, "WRONG_PASSWORD"));
}

#[tokio::test]
async fn acknowledgement_has_the_name_of_the_person() {
    let server = Server::start().await;
    create(&server, "anna", "operator").await;
    let session = sign_in(&server, "anna").await;
    crate::alerts::raise(&server).await;
    let listed = as_person(&server, &session, "GET", "/v1/alerts", Value::Null).await;
    let id = listed.body["alerts"][0]["alert_id"]
        .as_str()
        .expect("an alert")
        .to_owned();
    let path = format!("/v1/alerts/{id}/acknowledge");
    let forged = as_person(&server, &session, "POST", &path, json!({"by": "bert"})).await;
    assert_eq!(forged.problem(), (400, "INVALID_REQUEST"));
    let done = as_person(&server, &session, "POST", &path, json!({})).await;
    assert_eq!(done.body["acknowledged"]["by"], "anna", "{done:?}");
}
