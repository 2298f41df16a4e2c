//! Exports: what devices stored in a range of time, or the items of a table, as files. An export is read and
//! written page by page, so its size does not matter.
//!
//! CSV and Parquet have a row for each value, with the same columns for all systems. NDJSON has a line for each
//! stored item with all its attributes.

mod csv;
mod items;
mod ndjson;
mod parquet;

use std::collections::VecDeque;
use std::str::FromStr;

use homeport_item::schema::TableSchema;

use crate::browse::{Asked, BrowseError, TableBrowser};
use crate::fleet::{Detail, DeviceRef, Fleet, FleetError, Row, Rows, Sample, SystemName};
use crate::sensors::InvalidField;
use crate::time::EpochMillis;

use csv::CsvValues;
use items::CsvItems;
use parquet::ParquetValues;

/// Items of a table that are read at once.
const ITEMS_PER_PAGE: usize = 1000;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Csv(CsvText),
    Ndjson,
    Parquet,
}

/// How CSV writes texts that a spreadsheet could evaluate as formulas: those that begin with `=`, `+`, `-`
/// or `@` (also in full width or after white space), a tab or a line break. Numbers are the same in both forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CsvText {
    /// With the prefix `'`.
    #[default]
    Neutralised,
    /// As stored, for programs that need the exact text.
    Raw,
}

/// An export of devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceExport {
    pub system: SystemName,
    /// The id of one device; all devices of the system unless given.
    pub device: Option<String>,
    /// Both ends are included.
    pub from: EpochMillis,
    pub to: EpochMillis,
}

/// The progress of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    pub devices_done: usize,
    pub devices: usize,
    /// Stored items that were read.
    pub rows: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Fleet(#[from] FleetError),
    #[error(transparent)]
    Browse(#[from] BrowseError),
    #[error("the file cannot be written: {0}")]
    Encoding(String),
}

/// A running export.
#[derive(Debug)]
pub struct Export {
    source: Source,
    progress: Progress,
}

#[derive(Debug)]
enum Source {
    Devices(Box<Devices>),
    Table(Box<Table>),
    /// The file is complete.
    Done,
}

#[derive(Debug)]
struct Devices {
    fleet: Fleet,
    asked: DeviceExport,
    left: VecDeque<String>,
    reading: Option<(String, Rows)>,
    encoder: Values,
}

#[derive(Debug)]
struct Table {
    browser: TableBrowser,
    schema: TableSchema,
    asked: Asked,
    encoder: Items,
}

/// Writers of device values.
#[derive(Debug)]
enum Values {
    Csv(CsvValues),
    Ndjson,
    Parquet(Box<ParquetValues>),
}

/// Writers of items.
#[derive(Debug)]
enum Items {
    Csv(CsvItems),
    Ndjson,
}

/// Visits the values of a row.
type VisitSamples<'a> = dyn Fn(&Row, &mut dyn FnMut(Sample<'_>)) + 'a;

/// A page of rows and the device that they belong to.
struct PageOf<'a> {
    system: &'a str,
    device: &'a str,
    rows: &'a [Row],
    /// Visits the values of a row that a file contains.
    samples: &'a VisitSamples<'a>,
}

impl Format {
    pub const ALL: [Self; 3] = [Self::CSV, Self::Ndjson, Self::Parquet];

    /// CSV that is safe to open in a spreadsheet.
    pub const CSV: Self = Self::Csv(CsvText::Neutralised);

    /// The same format with texts as stored. Only CSV differs.
    #[must_use]
    pub fn raw(self) -> Self {
        match self {
            Self::Csv(_) => Self::Csv(CsvText::Raw),
            other => other,
        }
    }

    /// The name, which is also the extension of file names.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Csv(_) => "csv",
            Self::Ndjson => "ndjson",
            Self::Parquet => "parquet",
        }
    }

    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Csv(_) => "text/csv; charset=utf-8; header=present",
            Self::Ndjson => "application/x-ndjson",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }
}

impl FromStr for Format {
    type Err = InvalidField;

    fn from_str(text: &str) -> Result<Self, InvalidField> {
        let mut all = Self::ALL.into_iter();
        all.find(|format| format.as_str() == text)
            .ok_or(InvalidField {
                field: "format",
                expected: "csv, ndjson or parquet",
            })
    }
}

impl Export {
    /// Exports one device or all devices of a system.
    ///
    /// # Errors
    /// When there is no such system or device, its devices store no values, or the store fails.
    pub async fn of_devices(
        fleet: &Fleet,
        asked: DeviceExport,
        format: Format,
    ) -> Result<Self, ExportError> {
        if !fleet.source(&asked.system)?.system().has_values {
            return Err(FleetError::NoValues(asked.system).into());
        }
        let left: VecDeque<String> = match &asked.device {
            Some(device) => VecDeque::from([device.clone()]),
            None => fleet.ids_of(&asked.system).await?.into(),
        };
        let encoder = match format {
            Format::Csv(text) => Values::Csv(CsvValues::new(text)),
            Format::Ndjson => Values::Ndjson,
            Format::Parquet => Values::Parquet(Box::new(ParquetValues::new()?)),
        };
        let progress = Progress {
            devices: left.len(),
            ..Progress::default()
        };
        let mut devices = Devices {
            fleet: fleet.clone(),
            asked,
            left,
            reading: None,
            encoder,
        };
        if devices.asked.device.is_some() {
            // A missing device fails here and not after the file has started.
            devices.open_next().await?;
        }
        Ok(Self {
            source: Source::Devices(Box::new(devices)),
            progress,
        })
    }

