//! The life of one device: it registers, creates messages on schedule, buffers them, and sends each until the server
//! has answered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use hyper::body::Bytes;
use tokio::time::Instant;

use crate::Run;
use crate::connection::Backoff;
use crate::connection::MqttConnection;
use crate::connection::{CallFailure, Credential};
use crate::fleets::{Call, DeliveryResult, MqttFleet, Protocol};
use crate::random::SeededRandom;

/// Messages that a device buffers. A full buffer drops the oldest.
const BUFFER_LEN_MAX: usize = 4096;
/// A simulated disconnect happens within this time after a request starts.
const CUT_WITHIN: Duration = Duration::from_millis(40);

/// The state of a message, as the device knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageState {
    /// Unanswered, or not yet created.
    Open,
    /// The server confirmed it, so it must be stored.
    Confirmed,
    /// Accepted, but already past its retention.
    Expired,
    Rejected,
    /// Dropped from a full buffer.
    Overwritten,
}

/// What a device knows at the end of a run.
pub(crate) struct DeviceRecord {
    pub(crate) device: u32,
    pub(crate) states: Vec<MessageState>,
    /// How often each message was sent.
    pub(crate) sent: Vec<u32>,
    /// Number of confirmed registrations.
    pub(crate) registrations: u32,
}

pub(crate) struct Device {
    run: Arc<Run>,
    number: u32,
    random: SeededRandom,
    backoff: Backoff,
    buffer: VecDeque<u32>,
    /// The open MQTT connection, for fleets that publish.
    connection: Option<MqttConnection>,
    /// The next message to create.
    next: u32,
    record: DeviceRecord,
}

/// How a connection breaks.
#[derive(Clone, Copy)]
enum Break {
    /// The request is abandoned after this time; the server may or may not have read it.
    UnderWay(Duration),
    /// The server processes the request, and its response is lost.
    BeforeAnswer,
}

impl Device {
    pub(crate) fn new(run: Arc<Run>, number: u32) -> Self {
        let plan = &run.plan;
        let random = SeededRandom::new([plan.seed, u64::from(number), 1]);
        let record = DeviceRecord {
            device: number,
            states: vec![MessageState::Open; plan.windows as usize],
            sent: vec![0; plan.windows as usize],
            registrations: 0,
        };
        Self {
            number,
            random,
            backoff: Backoff::default(),
            buffer: VecDeque::new(),
            connection: None,
            next: 0,
            record,
            run,
        }
    }

    pub(crate) async fn live(mut self) -> anyhow::Result<DeviceRecord> {
        let run = Arc::clone(&self.run);
        let plan = &run.plan;
        // Spreads the start of devices over one tick.
        let phase = plan.tick.mul_f64(self.random.unit());
        let begun = Instant::now() + phase;
        let due = |window: u32| begun + plan.tick.mul_f64(f64::from(window) + 1.0);
        let give_up_at = due(plan.windows) + plan.patience;
        let batch = plan.batch.min(run.fleet.protocol().batch_max());
        let mut not_before = begun;
        loop {
            let now = Instant::now();
            while self.next < plan.windows && due(self.next) <= now {
                self.make_message();
            }
            let is_complete = self.next == plan.windows;
            if (is_complete && self.buffer.is_empty()) || now >= give_up_at {
                return Ok(self.record);
            }
            let is_registered = self.record.registrations >= self.registrations_due();
            let has_work = !is_registered || is_complete || self.buffer.len() >= batch;
            if has_work && now >= not_before {
                let outcome = if is_registered {
                    self.deliver().await?
                } else {
                    self.register().await?
                };
                if let Some(wait) = outcome {
                    not_before = Instant::now() + wait;
                }
                continue;
            }
            let wake = match (has_work, is_complete) {
                (true, true) => not_before,
                (true, false) => not_before.min(due(self.next)),
                (false, _) => due(self.next),
            };
            tokio::time::sleep_until(wake).await;
        }
    }

    fn make_message(&mut self) {
        if self.buffer.len() == BUFFER_LEN_MAX
            && let Some(oldest) = self.buffer.pop_front()
        {
            self.settle(oldest, MessageState::Overwritten);
            self.run.tally.overwritten.add(1);
        }
        self.buffer.push_back(self.next);
        self.run.tally.made.add(1);
        self.next += 1;
    }

    fn settle(&mut self, window: u32, state: MessageState) {
        self.record.states[window as usize] = state;
    }

    /// Number of registrations that are due by now.
    fn registrations_due(&self) -> u32 {
        let fleet = &self.run.fleet;
        if fleet.registration(self.number, 0).is_none() {
            return 0;
        }
        let again = fleet.registers_every().map_or(0, |every| self.next / every);
        again.saturating_add(1)
    }

    async fn register(&mut self) -> anyhow::Result<Option<Duration>> {
        let run = Arc::clone(&self.run);
        let due = self.registrations_due();
        let Some(call) = run.fleet.registration(self.number, due.saturating_sub(1)) else {
            return Ok(None);
        };
        let registration_credential = run.fleet.registration_credential(self.number);
        let credential = registration_credential.unwrap_or_else(|| run.keys.of(self.number));
        let answer = self.attempt(|_| call, credential).await;
        match self
            .accept_or_wait(answer.map(|_| ()))
            .context("registering")?
        {
            Ok(()) => {
                self.record.registrations = due;
                Ok(None)
            }
            Err(wait) => Ok(Some(wait)),
        }
    }

