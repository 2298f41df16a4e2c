//! Phones: each is the one device of a user. It registers with its user's token, and again now and
//! then with a new push token; someone sends it notifications, which go through a stand-in of Expo's
//! service that is served here.
//!
//! What was accepted must be in the user's list once, and must have reached the phone: once, or again
//! as often as the server says itself that an answer was lost.

mod weather;

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use homeport_server::expo_stand_in::{ExpoStandIn, Taken};
use homeport_store::SystemClock;
use hyper::Method;
use jsonwebtoken::{EncodingKey, Header};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Plan;
use super::client::Credential;
use super::fleet::{AnswerError, Call, Fate, Fleet, Found, OverHttp, Page, Speech};
use super::settings::SimulateSettings;

/// The largest page that the server gives.
const PAGE_LIMIT: u32 = 100;
/// A phone registers again after so many notifications, with another push token.
const REGISTERS_EVERY: u32 = 20;
/// How long the tokens of users are good for: longer than any run.
const TOKEN_SECS: i64 = 7 * 24 * 60 * 60;
/// HS256 asks for a key as long as its hash; the server wants no shorter one either.
const SECRET_LEN_MIN: usize = 32;

/// A fleet of phones, with the service that reaches them.
pub(super) struct Phones {
    seed: u64,
    /// Tells the users of this run from those of others.
    run_ms: i64,
    /// The last time that a phone registers.
    last_round: u32,
    /// How users prove who they are.
    identities: Vec<Credential>,
    expo: ExpoStandIn,
    expo_url: String,
}

#[derive(Deserialize)]
struct NotificationList {
    notifications: Vec<Notification>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Notification {
    message: Value,
    devices: Vec<DeviceFate>,
}

#[derive(Deserialize)]
struct DeviceFate {
    device_id: String,
    state: String,
    ticket_id: Option<String>,
    unanswered: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Registered {
    expo_push_token: String,
    platform: String,
    is_active: bool,
}

impl Phones {
    /// Serves the stand-in and signs a token for each user.
    pub(super) async fn prepare(
        settings: &SimulateSettings,
        plan: &Plan,
        now_ms: i64,
    ) -> anyhow::Result<Self> {
        let secret = settings.user_jwt_secret.as_deref();
        let secret = secret.context(
            "phones need --user-jwt-secret: the server's data directory has it in the file user-jwt-secret",
        )?;
        ensure!(
            secret.len() >= SECRET_LEN_MIN,
            "the secret of users' tokens has {SECRET_LEN_MIN} characters or more"
        );
        let address = settings.expo_listen;
        let listener = tokio::net::TcpListener::bind(address).await;
        let listener = listener
            .with_context(|| format!("serving a stand-in of Expo's service on {address}"))?;
        let expo_url = format!("http://{}", listener.local_addr()?);
        let expo = ExpoStandIn::new(Arc::new(SystemClock), None);
        expo.set_weather(weather::weather(plan.seed, plan.disconnects));
        // Served until the process ends.
        tokio::spawn(expo.clone().serve(listener, std::future::pending()));
        note!("a stand-in of Expo's push service is at {expo_url}");
        Self::new(plan, now_ms, secret, expo, expo_url)
    }

    fn new(
        plan: &Plan,
        now_ms: i64,
        secret: &str,
        expo: ExpoStandIn,
        expo_url: String,
    ) -> anyhow::Result<Self> {
        let mut phones = Self {
            seed: plan.seed,
            run_ms: now_ms,
            last_round: plan.windows / REGISTERS_EVERY,
            identities: Vec::new(),
            expo,
            expo_url,
        };
        let key = EncodingKey::from_secret(secret.as_bytes());
        let expires = now_ms / 1000 + TOKEN_SECS;
        for device in 0..plan.devices {
            let claims = json!({"sub": phones.user(device), "exp": expires});
            let token = jsonwebtoken::encode(&Header::default(), &claims, &key);
            let token = token.context("signing the token of a user")?;
            phones.identities.push(Credential::bearer(&token)?);
        }
        Ok(phones)
    }

    fn user(&self, device: u32) -> String {
        format!("simulated-{}-{}-{device}", self.seed, self.run_ms)
    }

    fn phone(device: u32) -> String {
        format!("phone-{device}")
    }

    fn platform(device: u32) -> &'static str {
        if device.is_multiple_of(2) {
            "ios"
        } else {
            "android"
        }
    }

    fn push_token(&self, device: u32, round: u32) -> String {
        format!("ExponentPushToken[{}-{round}]", self.user(device))
    }

    fn message(&self, device: u32, window: u32) -> Value {
        json!({
            "title": "Done",
            "body": format!("Photo {window} is ready"),
            "data": {"user": self.user(device), "number": window},
        })
    }

