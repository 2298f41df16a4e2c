//! Values as Parquet, one per row. Only this module uses the Parquet crate.

use std::sync::Arc;

use homeport_item::Value;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::{ExportError, PageOf, visit_values};

/// Rows of one row group. They are in memory until the group is written.
const GROUP_ROWS: usize = 50_000;

/// Collects rows and writes them group by group.
pub(super) struct ParquetValues {
    writer: SerializedFileWriter<Vec<u8>>,
    group: Group,
}

/// Rows as columns. Columns contain no entries for absent values; definition levels mark those.
#[derive(Default)]
struct Group {
    system: Vec<ByteArray>,
    device: Vec<ByteArray>,
    at: Vec<i64>,
    name: Vec<ByteArray>,
    value: Optional<f64>,
    text: Optional<ByteArray>,
    unit: Optional<ByteArray>,
}

struct Optional<T> {
    values: Vec<T>,
    levels: Vec<i16>,
}

impl<T> Default for Optional<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            levels: Vec::new(),
        }
    }
}

impl<T> Optional<T> {
    fn push(&mut self, value: Option<T>) {
        self.levels.push(i16::from(value.is_some()));
        self.values.extend(value);
    }
}

impl From<ParquetError> for ExportError {
    fn from(error: ParquetError) -> Self {
        Self::Encoding(error.to_string())
    }
}

impl ParquetValues {
    pub(super) fn new() -> Result<Self, ExportError> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .build();
        let writer = SerializedFileWriter::new(Vec::new(), schema()?, Arc::new(properties))?;
        Ok(Self {
            writer,
            group: Group::default(),
        })
    }

    pub(super) fn write(
        &mut self,
        page: &PageOf<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ExportError> {
        let bytes = |text: &str| ByteArray::from(text.as_bytes().to_vec());
        let (system, device) = (bytes(page.system.as_str()), bytes(page.device));
        for row in page.rows {
            let group = &mut self.group;
            visit_values(page.system, row, &mut |sample| {
                let (value, text) = match sample.value {
                    Value::N(number) => (Some(number.to_f64()), None),
                    Value::Bool(flag) => (Some(f64::from(u8::from(*flag))), None),
                    Value::S(text) => (None, Some(bytes(text))),
                    _ => return,
                };
                group.system.push(system.clone());
                group.device.push(device.clone());
                group.at.push(row.at.0);
                group.name.push(bytes(sample.name));
                group.value.push(value);
                group.text.push(text);
                group.unit.push(sample.unit().map(bytes));
            });
            if self.group.at.len() >= GROUP_ROWS {
                self.write_group()?;
                self.take(out)?;
            }
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), ExportError> {
        if !self.group.at.is_empty() {
            self.write_group()?;
        }
        self.writer.finish()?;
        self.take(out)
    }

    /// Moves the bytes written so far to `out`. The writer keeps its offset.
    fn take(&mut self, out: &mut Vec<u8>) -> Result<(), ExportError> {
        let flushed = self.writer.flush();
        flushed.map_err(|error| ExportError::Encoding(error.to_string()))?;
        out.append(self.writer.inner_mut());
        Ok(())
    }

    /// Columns are written in the order of the schema.
    fn write_group(&mut self) -> Result<(), ExportError> {
        let group = std::mem::take(&mut self.group);
        let mut rows = self.writer.next_row_group()?;
        let missing = || ExportError::Encoding("a column is missing".to_owned());
        for values in [&group.system, &group.device] {
            let mut column = rows.next_column()?.ok_or_else(missing)?;
            column
                .typed::<ByteArrayType>()
                .write_batch(values, None, None)?;
            column.close()?;
        }
        let mut column = rows.next_column()?.ok_or_else(missing)?;
        column
            .typed::<Int64Type>()
            .write_batch(&group.at, None, None)?;
        column.close()?;
        let mut column = rows.next_column()?.ok_or_else(missing)?;
        column
            .typed::<ByteArrayType>()
            .write_batch(&group.name, None, None)?;
        column.close()?;
        let mut column = rows.next_column()?.ok_or_else(missing)?;
        let value = &group.value;
        column
            .typed::<DoubleType>()
            .write_batch(&value.values, Some(&value.levels), None)?;
        column.close()?;
        for texts in [&group.text, &group.unit] {
            let mut column = rows.next_column()?.ok_or_else(missing)?;
            column.typed::<ByteArrayType>().write_batch(
                &texts.values,
                Some(&texts.levels),
                None,
            )?;
            column.close()?;
        }
        rows.close()?;
        Ok(())
    }
}

/// The columns: `value` has numbers, and booleans as 1 and 0; `text` has all other values.
fn schema() -> Result<Arc<Type>, ParquetError> {
    let text = |name: &str, repetition| {
        Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
            .with_repetition(repetition)
            .with_logical_type(Some(LogicalType::String))
            .build()
            .map(Arc::new)
    };
    let at = Type::primitive_type_builder("at", Physical::INT64)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::timestamp(true, TimeUnit::MILLIS)))
        .build()?;
    let value = Type::primitive_type_builder("value", Physical::DOUBLE)
        .with_repetition(Repetition::OPTIONAL)
        .build()?;
    let columns = vec![
        text("system", Repetition::REQUIRED)?,
        text("device", Repetition::REQUIRED)?,
        Arc::new(at),
        text("name", Repetition::REQUIRED)?,
        Arc::new(value),
        text("text", Repetition::OPTIONAL)?,
        text("unit", Repetition::OPTIONAL)?,
    ];
    let schema = Type::group_type_builder("values")
        .with_fields(columns)
        .build()?;
    Ok(Arc::new(schema))
}

