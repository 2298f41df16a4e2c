//! RS256 user tokens verified with a JWKS from a URL or a file, and key rotation.

use homeport_server::{RateLimit, UserAlgorithm, UserKeys, UserTokenSettings};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use crate::jwks::{FIRST as ELLIPTIC, Shared, asked, claims, publish, refused, status};
use crate::support::Server;

/// A 2048-bit RSA test key: the private key as PKCS #1, and its modulus.
struct Pair {
    kid: &'static str,
    private: &'static str,
    modulus: &'static str,
}

const FIRST: Pair = Pair {
    kid: "first",
    private: "MIIEoQIBAAKCAQEAhp+4u/ibSSJ47ECUsl6yPJbPPNMy0yI4c5RrTNvNHDpgsoc7hcdeEZtXmC4F0CERRUDBpVVQDoFfQIc3jQJ5DpFDU5c09xYLqHjY9sNL5dDnmnYHgaguRmEUZllSYBG0h0Vop6sub0PIYDvtM7PxvxHY1wTeU/WTfevpI+gIpxLWyZFGwNINHNByERT0pWpVRvUcLamCE6cuex6c0mABQnRz9xpRaH8Em6Ws5gj8UCSpu8BKDpjUG6GS+YhgHK7qCxu+jDmBrjgcz6OV3EOamjeqPhMa03k41+IZqv+D9PZX71j+sYiJC3NZtp3xdJa/niACiTy+af/VX8iWhTb8zwIDAQABAoH/GtG2+7uLNAaqEGbNOLukxm1E29k3RtiKZnwq5CTlt7npiadnND+Dff50dNy2S8BKsIE2ErnsOPeNAk3twym69Cv8Parh4leB+w4YKxC9DguQGDVrSWk3zs2IQtuIjZr5W/l33+86UPAv+vv1RVeT0Xy8thlCMXe66lsVFxIipyXPp8xZbtIZm1tOjfFWGYgsbK0mSrUmxazcC00hPERs5/yX+R2ERLkW21kLw9hnmM89Kpclhkd48v4eV86VrIpGyyNfct086AGKT4m/ihFsevhrKb2Z5uHUeYPJcntkGvkxDgbQoC1t6hOuFY0wFNSK/7WGgN+jsNj09CtKV7VhAoGBAL3k50TZA15gkPHFodOj2sqRjbwjUN01uXO7aj5WTeXOR1fhWkobsGrfWBfQvZqtCdrcrXHg/za5BXopE7lMzBlW/TuLRT9aoVPjej9HE23Ph6LM7Q578OPFRc3uzoEW8qlW6ZucYQ4CuuzluLFNAw6zzDFu/en/vd1hsoA284NxAoGBALV9NohGU4lzrl2agrxmnTqdDyj8ARXo1nrnDdlH4Z0XwTBdfFCq+fs3mV1NDktWvEJxf7R2wclqUHaAhBLUR3StBJQi5sX9B/6MZUciqNS0oXo5IjZLETUp+lr8GLmk+CbsrEa10d73HtpwXFsYbWt/poS948KF7mdr4qpTSeQ/AoGAEbHx5xV93d6LwyvSb6FWMwgrN/vmfiaSeHlfZh2utpppRYQnYL6BywOy9s0pze8P+wgTVYhM3/GP1Bld0Cea4UWc5V6N/mBYpjONYbYi1lm/XulPscjU4rSwU4dMUPUteaAytqB03tRcTNT/R+5QOZ+BiJ26JYMCU03WT2JPgNECgYEAq9xCg5F1EbhF6cWi/518TkDkVj8tF/5A/GlIJ/V1pDkWbCJa0ljWGBpyVHPfkWA1LgYklFPQ9laCk3TnnJ0AfXBJ4a2bMumFZHq2fUJI9gOG1iK8TwWO6fUyam5HS6T4iIOeL+eFMcp5oQi9rFXZZ+6dVR4sS8xgEfeL0RbF5ikCgYAIyGMpznPWUgyWupsQHvqVJX4iaWZHyOkj04ztYxqKaTDoki9Avmwgq/7cO+goO34+XwKSrEBeewjOOxCS03Zt9xn98SBY4Exdxt8I0Uq2s6p1pfIT1eJhayNnT9TDt0ius3nR8x5n8oJM6NHw+oPLcSd2B6BkaRRjLeNRk/sjRg==",
    modulus: "hp-4u_ibSSJ47ECUsl6yPJbPPNMy0yI4c5RrTNvNHDpgsoc7hcdeEZtXmC4F0CERRUDBpVVQDoFfQIc3jQJ5DpFDU5c09xYLqHjY9sNL5dDnmnYHgaguRmEUZllSYBG0h0Vop6sub0PIYDvtM7PxvxHY1wTeU_WTfevpI-gIpxLWyZFGwNINHNByERT0pWpVRvUcLamCE6cuex6c0mABQnRz9xpRaH8Em6Ws5gj8UCSpu8BKDpjUG6GS-YhgHK7qCxu-jDmBrjgcz6OV3EOamjeqPhMa03k41-IZqv-D9PZX71j-sYiJC3NZtp3xdJa_niACiTy-af_VX8iWhTb8zw",
};
const SECOND: Pair = Pair {
    kid: "second",
    private: "MIIEogIBAAKCAQEAntYCFq133fB4ChTpUzFSkOtKx+ZUpjxMT3WzCtVR8O1v8hc9B4jqta3kkgpOgzBJpqZ1VofHrleDWpp9CRWofnWP9ybr4q8aWb+I6mtNvuo3N+sAL+6c1/N6vMmzu/levbd0La1tvXgs3O9C7+qU6Req8JqHJWU9SzSlDYF6sditJK8eq544tijl9WNaIOZqPcfwR0mYDuzate+bwAcPx0RnxdQno5TPC1TzHOlRTL/gP2st/1/zqLxX/KLi7VijKlo2XoxrFx1tCdoX+KPhh3pdifBhJu/7vxrluxh91QqaDtIbnyTi0F5LeO+XxuCzjmXT4eTm97BearHpkTOdxQIDAQABAoIBAAoQPJcju/e5k91tqD/PXPAWHEmQiBX1NY+GQUcDL3sgjApuWv1GeTp0D0qKcSGCNnRi0QXfufDLliSwK5JfBysl9y5dTq4w0m5TwpC5pjYdoEyAbOVcjJ7pDAJ4lBTpjo1eGXQIbC7INa100kyhk/g1ueyfGcdug+TnK7rwlG2+lz0v7DM7JFymU9Jj5oL/aO8HBeWxpFksKLoPtnM+d69gylgxD46p69efcvLQ2/fwnwA43PzRYhKn68oYs9iurowpMDxF5uwdMZWXMrDTJ3AC31lRIOY+YHUYAeHciGS/4E16gajVbTx6HC8BH50rGDwpXfNfnqa4e4v/I2kWrokCgYEA4FTEtWMVsGmrNQ7gg0R0/l3Xhq6Zusu09x5+uWDE3HHBbPAi3GirCSUdR2okoAjC7h2UPmdjAWLOJYn+ne70mbIt9uGJauoyMjWsKXzMenSJgsfPjiOoda7YpvHDoSE7GlvdsndmvkMV1Tnxt3b5IcKjU5sWpUjvtWCIk0p6c1kCgYEAtUJFydafhfv1xyy4c/HTgCmeFEE+pppZczb88cnBHkYF00UTOvCXZ2HMiyzegfWDZmOhzwOgmLBAgfLdnFE8VV/WCD/T5qJ0Kj3xliIVcMYxtP/YNtJu1Khr3Nu1nH0LtypH9TndDr96c+1QHUzTD3HssiOosVi86e5cHT+UzE0CgYAUyoZ4sTg/Y2vEvR49zEhzksr45pHE6EBbbu4bzEYykDB3IkJ43xKLBG+UQNgoJOe8He2xYu+gH0Iv5Hw+svjkjckIyppr2EzSrnrIVZK1/rsH7fDkoZVpYs0dm+aftm694KnJcpuJIrqRSo+Gi3ZHlLyCcStGIl5lFw9RZ2O18QKBgB+EuqXyUCL4QTC1Mg3XSzPKCNb00XQe+tbyBOH2d0JQYsruA/4HwAwWEX9R+g8XJhYz1PsuYkqqu0zdcnOwHJGr7IfasXo1XYXK56t3mcrWa+ZRZsOBrAwGjVsGSXpAtDzReVnHCg16dkyaQ4gUx86zvLjtQnQ0PgVfkVz0pWcxAoGAAPLGUgpSo7pHAMNjVaf6iu6hXjGtzvHwXzJ9okoQTUMlk6OnfPJOV+eHwTnoY0dsrDd/zzJGwYHm2LaGeVSRv2Merc+vQ9rErTMHBcIqwV+C/KxnrrEPHfgt4ra95KsCZ2XBLTzelppeXO8xfgv7VIORl/G6hLHW7yQvrJ2ivfA=",
    modulus: "ntYCFq133fB4ChTpUzFSkOtKx-ZUpjxMT3WzCtVR8O1v8hc9B4jqta3kkgpOgzBJpqZ1VofHrleDWpp9CRWofnWP9ybr4q8aWb-I6mtNvuo3N-sAL-6c1_N6vMmzu_levbd0La1tvXgs3O9C7-qU6Req8JqHJWU9SzSlDYF6sditJK8eq544tijl9WNaIOZqPcfwR0mYDuzate-bwAcPx0RnxdQno5TPC1TzHOlRTL_gP2st_1_zqLxX_KLi7VijKlo2XoxrFx1tCdoX-KPhh3pdifBhJu_7vxrluxh91QqaDtIbnyTi0F5LeO-XxuCzjmXT4eTm97BearHpkTOdxQ",
};