    /// Sends the oldest messages. Returns the wait before a retry if some of them remain unanswered.
    async fn deliver(&mut self) -> anyhow::Result<Option<Duration>> {
        let run = Arc::clone(&self.run);
        let batch = run.plan.batch.min(run.fleet.protocol().batch_max());
        let windows: Vec<u32> = self.buffer.iter().copied().take(batch).collect();
        let delivery_results = match run.fleet.protocol() {
            Protocol::Http(fleet) => {
                self.note_sent(&windows);
                let credential = run.keys.of(self.number);
                let call = |device| fleet.delivery(device, &windows);
                let answer = self.attempt(call, credential).await;
                match self.accept_or_wait(answer).context("sending")? {
                    Ok(answer) => fleet.delivery_results(self.number, &windows, &answer)?,
                    Err(wait) => return Ok(Some(wait)),
                }
            }
            Protocol::Mqtt(fleet) => self.publish(fleet, &windows).await.context("publishing")?,
        };
        let mut is_answered = true;
        for (window, result) in windows.iter().zip(delivery_results) {
            let tally = &run.tally;
            let (state, count) = match result {
                DeliveryResult::Stored => (MessageState::Confirmed, &tally.acknowledged),
                DeliveryResult::Duplicate => (MessageState::Confirmed, &tally.duplicates),
                DeliveryResult::Expired => (MessageState::Expired, &tally.expired),
                DeliveryResult::Rejected => (MessageState::Rejected, &tally.rejected),
                DeliveryResult::Unanswered => {
                    is_answered = false;
                    continue;
                }
            };
            count.add(1);
            self.settle(*window, state);
        }
        let states = &self.record.states;
        self.buffer
            .retain(|window| states[*window as usize] == MessageState::Open);
        if is_answered {
            self.backoff.succeeded();
            return Ok(None);
        }
        run.tally.retries.add(1);
        Ok(Some(self.backoff.failed(None, &mut self.random)))
    }

    fn note_sent(&mut self, windows: &[u32]) {
        for window in windows {
            self.record.sent[*window as usize] += 1;
        }
        self.run.tally.sent.add(windows.len() as u64);
    }

    /// Publishes messages over the device's connection, which may break on purpose. Returns what was acknowledged before.
    async fn publish(
        &mut self,
        fleet: &dyn MqttFleet,
        windows: &[u32],
    ) -> anyhow::Result<Vec<DeliveryResult>> {
        let run = Arc::clone(&self.run);
        let breaks = self.draw_break();
        let mut delivery_results = vec![DeliveryResult::Unanswered; windows.len()];
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                // A permit limits concurrent connects: thousands of devices may have lost the broker together.
                let permit = run.client.permit().await;
                let key = run.keys.of(self.number);
                let opened =
                    MqttConnection::open(fleet.broker(), fleet.client_id(self.number), key).await;
                drop(permit);
                match opened {
                    Ok(connection) => connection,
                    Err(CallFailure::Retry(..)) => return Ok(delivery_results),
                    Err(CallFailure::Rejected(reason)) => {
                        bail!("the server rejected device {}: {reason}", self.number)
                    }
                }
            }
        };
        self.note_sent(windows);
        let messages = windows.iter();
        let messages = messages.map(|window| fleet.publication(self.number, *window));
        let messages: Vec<_> = messages.collect();
        let is_whole = match breaks {
            None => connection
                .publish(&messages, &mut delivery_results)
                .await
                .is_ok(),
            Some(Break::UnderWay(after)) => {
                let publishing = connection.publish(&messages, &mut delivery_results);
                let _ = tokio::time::timeout(after, publishing).await;
                false
            }
            Some(Break::BeforeAnswer) => {
                let _ = connection.send(&messages).await;
                false
            }
        };
        if breaks.is_some() {
            run.tally.disconnects.add(1);
        }
        if is_whole {
            self.connection = Some(connection);
        }
        Ok(delivery_results)
    }

    /// Decides at random whether and how the next attempt breaks.
    fn draw_break(&mut self) -> Option<Break> {
        (self.random.unit() < self.run.plan.disconnects).then(|| {
            if self.random.unit() < 0.5 {
                Break::UnderWay(CUT_WITHIN.mul_f64(self.random.unit()))
            } else {
                Break::BeforeAnswer
            }
        })
    }

    /// Sends one request, whose connection may break on purpose.
    async fn attempt(
        &mut self,
        call: impl FnOnce(u32) -> Call,
        credential: &Credential,
    ) -> Result<Bytes, CallFailure> {
        let breaks = self.draw_break();
        let run = &self.run;
        let permit = run.client.permit().await;
        // Built only once a connection is free, because thousands of devices may be waiting.
        let call = call(self.number);
        let sending = run.client.send(&permit, call, credential);
        let answer = match breaks {
            None => return sending.await,
            Some(Break::UnderWay(after)) => tokio::time::timeout(after, sending).await.ok(),
            Some(Break::BeforeAnswer) => Some(sending.await),
        };
        match answer {
            Some(Err(CallFailure::Rejected(reason))) => Err(CallFailure::Rejected(reason)),
            _ => {
                run.tally.disconnects.add(1);
                Err(CallFailure::Retry(None, "disconnected".to_owned()))
            }
        }
    }

    /// The response, or the wait before the next attempt.
    fn accept_or_wait<T>(
        &mut self,
        answer: Result<T, CallFailure>,
    ) -> anyhow::Result<Result<T, Duration>> {
        match answer {
            Ok(answer) => {
                self.backoff.succeeded();
                Ok(Ok(answer))
            }
            Err(CallFailure::Retry(asked, _)) => {
                self.run.tally.retries.add(1);
                Ok(Err(self.backoff.failed(asked, &mut self.random)))
            }
            Err(CallFailure::Rejected(reason)) => {
                bail!("the server rejected device {}: {reason}", self.number)
            }
        }
    }
}