    /// The number of a message that is one of this phone's.
    fn window(&self, device: u32, message: &Value) -> Option<u32> {
        let number = message["data"]["number"].as_u64()?;
        let is_own = message["data"]["user"] == self.user(device);
        u32::try_from(number).ok().filter(|_| is_own)
    }

    /// What has reached a phone, under any of the push tokens that it has had, by its message. What
    /// is not for this phone stands under `None`.
    fn arrivals(&self, device: u32) -> HashMap<Option<u32>, Vec<Taken>> {
        let mut arrivals: HashMap<Option<u32>, Vec<Taken>> = HashMap::new();
        for round in 0..=self.last_round {
            for one in self.expo.taken_for(&self.push_token(device, round)) {
                let message = Value::Object(one.message.clone());
                let window = self.window(device, &message);
                arrivals.entry(window).or_default().push(one);
            }
        }
        arrivals
    }

    /// What a notification in the user's list means.
    fn judge(
        &self,
        device: u32,
        stored: &Notification,
        arrivals: &HashMap<Option<u32>, Vec<Taken>>,
    ) -> Vec<Found> {
        let Some(window) = self.window(device, &stored.message) else {
            return vec![Found::Foreign];
        };
        let message = self.message(device, window);
        let [fate] = stored.devices.as_slice() else {
            return vec![Found::Altered(window)];
        };
        let none = Vec::new();
        let arrived = arrivals.get(&Some(window)).unwrap_or(&none);
        let is_same = |taken: &Taken| Value::Object(taken.message.clone()) == message;
        if stored.message != message
            || fate.device_id != Self::phone(device)
            || !arrived.iter().all(is_same)
        {
            return vec![Found::Altered(window)];
        }
        match fate.state.as_str() {
            "queued" | "sending" => return vec![Found::Underway(window)],
            "sent" | "delivered" => {
                let ticket = fate.ticket_id.as_deref();
                let is_ours = |taken: &Taken| Some(taken.ticket_id.as_str()) == ticket;
                if !arrived.is_empty() && !arrived.iter().any(is_ours) {
                    return vec![Found::Altered(window)];
                }
            }
            _ => {}
        }
        // Nothing where nothing arrived, whatever the server says about it.
        let again = arrived.len().saturating_sub(1).min(fate.unanswered);
        let once = arrived.len() - again;
        let mut found = vec![Found::Intact(window); once];
        found.resize(once + again, Found::Again(window));
        found
    }
}

impl Fleet for Phones {
    fn registration(&self, device: u32, round: u32) -> Option<Call> {
        let body = json!({
            "expoPushToken": self.push_token(device, round),
            "platform": Self::platform(device),
        });
        let path = format!("/v1/push/devices/{}", Self::phone(device));
        Some(Call::new(Method::PUT, path, Some(body.to_string())))
    }

    fn registers_every(&self) -> Option<u32> {
        Some(REGISTERS_EVERY)
    }

    fn identity(&self, device: u32) -> Option<&Credential> {
        self.identities.get(device as usize)
    }

    fn speech(&self) -> Speech<'_> {
        Speech::Http(self)
    }

    fn page(&self, device: u32, cursor: Option<&str>) -> Call {
        let user = self.user(device);
        // Cursors are made of characters that an address may have.
        let cursor = cursor.map_or_else(String::new, |cursor| format!("&cursor={cursor}"));
        let path = format!("/v1/push/users/{user}/notifications?limit={PAGE_LIMIT}{cursor}");
        Call::new(Method::GET, path, None)
    }

    fn read_page(&self, device: u32, answer: &[u8]) -> Result<Page, AnswerError> {
        let list: NotificationList = serde_json::from_slice(answer)?;
        let arrivals = self.arrivals(device);
        let notifications = list.notifications.iter();
        Ok(Page {
            found: notifications
                .flat_map(|stored| self.judge(device, stored, &arrivals))
                .collect(),
            next_cursor: list.next_cursor,
        })
    }

    fn account(&self, device: u32) -> Option<Call> {
        let path = format!("/v1/push/devices/{}", Self::phone(device));
        Some(Call::new(Method::GET, path, None))
    }

    /// The registration is the last one, and the phone has got nobody else's notifications.
    fn adds_up(
        &self,
        device: u32,
        _: u64,
        registrations: u32,
        answer: &[u8],
    ) -> Result<bool, AnswerError> {
        let registered: Registered = serde_json::from_slice(answer)?;
        let last = self.push_token(device, registrations.saturating_sub(1));
        Ok(registered.expo_push_token == last
            && registered.platform == Self::platform(device)
            && registered.is_active
            && !self.arrivals(device).contains_key(&None))
    }

    fn advice(&self) -> Option<String> {
        (self.expo.request_count() == 0).then(|| {
            format!(
                "nothing came to the stand-in: start the server with --push-expo-url {}",
                self.expo_url
            )
        })
    }
}

impl OverHttp for Phones {
    fn batch_max(&self) -> usize {
        1
    }

