//! Rows of a Parquet file. Plain columns of numbers are decoded some thousand values at a time; all others
//! (text, dates, decimals, nested ones) go through the row reader of the format's crate.

use std::fs::File;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::{Type, TypePtr};

use super::{Cell, Rows};

/// Rows decoded at a time.
const CHUNK: usize = 8192;

pub(super) struct ParquetRows {
    file: File,
    reader: SerializedFileReader<File>,
    fields: Vec<TypePtr>,
    /// Where the cells of each field come from.
    sources: Vec<Source>,
    /// Open once a row has been asked for.
    others: Option<Others>,
    /// Row groups begun, and rows of the last one not yet decoded.
    groups: usize,
    left: usize,
    /// Rows decoded, and the place of the present one among them.
    decoded: usize,
    place: usize,
    row: usize,
}

enum Source {
    /// Nobody asks for it.
    Unused,
    Plain(Box<PlainColumn>),
    /// Place among the fields of the row reader.
    Other(usize),
}

/// A column of numbers or booleans.
struct PlainColumn {
    leaf: usize,
    kind: Kind,
    optional: bool,
    reader: Option<ColumnReader>,
    /// Of the rows decoded.
    values: Vec<f64>,
    present: Vec<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Boolean,
    Signed,
    Unsigned,
    Float,
}

/// Columns that only the row reader understands.
struct Others {
    rows: RowIter<'static>,
    fields: Vec<Field>,
}

/// Reads the schema of a Parquet file.
pub(super) fn open(file: File) -> Result<(Vec<String>, ParquetRows)> {
    let again = file.try_clone()?;
    let reader = SerializedFileReader::new(again).map_err(|e| anyhow!("cannot read the Parquet file: {}", explain(&e)))?;
    let fields = reader.metadata().file_metadata().schema().get_fields().to_vec();
    let columns: Vec<String> = fields.iter().map(|field| field.name().to_string()).collect();
    let (sources, others) = (Vec::new(), None);
    let mut rows = ParquetRows { file, reader, fields, sources, others, groups: 0, left: 0, decoded: 0, place: 0, row: 0 };
    rows.only(&(0..columns.len()).collect::<Vec<_>>());
    Ok((columns, rows))
}

impl ParquetRows {
    fn source(&self, field: usize, others: &mut usize) -> Source {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let leaf = (0..schema.num_columns()).find(|leaf| schema.get_column_root_idx(*leaf) == field);
        match (kind(&self.fields[field]), leaf) {
            (Some(kind), Some(leaf)) => Source::Plain(Box::new(PlainColumn {
                leaf,
                kind,
                optional: schema.column(leaf).max_def_level() > 0,
                reader: None,
                values: Vec::new(),
                present: Vec::new(),
            })),
            _ => {
                *others += 1;
                Source::Other(*others - 1)
            }
        }
    }

    /// The row reader for the columns that need it.
    fn open_others(&self) -> ParquetResult<Others> {
        let wanted = self.fields.iter().zip(&self.sources).filter(|(_, s)| matches!(s, Source::Other(_)));
        let fields: Vec<TypePtr> = wanted.map(|(field, _)| Arc::clone(field)).collect();
        let name = self.reader.metadata().file_metadata().schema().name().to_string();
        let projection = Type::group_type_builder(&name).with_fields(fields).build()?;
        let reader = SerializedFileReader::new(self.file.try_clone()?)?;
        Ok(Others { rows: RowIter::from_file_into(Box::new(reader)).project(Some(projection))?, fields: Vec::new() })
    }

    /// Decodes the next rows of the plain columns; `false` if there are none.
    fn fill(&mut self) -> ParquetResult<bool> {
        while self.left == 0 {
            if self.groups == self.reader.num_row_groups() {
                return Ok(false);
            }
            let group = self.reader.get_row_group(self.groups)?;
            self.left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            for source in &mut self.sources {
                if let Source::Plain(column) = source {
                    column.reader = Some(group.get_column_reader(column.leaf)?);
                }
            }
            self.groups += 1;
        }
        self.decoded = CHUNK.min(self.left);
        for source in &mut self.sources {
            if let Source::Plain(column) = source {
                column.fill(self.decoded)?;
            }
        }
        self.left -= self.decoded;
        self.place = 0;
        Ok(true)
    }

    fn next(&mut self) -> ParquetResult<bool> {
        self.place += 1;
        if self.place >= self.decoded && !self.fill()? {
            return Ok(false);
        }
        if self.others.is_none() && self.sources.iter().any(|s| matches!(s, Source::Other(_))) {
            self.others = Some(self.open_others()?);
        }
        if let Some(others) = &mut self.others {
            let row = others.rows.next().unwrap_or_else(|| Err(ParquetError::General("the rows end early".into())))?;
            others.fields = row.into_columns().into_iter().map(|(_, field)| field).collect();
        }
        Ok(true)
    }
}

