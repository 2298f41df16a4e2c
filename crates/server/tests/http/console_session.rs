//! Console sessions: sign-in, expiry, cross-site protection.

use crate::support::{ADMIN, Answer, Server};

const SAME_ORIGIN: (&str, &str) = ("sec-fetch-site", "same-origin");
const CONSOLE: (&str, &str) = ("x-homeport-console", "1");

pub(crate) async fn sign_in(server: &Server, token: &str) -> Answer {
    let body = serde_json::json!({ "token": token }).to_string();
    server
        .send("POST", "/v1/session", &[SAME_ORIGIN], Some(body))
        .await
}

/// The cookie that a browser would send.
pub(crate) fn cookie(answer: &Answer) -> String {
    let set = answer.header("set-cookie").expect("a cookie");
    set.split(';').next().expect("a pair").to_owned()
}

#[tokio::test]
async fn sign_in_sets_a_strict_cookie() {
    let server = Server::start().await;
    let answer = sign_in(&server, ADMIN).await;
    assert_eq!(answer.status, 204);
    let set = answer.header("set-cookie").expect("a cookie");
    let attributes: Vec<&str> = set.split("; ").skip(1).collect();
    assert_eq!(
        attributes,
        ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"]
    );
    let body = serde_json::json!({ "token": ADMIN }).to_string();
    let over_tls = [SAME_ORIGIN, ("x-forwarded-proto", "https")];
    let answer = server
        .send("POST", "/v1/session", &over_tls, Some(body))
        .await;
    let set = answer.header("set-cookie").expect("a cookie");
    assert!(set.ends_with("; Secure"), "{set}");
}

#[tokio::test]
async fn session_replaces_the_token_until_sign_out() {
    let server = Server::start().await;
    let session = cookie(&sign_in(&server, ADMIN).await);
    let with_cookie = [("cookie", session.as_str())];
    let ask = async |path: &str| server.send("GET", path, &with_cookie, None).await;
    assert_eq!(ask("/v1/session").await.status, 200);
    // Routes for operators, for API keys or operators, and for users or operators.
    for path in [
        "/v1/api-keys",
        "/v1/sensors/devices",
        "/v1/push/devices?userId=u",
    ] {
        assert_eq!(ask(path).await.status, 200, "{path}");
    }
    let mine = [("cookie", session.as_str()), SAME_ORIGIN, CONSOLE];
    let answer = server.send("DELETE", "/v1/session", &mine, None).await;
    assert_eq!(answer.status, 204);
    assert!(
        answer
            .header("set-cookie")
            .expect("a cookie")
            .contains("Max-Age=0")
    );
    assert_eq!(ask("/v1/session").await.status, 401);
    assert_eq!(ask("/v1/api-keys").await.status, 401);
}

#[tokio::test]
async fn session_expires() {
    let server = Server::start().await;
    let session = cookie(&sign_in(&server, ADMIN).await);
    let with_cookie = [("cookie", session.as_str())];
    let answer = server.send("GET", "/v1/session", &with_cookie, None).await;
    assert_eq!(answer.body["expires_at"], "2027-01-15T20:00:00.000Z");
    server.clock.advance_ms(12 * 60 * 60 * 1000);
    let answer = server.send("GET", "/v1/api-keys", &with_cookie, None).await;
    assert_eq!(answer.status, 401);
}

#[tokio::test]
async fn cross_site_requests_cannot_change_anything() {
    let server = Server::start().await;
    let session = cookie(&sign_in(&server, ADMIN).await);
    let cookie = ("cookie", session.as_str());
    let create = async |headers: &[(&str, &str)]| {
        let body = Some(r#"{"all":true}"#.to_owned());
        server.send("POST", "/v1/api-keys", headers, body).await
    };
    for headers in [
        &[cookie][..],
        &[cookie, SAME_ORIGIN],
        &[cookie, CONSOLE],
        &[cookie, CONSOLE, ("sec-fetch-site", "cross-site")],
        &[cookie, CONSOLE, ("sec-fetch-site", "same-site")],
        &[cookie, CONSOLE, ("origin", "http://evil.example")],
    ] {
        let answer = create(headers).await;
        assert_eq!(answer.status, 403, "{headers:?}");
        assert_eq!(answer.body["code"], "CROSS_SITE");
    }
    assert_eq!(create(&[cookie, CONSOLE, SAME_ORIGIN]).await.status, 201);
    // Browsers never send the token by themselves.
    let bearer = format!("Bearer {ADMIN}");
    assert_eq!(create(&[("authorization", &bearer)]).await.status, 201);
}

#[tokio::test]
async fn sign_in_is_same_origin_only() {
    let server = Server::start().await;
    let body = serde_json::json!({ "token": ADMIN }).to_string();
    for header in [
        ("sec-fetch-site", "cross-site"),
        ("origin", "http://evil.example"),
    ] {
        let answer = server
            .send("POST", "/v1/session", &[header], Some(body.clone()))
            .await;
        assert_eq!(answer.status, 403, "{header:?}");
    }
    // Programs other than browsers send no `Origin`.
    let answer = server.send("POST", "/v1/session", &[], Some(body)).await;
    assert_eq!(answer.status, 204);
}

#[tokio::test]
async fn wrong_tokens_at_sign_in_are_limited() {
    let server = Server::start().await;
    for _ in 0..10 {
        let answer = sign_in(&server, "a guess").await;
        assert_eq!(answer.status, 401);
        assert_eq!(answer.header("set-cookie"), None);
    }
    let answer = sign_in(&server, "a guess").await;
    assert_eq!(answer.status, 429);
    assert_eq!(answer.header("retry-after"), Some("6"));
    // The right token always passes.
    assert_eq!(sign_in(&server, ADMIN).await.status, 204);
}

#[tokio::test]
async fn unknown_session_is_unauthorized() {
    let server = Server::start().await;
    for cookie in ["homeport_session=", "homeport_session=00", "other=1"] {
        let headers = [("cookie", cookie)];
        let answer = server.send("GET", "/v1/api-keys", &headers, None).await;
        assert_eq!(answer.status, 401, "{cookie}");
    }
}
