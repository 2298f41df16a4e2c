//! Previews: what a definition would have raised and cleared in stored history. Nothing is written.
//!
//! Values are judged by the same function as new ones, each as if it had been stored at its own time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::judge::{Finding, Observation, Verdict, judge, silence};
use super::source::Source;
use super::watch::Watch;
use crate::alerts::definitions::condition::Condition;
use crate::alerts::definitions::definition::{Definition, DefinitionTerms, Devices};
use crate::alerts::types::{AlertId, DefinitionId, DeviceName};
use crate::alerts::{Alerts, AlertsError};
use crate::fleet::{Detail, DeviceList, FleetError, HistoryRange, RowReader};
use crate::time::{EpochMillis, Order};

/// Previews that run at the same time.
pub const PREVIEWS_MAX: usize = 2;
/// Items of a page of history.
const ITEMS_PER_PAGE: usize = 500;

/// How far a preview goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewLimits {
    /// Devices that are judged.
    pub devices_max: usize,
    /// Stored items that are read, give or take a page.
    pub items_max: usize,
    /// How long it reads and judges.
    pub time_max: Duration,
    /// Alerts that are listed; further ones are counted only.
    pub alerts_max: usize,
}

impl Default for PreviewLimits {
    fn default() -> Self {
        Self {
            devices_max: 1000,
            items_max: 200_000,
            time_max: Duration::from_secs(10),
            alerts_max: 1000,
        }
    }
}

/// The range of history; both ends are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviewRange {
    pub from: EpochMillis,
    pub to: EpochMillis,
}

/// A limit that a preview has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PreviewLimit {
    /// Not all devices were judged.
    Devices,
    /// Not all items were read.
    Items,
    /// Not all items could be read in time.
    Time,
    /// Not all alerts are listed; all are counted.
    Alerts,
}

/// What a definition would have done.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Preview {
    /// Alerts of all devices.
    pub raised: usize,
    /// The devices with alerts.
    pub devices: Vec<DevicePreview>,
    pub devices_judged: usize,
    pub items_read: usize,
    /// Empty if the preview is complete.
    pub limits_reached: BTreeSet<PreviewLimit>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DevicePreview {
    pub device: DeviceName,
    pub raised: usize,
    pub alerts: Vec<PreviewedAlert>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PreviewedAlert {
    pub raised_at: EpochMillis,
    pub reason: String,
    /// When and why it would have been cleared; `None` if it would be open at the end.
    pub cleared: Option<(EpochMillis, String)>,
}

/// One subject while its history is judged.
struct Subject<'a> {
    condition: &'a Condition,
    watch: Watch,
    alerts: Vec<PreviewedAlert>,
}

/// A preview in progress.
struct Run<'a> {
    limits: &'a PreviewLimits,
    source: &'a Source,
    definition: &'a Definition,
    range: HistoryRange,
    deadline: Instant,
    preview: Preview,
    listed: usize,
}

impl Alerts {
    /// Judges stored history by the terms of a definition.
    ///
    /// # Errors
    /// When the terms are invalid, too many previews are running, or the store fails.
    pub async fn preview(
        &self,
        terms: DefinitionTerms,
        range: PreviewRange,
    ) -> Result<Preview, AlertsError> {
        let terms = terms.check()?;
        let source = self.source(&terms.source)?;
        let permit = self.0.previews.try_acquire();
        let _permit = permit.map_err(|_| AlertsError::TooManyPreviews)?;
        let now = self.now();
        let to = range.to.min(now);
        let definition = Definition {
            id: DefinitionId::new(now),
            terms,
            created_at: now,
            updated_at: now,
            revision: 1,
            epoch: 1,
            since: range.from,
            settled_epoch: 1,
            is_deleted: false,
        };
        let limits = &self.0.settings.preview;
        let run = Run {
            limits,
            source,
            definition: &definition,
            range: HistoryRange::new(range.from, to, Order::OldestFirst, Detail::Stored),
            deadline: Instant::now() + limits.time_max,
            preview: Preview::default(),
            listed: 0,
        };
        run.finish().await
    }
}

impl<'a> Run<'a> {
    async fn finish(mut self) -> Result<Preview, AlertsError> {
        // Also reached while the devices are listed: then none is judged.
        let Ok(ids) = timeout_at(self.deadline, self.device_ids()).await else {
            self.preview.limits_reached.insert(PreviewLimit::Time);
            return Ok(self.preview);
        };
        let (mut ids, is_cut) = ids?;
        ids.sort_unstable();
        if is_cut || ids.len() > self.limits.devices_max {
            self.preview.limits_reached.insert(PreviewLimit::Devices);
            ids.truncate(self.limits.devices_max);
        }
        for id in ids {
            if !self.judge_device(&id).await? {
                break;
            }
            self.preview.devices_judged += 1;
        }
        Ok(self.preview)
    }

    /// The devices that the definition may watch, and whether there are more.
    async fn device_ids(&self) -> Result<(Vec<String>, bool), FleetError> {
        let devices = &self.source.devices;
        devices.prepare().await?;
        if let Devices::Listed(listed) = &self.definition.terms.devices {
            let ids = listed
                .iter()
                .map(|name| devices.device_of_subject(name.as_str()).to_owned());
            let ids: BTreeSet<String> = ids.collect();
            return Ok((ids.into_iter().collect(), false));
        }
        let mut list = DeviceList::default();
        devices.collect_devices(&mut list).await?;
        let (mut ids, is_cut) = list.into_ids();
        if let Devices::Prefix(prefix) = &self.definition.terms.devices {
            // A prefix may select some subjects of a device.
            let prefix = prefix.as_str();
            ids.retain(|id| id.starts_with(prefix) || prefix.starts_with(id.as_str()));
        }
        Ok((ids, is_cut))
    }