impl Pair {
    fn public(&self) -> Value {
        json!({"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.kid, "n": self.modulus,
               "e": "AQAB"})
    }

    /// The public key with one member changed, or removed if the value is null.
    fn public_with(&self, name: &str, value: Value) -> Value {
        let mut key = self.public();
        if value.is_null() {
            key.as_object_mut().expect("an object").remove(name);
        } else {
            key[name] = value;
        }
        key
    }

    fn token_with(&self, algorithm: Algorithm, kid: Option<&str>) -> String {
        use base64::Engine as _;
        let der = base64::engine::general_purpose::STANDARD.decode(self.private);
        let key = EncodingKey::from_rsa_der(&der.expect("Base64"));
        let mut header = Header::new(algorithm);
        header.kid = kid.map(str::to_owned);
        jsonwebtoken::encode(&header, &claims(), &key).expect("a token")
    }

    fn token(&self) -> String {
        self.token_with(Algorithm::RS256, Some(self.kid))
    }
}

fn set(shared: &Shared, keys: Vec<Value>) {
    shared.lock().expect("no panic").keys = keys;
}

async fn start_with(keys: UserKeys) -> Server {
    let settings = UserTokenSettings::new(UserAlgorithm::Rs256, keys);
    Server::start_with_users(RateLimit::default(), settings).await
}

