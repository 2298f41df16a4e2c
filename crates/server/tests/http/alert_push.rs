//! An alert whose push message goes to the stand-in of Expo: the API shows what became of it.

use std::sync::Arc;

use homeport_server::{Delivery, Expo};
use homeport_simulate::expo_stand_in::{ExpoStandIn, Outcome};
use homeport_systems::alerts::Worker as AlertWorker;
use homeport_systems::push::{self, NewDevice, Platform, Push, Worker as PushWorker};
use serde_json::{Value, json};

use crate::alerts::{DEFINITIONS, cold, send_reading};
use crate::support::{Server, serve_stand_in};

const TOKEN: &str = "ExpoPushToken[anna]";

#[tokio::test]
async fn push_that_expo_refuses_is_failed() {
    let server = Server::start().await;
    let stand_in = ExpoStandIn::new(Arc::clone(&server.clock) as _, None);
    let refused = Outcome::TicketError("DeviceNotRegistered".to_owned());
    stand_in.set_outcome(TOKEN, refused);
    let expo = Expo::new(serve_stand_in(&stand_in).await, None);
    let store = Arc::new(server.engine.clone());
    let settings = push::Settings::default();
    let push = Push::new(store, Arc::clone(&server.clock) as _, settings);
    let device = NewDevice {
        user_id: "anna".parse().expect("a user"),
        device_id: "phone".parse().expect("a device"),
        expo_push_token: TOKEN.parse().expect("a token"),
        platform: Platform::Ios,
    };
    push.register(device).await.expect("registered");
    let mut definition = cold();
    definition["targets"] = json!([{"push": {"user_id": "anna"}}]);
    server.as_admin("POST", DEFINITIONS, definition).await;
    let key = server.key().await;
    send_reading(&server, &key, 1, 4.5).await;
    let mut alert_worker =
        AlertWorker::new(server.alerts.clone(), Arc::new(Delivery::new(false, None)));
    let mut push_worker = PushWorker::new(push, Arc::new(expo));
    let list = server.as_admin("GET", "/v1/alerts", Value::Null).await;
    let id = list.body["alerts"][0]["alert_id"].as_str().expect("an id");
    let path = format!("/v1/alerts/{id}");
    let notification = async || {
        let alert = server.as_admin("GET", &path, Value::Null).await;
        alert.body["notifications"][0].clone()
    };
    alert_worker.turn().await.expect("a turn");
    let queued = notification().await;
    assert_eq!(
        (&queued["state"], &queued["to"]),
        (&json!("queued"), &json!("anna"))
    );
    // A worker sends nothing in its first second.
    server.clock.advance_ms(1000);
    push_worker.turn().await.expect("a turn");
    let failed = notification().await;
    assert_eq!(failed["state"], "failed");
    let reason = failed["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("DeviceNotRegistered"), "{reason}");
    let device = &failed["devices"][0];
    assert_eq!(
        (&device["device_id"], &device["state"]),
        (&json!("phone"), &json!("failed"))
    );
    assert!(!failed.to_string().contains(TOKEN), "{failed}");
    server.clock.advance_ms(60_000);
    alert_worker.turn().await.expect("a turn");
    let undelivered = "/v1/alerts?delivery=failed";
    let undelivered = server.as_admin("GET", undelivered, Value::Null).await;
    assert_eq!(undelivered.body["alerts"][0]["alert_id"], id);
    let failed = notification().await;
    assert_eq!(
        (&failed["state"], &failed["devices"][0]["state"]),
        (&json!("failed"), &json!("failed"))
    );
}
