//! Values over time for a chart. Each point has the minimum and maximum of its bucket, so no spike is lost.
//! Rows are added to buckets as they are read.

use std::collections::HashMap;

use super::history::{Detail, FIRST_MS, LAST_MS};
use super::name::DeviceRef;
use super::{Fleet, FleetError};
use crate::time::EpochMillis;

/// Points of one series.
pub const POINTS_MAX: usize = 4000;
pub const POINTS_DEFAULT: usize = 600;
/// Series of one answer. Further names are left out, and the answer says so.
pub const SERIES_MAX: usize = 64;

/// The range and the series of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesRange {
    pub from: EpochMillis,
    /// Not included.
    pub to: EpochMillis,
    /// Points of each series, at most.
    pub points: usize,
    /// Empty for all series.
    pub names: Vec<String>,
}

/// The values of one bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The start of the bucket.
    pub at: EpochMillis,
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    pub count: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub name: String,
    pub unit: Option<String>,
    /// Sorted by time; buckets without a value are left out.
    pub points: Vec<Point>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SeriesSet {
    pub bucket_ms: i64,
    /// Sorted by name.
    pub series: Vec<Series>,
    /// There are more series than the answer can have.
    pub is_cut: bool,
}

/// Collects values, in any order, into points.
#[derive(Debug)]
struct Buckets {
    from_ms: i64,
    to_ms: i64,
    bucket_ms: i64,
    count: usize,
    names: HashMap<String, usize>,
    series: Vec<(Option<String>, Vec<Bucket>)>,
    is_cut: bool,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    min: f64,
    max: f64,
    sum: f64,
    count: u64,
}

const EMPTY: Bucket = Bucket {
    min: f64::INFINITY,
    max: f64::NEG_INFINITY,
    sum: 0.0,
    count: 0,
};

impl Fleet {
    /// The numbers of a device over time.
    ///
    /// # Errors
    /// When there is no such device, or the store fails.
    pub async fn series(
        &self,
        device: &DeviceRef,
        range: &SeriesRange,
    ) -> Result<SeriesSet, FleetError> {
        let bound = |at: EpochMillis| EpochMillis(at.0.clamp(FIRST_MS, LAST_MS));
        let range = &SeriesRange {
            from: bound(range.from),
            to: bound(range.to),
            ..range.clone()
        };
        let mut buckets = Buckets::new(range);
        let source = self.source(&device.system)?;
        // A range that ends before it begins is empty.
        let last = EpochMillis(range.to.0 - 1);
        let mut rows = self.rows(device, range.from, last, Detail::Values).await?;
        while let Some(page) = rows.next_page().await? {
            for row in &page {
                source.samples(row, &mut |sample| {
                    let wanted = &range.names;
                    let is_wanted =
                        wanted.is_empty() || wanted.iter().any(|name| name == sample.name);
                    if let (Some(number), true) = (sample.value.as_number(), is_wanted) {
                        buckets.add(row.at, sample.name, || sample.unit(), number.to_f64());
                    }
                });
            }
        }
        Ok(buckets.finish())
    }
}

impl Buckets {
    fn new(range: &SeriesRange) -> Self {
        let span_ms = range.to.0.saturating_sub(range.from.0).max(1);
        let points = i64::try_from(range.points.clamp(1, POINTS_MAX)).unwrap_or(i64::MAX);
        let bucket_ms = span_ms.div_euclid(points) + i64::from(span_ms % points != 0);
        let count = span_ms.div_euclid(bucket_ms) + i64::from(span_ms % bucket_ms != 0);
        Self {
            from_ms: range.from.0,
            to_ms: range.to.0,
            bucket_ms,
            count: usize::try_from(count).unwrap_or(POINTS_MAX),
            names: HashMap::new(),
            series: Vec::new(),
            is_cut: false,
        }
    }

