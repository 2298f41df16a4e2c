//! The rules of people, their sessions, tokens and second factors.

mod support;

use std::sync::Arc;

use homeport_store::{Get, Scan};
use homeport_systems::people::{
    Access, CACHE_SECS, CredentialKind, Grant, Limits, NewPerson, NewToken, Password, People,
    PeopleError, PersonChange, PersonName, Role, SESSIONS_MAX, SETUP_SECS, SessionClient, Settings,
    SignIn, schema,
};
use support::Fixture;

const PASSWORD: &str = "correct horse battery";
const SESSION_SECS: i64 = 3600;

async fn people() -> (People, Fixture) {
    let fixture = support::fixture(&schema::tables()).await;
    (another(&fixture, 1), fixture)
}

/// Another process on the same store.
fn another(fixture: &Fixture, admin_generation: i64) -> People {
    let settings = Settings {
        session_secs: SESSION_SECS,
        admin_generation,
    };
    let store = Arc::clone(&fixture.store);
    People::new(store, Arc::clone(&fixture.clock) as _, settings)
}

fn name(text: &str) -> PersonName {
    text.parse().expect("a name")
}

fn password(text: &str) -> Password {
    Password::new(text.to_owned()).expect("a password")
}

async fn create(people: &People, who: &str, role: Role) {
    let new = NewPerson {
        name: name(who),
        password: Some(password(PASSWORD)),
        roles: vec![Grant::everywhere(role)],
    };
    people.create(new).await.expect("created");
}

fn with(who: &str, password: &str, code: Option<&str>) -> SignIn {
    SignIn {
        name: who.to_owned(),
        password: password.to_owned(),
        code: code.map(str::to_owned),
    }
}

async fn sign_in(people: &People, who: &str) -> String {
    let session = people.sign_in(with(who, PASSWORD, None), SessionClient::default());
    session.await.expect("signed in").raw.reveal()
}

async fn access(people: &People, session: &str) -> Option<Arc<Access>> {
    let verified = people.verify(session, CredentialKind::Session).await;
    verified.expect("verified")
}

/// The code that an authenticator app shows.
fn code(secret: &str, now_ms: i64) -> String {
    use hmac::Mac as _;
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut bits = Vec::new();
    for char in secret.chars() {
        let value = alphabet.find(char).expect("base32");
        bits.extend((0..5).rev().map(|at| value >> at & 1));
    }
    let bytes: Vec<u8> = (bits.chunks_exact(8))
        .map(|byte| {
            byte.iter()
                .fold(0, |all, bit| all << 1 | u8::try_from(*bit).expect("a bit"))
        })
        .collect();
    let mut mac = hmac::Hmac::<sha1::Sha1>::new_from_slice(&bytes).expect("a key");
    mac.update(&(now_ms / 30_000).to_be_bytes());
    let digest = mac.finalize().into_bytes();
    let at = usize::from(digest[19] & 15);
    let number = u32::from_be_bytes(digest[at..at + 4].try_into().expect("four bytes"));
    format!("{:06}", (number & 0x7fff_ffff) % 1_000_000)
}

#[tokio::test]
async fn secrets_are_stored_as_digests_only() {
    let (people, fixture) = people().await;
    create(&people, "anna", Role::Administrator).await;
    let session = sign_in(&people, "anna").await;
    let setup_less = people.begin_setup().await.expect("asked");
    assert_eq!(setup_less, None);
    let mut stored = String::new();
    for table in [schema::PEOPLE, schema::CREDENTIALS] {
        let scan = Scan {
            table: table.to_owned(),
            index: None,
            filter: None,
            projection: None,
            limit: None,
            start: None,
            segment: None,
            consistent: true,
            count_only: false,
        };
        let page = fixture.store.scan(scan).await.expect("items");
        stored.push_str(&format!("{:?}", page.items));
    }
    assert!(stored.contains("$argon2id$"), "{stored}");
    assert!(!stored.contains(PASSWORD) && !stored.contains(&session[4..]));
}

#[tokio::test]
async fn wrong_passwords_and_unknown_names_look_alike() {
    let (people, _fixture) = people().await;
    create(&people, "anna", Role::Viewer).await;
    for (who, password) in [
        ("anna", "wrong horse battery"),
        ("bert", PASSWORD),
        ("", PASSWORD),
        ("Anna", PASSWORD),
    ] {
        let refused = people.sign_in(with(who, password, None), SessionClient::default());
        assert_eq!(refused.await.expect_err(who), PeopleError::WrongPassword);
    }
}

