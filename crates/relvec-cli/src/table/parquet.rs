//! Rows of a Parquet file.

use std::fs::File;

use anyhow::{Result, anyhow};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;

use super::{Cell, Rows};

pub(super) struct ParquetRows {
    rows: RowIter<'static>,
    fields: Vec<Field>,
    row: usize,
}

/// Reads the schema of a Parquet file.
pub(super) fn open(file: File) -> Result<(Vec<String>, ParquetRows)> {
    let reader = SerializedFileReader::new(file).map_err(|e| anyhow!("cannot read the Parquet file: {}", explain(&e)))?;
    let schema = reader.metadata().file_metadata().schema();
    let columns = schema.get_fields().iter().map(|field| field.name().to_string()).collect();
    let rows = RowIter::from_file_into(Box::new(reader));
    Ok((columns, ParquetRows { rows, fields: Vec::new(), row: 0 }))
}

impl Rows for ParquetRows {
    fn advance(&mut self) -> Result<bool> {
        let Some(row) = self.rows.next() else { return Ok(false) };
        self.row += 1;
        let row = row.map_err(|e| anyhow!("cannot read row {} of the Parquet file: {}", self.row, explain(&e)))?;
        self.fields = row.into_columns().into_iter().map(|(_, field)| field).collect();
        Ok(true)
    }

    fn cell(&self, column: usize) -> Cell<'_> {
        match &self.fields[column] {
            Field::Null => Cell::Missing,
            Field::Bool(v) => Cell::Boolean(*v),
            Field::Byte(v) => Cell::Number(f64::from(*v)),
            Field::Short(v) => Cell::Number(f64::from(*v)),
            Field::Int(v) => Cell::Number(f64::from(*v)),
            Field::Long(v) => Cell::Number(*v as f64),
            Field::UByte(v) => Cell::Number(f64::from(*v)),
            Field::UShort(v) => Cell::Number(f64::from(*v)),
            Field::UInt(v) => Cell::Number(f64::from(*v)),
            Field::ULong(v) => Cell::Number(*v as f64),
            Field::Float16(v) => Cell::Number(v.to_f64()),
            Field::Float(v) => Cell::Number(f64::from(*v)),
            Field::Double(v) => Cell::Number(*v),
            // Its text is the decimal number, exact to the last digit.
            decimal @ Field::Decimal(_) => decimal.to_string().parse().map_or(Cell::Other("such decimals"), Cell::Number),
            Field::Str(v) => Cell::Text(v),
            Field::Bytes(_) => Cell::Other("raw bytes"),
            Field::Date(_) => Cell::Other("dates"),
            Field::TimeMillis(_) | Field::TimeMicros(_) | Field::TimestampMillis(_) | Field::TimestampMicros(_) => {
                Cell::Other("times")
            }
            Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => Cell::Other("nested values"),
        }
    }

    fn line(&self) -> Option<u64> {
        None
    }
}

/// The message without the crate's own "Parquet error:" in front of it.
fn explain(error: &ParquetError) -> String {
    let text = error.to_string();
    text.strip_prefix("Parquet error: ").unwrap_or(&text).to_string()
}