async fn start(shared: &Shared) -> Server {
    start_with(UserKeys::JwksUrl(publish(shared).await)).await
}

#[tokio::test]
async fn keys_rotate_while_old_tokens_are_in_use() {
    let shared = Shared::default();
    set(&shared, vec![FIRST.public()]);
    let server = start(&shared).await;
    let (first, second) = (FIRST.token(), SECOND.token());
    assert_eq!(status(&server, &first).await, (200, None));
    assert_eq!(status(&server, &second).await, refused());
    // The new key is published before it signs.
    set(&shared, vec![FIRST.public(), SECOND.public()]);
    server.clock.advance_ms(30_000);
    for token in [&second, &first] {
        assert_eq!(status(&server, token).await, (200, None));
    }
    assert_eq!(asked(&shared), 2);
    // The old key is withdrawn: it is accepted until the cache expires.
    set(&shared, vec![SECOND.public()]);
    server.clock.advance_ms(59 * 60 * 1000);
    assert_eq!(status(&server, &first).await, (200, None));
    server.clock.advance_ms(2 * 60 * 1000);
    assert_eq!(status(&server, &first).await, refused());
    assert_eq!(status(&server, &second).await, (200, None));
    assert_eq!(asked(&shared), 3);
}

#[tokio::test]
async fn token_needs_its_named_key_and_rs256() {
    let shared = Shared::default();
    set(&shared, vec![FIRST.public(), SECOND.public()]);
    let server = start(&shared).await;
    assert_eq!(status(&server, &FIRST.token()).await, (200, None));
    let forged = SECOND.token_with(Algorithm::RS256, Some("first"));
    let nameless = FIRST.token_with(Algorithm::RS256, None);
    let stronger = FIRST.token_with(Algorithm::RS512, Some("first"));
    let padded = FIRST.token_with(Algorithm::PS256, Some("first"));
    let elliptic = ELLIPTIC.token("first", &claims());
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some("first".to_owned());
    let secret = EncodingKey::from_secret(FIRST.modulus.as_bytes());
    let confused = jsonwebtoken::encode(&header, &claims(), &secret).expect("a token");
    for (why, token) in [
        ("signed with another key", forged),
        ("names none of two keys", nameless),
        ("RS512", stronger),
        ("PS256", padded),
        ("ES256", elliptic),
        ("the public key as a secret", confused),
    ] {
        assert_eq!(status(&server, &token).await, refused(), "{why}");
    }
}