    /// Judges the history of a device; false when a limit ends the preview.
    async fn judge_device(&mut self, id: &str) -> Result<bool, AlertsError> {
        // A history that is ready at once would be judged also after the deadline.
        if Instant::now() >= self.deadline {
            return Ok(self.end_at(PreviewLimit::Time));
        }
        let mut subjects = self.listed_subjects(id);
        let history = self.source.devices.history(id, &self.range);
        let readers = match timeout_at(self.deadline, history).await {
            Ok(Ok(readers)) => readers,
            // The device was removed, or a listed one does not exist.
            Ok(Err(FleetError::DeviceMissing)) => Vec::new(),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => return Ok(self.end_at(PreviewLimit::Time)),
        };
        let mut is_complete = true;
        for reader in readers {
            is_complete = self.judge_history(reader, &mut subjects).await?;
            if !is_complete {
                break;
            }
        }
        for (device, mut subject) in subjects {
            if is_complete {
                subject.pass_silence(self.range.to);
            }
            self.add(device, subject.alerts);
        }
        Ok(is_complete)
    }

    async fn judge_history(
        &mut self,
        mut reader: Box<dyn RowReader>,
        subjects: &mut BTreeMap<DeviceName, Subject<'a>>,
    ) -> Result<bool, AlertsError> {
        loop {
            let page = reader.next_page(Some(ITEMS_PER_PAGE));
            let Ok(page) = timeout_at(self.deadline, page).await else {
                return Ok(self.end_at(PreviewLimit::Time));
            };
            let Some(page) = page? else {
                return Ok(true);
            };
            self.preview.items_read += page.items_read;
            let mut rows: Vec<_> = page
                .rows
                .iter()
                .filter_map(|row| Some((self.source.subject(&row.item, row.at)?, row)))
                .collect();
            // Keys may be in another order than times.
            rows.sort_by(|(a, _), (b, _)| a.mark.cmp(&b.mark));
            for (subject, row) in &rows {
                let (mark, at) = (&subject.mark, subject.mark.at);
                if self.definition.watches(&subject.device, &row.item, at) {
                    let known = subjects.entry(subject.device.clone());
                    let known = known.or_insert_with(|| self.subject(&subject.device));
                    known.judge(Observation {
                        mark,
                        stored_at: at,
                        item: &row.item,
                        is_old: false,
                    });
                }
            }
            if self.preview.items_read >= self.limits.items_max {
                return Ok(self.end_at(PreviewLimit::Items));
            }
            if Instant::now() >= self.deadline {
                return Ok(self.end_at(PreviewLimit::Time));
            }
        }
    }

    fn subject(&self, device: &DeviceName) -> Subject<'a> {
        Subject {
            condition: &self.definition.terms.condition,
            watch: Watch::new(self.definition, device.clone()),
            alerts: Vec::new(),
        }
    }

    /// The silence of listed devices is measured from the start.
    fn listed_subjects(&self, id: &str) -> BTreeMap<DeviceName, Subject<'a>> {
        let (Condition::Absence(_), Devices::Listed(listed)) = (
            &self.definition.terms.condition,
            &self.definition.terms.devices,
        ) else {
            return BTreeMap::new();
        };
        let source = &self.source.devices;
        let of_device = listed
            .iter()
            .filter(|name| source.device_of_subject(name.as_str()) == id);
        let subjects = of_device.map(|name| {
            let mut subject = self.subject(name);
            subject.watch.seen_at = Some(self.range.from);
            (name.clone(), subject)
        });
        subjects.collect()
    }

    fn end_at(&mut self, limit: PreviewLimit) -> bool {
        self.preview.limits_reached.insert(limit);
        false
    }

    fn add(&mut self, device: DeviceName, mut alerts: Vec<PreviewedAlert>) {
        let raised = alerts.len();
        if raised == 0 {
            return;
        }
        let room = self.limits.alerts_max - self.listed;
        if raised > room {
            self.preview.limits_reached.insert(PreviewLimit::Alerts);
            alerts.truncate(room);
        }
        self.listed += alerts.len();
        self.preview.raised += raised;
        self.preview.devices.push(DevicePreview {
            device,
            raised,
            alerts,
        });
    }
}

impl Subject<'_> {
    fn judge(&mut self, observation: Observation<'_>) {
        let at = observation.stored_at;
        self.pass_silence(at);
        match judge(self.condition, &mut self.watch, observation) {
            Verdict::Nothing | Verdict::Noted | Verdict::TooOld => {}
            Verdict::Raise(finding) => self.raise(at, finding),
            Verdict::Clear(finding) => {
                self.watch.open = None;
                if let Some(alert) = self.alerts.last_mut() {
                    alert.cleared = Some((at, finding.reason));
                }
            }
        }
    }

    /// Raises the silence that would have ended before `until`.
    fn pass_silence(&mut self, until: EpochMillis) {
        let due_at = self.watch.due_at(self.condition);
        if let (Condition::Absence(absence), Some(due_at), Some(last)) =
            (self.condition, due_at, self.watch.seen_at)
            && due_at < until
        {
            self.raise(due_at, silence(absence, last));
        }
    }

    fn raise(&mut self, at: EpochMillis, finding: Finding) {
        self.watch.open = Some(AlertId::new(at));
        self.alerts.push(PreviewedAlert {
            raised_at: at,
            reason: finding.reason,
            cleared: None,
        });
    }
}
