//! Phones: each is the only device of a user. It registers with the user's token, and later again with a new push token.
//! Notifications go through a stand-in of Expo's push service that this fleet serves.
//!
//! An accepted notification must be in the user's list once. It must reach the phone once, plus at most once for each
//! lost response in the server's trace.

mod faults;

use std::collections::HashMap;
use std::sync::Arc;

use crate::expo_stand_in::{AcceptedMessage, ExpoStandIn};
use anyhow::{Context as _, ensure};
use homeport_store::SystemClock;
use hyper::Method;
use jsonwebtoken::{EncodingKey, Header};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Call, DeliveryResult, Fleet, HttpFleet, Page, Protocol, ReadBack, ResponseError,
    cursor_parameter,
};
use crate::Plan;
use crate::connection::Credential;
use crate::settings::SimulateSettings;
use crate::stderr::note;

/// The server's maximum page size.
const PAGE_LIMIT: u32 = 100;
/// A phone registers again with a new push token after this many notifications.
const REGISTERS_EVERY: u32 = 20;
/// Lifetime of user tokens, longer than any run.
const TOKEN_SECS: i64 = 7 * 24 * 60 * 60;
/// The server's minimum, which is the length of HS256's hash.
const SECRET_LEN_MIN: usize = 32;

/// A fleet of phones and its push service.
pub(crate) struct Phones {
    seed: u64,
    /// Distinguishes the users of this run from those of other runs.
    run_ms: i64,
    /// The last registration of a phone, counted from 0.
    last_round: u32,
    /// The credential of each user.
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
    devices: Vec<DeviceDelivery>,
}

#[derive(Deserialize)]
struct DeviceDelivery {
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
    pub(crate) async fn prepare(
        settings: &SimulateSettings,
        plan: &Plan,
        now_ms: i64,
    ) -> anyhow::Result<Self> {
        let secret = settings.user_jwt_secret.as_deref();
        let secret = secret.context(
            "phones need --user-jwt-secret; the server keeps it in the file user-jwt-secret of its data directory",
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
        expo.set_fault_policy(faults::fault_policy(plan.seed, plan.disconnects));
        // Served until the process ends.
        tokio::spawn(expo.clone().serve(listener, std::future::pending()));
        note(format_args!(
            "a stand-in of Expo's push service is at {expo_url}"
        ));
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
            let token = token.context("signing a user token")?;
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

    /// The number of a message, if it belongs to this phone.
    fn window(&self, device: u32, message: &Value) -> Option<u32> {
        let number = message["data"]["number"].as_u64()?;
        let is_own = message["data"]["user"] == self.user(device);
        u32::try_from(number).ok().filter(|_| is_own)
    }

    /// The messages that reached a phone under any of its push tokens, by number. Messages for other phones are under `None`.
    fn arrivals(&self, device: u32) -> HashMap<Option<u32>, Vec<AcceptedMessage>> {
        let mut arrivals: HashMap<Option<u32>, Vec<AcceptedMessage>> = HashMap::new();
        for round in 0..=self.last_round {
            for one in self.expo.accepted_for(&self.push_token(device, round)) {
                let message = Value::Object(one.message.clone());
                let window = self.window(device, &message);
                arrivals.entry(window).or_default().push(one);
            }
        }
        arrivals
    }

    /// Compares a notification in the user's list with the messages that reached the phone.
    fn compare(
        &self,
        device: u32,
        stored: &Notification,
        arrivals: &HashMap<Option<u32>, Vec<AcceptedMessage>>,
    ) -> Vec<ReadBack> {
        let Some(window) = self.window(device, &stored.message) else {
            return vec![ReadBack::Foreign];
        };
        let message = self.message(device, window);
        let [delivery] = stored.devices.as_slice() else {
            return vec![ReadBack::Altered(window)];
        };
        let none = Vec::new();
        let arrived = arrivals.get(&Some(window)).unwrap_or(&none);
        let is_same = |taken: &AcceptedMessage| Value::Object(taken.message.clone()) == message;
        if stored.message != message
            || delivery.device_id != Self::phone(device)
            || !arrived.iter().all(is_same)
        {
            return vec![ReadBack::Altered(window)];
        }
        match delivery.state.as_str() {
            "queued" | "sending" => return vec![ReadBack::Underway(window)],
            "sent" | "delivered" => {
                let ticket = delivery.ticket_id.as_deref();
                let is_ours = |taken: &AcceptedMessage| Some(taken.ticket_id.as_str()) == ticket;
                if !arrived.is_empty() && !arrived.iter().any(is_ours) {
                    return vec![ReadBack::Altered(window)];
                }
            }
            _ => {}
        }
        // Empty if no message arrived, whatever state the server reports.
        let again = arrived.len().saturating_sub(1).min(delivery.unanswered);
        let once = arrived.len() - again;
        let mut found = vec![ReadBack::Intact(window); once];
        found.resize(once + again, ReadBack::Again(window));
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

    fn registration_credential(&self, device: u32) -> Option<&Credential> {
        self.identities.get(device as usize)
    }

    fn protocol(&self) -> Protocol<'_> {
        Protocol::Http(self)
    }

    fn page(&self, device: u32, cursor: Option<&str>) -> Call {
        let user = self.user(device);
        let cursor = cursor_parameter(cursor);
        let path = format!("/v1/push/users/{user}/notifications?limit={PAGE_LIMIT}{cursor}");
        Call::new(Method::GET, path, None)
    }

    fn read_page(&self, device: u32, answer: &[u8]) -> Result<Page, ResponseError> {
        let list: NotificationList = serde_json::from_slice(answer)?;
        let arrivals = self.arrivals(device);
        let notifications = list.notifications.iter();
        Ok(Page {
            found: notifications
                .flat_map(|stored| self.compare(device, stored, &arrivals))
                .collect(),
            next_cursor: list.next_cursor,
        })
    }

    fn totals(&self, device: u32) -> Option<Call> {
        let path = format!("/v1/push/devices/{}", Self::phone(device));
        Some(Call::new(Method::GET, path, None))
    }

    /// Whether the last registration is stored, and the phone received no message of others.
    fn totals_match(
        &self,
        device: u32,
        _: u64,
        registrations: u32,
        answer: &[u8],
    ) -> Result<bool, ResponseError> {
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
                "the stand-in received no request; start the server with --push-expo-url {}",
                self.expo_url
            )
        })
    }
}