#[tokio::test]
async fn keys_for_other_purposes_are_ignored() {
    let cut = &FIRST.modulus[..FIRST.modulus.len() / 8];
    let shared = Shared::default();
    let server = start(&shared).await;
    let mut fetched = 0;
    for (why, key) in [
        ("encrypts", FIRST.public_with("use", json!("enc"))),
        ("is for RS512", FIRST.public_with("alg", json!("RS512"))),
        ("is on a curve", ELLIPTIC.public()),
        ("has no modulus", FIRST.public_with("n", Value::Null)),
        ("has no number", FIRST.public_with("n", json!("!"))),
        ("is far too short", FIRST.public_with("n", json!(cut))),
    ] {
        set(&shared, vec![key]);
        server.clock.advance_ms(30_000);
        assert_eq!(status(&server, &FIRST.token()).await, refused(), "{why}");
        fetched += 1;
        assert_eq!(asked(&shared), fetched, "{why}");
    }
    set(&shared, vec![FIRST.public()]);
    server.clock.advance_ms(30_000);
    assert_eq!(status(&server, &FIRST.token()).await, (200, None));
}

#[tokio::test]
async fn single_key_needs_no_id_or_use() {
    let shared = Shared::default();
    let mut key = FIRST.public_with("use", Value::Null);
    for name in ["kid", "alg"] {
        key.as_object_mut().expect("an object").remove(name);
    }
    set(&shared, vec![key]);
    let server = start(&shared).await;
    let nameless = FIRST.token_with(Algorithm::RS256, None);
    assert_eq!(status(&server, &nameless).await, (200, None));
    let other = SECOND.token_with(Algorithm::RS256, None);
    assert_eq!(status(&server, &other).await, refused());
}

#[tokio::test]
async fn changed_key_file_is_read_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("jwks.json");
    let write = |keys: Value| {
        std::fs::write(&file, json!({ "keys": keys }).to_string()).expect("written");
    };
    write(json!([FIRST.public()]));
    let server = start_with(UserKeys::JwksFile(file.clone())).await;
    assert_eq!(status(&server, &FIRST.token()).await, (200, None));
    write(json!([SECOND.public()]));
    server.clock.advance_ms(30_000);
    assert_eq!(status(&server, &SECOND.token()).await, (200, None));
    assert_eq!(status(&server, &FIRST.token()).await, refused());
    // An unreadable file does not reject tokens with cached keys.
    std::fs::write(&file, "half a file").expect("written");
    server.clock.advance_ms(2 * 60 * 60 * 1000);
    assert_eq!(status(&server, &SECOND.token()).await, (200, None));
    server.clock.advance_ms(24 * 60 * 60 * 1000);
    let unavailable = (503, Some("KEYS_UNAVAILABLE".to_owned()));
    assert_eq!(status(&server, &SECOND.token()).await, unavailable);
}