    /// Exports the matching items of a table. Parquet is not possible because items have no common columns.
    ///
    /// # Errors
    /// When the format is Parquet.
    pub fn of_table(
        browser: &TableBrowser,
        schema: TableSchema,
        asked: Asked,
        format: Format,
    ) -> Result<Self, ExportError> {
        let encoder = match format {
            Format::Csv(text) => Items::Csv(CsvItems::new(&schema.key, text)),
            Format::Ndjson => Items::Ndjson,
            Format::Parquet => {
                let reason = InvalidField {
                    field: "format",
                    expected: "csv or ndjson, because the items of a table have no common columns",
                };
                return Err(BrowseError::Invalid(reason.to_string()).into());
            }
        };
        let table = Table {
            browser: browser.clone(),
            schema,
            asked: Asked {
                limit: ITEMS_PER_PAGE,
                ..asked
            },
            encoder,
        };
        Ok(Self {
            source: Source::Table(Box::new(table)),
            progress: Progress::default(),
        })
    }

    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// The next bytes of the file, possibly none; `None` when the file is complete.
    ///
    /// # Errors
    /// When the store fails. The file is incomplete then.
    pub async fn next_bytes(&mut self) -> Result<Option<Vec<u8>>, ExportError> {
        let mut out = Vec::new();
        let is_over = match &mut self.source {
            Source::Done => return Ok(None),
            Source::Devices(devices) => devices.step(&mut self.progress, &mut out).await?,
            Source::Table(table) => table.step(&mut self.progress, &mut out).await?,
        };
        if is_over {
            self.source = Source::Done;
        }
        Ok(Some(out))
    }
}

impl Devices {
    /// Opens the rows of the next device; false after the last one.
    async fn open_next(&mut self) -> Result<bool, FleetError> {
        let Some(id) = self.left.pop_front() else {
            return Ok(false);
        };
        let device = DeviceRef {
            system: self.asked.system.clone(),
            id: id.clone(),
        };
        let (from, to) = (self.asked.from, self.asked.to);
        let rows = self.fleet.rows(&device, from, to, Detail::Stored).await?;
        self.reading = Some((id, rows));
        Ok(true)
    }

    /// Writes a page; returns true at the end.
    async fn step(
        &mut self,
        progress: &mut Progress,
        out: &mut Vec<u8>,
    ) -> Result<bool, ExportError> {
        if self.reading.is_none() {
            match self.open_next().await {
                Ok(true) => {}
                Ok(false) => {
                    self.encoder.finish(out)?;
                    return Ok(true);
                }
                // The device was removed since the list was read.
                Err(FleetError::DeviceMissing) => {
                    progress.devices_done += 1;
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let Some((device, reader)) = &mut self.reading else {
            return Ok(false);
        };
        let system = &self.asked.system;
        match reader.next_page().await? {
            Some(rows) => {
                progress.rows += rows.len() as u64;
                let source = self.fleet.source(system)?;
                let page = PageOf {
                    system: system.as_str(),
                    device,
                    rows: &rows,
                    samples: &|row, visit| source.exported_values(row, visit),
                };
                self.encoder.write(&page, out)?;
            }
            None => {
                self.reading = None;
                progress.devices_done += 1;
            }
        }
        Ok(false)
    }
}

impl Table {
    async fn step(
        &mut self,
        progress: &mut Progress,
        out: &mut Vec<u8>,
    ) -> Result<bool, ExportError> {
        let page = self.browser.find(&self.schema, self.asked.clone()).await?;
        progress.rows += page.items.len() as u64;
        match &mut self.encoder {
            Items::Csv(csv) => csv.write(&page.items, out),
            Items::Ndjson => ndjson::items(&page.items, out),
        }
        self.asked.cursor = page.next;
        Ok(self.asked.cursor.is_none())
    }
}

impl Values {
    fn write(&mut self, page: &PageOf<'_>, out: &mut Vec<u8>) -> Result<(), ExportError> {
        match self {
            Self::Csv(csv) => csv.write(page, out),
            Self::Ndjson => ndjson::rows(page, out),
            Self::Parquet(parquet) => parquet.write(page, out)?,
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), ExportError> {
        match self {
            // A file without rows still has its header.
            Self::Csv(csv) => csv.header(out),
            Self::Ndjson => {}
            Self::Parquet(parquet) => parquet.finish(out)?,
        }
        Ok(())
    }
}
