//! Broadcasts to many devices through the strict stand-in, while the process ends at any moment.

use std::time::Duration;

use homeport_simulate::expo_stand_in::{Fault, FaultKind};
use homeport_store::Clock as _;
use homeport_systems::push::{
    Accepted, Broadcast, BroadcastState, Message, NewDevice, NewMessage, Platform, UserId,
};
use tokio::task::JoinSet;

use crate::push_delivery::{Cut, Dice, World};

/// Each has an iOS and an Android device.
const USERS: usize = 1250;
const PLATFORMS: [(Platform, &str); 2] = [(Platform::Ios, "ios"), (Platform::Android, "android")];
/// Turns that a broadcast may take to its end.
const TURNS_MAX: usize = 20_000;
const RECEIPT_DELAY_MS: i64 = 15 * 60 * 1000;

fn user(number: usize) -> UserId {
    format!("user-{number:04}").parse().expect("a user")
}

fn token(device: &str, number: usize) -> String {
    format!("ExpoPushToken[{device}-{number}]")
}

fn device(platform: Platform, name: &str, number: usize) -> NewDevice {
    NewDevice {
        user_id: user(number),
        device_id: name.parse().expect("a device"),
        expo_push_token: token(name, number).parse().expect("a token"),
        platform,
    }
}

/// Devices of both platforms, and some that are expired or inactive.
async fn register(world: &World) {
    let mut registering = JoinSet::new();
    for number in 0..50 {
        let push = world.push().clone();
        registering.spawn(async move {
            push.register(device(Platform::Ios, "expired", number))
                .await
        });
    }
    while let Some(registered) = registering.join_next().await {
        registered.expect("no panic").expect("registered");
    }
    world.clock.advance_ms(91 * 24 * 60 * 60 * 1000);
    for number in 0..USERS {
        let push = world.push().clone();
        registering.spawn(async move {
            for (platform, name) in PLATFORMS {
                push.register(device(platform, name, number)).await?;
            }
            let off = device(Platform::Ios, "off", number);
            let (user, id) = (off.user_id.clone(), off.device_id.clone());
            let registered = push.register(off).await;
            push.deactivate(&user, &id).await?;
            registered
        });
    }
    while let Some(registered) = registering.join_next().await {
        registered.expect("no panic").expect("registered");
    }
}

async fn broadcast(world: &World) -> Broadcast {
    let message = Message::new(NewMessage {
        title: Some("Update".to_owned()),
        ..NewMessage::default()
    });
    let message = message.expect("a message");
    match world
        .push()
        .broadcast(None, message, None)
        .await
        .expect("accepted")
    {
        Accepted::New(broadcast) => broadcast,
        Accepted::Before(_) => panic!("there was no key"),
    }
}

/// How often each device got the message, and how many requests for it had no answer.
async fn arrivals(world: &World) -> Vec<(usize, usize, String)> {
    let mut arrivals = Vec::new();
    for number in 0..USERS {
        let page = world.push().notifications(&user(number), 10, None).await;
        let page = page.expect("a page").items;
        let [notification] = &page[..] else {
            panic!("{number} has {} notifications", page.len());
        };
        assert_eq!(notification.devices.len(), PLATFORMS.len());
        for device in &notification.devices {
            let name = device.device_id.as_str();
            let arrived = world.stand_in.accepted_for(&token(name, number)).len();
            let unanswered = usize::try_from(device.delivery.unanswered).expect("few");
            let trace = format!("{name} of {number}: {:?}", device.delivery.steps);
            arrivals.push((arrived, unanswered, trace));
        }
        for name in ["off", "expired"] {
            assert!(world.stand_in.accepted_for(&token(name, number)).is_empty());
        }
    }
    arrivals
}

async fn finished(world: &World, broadcast: &Broadcast) -> Broadcast {
    let read = world.push().broadcast_with_id(&broadcast.id).await;
    let read = read.expect("a broadcast");
    assert_eq!(read.state, BroadcastState::Finished, "{read:?}");
    let total = i64::try_from(USERS * PLATFORMS.len()).expect("few");
    assert_eq!(read.devices.found, total);
    assert_eq!(world.open_count().await, 0);
    read
}

#[tokio::test]
async fn large_broadcast_reaches_each_device_once() {
    let mut world = World::new().await;
    register(&world).await;
    let broadcast = broadcast(&world).await;
    for _ in 0..TURNS_MAX {
        let turn = world.turn().await.expect("nothing ends it");
        let Some(next) = turn.next_at else { break };
        world
            .clock
            .advance_ms((next.0 - world.clock.now_ms()).max(1));
    }
    for (arrived, _, trace) in arrivals(&world).await {
        assert_eq!(arrived, 1, "{trace}");
    }
    let read = finished(&world, &broadcast).await;
    assert_eq!(read.devices.delivered, read.devices.found);
}

#[tokio::test]
async fn large_broadcast_survives_ends_of_the_process() {
    let mut world = World::new().await;
    register(&world).await;
    let broadcast = broadcast(&world).await;
    let mut dice = Dice(7);
    let mut ends = 0;
    for _ in 0..TURNS_MAX {
        match dice.below(40) {
            0 => world.cut(Cut::BeforeSend),
            1 => world.cut(Cut::AfterSend),
            2 => world.cut(Cut::AfterReceipts),
            3 => world.stand_in.fail_next(Fault {
                accepts: false,
                kind: FaultKind::Status(503, Some(1)),
            }),
            4 => world.stand_in.fail_next(Fault {
                accepts: true,
                kind: FaultKind::Disconnect,
            }),
            _ => {}
        }
        // Also at moments that nobody has thought of: between two writes.
        let patience = Duration::from_micros(match dice.below(10) {
            0 => dice.below(30_000),
            _ => 60_000_000,
        });
        let turn = tokio::time::timeout(patience, world.turn()).await;
        let Ok(Some(turn)) = turn else {
            world.cut(None);
            world.restart().await;
            ends += 1;
            continue;
        };
        let Some(next) = turn.next_at else { break };
        let pause = next.0 - world.clock.now_ms();
        world.clock.advance_ms(pause.clamp(1, RECEIPT_DELAY_MS));
    }
    assert!(ends > 3, "{ends}");
    let mut repeated = 0;
    for (arrived, unanswered, trace) in arrivals(&world).await {
        // Expo has no key that would make a repeated request the first one.
        assert!((1..=unanswered + 1).contains(&arrived), "{arrived} {trace}");
        repeated += arrived - 1;
    }
    assert!(repeated > 0, "no request was repeated");
    finished(&world, &broadcast).await;
}
