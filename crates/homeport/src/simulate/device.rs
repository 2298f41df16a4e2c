//! One device's life: it registers, makes messages in time, keeps them in its buffer, and sends
//! them until each is answered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use hyper::body::Bytes;
use tokio::time::Instant;

use super::Run;
use super::backoff::Backoff;
use super::client::{CallFailure, Credential};
use super::dice::Dice;
use super::fleet::{Call, Fate, OverMqtt, Speech};
use super::line::Line;

/// Messages that a device can keep. The oldest make room for new ones.
const BUFFER_LEN_MAX: usize = 4096;
/// A request that breaks off does so within this time.
const CUT_WITHIN: Duration = Duration::from_millis(40);

/// What a device knows about one of its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not answered, or not even made.
    Open,
    /// The server has it: it must be there.
    Confirmed,
    /// Accepted but too old to be kept.
    Expired,
    Rejected,
    /// There was no room for it in the buffer.
    Overwritten,
}

/// What a device knows when it ends.
pub(super) struct Ledger {
    pub(super) device: u32,
    pub(super) standings: Vec<Standing>,
    /// How often each message was sent.
    pub(super) sent: Vec<u32>,
    /// How often it has registered, as far as it was answered.
    pub(super) registrations: u32,
}

pub(super) struct Device {
    run: Arc<Run>,
    number: u32,
    dice: Dice,
    backoff: Backoff,
    buffer: VecDeque<u32>,
    /// Its connection, where it keeps one.
    line: Option<Line>,
    /// The next message to make.
    next: u32,
    ledger: Ledger,
}

/// How a connection breaks.
#[derive(Clone, Copy)]
enum Break {
    /// The request is abandoned after this time; the server may have read it or not.
    UnderWay(Duration),
    /// The request is done and its answer is lost.
    BeforeAnswer,
}

impl Device {
    pub(super) fn new(run: Arc<Run>, number: u32) -> Self {
        let plan = &run.plan;
        let dice = Dice::new([plan.seed, u64::from(number), 1]);
        let ledger = Ledger {
            device: number,
            standings: vec![Standing::Open; plan.windows as usize],
            sent: vec![0; plan.windows as usize],
            registrations: 0,
        };
        Self {
            number,
            dice,
            backoff: Backoff::default(),
            buffer: VecDeque::new(),
            line: None,
            next: 0,
            ledger,
            run,
        }
    }

    pub(super) async fn live(mut self) -> anyhow::Result<Ledger> {
        let run = Arc::clone(&self.run);
        let plan = &run.plan;
        // Devices do not start together.
        let phase = plan.tick.mul_f64(self.dice.unit());
        let begun = Instant::now() + phase;
        let due = |window: u32| begun + plan.tick.mul_f64(f64::from(window) + 1.0);
        let give_up_at = due(plan.windows) + plan.patience;
        let batch = plan.batch.min(run.fleet.speech().batch_max());
        let mut not_before = begun;
        loop {
            let now = Instant::now();
            while self.next < plan.windows && due(self.next) <= now {
                self.make_message();
            }
            let is_complete = self.next == plan.windows;
            if (is_complete && self.buffer.is_empty()) || now >= give_up_at {
                return Ok(self.ledger);
            }
            let is_registered = self.ledger.registrations >= self.registrations_due();
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
            self.settle(oldest, Standing::Overwritten);
            self.run.tally.overwritten.add(1);
        }
        self.buffer.push_back(self.next);
        self.run.tally.made.add(1);
        self.next += 1;
    }

    fn settle(&mut self, window: u32, standing: Standing) {
        self.ledger.standings[window as usize] = standing;
    }