/// What a plain column of numbers or booleans holds; `None` for all others.
fn kind(field: &Type) -> Option<Kind> {
    if !field.is_primitive() || field.get_basic_info().repetition() == parquet::basic::Repetition::REPEATED {
        return None;
    }
    let info = field.get_basic_info();
    let signed = match (info.logical_type_ref(), info.converted_type()) {
        (Some(LogicalType::Integer(integer)), _) => integer.is_signed,
        (Some(_), _) => return None,
        (None, ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64) => false,
        (None, ConvertedType::INT_8 | ConvertedType::INT_16 | ConvertedType::INT_32 | ConvertedType::INT_64) => true,
        (None, ConvertedType::NONE) => true,
        (None, _) => return None,
    };
    match field.get_physical_type() {
        Physical::BOOLEAN => Some(Kind::Boolean),
        Physical::INT32 | Physical::INT64 => Some(if signed { Kind::Signed } else { Kind::Unsigned }),
        Physical::FLOAT | Physical::DOUBLE => Some(Kind::Float),
        _ => None,
    }
}

impl PlainColumn {
    fn fill(&mut self, rows: usize) -> ParquetResult<()> {
        self.values.clear();
        self.present.clear();
        let (values, present, optional) = (&mut self.values, &mut self.present, self.optional);
        let unsigned = self.kind == Kind::Unsigned;
        match &mut self.reader {
            Some(ColumnReader::BoolColumnReader(r)) => read(r, rows, optional, values, present, |v| f64::from(u8::from(v))),
            Some(ColumnReader::Int32ColumnReader(r)) if unsigned => {
                read(r, rows, optional, values, present, |v| f64::from(v as u32))
            }
            Some(ColumnReader::Int32ColumnReader(r)) => read(r, rows, optional, values, present, f64::from),
            Some(ColumnReader::Int64ColumnReader(r)) if unsigned => read(r, rows, optional, values, present, |v| v as u64 as f64),
            Some(ColumnReader::Int64ColumnReader(r)) => read(r, rows, optional, values, present, |v| v as f64),
            Some(ColumnReader::FloatColumnReader(r)) => read(r, rows, optional, values, present, f64::from),
            Some(ColumnReader::DoubleColumnReader(r)) => read(r, rows, optional, values, present, |v| v),
            _ => Err(ParquetError::General("a column of numbers is of another type than the schema says".into())),
        }
    }

    fn cell(&self, place: usize) -> Cell<'_> {
        match (self.present[place], self.kind) {
            (false, _) => Cell::Missing,
            (true, Kind::Boolean) => Cell::Boolean(self.values[place] != 0.0),
            (true, _) => Cell::Number(self.values[place]),
        }
    }
}

/// Reads `rows` values; those that are null leave a 0 that is not present.
fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    optional: bool,
    out: &mut Vec<f64>,
    present: &mut Vec<bool>,
    number: impl Fn(T::T) -> f64,
) -> ParquetResult<()> {
    while out.len() < rows {
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        let (records, _, _) = reader.read_records(rows - out.len(), optional.then_some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::General("a column ends early".into()));
        }
        let mut values = values.into_iter().map(&number);
        let mut next = |is_there: bool| {
            out.push(if is_there { values.next().unwrap_or(f64::NAN) } else { 0.0 });
            present.push(is_there);
        };
        match optional {
            true => levels.iter().for_each(|level| next(*level > 0)),
            false => (0..records).for_each(|_| next(true)),
        }
    }
    Ok(())
}

impl Rows for ParquetRows {
    fn only(&mut self, columns: &[usize]) {
        let mut others = 0;
        self.sources = (0..self.fields.len())
            .map(|field| if columns.contains(&field) { self.source(field, &mut others) } else { Source::Unused })
            .collect();
    }

    fn advance(&mut self) -> Result<bool> {
        let more = self.next().map_err(|e| anyhow!("cannot read row {} of the Parquet file: {}", self.row + 1, explain(&e)))?;
        self.row += usize::from(more);
        Ok(more)
    }

    fn cell(&self, column: usize) -> Cell<'_> {
        match (&self.sources[column], &self.others) {
            (Source::Plain(column), _) => column.cell(self.place),
            (Source::Other(place), Some(others)) => cell_of(&others.fields[*place]),
            _ => Cell::Missing,
        }
    }

    fn line(&self) -> Option<u64> {
        None
    }

    fn count(&self) -> Option<usize> {
        usize::try_from(self.reader.metadata().file_metadata().num_rows()).ok()
    }
}

fn cell_of(field: &Field) -> Cell<'_> {
    match field {
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

/// The message without the crate's own "Parquet error:" in front of it.
fn explain(error: &ParquetError) -> String {
    let text = error.to_string();
    text.strip_prefix("Parquet error: ").unwrap_or(&text).to_string()
}