    /// Calls `unit` once per series.
    fn add<'a>(
        &mut self,
        at: EpochMillis,
        name: &str,
        unit: impl FnOnce() -> Option<&'a str>,
        value: f64,
    ) {
        if !(self.from_ms..self.to_ms).contains(&at.0) || !value.is_finite() {
            return;
        }
        let place = match self.names.get(name) {
            Some(place) => *place,
            None if self.series.len() >= SERIES_MAX => {
                self.is_cut = true;
                return;
            }
            None => {
                let empty = vec![EMPTY; self.count];
                self.series.push((unit().map(str::to_owned), empty));
                self.names.insert(name.to_owned(), self.series.len() - 1);
                self.series.len() - 1
            }
        };
        let bucket = usize::try_from((at.0 - self.from_ms) / self.bucket_ms).unwrap_or(0);
        if let Some(bucket) = self.series[place].1.get_mut(bucket) {
            bucket.min = bucket.min.min(value);
            bucket.max = bucket.max.max(value);
            bucket.sum += value;
            bucket.count += 1;
        }
    }

    fn finish(mut self) -> SeriesSet {
        let mut names: Vec<(String, usize)> = self.names.into_iter().collect();
        names.sort_unstable();
        let series = names.into_iter().map(|(name, place)| {
            let (unit, buckets) = std::mem::take(&mut self.series[place]);
            let starts = (0..).map(|bucket| self.from_ms + bucket * self.bucket_ms);
            let points = buckets
                .iter()
                .zip(starts)
                .filter(|(bucket, _)| bucket.count > 0);
            let points = points.map(|(bucket, start)| Point {
                at: EpochMillis(start),
                min: bucket.min,
                max: bucket.max,
                mean: bucket.sum / bucket.count as f64,
                count: bucket.count,
            });
            Series {
                name,
                unit,
                points: points.collect(),
            }
        });
        SeriesSet {
            bucket_ms: self.bucket_ms,
            series: series.collect(),
            is_cut: self.is_cut,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: i64, to: i64, points: usize) -> SeriesRange {
        SeriesRange {
            from: EpochMillis(from),
            to: EpochMillis(to),
            points,
            names: Vec::new(),
        }
    }

    #[test]
    fn spike_survives_in_few_points() {
        let mut buckets = Buckets::new(&range(0, 1_000_000, 10));
        for at in 0..1_000_000 {
            let value = if at == 555_555 { 99.0 } else { 1.0 };
            buckets.add(EpochMillis(at), "t", || None, value);
        }
        let set = buckets.finish();
        assert_eq!(set.bucket_ms, 100_000);
        let points = &set.series[0].points;
        assert_eq!(points.len(), 10);
        assert_eq!((points[5].min, points[5].max), (1.0, 99.0));
        assert_eq!(points[4].max, 1.0);
        assert_eq!(
            points.iter().map(|point| point.count).sum::<u64>(),
            1_000_000
        );
        assert_eq!(points[5].at, EpochMillis(500_000));
    }

    #[test]
    fn values_outside_the_range_are_left_out() {
        let mut buckets = Buckets::new(&range(100, 200, 7));
        for at in [99, 100, 199, 200] {
            buckets.add(EpochMillis(at), "t", || None, 1.0);
        }
        let set = buckets.finish();
        let points = &set.series[0].points;
        assert_eq!(points.len(), 2);
        assert!(points.iter().all(|point| point.count == 1));
        let ends = set.bucket_ms * 7;
        assert!(ends >= 100, "{ends}");
    }

    #[test]
    fn points_and_series_are_limited() {
        for (span, points) in [
            (1, 1),
            (1, 4000),
            (3, 2),
            (86_400_000, 601),
            (i64::MAX, 4000),
        ] {
            let mut buckets = Buckets::new(&range(0, span, points));
            assert!(buckets.count <= points, "{span} {points}");
            buckets.add(EpochMillis(span - 1), "last", || None, 1.0);
            assert_eq!(buckets.finish().series[0].points.len(), 1);
        }
        let mut buckets = Buckets::new(&range(0, 10, 1));
        for n in 0..=SERIES_MAX {
            buckets.add(EpochMillis(0), &format!("s{n}"), || None, 1.0);
        }
        let set = buckets.finish();
        assert_eq!(set.series.len(), SERIES_MAX);
        assert!(set.is_cut);
        let empty = Buckets::new(&range(5, 5, 10));
        assert_eq!((empty.bucket_ms, empty.finish().series), (1, Vec::new()));
    }
}