    /// How often it should have registered by now.
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
        let identity = run.fleet.identity(self.number);
        let credential = identity.unwrap_or_else(|| run.keys.of(self.number));
        let answer = self.attempt(|_| call, credential).await;
        match self.judge(answer.map(|_| ())).context("registering")? {
            Ok(()) => {
                self.ledger.registrations = due;
                Ok(None)
            }
            Err(wait) => Ok(Some(wait)),
        }
    }

    /// Sends the oldest messages; how long to wait when they have to be sent again.
    async fn deliver(&mut self) -> anyhow::Result<Option<Duration>> {
        let run = Arc::clone(&self.run);
        let batch = run.plan.batch.min(run.fleet.speech().batch_max());
        let windows: Vec<u32> = self.buffer.iter().copied().take(batch).collect();
        let fates = match run.fleet.speech() {
            Speech::Http(fleet) => {
                self.note_sent(&windows);
                let credential = run.keys.of(self.number);
                let call = |device| fleet.delivery(device, &windows);
                let answer = self.attempt(call, credential).await;
                match self.judge(answer).context("sending")? {
                    Ok(answer) => fleet.fates(self.number, &windows, &answer)?,
                    Err(wait) => return Ok(Some(wait)),
                }
            }
            Speech::Mqtt(fleet) => self.publish(fleet, &windows).await.context("publishing")?,
        };
        let mut is_answered = true;
        for (window, fate) in windows.iter().zip(fates) {
            let tally = &run.tally;
            let (standing, count) = match fate {
                Fate::Stored => (Standing::Confirmed, &tally.acknowledged),
                Fate::Duplicate => (Standing::Confirmed, &tally.duplicates),
                Fate::Expired => (Standing::Expired, &tally.expired),
                Fate::Rejected => (Standing::Rejected, &tally.rejected),
                Fate::Unanswered => {
                    is_answered = false;
                    continue;
                }
            };
            count.add(1);
            self.settle(*window, standing);
        }
        let standings = &self.ledger.standings;
        self.buffer
            .retain(|window| standings[*window as usize] == Standing::Open);
        if is_answered {
            self.backoff.succeeded();
            return Ok(None);
        }
        run.tally.retries.add(1);
        Ok(Some(self.backoff.failed(None, &mut self.dice)))
    }

    fn note_sent(&mut self, windows: &[u32]) {
        for window in windows {
            self.ledger.sent[*window as usize] += 1;
        }
        self.run.tally.sent.add(windows.len() as u64);
    }

    /// Publishes messages over the device's own connection, which now and then breaks off. What was
    /// acknowledged by then is stored.
    async fn publish(
        &mut self,
        fleet: &dyn OverMqtt,
        windows: &[u32],
    ) -> anyhow::Result<Vec<Fate>> {
        let run = Arc::clone(&self.run);
        let breaks = self.draw_break();
        let mut fates = vec![Fate::Unanswered; windows.len()];
        let mut line = match self.line.take() {
            Some(line) => line,
            None => {
                // One of a bounded number at a time: thousands may have lost their broker together.
                let permit = run.client.permit().await;
                let key = run.keys.of(self.number);
                let opened = Line::open(fleet.broker(), fleet.client_id(self.number), key).await;
                drop(permit);
                match opened {
                    Ok(line) => line,
                    Err(CallFailure::Again(..)) => return Ok(fates),
                    Err(CallFailure::Refused(said)) => {
                        bail!("the server refuses device {}: {said}", self.number)
                    }
                }
            }
        };
        self.note_sent(windows);
        let messages = windows.iter();
        let messages = messages.map(|window| fleet.publication(self.number, *window));
        let messages: Vec<_> = messages.collect();
        let is_whole = match breaks {
            None => line.publish(&messages, &mut fates).await.is_ok(),
            Some(Break::UnderWay(after)) => {
                let publishing = line.publish(&messages, &mut fates);
                let _ = tokio::time::timeout(after, publishing).await;
                false
            }
            Some(Break::BeforeAnswer) => {
                let _ = line.send(&messages).await;
                false
            }
        };
        if breaks.is_some() {
            run.tally.disconnects.add(1);
        }
        if is_whole {
            self.line = Some(line);
        }
        Ok(fates)
    }

    /// Whether and how the next attempt breaks off.
    fn draw_break(&mut self) -> Option<Break> {
        (self.dice.unit() < self.run.plan.disconnects).then(|| {
            if self.dice.unit() < 0.5 {
                Break::UnderWay(CUT_WITHIN.mul_f64(self.dice.unit()))
            } else {
                Break::BeforeAnswer
            }
        })
    }

    /// One request, which now and then breaks off.
    async fn attempt(
        &mut self,
        call: impl FnOnce(u32) -> Call,
        credential: &Credential,
    ) -> Result<Bytes, CallFailure> {
        let breaks = self.draw_break();
        let run = &self.run;
        let permit = run.client.permit().await;
        // Made only now: thousands of devices may be waiting.
        let call = call(self.number);
        let sending = run.client.send(&permit, call, credential);
        let answer = match breaks {
            None => return sending.await,
            Some(Break::UnderWay(after)) => tokio::time::timeout(after, sending).await.ok(),
            Some(Break::BeforeAnswer) => Some(sending.await),
        };
        match answer {
            Some(Err(CallFailure::Refused(said))) => Err(CallFailure::Refused(said)),
            _ => {
                run.tally.disconnects.add(1);
                Err(CallFailure::Again(None, "disconnected".to_owned()))
            }
        }
    }

    /// An answer, or how long to wait for the next attempt.
    fn judge<T>(&mut self, answer: Result<T, CallFailure>) -> anyhow::Result<Result<T, Duration>> {
        match answer {
            Ok(answer) => {
                self.backoff.succeeded();
                Ok(Ok(answer))
            }
            Err(CallFailure::Again(asked, _)) => {
                self.run.tally.retries.add(1);
                Ok(Err(self.backoff.failed(asked, &mut self.dice)))
            }
            Err(CallFailure::Refused(said)) => {
                bail!("the server refuses device {}: {said}", self.number)
            }
        }
    }
}
