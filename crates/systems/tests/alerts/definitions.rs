//! Definitions that are changed, switched off and deleted while everything runs, and alerts that
//! people acknowledge.

use std::sync::Arc;
use std::time::Duration;

use homeport_systems::alerts::{Absence, Devices};
use homeport_systems::alerts::{
    AlertsError, Condition, DefinitionTerms, Settings, StateFilter, Target,
};
use homeport_systems::fleet::SystemName;

use crate::world::{VAN, World, low_battery, settings, terms};

async fn raised() -> (World, homeport_systems::alerts::Definition) {
    let world = World::new().await;
    let definition = world.create(low_battery()).await;
    world.judged_volts(VAN, 1, "11").await;
    assert_eq!(world.counts().await, (1, 0));
    (world, definition)
}

async fn clear_reason(world: &World) -> String {
    assert_eq!(world.counts().await, (0, 1));
    let cleared = world.list(StateFilter::Cleared).await;
    cleared[0].cleared.as_ref().expect("cleared").reason.clone()
}

#[tokio::test]
async fn deleting_a_definition_clears_its_alerts() {
    let (world, definition) = raised().await;
    world.alerts.delete(&definition.id).await.expect("deleted");
    assert_eq!(clear_reason(&world).await, "the definition was deleted");
    let gone = world.alerts.definition(&definition.id).await;
    assert_eq!(gone, Err(AlertsError::DefinitionMissing));
    let again = world.alerts.delete(&definition.id).await;
    assert_eq!(again, Err(AlertsError::DefinitionMissing));
    assert!(
        world
            .alerts
            .definitions(10, None)
            .await
            .expect("a page")
            .items
            .is_empty()
    );
    world.judged_volts(VAN, 2, "10").await;
    assert_eq!(world.counts().await, (0, 1));
    // Neither the raised alert nor its clearing is notified.
    world.turn().await;
    assert!(world.outside.told().is_empty());
}

#[tokio::test]
async fn disabling_a_definition_clears_its_alerts_silently() {
    let (world, definition) = raised().await;
    let off = DefinitionTerms {
        is_enabled: false,
        ..low_battery()
    };
    world
        .alerts
        .replace(&definition.id, off)
        .await
        .expect("off");
    assert_eq!(clear_reason(&world).await, "the definition was disabled");
    world.volts(VAN, 2, "10").await;
    world.judge_telemetry().await;
    assert_eq!(world.counts().await, (0, 1));
    world.advance_secs(60);
    let on = world.alerts.replace(&definition.id, low_battery()).await;
    on.expect("on");
    world.judged_volts(VAN, 3, "10").await;
    assert_eq!(world.counts().await, (1, 1));
}

#[tokio::test]
async fn changed_condition_clears_and_changed_name_does_not() {
    let (world, definition) = raised().await;
    let renamed = DefinitionTerms {
        name: "Other".parse().expect("a name"),
        ..low_battery()
    };
    let renamed = world.alerts.replace(&definition.id, renamed).await;
    assert_eq!(renamed.expect("renamed").revision, 2);
    world.judged_volts(VAN, 2, "11").await;
    assert_eq!(world.counts().await, (1, 0));
    let mut other = low_battery();
    if let Condition::Threshold(threshold) = &mut other.condition {
        threshold.raise = "10".parse().expect("a number");
    }
    world
        .alerts
        .replace(&definition.id, other)
        .await
        .expect("changed");
    assert_eq!(clear_reason(&world).await, "the definition was changed");
    world.judged_volts(VAN, 3, "11").await;
    assert_eq!(world.counts().await, (0, 1));
    // A late value does not count for the new condition either.
    world.judged_volts(VAN, 2, "9").await;
    world.judged_volts(VAN, 4, "9").await;
    assert_eq!(world.counts().await, (1, 1));
}

#[tokio::test]
async fn worker_finishes_an_interrupted_deletion() {
    let (world, definition) = raised().await;
    // Only the mark is written; the process ends there.
    let key = homeport_item::Item::new()
        .with("shelf", "definitions")
        .with("definition_id", definition.id.as_str());
    let update = homeport_item::expression::Update::new()
        .set("deleted", homeport_item::Value::from(true))
        .set("epoch", homeport_item::Value::from(2));
    let update = homeport_store::Update::new("homeport-alert-definitions", key, update);
    world.fixture.store.update(update).await.expect("marked");
    let world = world.reopen().await;
    let listed = world.alerts.definitions(10, None).await.expect("a page");
    assert!(listed.items.is_empty());
    world.turn().await;
    assert_eq!(clear_reason(&world).await, "the definition was deleted");
}

#[tokio::test]
async fn invalid_definition_is_rejected() {
    let world = World::new().await;
    let mut unreachable = low_battery();
    if let Condition::Threshold(threshold) = &mut unreachable.condition {
        threshold.clear = "11".parse().expect("a number");
    }
    let short = terms(Condition::Absence(Absence { after_secs: 1 }));
    let nobody = DefinitionTerms {
        devices: Devices::Listed(std::collections::BTreeSet::new()),
        ..low_battery()
    };
    let wrong_user = DefinitionTerms {
        targets: vec![Target::Push {
            user_id: "a b".to_owned(),
        }],
        ..low_battery()
    };
    for wrong in [unreachable, short, nobody, wrong_user] {
        let refused = world.alerts.create(wrong.clone()).await;
        assert!(matches!(refused, Err(AlertsError::Invalid(_))), "{wrong:?}");
    }
}