#[tokio::test]
async fn session_survives_a_restart_until_it_expires() {
    let (people, fixture) = people().await;
    create(&people, "anna", Role::Viewer).await;
    let session = sign_in(&people, "anna").await;
    drop(people);
    let fixture = fixture.reopen().await;
    let people = another(&fixture, 1);
    let found = access(&people, &session).await.expect("signed in");
    assert_eq!(found.name, "anna");
    fixture.clock.advance_ms(SESSION_SECS * 1000 - 1);
    assert!(access(&people, &session).await.is_some());
    fixture.clock.advance_ms(1);
    assert_eq!(access(&people, &session).await, None);
}

#[tokio::test]
async fn disabled_people_lose_sessions_and_tokens() {
    let (people, fixture) = people().await;
    let other = another(&fixture, 1);
    create(&people, "root", Role::Administrator).await;
    create(&people, "anna", Role::Viewer).await;
    let session = sign_in(&people, "anna").await;
    assert!(access(&people, &session).await.is_some());
    assert!(access(&other, &session).await.is_some());
    let disable = |is_enabled| PersonChange {
        is_enabled: Some(is_enabled),
        ..PersonChange::default()
    };
    people
        .change(&name("anna"), disable(false))
        .await
        .expect("disabled");
    assert_eq!(access(&people, &session).await, None);
    let refused = people
        .sign_in(with("anna", PASSWORD, None), SessionClient::default())
        .await;
    assert_eq!(refused.expect_err("disabled"), PeopleError::WrongPassword);
    // Another process has the session in its cache for a while.
    fixture.clock.advance_ms(CACHE_SECS * 1000);
    assert_eq!(access(&other, &session).await, None);
    people
        .change(&name("anna"), disable(true))
        .await
        .expect("enabled");
    assert_eq!(access(&people, &session).await, None);
}

#[tokio::test]
async fn deleted_and_recreated_people_are_others() {
    let (people, fixture) = people().await;
    create(&people, "root", Role::Administrator).await;
    create(&people, "anna", Role::Viewer).await;
    let session = sign_in(&people, "anna").await;
    people.delete(&name("anna")).await.expect("deleted");
    create(&people, "anna", Role::Operator).await;
    assert_eq!(access(&people, &session).await, None);
    assert_eq!(access(&another(&fixture, 1), &session).await, None);
}

#[tokio::test]
async fn last_administrator_stays() {
    let (people, _fixture) = people().await;
    create(&people, "root", Role::Administrator).await;
    create(&people, "anna", Role::Operator).await;
    let change = |role, is_enabled| PersonChange {
        roles: Some(vec![Grant::everywhere(role)]),
        is_enabled: Some(is_enabled),
    };
    for refused in [
        people
            .change(&name("root"), change(Role::Administrator, false))
            .await
            .map(drop),
        people
            .change(&name("root"), change(Role::Operator, true))
            .await
            .map(drop),
        people.delete(&name("root")).await,
    ] {
        assert_eq!(refused, Err(PeopleError::LastAdministrator));
    }
    let promoted = people
        .change(&name("anna"), change(Role::Administrator, true))
        .await;
    assert_eq!(
        promoted.expect("promoted").roles,
        [Grant::everywhere(Role::Administrator)]
    );
    people.delete(&name("root")).await.expect("deleted");
}

#[tokio::test]
async fn two_administrators_cannot_remove_each_other() {
    let (people, fixture) = people().await;
    create(&people, "one", Role::Administrator).await;
    create(&people, "two", Role::Administrator).await;
    let other = another(&fixture, 1);
    let (one, two) = (name("one"), name("two"));
    let results = tokio::join!(people.delete(&one), other.delete(&two));
    assert!(results.0.is_ok() != results.1.is_ok(), "{results:?}");
    assert_eq!(people.list(10, None).await.expect("a list").items.len(), 1);
}

#[tokio::test]
async fn password_reset_ends_sessions_and_tokens() {
    let (people, _fixture) = people().await;
    create(&people, "anna", Role::Viewer).await;
    let session = sign_in(&people, "anna").await;
    let me = access(&people, &session).await.expect("signed in");
    let token = token(&people, &me, Role::Viewer, 1).await.expect("a token");
    assert!(
        people
            .verify(&token, CredentialKind::Token)
            .await
            .expect("verified")
            .is_some()
    );
    let new = password("another long password");
    people
        .reset_password(&name("anna"), &new)
        .await
        .expect("reset");
    assert_eq!(access(&people, &session).await, None);
    assert_eq!(people.verify(&token, CredentialKind::Token).await, Ok(None));
}