impl HttpFleet for Phones {
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

    fn delivery_results(
        &self,
        device: u32,
        windows: &[u32],
        answer: &[u8],
    ) -> Result<Vec<DeliveryResult>, ResponseError> {
        let accepted: Notification = serde_json::from_slice(answer)?;
        let result = |window: &u32| {
            if accepted.message == self.message(device, *window) {
                DeliveryResult::Stored
            } else {
                DeliveryResult::Unanswered
            }
        };
        Ok(windows.iter().map(result).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::expo_stand_in::ExpoStandIn;

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

    fn taken(fleet: &Phones, window: u32, ticket_id: &str) -> AcceptedMessage {
        let message = fleet.message(0, window);
        AcceptedMessage {
            message: message.as_object().expect("an object").clone(),
            ticket_id: ticket_id.to_owned(),
        }
    }

    /// Compares a notification in this state, after this many arrivals.
    fn compared(state: &str, unanswered: usize, arrived: usize) -> Vec<ReadBack> {
        let fleet = fleet();
        let stored = Notification {
            message: fleet.message(0, 7),
            devices: vec![DeviceDelivery {
                device_id: "phone-0".to_owned(),
                state: state.to_owned(),
                ticket_id: Some("t".to_owned()),
                unanswered,
            }],
        };
        let arrived = vec![taken(&fleet, 7, "t"); arrived];
        fleet.compare(0, &stored, &HashMap::from([(Some(7), arrived)]))
    }

    #[test]
    fn message_arrives_once_plus_once_per_lost_response() {
        use ReadBack::{Again, Intact, Underway};
        assert_eq!(compared("queued", 0, 0), [Underway(7)]);
        assert_eq!(compared("sent", 0, 1), [Intact(7)]);
        assert_eq!(compared("delivered", 1, 1), [Intact(7)]);
        assert_eq!(compared("sent", 1, 2), [Intact(7), Again(7)]);
        // A second arrival without a lost response counts as a repeat.
        assert_eq!(compared("sent", 0, 2), [Intact(7), Intact(7)]);
        assert_eq!(
            compared("sent", 0, 0),
            [],
            "reported as sent, but it never arrived"
        );
        assert_eq!(compared("failed", 0, 0), []);
    }

    #[test]
    fn altered_notification_is_detected() {
        let fleet = fleet();
        let stored = |change: fn(&mut Notification)| {
            let mut stored = Notification {
                message: fleet.message(0, 7),
                devices: vec![DeviceDelivery {
                    device_id: "phone-0".to_owned(),
                    state: "sent".to_owned(),
                    ticket_id: Some("t".to_owned()),
                    unanswered: 0,
                }],
            };
            change(&mut stored);
            let arrived = vec![taken(&fleet, 7, "t")];
            fleet.compare(0, &stored, &HashMap::from([(Some(7), arrived)]))
        };
        assert_eq!(stored(|_| ()), [ReadBack::Intact(7)]);
        for change in [
            (|it| it.message["title"] = json!("Other")) as fn(&mut Notification),
            |it| it.devices.clear(),
            |it| it.devices[0].device_id = "phone-1".to_owned(),
            |it| it.devices[0].ticket_id = Some("another".to_owned()),
        ] {
            assert_eq!(stored(change), [ReadBack::Altered(7)]);
        }
        let other = stored(|it| it.message["data"]["user"] = json!("someone"));
        assert_eq!(other, [ReadBack::Foreign]);
    }

    #[test]
    fn only_the_last_registration_matches() {
        let fleet = fleet();
        let answer = |round, is_active: bool| {
            json!({"expoPushToken": fleet.push_token(1, round), "platform": "android",
                   "isActive": is_active})
            .to_string()
        };
        let totals_match = |text: String| {
            fleet
                .totals_match(1, 0, 3, text.as_bytes())
                .expect("readable")
        };
        assert!(totals_match(answer(2, true)));
        assert!(!totals_match(answer(1, true)));
        assert!(!totals_match(answer(2, false)));
    }
}