impl std::fmt::Debug for ParquetValues {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ParquetValues")
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{Row, SystemName};
    use crate::time::EpochMillis;
    use bytes::Bytes;
    use homeport_item::Item;
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;

    fn row(at: i64) -> Row {
        let item = Item::new()
            .with("number", at)
            .with("word", "é")
            .with("yes", true);
        Row::new(EpochMillis(at), item)
    }

    #[test]
    fn a_reader_finds_every_value_in_its_column() {
        let mut file = Vec::new();
        let mut parquet = ParquetValues::new().expect("a writer");
        let rows = i64::try_from(GROUP_ROWS).expect("small") / 2;
        let mut pieces = 0;
        for start in [0, rows] {
            let rows: Vec<Row> = (start..start + rows).map(row).collect();
            let page = PageOf {
                system: SystemName::Telemetry,
                device: "van",
                rows: &rows,
            };
            let before = file.len();
            parquet.write(&page, &mut file).expect("written");
            pieces += usize::from(file.len() > before);
        }
        parquet.finish(&mut file).expect("finished");
        assert!(pieces > 0, "nothing was written before the end");
        let reader = SerializedFileReader::new(Bytes::from(file)).expect("a file");
        assert!(reader.num_row_groups() > 1);
        let mut found = 0;
        for row in reader.get_row_iter(None).expect("rows") {
            let row = row.expect("a row");
            let field = |name: &str| {
                let mut columns = row.get_column_iter();
                columns
                    .find(|(column, _)| *column == name)
                    .expect("a column")
                    .1
                    .clone()
            };
            let at = found / 3;
            assert_eq!(field("at"), Field::TimestampMillis(at));
            assert_eq!(field("device"), Field::Str("van".to_owned()));
            let (value, text) = match found % 3 {
                0 => (Field::Double(at as f64), Field::Null),
                1 => (Field::Null, Field::Str("é".to_owned())),
                _ => (Field::Double(1.0), Field::Null),
            };
            assert_eq!((field("value"), field("text")), (value, text));
            found += 1;
        }
        assert_eq!(found, rows * 2 * 3);
    }

    #[test]
    fn a_file_without_a_row_is_one_all_the_same() {
        let mut file = Vec::new();
        let mut parquet = ParquetValues::new().expect("a writer");
        parquet.finish(&mut file).expect("finished");
        let reader = SerializedFileReader::new(Bytes::from(file)).expect("a file");
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
    }
}