    fn delivery(&self, device: u32, windows: &[u32]) -> Call {
        let user = self.user(device);
        let body = self.message(device, windows[0]).to_string();
        let path = format!("/v1/push/users/{user}/notifications");
        let mut call = Call::new(Method::POST, path, Some(body));
        call.idempotency_key = Some(format!("{user}-{}", windows[0]));
        call
    }

    fn fates(&self, device: u32, windows: &[u32], answer: &[u8]) -> Result<Vec<Fate>, AnswerError> {
        let accepted: Notification = serde_json::from_slice(answer)?;
        let fate = |window: &u32| {
            if accepted.message == self.message(device, *window) {
                Fate::Stored
            } else {
                Fate::Unanswered
            }
        };
        Ok(windows.iter().map(fate).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use homeport_server::expo_stand_in::ExpoStandIn;

    use super::*;

    fn fleet() -> Phones {
        let plan = Plan {
            devices: 2,
            windows: 50,
            tick: Duration::from_millis(1),
            batch: 1,
            disconnects: 0.0,
            seed: 1,
            patience: Duration::from_secs(1),
            interval: Duration::from_secs(1),
            kept_for: Duration::ZERO,
        };
        let expo = ExpoStandIn::new(Arc::new(SystemClock), None);
        let secret = "a secret that only this test knows";
        Phones::new(&plan, 1_800_000_000_000, secret, expo, String::new()).expect("a fleet")
    }

    fn taken(fleet: &Phones, window: u32, ticket_id: &str) -> Taken {
        let message = fleet.message(0, window);
        Taken {
            message: message.as_object().expect("an object").clone(),
            ticket_id: ticket_id.to_owned(),
        }
    }

    /// What is found when the server says this and as many messages have arrived.
    fn judged(state: &str, unanswered: usize, arrived: usize) -> Vec<Found> {
        let fleet = fleet();
        let stored = Notification {
            message: fleet.message(0, 7),
            devices: vec![DeviceFate {
                device_id: "phone-0".to_owned(),
                state: state.to_owned(),
                ticket_id: Some("t".to_owned()),
                unanswered,
            }],
        };
        let arrived = vec![taken(&fleet, 7, "t"); arrived];
        fleet.judge(0, &stored, &HashMap::from([(Some(7), arrived)]))
    }

    #[test]
    fn a_message_must_arrive_once_or_as_often_as_answers_were_lost() {
        use Found::{Again, Intact, Underway};
        assert_eq!(judged("queued", 0, 0), [Underway(7)]);
        assert_eq!(judged("sent", 0, 1), [Intact(7)]);
        assert_eq!(judged("delivered", 1, 1), [Intact(7)]);
        assert_eq!(judged("sent", 1, 2), [Intact(7), Again(7)]);
        // Told twice without a reason: there twice.
        assert_eq!(judged("sent", 0, 2), [Intact(7), Intact(7)]);
        assert_eq!(
            judged("sent", 0, 0),
            [],
            "said to be sent, and it never came"
        );
        assert_eq!(judged("failed", 0, 0), []);
    }

    #[test]
    fn what_is_not_as_it_was_sent_is_seen() {
        let fleet = fleet();
        let stored = |change: fn(&mut Notification)| {
            let mut stored = Notification {
                message: fleet.message(0, 7),
                devices: vec![DeviceFate {
                    device_id: "phone-0".to_owned(),
                    state: "sent".to_owned(),
                    ticket_id: Some("t".to_owned()),
                    unanswered: 0,
                }],
            };
            change(&mut stored);
            let arrived = vec![taken(&fleet, 7, "t")];
            fleet.judge(0, &stored, &HashMap::from([(Some(7), arrived)]))
        };
        assert_eq!(stored(|_| ()), [Found::Intact(7)]);
        for change in [
            (|it| it.message["title"] = json!("Other")) as fn(&mut Notification),
            |it| it.devices.clear(),
            |it| it.devices[0].device_id = "phone-1".to_owned(),
            |it| it.devices[0].ticket_id = Some("another".to_owned()),
        ] {
            assert_eq!(stored(change), [Found::Altered(7)]);
        }
        let other = stored(|it| it.message["data"]["user"] = json!("someone"));
        assert_eq!(other, [Found::Foreign]);
    }

    #[test]
    fn a_registration_is_the_last_one_or_does_not_add_up() {
        let fleet = fleet();
        let answer = |round, is_active: bool| {
            json!({"expoPushToken": fleet.push_token(1, round), "platform": "android",
                   "isActive": is_active})
            .to_string()
        };
        let adds_up = |text: String| fleet.adds_up(1, 0, 3, text.as_bytes()).expect("readable");
        assert!(adds_up(answer(2, true)));
        assert!(!adds_up(answer(1, true)));
        assert!(!adds_up(answer(2, false)));
    }
}