#[tokio::test]
async fn changed_password_ends_other_sessions_only() {
    let (people, _fixture) = people().await;
    create(&people, "anna", Role::Viewer).await;
    let (mine, other) = (
        sign_in(&people, "anna").await,
        sign_in(&people, "anna").await,
    );
    let me = access(&people, &mine).await.expect("signed in");
    let new = password("another long password");
    let wrong = people.change_password(&me, "wrong".to_owned(), &new).await;
    assert_eq!(wrong, Err(PeopleError::WrongPassword));
    people
        .change_password(&me, PASSWORD.to_owned(), &new)
        .await
        .expect("changed");
    assert!(access(&people, &mine).await.is_some());
    assert_eq!(access(&people, &other).await, None);
}

#[tokio::test]
async fn sessions_of_one_person_are_bounded() {
    let (people, fixture) = people().await;
    create(&people, "root", Role::Administrator).await;
    let begin = || people.begin_admin_session(SessionClient::default());
    let first = begin().await.expect("a session").raw.reveal();
    for _ in 0..SESSIONS_MAX {
        fixture.clock.advance_ms(1);
        begin().await.expect("a session");
    }
    assert_eq!(access(&people, &first).await, None);
    let open = people
        .credentials(uuid::Uuid::nil(), CredentialKind::Session)
        .await;
    assert_eq!(open.expect("a list").len(), SESSIONS_MAX);
}

#[tokio::test]
async fn sessions_of_another_admin_token_are_invalid() {
    let (people, fixture) = people().await;
    let session = people.begin_admin_session(SessionClient::default()).await;
    let session = session.expect("a session").raw.reveal();
    assert!(
        access(&people, &session)
            .await
            .expect("signed in")
            .is_admin_token()
    );
    assert_eq!(access(&another(&fixture, 2), &session).await, None);
}

#[tokio::test]
async fn each_code_is_accepted_once() {
    let (people, fixture) = people().await;
    create(&people, "anna", Role::Viewer).await;
    let session = sign_in(&people, "anna").await;
    let me = access(&people, &session).await.expect("signed in");
    let begun = people
        .begin_second_factor(&me, PASSWORD.to_owned())
        .await
        .expect("begun");
    assert!(begun.uri.contains(&begun.secret));
    // It is not required before it is confirmed.
    sign_in(&people, "anna").await;
    let now = || homeport_store::Clock::now_ms(&*fixture.clock);
    let first = code(&begun.secret, now());
    let wrong = people.confirm_second_factor(&me, "000000").await;
    assert_eq!(wrong.map(|_| ()), Err(PeopleError::WrongCode));
    let recovery = people
        .confirm_second_factor(&me, &first)
        .await
        .expect("confirmed")
        .0;
    let try_code = async |code: Option<&str>| {
        let session = people.sign_in(with("anna", PASSWORD, code), SessionClient::default());
        session.await.map(drop)
    };
    assert_eq!(try_code(None).await, Err(PeopleError::CodeRequired));
    assert_eq!(try_code(Some(&first)).await, Err(PeopleError::WrongCode));
    fixture.clock.advance_ms(30_000);
    let next = code(&begun.secret, now());
    let both = tokio::join!(try_code(Some(&next)), try_code(Some(&next)));
    assert!(both.0.is_ok() != both.1.is_ok(), "{both:?}");
    assert_eq!(try_code(Some(&recovery[0])).await, Ok(()));
    assert_eq!(
        try_code(Some(&recovery[0])).await,
        Err(PeopleError::WrongCode)
    );
    let wrong = people.sign_in(
        with("anna", "wrong", Some(&recovery[1])),
        SessionClient::default(),
    );
    assert_eq!(wrong.await.map(drop), Err(PeopleError::WrongPassword));
    people
        .reset_second_factor(&name("anna"))
        .await
        .expect("reset");
    assert_eq!(try_code(None).await, Ok(()));
}

async fn token(people: &People, me: &Access, role: Role, days: i64) -> Result<String, PeopleError> {
    let new = NewToken {
        label: "Grafana".to_owned(),
        role: Grant::everywhere(role),
        days,
    };
    Ok(people.create_token(me, new).await?.1.reveal())
}