#[tokio::test]
async fn unconfigured_targets_are_rejected() {
    let world = World::with(Settings {
        webhook_secret: None,
        has_email: false,
        ..settings()
    })
    .await;
    let to = "anna@example.com".parse().expect("an address");
    for target in [crate::world::webhook(), Target::Email { to }] {
        let terms = DefinitionTerms {
            targets: vec![target.clone()],
            ..low_battery()
        };
        let refused = world.alerts.create(terms).await;
        assert!(
            matches!(refused, Err(AlertsError::Unavailable(_))),
            "{target:?}"
        );
    }
}

#[tokio::test]
async fn replacing_without_secret_keeps_the_webhook_secret() {
    let world = World::with(Settings {
        webhook_secret: None,
        ..settings()
    })
    .await;
    let with = |secret| DefinitionTerms {
        targets: vec![Target::Webhook {
            url: "https://example.com/hook".parse().expect("a URL"),
            secret,
        }],
        ..low_battery()
    };
    let definition = world.create(with(Some(crate::world::secret()))).await;
    let replaced = world.alerts.replace(&definition.id, with(None)).await;
    assert_eq!(replaced.expect("replaced").terms, definition.terms);
    world.judged_volts(VAN, 1, "11").await;
    world.turn().await;
    let calls = world.outside.calls.lock().expect("no panic");
    assert_eq!(calls[0].secret, crate::world::secret());
}

#[tokio::test]
async fn first_acknowledgement_counts() {
    let (world, _) = raised().await;
    let id = world.list(StateFilter::Open).await[0].id.clone();
    let person = |name: &str| name.parse().expect("a name");
    let note = |text: &str| Some(text.parse().expect("a note"));
    world.advance_secs(5);
    let first = world
        .alerts
        .acknowledge(&id, person("anna"), note("on my way"))
        .await;
    let first = first.expect("acknowledged");
    let acknowledged = first.acknowledged.clone().expect("acknowledged");
    assert_eq!(acknowledged.by.as_str(), "anna");
    assert_eq!(acknowledged.at.0, crate::support::NOW_MS + 5000);
    assert!(first.is_open());
    world.advance_secs(5);
    let same = world
        .alerts
        .acknowledge(&id, person("anna"), note("on my way"))
        .await;
    assert_eq!(same, Ok(first));
    let other = world.alerts.acknowledge(&id, person("bert"), None).await;
    assert_eq!(other, Err(AlertsError::AlreadyAcknowledged));
    world.judged_volts(VAN, 2, "13").await;
    let alert = world.alerts.alert(&id).await.expect("an alert");
    assert_eq!(alert.acknowledged, Some(acknowledged));
    assert!(!alert.is_open());
    let unknown = "1800000000000-7c9e6679-7425-40de-944b-e07fc1f90ae7".parse();
    let unknown = world
        .alerts
        .acknowledge(&unknown.expect("an id"), person("anna"), None)
        .await;
    assert_eq!(unknown, Err(AlertsError::AlertMissing));
}

#[tokio::test]
async fn definitions_take_effect_while_sources_are_followed() {
    let world = World::new().await;
    let alerts = world.alerts.clone();
    let following = tokio::spawn(async move { alerts.follow().await });
    // Nothing is followed as long as nothing is watched.
    let status = world.alerts.reactions().expect("a feed").status();
    assert!(status.all().is_empty());
    let definition = world.create(low_battery()).await;
    // What is stored right after the answer is judged.
    world.volts(VAN, 1, "11").await;
    wait_for(async || world.list(StateFilter::Open).await.len() == 1).await;
    let names: Vec<_> = status.all().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["alerts-telemetry"]);
    world.alerts.delete(&definition.id).await.expect("deleted");
    world.volts(VAN, 2, "10").await;
    let again = world.create(low_battery()).await;
    world.advance_secs(10);
    world.volts(VAN, 3, "9").await;
    wait_for(async || world.list(StateFilter::Open).await.len() == 1).await;
    assert_eq!(world.counts().await, (1, 1));
    assert_eq!(
        world.list(StateFilter::Open).await[0].definition_id,
        again.id
    );
    following.abort();
}

async fn wait_for(is_so: impl AsyncFn() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait)
        .await
        .expect("in time");
}

#[tokio::test]
async fn two_processes_raise_one_alert() {
    let (world, _) = raised().await;
    let start = world
        .fixture
        .feed()
        .end(crate::world::TELEMETRY)
        .await
        .expect("a position");
    world.volts(VAN, 2, "13").await;
    world.volts(VAN, 3, "11").await;
    let changes = Arc::new(world.changes(&start).await);
    let apply = |alerts: homeport_systems::alerts::Alerts| {
        let changes = Arc::clone(&changes);
        tokio::spawn(async move {
            use homeport_systems::reactions::Reaction as _;
            let reaction = alerts.reaction(&SystemName::new("telemetry"));
            reaction.expect("a watched system").apply(&changes).await
        })
    };
    let other = world.another_process();
    let both = [apply(world.alerts.clone()), apply(other)];
    for one in both {
        one.await.expect("no panic").expect("judged");
    }
    assert_eq!(world.counts().await, (1, 1));
}