#[tokio::test]
async fn tokens_are_limited_by_role_and_time() {
    let (people, fixture) = people().await;
    create(&people, "anna", Role::Operator).await;
    let session = sign_in(&people, "anna").await;
    let me = access(&people, &session).await.expect("signed in");
    let above = token(&people, &me, Role::Administrator, 1).await;
    assert!(matches!(above, Err(PeopleError::InvalidToken(_))));
    assert!(token(&people, &me, Role::Viewer, 0).await.is_err());
    assert!(token(&people, &me, Role::Viewer, 367).await.is_err());
    let raw = token(&people, &me, Role::Viewer, 1).await.expect("a token");
    assert!(raw.starts_with("hpt_"));
    let verify = async || {
        people
            .verify(&raw, CredentialKind::Token)
            .await
            .expect("verified")
    };
    let shown = verify().await.expect("valid");
    assert!(shown.permits(|grant| grant.role >= Role::Viewer));
    assert!(!shown.permits(|grant| grant.role >= Role::Operator));
    assert_eq!(access(&people, &raw).await, None);
    let listed = people
        .credentials(me.person, CredentialKind::Token)
        .await
        .expect("a list");
    assert_eq!(listed[0].label.as_deref(), Some("Grafana"));
    assert!(listed[0].last_used_at.is_some());
    fixture.clock.advance_ms(24 * 60 * 60 * 1000);
    assert_eq!(verify().await, None);
}

#[tokio::test]
async fn token_loses_what_its_person_loses() {
    let (people, _fixture) = people().await;
    create(&people, "root", Role::Administrator).await;
    create(&people, "anna", Role::Operator).await;
    let session = sign_in(&people, "anna").await;
    let me = access(&people, &session).await.expect("signed in");
    let raw = token(&people, &me, Role::Operator, 1)
        .await
        .expect("a token");
    let limits = Limits {
        systems: ["sensors".to_owned()].into(),
        ..Limits::default()
    };
    let roles = vec![Grant {
        role: Role::Operator,
        limits,
    }];
    let change = PersonChange {
        roles: Some(roles),
        is_enabled: None,
    };
    people.change(&name("anna"), change).await.expect("changed");
    let shown = people
        .verify(&raw, CredentialKind::Token)
        .await
        .expect("verified")
        .expect("valid");
    assert!(shown.permits(|grant| grant.limits.cover_system("sensors")));
    assert!(!shown.permits(|grant| grant.limits.cover_system("chargers")));
}

#[tokio::test]
async fn setup_link_works_once_and_for_an_hour() {
    let (people, fixture) = people().await;
    let old = people.begin_setup().await.expect("begun").expect("a token");
    fixture.clock.advance_ms(1);
    let link = people.begin_setup().await.expect("begun").expect("a token");
    let complete = async |token: &str, who: &str| {
        let session = people.complete_setup(
            token,
            name(who),
            password(PASSWORD),
            SessionClient::default(),
        );
        session.await.map(|session| session.raw.reveal())
    };
    assert_eq!(complete(&old, "anna").await, Err(PeopleError::InvalidSetup));
    assert_eq!(
        complete(&link, "admin").await,
        Err(PeopleError::ReservedName)
    );
    fixture.clock.advance_ms(SETUP_SECS * 1000);
    assert_eq!(
        complete(&link, "anna").await,
        Err(PeopleError::InvalidSetup)
    );
    let link = people.begin_setup().await.expect("begun").expect("a token");
    let results = tokio::join!(complete(&link, "anna"), complete(&link, "bert"));
    assert!(results.0.is_ok() != results.1.is_ok(), "{results:?}");
    let session = results.0.or(results.1).expect("signed in");
    let me = access(&people, &session).await.expect("signed in");
    assert!(me.permits(|grant| grant.role == Role::Administrator));
    assert_eq!(people.begin_setup().await, Ok(None));
    assert_eq!(
        complete(&link, "carl").await,
        Err(PeopleError::InvalidSetup)
    );
}

#[tokio::test]
async fn stored_person_has_the_documented_form() {
    let (people, fixture) = people().await;
    create(&people, "anna", Role::Viewer).await;
    let key = homeport_item::Item::new()
        .with("partition", "person")
        .with("name", "anna");
    let item = fixture.store.get(Get::new("homeport-people", key)).await;
    let item = serde_json::to_value(item.expect("a get").expect("anna")).expect("json");
    assert_eq!(item["version"]["N"], "1");
    let body: serde_json::Value =
        serde_json::from_str(item["body"]["S"].as_str().expect("a body")).expect("json");
    assert_eq!(body["roles"], serde_json::json!([{"role": "viewer"}]));
    assert_eq!(body["created_at_ms"], support::NOW_MS);
}
