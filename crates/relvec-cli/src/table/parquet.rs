//! Rows of a Parquet file. Columns of numbers and texts are decoded some thousand values at a time. Other columns
//! (dates, raw bytes, nested values) cannot be features or targets and are not read.
//!
//! The file may contain wrong sizes. They are checked before the format's crate acts on them, if they would take memory
//! or stack beyond what the bytes justify. If the crate panics nevertheless, this becomes an error.

use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use parquet::basic::{ConvertedType, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType, Decimal};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::record::Field;
use parquet::schema::types::{ColumnDescPtr, Type};

use super::guard::contain;
use super::thrift::{self, Fault, PageSizes, after_delta_stream};
use super::{Cell, MOST_CELL, MOST_COLUMNS, Rows};

/// First and last bytes of every Parquet file.
pub(super) const MAGIC: &[u8] = b"PAR1";
/// Bytes after the footer: its length and the magic bytes.
const TAIL: u64 = 8;
/// Rows decoded at a time. The number is lower for texts: in one encoding each decoded text may be as long as its page.
const CHUNK: usize = 8192;
const CHUNK_OF_TEXTS: usize = 64;
/// Most bytes of the footer. A thousand columns in a thousand row groups take a fifth of this. In memory the footer
/// takes 20 times its bytes.
const MOST_FOOTER: u64 = 1 << 28;
/// Most bytes of a decompressed page, since a whole page is in memory. Writers make pages of about 1 MiB; the largest
/// known ones contain a row group of 50 million doubles.
const MOST_PAGE: i64 = 1 << 29;
/// Most decompressed bytes for each compressed byte of a page: zstd has blocks of 128 KiB in 4 bytes.
const MOST_RATIO: i64 = 1 << 15;
/// Most bytes of a dictionary page. Each of its values takes 32 bytes in memory; writers stop at about 1 MiB.
const MOST_DICTIONARY: usize = 1 << 26;
/// Most bytes of a page of texts with shared prefixes. Each of [`CHUNK_OF_TEXTS`] texts may be as long as the page.
const MOST_SHARED: usize = 1 << 24;
/// Bytes in which the header of a page is searched: at first, and at most, since it may contain the least and greatest
/// text.
const HEADER: u64 = 1 << 12;
const MOST_HEADER: u64 = 1 << 24;
/// Most digits after the point of a decimal, and most bytes of one: 256 bits.
const MOST_SCALE: i32 = 76;
const MOST_DECIMAL: usize = 32;

pub(super) struct ParquetRows {
    file: Arc<Chunks>,
    metadata: ParquetMetaData,
    /// Kind of each field.
    kinds: Vec<Kind>,
    /// Source of the cells of each field.
    sources: Vec<Source>,
    /// Number of row groups begun, and rows of the last one that are not decoded yet.
    groups: usize,
    left: usize,
    /// Decoded rows, index of the current one among them, and rows decoded at a time.
    decoded: usize,
    place: usize,
    chunk: usize,
    row: usize,
}

/// Content of a field.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A column of values that can be read.
    Column { leaf: usize, values: ValueKind },
    /// Anything else, by its name in messages.
    Other(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum ValueKind {
    Boolean,
    Signed,
    Unsigned,
    Float,
    /// A number of 16 bits.
    Half,
    Decimal {
        precision: i32,
        scale: i32,
    },
    Text,
}

enum Source {
    /// A field that is not used.
    Unused,
    Column(Box<Column>),
    Other(&'static str),
}

/// A column of values that can be read.
struct Column {
    leaf: usize,
    kind: ValueKind,
    descriptor: ColumnDescPtr,
    reader: Option<ColumnReader>,
    /// Values of the decoded rows: bits of a 64-bit number, or texts, by the kind.
    bits: Vec<u64>,
    texts: Vec<ByteArray>,
    present: Vec<bool>,
}

/// Reads the schema of a Parquet file of `size` bytes.
pub(super) fn open(file: File, size: u64) -> Result<(Vec<String>, ParquetRows)> {
    let file = Chunks { file, size };
    let metadata = footer(&file).map_err(|e| anyhow!("cannot read the Parquet file: {}", explain(&e)))?;
    let schema = metadata.file_metadata().schema_descr();
    let fields = metadata.file_metadata().schema().get_fields();
    if fields.len() > MOST_COLUMNS {
        bail!("the Parquet file has {} columns; at most {MOST_COLUMNS} can be read", fields.len());
    }
    let columns: Vec<String> = fields.iter().map(|field| field.name().to_string()).collect();
    let mut leaves = vec![None; fields.len()];
    (0..schema.num_columns()).rev().for_each(|leaf| leaves[schema.get_column_root_idx(leaf)] = Some(leaf));
    let kinds = fields.iter().zip(leaves).map(|(field, leaf)| kind(field, leaf)).collect();
    let mut rows = ParquetRows {
        file: Arc::new(file),
        metadata,
        kinds,
        sources: Vec::new(),
        groups: 0,
        left: 0,
        decoded: 0,
        place: 0,
        chunk: CHUNK,
        row: 0,
    };
    rows.only(&(0..columns.len()).collect::<Vec<_>>());
    Ok((columns, rows))
}

/// Reads the footer at the end of the file.
fn footer(file: &Chunks) -> ParquetResult<ParquetMetaData> {
    let start = file.size.checked_sub(TAIL).filter(|start| *start >= MAGIC.len() as u64);
    let Some(start) = start else { return Err(damaged("it is too short")) };
    let tail = file.bytes(start, TAIL)?;
    let (length, magic) = tail.split_at(4);
    if magic != MAGIC {
        return Err(damaged(if magic == b"PARE" {
            "it is encrypted"
        } else {
            "its end is missing, or it is not a Parquet file"
        }));
    }
    let length = length.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let start = start.checked_sub(length).filter(|_| length <= MOST_FOOTER);
    let Some(start) = start else { return Err(damaged(&format!("its footer has {length} bytes"))) };
    let bytes = file.bytes(start, length)?;
    thrift::check_footer(&bytes, 4 * MOST_COLUMNS).map_err(|_| damaged("its footer is damaged"))?;
    let read = || ParquetMetaDataReader::decode_metadata(&bytes);
    let metadata = contain(read).unwrap_or_else(|| Err(damaged("its footer is damaged")))?;
    let leaves = metadata.file_metadata().schema_descr().num_columns();
    if metadata.row_groups().iter().any(|group| group.num_columns() != leaves) {
        return Err(damaged("a row group has another number of columns than the schema"));
    }
    Ok(metadata)
}

impl ParquetRows {
    fn source(&self, kind: Kind) -> Source {
        match kind {
            Kind::Other(what) => Source::Other(what),
            Kind::Column { leaf, values } => Source::Column(Box::new(Column {
                leaf,
                kind: values,
                descriptor: self.metadata.file_metadata().schema_descr().column(leaf),
                reader: None,
                bits: Vec::new(),
                texts: Vec::new(),
                present: Vec::new(),
            })),
        }
    }

    /// Decodes the next rows. Returns `false` if there are none.
    fn fill(&mut self) -> ParquetResult<bool> {
        while self.left == 0 {
            if self.groups == self.metadata.num_row_groups() {
                return Ok(false);
            }
            let group = self.metadata.row_group(self.groups);
            self.left = usize::try_from(group.num_rows()).unwrap_or(0);
            for source in &mut self.sources {
                if let Source::Column(column) = source {
                    let chunk = group.column(column.leaf);
                    let pages = SerializedPageReader::new(Arc::clone(&self.file), chunk, self.left, None)?;
                    let pages = Pages { pages, descriptor: Arc::clone(&column.descriptor) };
                    column.reader = Some(get_column_reader(Arc::clone(&column.descriptor), Box::new(pages)));
                }
            }
            self.groups += 1;
        }
        self.decoded = self.chunk.min(self.left);
        for source in &mut self.sources {
            if let Source::Column(column) = source {
                column.fill(self.decoded)?;
            }
        }
        self.left -= self.decoded;
        self.place = 0;
        Ok(true)
    }
}

/// Returns the kind of a field. `leaf`: index of its first column of values.
fn kind(field: &Type, leaf: Option<usize>) -> Kind {
    let leaf = match leaf {
        Some(leaf) if field.is_primitive() && field.get_basic_info().repetition() != Repetition::REPEATED => leaf,
        _ => return Kind::Other("nested values"),
    };
    let info = field.get_basic_info();
    let (precision, scale) = (field.get_precision(), field.get_scale());
    let decimal = match (0..=MOST_SCALE).contains(&scale) && precision >= scale {
        true => Ok(ValueKind::Decimal { precision, scale }),
        false => Err("such decimals"),
    };
    let whole = |signed| if signed { ValueKind::Signed } else { ValueKind::Unsigned };
    let values = match (field.get_physical_type(), info.logical_type_ref(), info.converted_type()) {
        (Physical::INT96, ..) => Err("times"),
        (_, Some(LogicalType::Time(_) | LogicalType::Timestamp(_)), _) => Err("times"),
        (_, None, ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS) => Err("times"),
        (_, None, ConvertedType::TIMESTAMP_MILLIS | ConvertedType::TIMESTAMP_MICROS) => Err("times"),
        (_, Some(LogicalType::Date), _) | (_, None, ConvertedType::DATE) => Err("dates"),
        (Physical::BOOLEAN, ..) => Ok(ValueKind::Boolean),
        (Physical::FLOAT | Physical::DOUBLE, ..) => Ok(ValueKind::Float),
        (_, Some(LogicalType::Decimal(_)), _) | (_, None, ConvertedType::DECIMAL) => decimal,
        (Physical::INT32 | Physical::INT64, Some(LogicalType::Integer(integer)), _) => Ok(whole(integer.is_signed)),
        (Physical::INT32 | Physical::INT64, _, converted) => Ok(whole(!matches!(
            converted,
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64
        ))),
        (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Float16), _) => Ok(ValueKind::Half),
        (Physical::BYTE_ARRAY, Some(LogicalType::String | LogicalType::Enum | LogicalType::Json), _) => Ok(ValueKind::Text),
        (Physical::BYTE_ARRAY, None, ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON) => Ok(ValueKind::Text),
        _ => Err("raw bytes"),
    };
    values.map_or_else(Kind::Other, |values| Kind::Column { leaf, values })
}

impl Column {
    fn fill(&mut self, rows: usize) -> ParquetResult<()> {
        let Column { kind, descriptor, reader, bits, texts, present, .. } = self;
        bits.clear();
        texts.clear();
        present.clear();
        let kind = *kind;
        let rows = Wanted { rows, optional: descriptor.max_def_level() > 0 };
        match reader {
            Some(ColumnReader::BoolColumnReader(r)) => rows.read(r, bits, present, |v| Ok(u64::from(v))),
            Some(ColumnReader::Int32ColumnReader(r)) => rows.read(r, bits, present, |v| match kind {
                ValueKind::Decimal { precision, scale } => decimal(Decimal::from_i32(v, precision, scale)),
                ValueKind::Unsigned => Ok(u64::from(v as u32)),
                _ => Ok(i64::from(v) as u64),
            }),
            Some(ColumnReader::Int64ColumnReader(r)) => rows.read(r, bits, present, |v| match kind {
                ValueKind::Decimal { precision, scale } => decimal(Decimal::from_i64(v, precision, scale)),
                _ => Ok(v as u64),
            }),
            Some(ColumnReader::FloatColumnReader(r)) => rows.read(r, bits, present, |v| Ok(f64::from(v).to_bits())),
            Some(ColumnReader::DoubleColumnReader(r)) => rows.read(r, bits, present, |v| Ok(v.to_bits())),
            Some(ColumnReader::ByteArrayColumnReader(r)) if kind == ValueKind::Text => rows.read(r, texts, present, |v| match v
                .len()
            {
                size if size > MOST_CELL => Err(damaged(&format!("a text has {size} bytes; at most {MOST_CELL} can be read"))),
                _ => Ok(v),
            }),
            Some(ColumnReader::ByteArrayColumnReader(r)) => rows.read(r, bits, present, |v| of_bytes(v, kind, descriptor)),
            Some(ColumnReader::FixedLenByteArrayColumnReader(r)) => {
                rows.read(r, bits, present, |v| of_bytes(v.into(), kind, descriptor))
            }
            Some(ColumnReader::Int96ColumnReader(_)) | None => Err(damaged("a column is of another type than the schema says")),
        }
    }

    fn cell(&self, place: usize) -> Cell<'_> {
        if !self.present[place] {
            return Cell::Missing;
        }
        match self.kind {
            ValueKind::Boolean => Cell::Boolean(self.bits[place] != 0),
            ValueKind::Signed => Cell::whole(i128::from(self.bits[place] as i64)),
            ValueKind::Unsigned => Cell::whole(i128::from(self.bits[place])),
            ValueKind::Float | ValueKind::Half | ValueKind::Decimal { .. } => Cell::Number(f64::from_bits(self.bits[place])),
            ValueKind::Text => {
                std::str::from_utf8(self.texts[place].data()).map_or(Cell::Other("texts that are not UTF-8"), Cell::Text)
            }
        }
    }
}

/// Returns the bits of a decimal as a 64-bit number. It is converted through its text, which is exact.
fn decimal(value: Decimal) -> ParquetResult<u64> {
    let text = Field::Decimal(value).to_string();
    text.parse().map(f64::to_bits).map_err(|_| damaged(&format!("`{text}` is not a decimal")))
}

/// Returns the bits of a decimal, or of a number of 16 bits, as a 64-bit number.
fn of_bytes(value: ByteArray, kind: ValueKind, descriptor: &ColumnDescPtr) -> ParquetResult<u64> {
    match kind {
        ValueKind::Decimal { precision, scale } if value.len() <= MOST_DECIMAL => {
            decimal(Decimal::from_bytes(value, precision, scale))
        }
        ValueKind::Half => match Field::convert_byte_array(descriptor, value)? {
            Field::Float16(value) => Ok(value.to_f64().to_bits()),
            _ => Err(damaged("a number of 16 bits has another size")),
        },
        _ => Err(damaged(&format!("a decimal has {} bytes; at most {MOST_DECIMAL} can be read", value.len()))),
    }
}

/// Request to decode values of a column.
#[derive(Clone, Copy)]
struct Wanted {
    rows: usize,
    /// True if the column may contain nulls, which leave a value marked as missing.
    optional: bool,
}

impl Wanted {
    fn read<T: DataType, V: Default>(
        self,
        reader: &mut ColumnReaderImpl<T>,
        out: &mut Vec<V>,
        present: &mut Vec<bool>,
        convert: impl Fn(T::T) -> ParquetResult<V>,
    ) -> ParquetResult<()> {
        while out.len() < self.rows {
            let (mut values, mut levels) = (Vec::new(), Vec::new());
            let left = self.rows - out.len();
            let (records, _, _) = reader.read_records(left, self.optional.then_some(&mut levels), None, &mut values)?;
            if records == 0 || records > left {
                return Err(damaged("a column has fewer values than the file has rows"));
            }
            let mut values = values.into_iter();
            for row in 0..records {
                let is_there = !self.optional || levels.get(row).is_some_and(|level| *level > 0);
                let value = if is_there { values.next().map(&convert).transpose()? } else { Some(V::default()) };
                out.push(value.ok_or_else(|| damaged("a column has fewer values than it says"))?);
                present.push(is_there);
            }
        }
        Ok(())
    }
}

impl Rows for ParquetRows {
    fn only(&mut self, columns: &[usize]) {
        self.sources = (0..self.kinds.len()).map(|_| Source::Unused).collect();
        columns.iter().for_each(|field| self.sources[*field] = self.source(self.kinds[*field]));
        let is_text = |source: &Source| matches!(source, Source::Column(column) if column.kind == ValueKind::Text);
        self.chunk = if self.sources.iter().any(is_text) { CHUNK_OF_TEXTS } else { CHUNK };
    }

    fn advance(&mut self) -> Result<bool> {
        self.place += 1;
        if self.place >= self.decoded {
            let filled = contain(|| self.fill()).unwrap_or_else(|| Err(damaged("the file is damaged")));
            let problem = || format!("cannot read row {} of the Parquet file", self.row + 1);
            if !filled.map_err(|e| anyhow!(explain(&e))).with_context(problem)? {
                return Ok(false);
            }
        }
        self.row += 1;
        Ok(true)
    }

    fn cell(&self, column: usize) -> Cell<'_> {
        match &self.sources[column] {
            Source::Column(column) => column.cell(self.place),
            Source::Other(what) => Cell::Other(what),
            Source::Unused => Cell::Missing,
        }
    }

    fn format(&self) -> String {
        "Parquet".to_string()
    }

    fn line(&self) -> Option<u64> {
        None
    }

    fn count(&self) -> Option<usize> {
        let rows = |group: &RowGroupMetaData| usize::try_from(group.num_rows()).unwrap_or(0);
        Some(self.metadata.row_groups().iter().map(rows).fold(0, usize::saturating_add))
    }
}

/// The file as a source of chunks, which must lie inside it.
struct Chunks {
    file: File,
    size: u64,
}

impl Chunks {
    fn bytes(&self, start: u64, length: u64) -> ParquetResult<Vec<u8>> {
        if start.checked_add(length).is_none_or(|end| end > self.size) {
            return Err(damaged("a part of it lies beyond its end"));
        }
        let mut bytes = vec![0; length as usize];
        let mut file = &self.file;
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for Chunks {
    type T = Cursor<Vec<u8>>;

    /// Returns a reader at the page at `start` after checking the sizes in its header.
    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let rest = self.size.saturating_sub(start);
        let mut length = HEADER;
        loop {
            let bytes = self.bytes(start, length.min(rest))?;
            match thrift::page_sizes(&bytes) {
                Ok(PageSizes { uncompressed, compressed }) => {
                    let sizes = [uncompressed, compressed];
                    if !sizes.iter().all(|size| (0..=MOST_PAGE).contains(size)) || uncompressed > compressed * MOST_RATIO {
                        return Err(damaged(&format!(
                            "a page says that it has {uncompressed} bytes, compressed {compressed}; at most {MOST_PAGE} can be read"
                        )));
                    }
                    return Ok(Cursor::new(bytes));
                }
                Err(Fault::Short) if length < rest && length < MOST_HEADER => length *= 16,
                Err(_) => return Err(damaged("the header of a page is damaged")),
            }
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        Ok(self.bytes(start, length as u64)?.into())
    }
}

/// The pages of a column. Each is checked before its values are decoded.
struct Pages {
    pages: SerializedPageReader<Chunks>,
    descriptor: ColumnDescPtr,
}

impl Pages {
    fn check(&self, page: &Page) -> ParquetResult<()> {
        match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                let least = match self.descriptor.physical_type() {
                    Physical::BOOLEAN => 1,
                    Physical::INT32 | Physical::FLOAT | Physical::BYTE_ARRAY => 4,
                    Physical::INT64 | Physical::DOUBLE => 8,
                    Physical::INT96 => 12,
                    Physical::FIXED_LEN_BYTE_ARRAY => usize::try_from(self.descriptor.type_length()).unwrap_or(0).max(1),
                };
                if buf.len() > MOST_DICTIONARY {
                    let size = buf.len();
                    return Err(damaged(&format!("a dictionary has {size} bytes; at most {MOST_DICTIONARY} can be read")));
                }
                if (*num_values as usize).saturating_mul(least) > buf.len() {
                    return Err(damaged("a dictionary has fewer values than it says"));
                }
            }
            Page::DataPage { buf, num_values, encoding, def_level_encoding, .. } if is_of_lengths(*encoding) => {
                let levels = match (self.descriptor.max_def_level(), def_level_encoding) {
                    (0, _) => Some(0),
                    (_, Encoding::RLE) => {
                        let length = buf.first_chunk::<4>().map(|length| u32::from_le_bytes(*length) as usize);
                        length.and_then(|length| length.checked_add(4))
                    }
                    // Levels take one bit each, since nested columns are not read.
                    _ => Some((*num_values as usize).div_ceil(8)),
                };
                check_lengths(buf, levels, *num_values, *encoding)?;
            }
            Page::DataPageV2 { buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, .. }
                if is_of_lengths(*encoding) =>
            {
                let levels = (*def_levels_byte_len as usize).checked_add(*rep_levels_byte_len as usize);
                check_lengths(buf, levels, *num_values, *encoding)?;
            }
            Page::DataPage { .. } | Page::DataPageV2 { .. } => {}
        }
        Ok(())
    }
}

/// True if values are encoded with a list of lengths. The crate allocates memory for these before it reads them.
fn is_of_lengths(encoding: Encoding) -> bool {
    matches!(encoding, Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY)
}

/// Checks that the lists of lengths after the first `levels` bytes are not longer than the number of values.
fn check_lengths(bytes: &[u8], levels: Option<usize>, values: u32, encoding: Encoding) -> ParquetResult<()> {
    if encoding == Encoding::DELTA_BYTE_ARRAY && bytes.len() > MOST_SHARED {
        let size = bytes.len();
        return Err(damaged(&format!("a page of texts has {size} bytes; at most {MOST_SHARED} can be read in its encoding")));
    }
    let lists = if encoding == Encoding::DELTA_BYTE_ARRAY { 2 } else { 1 };
    let start = levels.and_then(|levels| bytes.get(levels..));
    let end = (0..lists).fold(start, |bytes, _| after_delta_stream(bytes?, u64::from(values)));
    end.map(|_| ()).ok_or_else(|| damaged("a page of texts has fewer lengths than it says"))
}

impl Iterator for Pages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.iter().try_for_each(|page| self.check(page))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.pages.skip_next_page()
    }
}

fn damaged(what: &str) -> ParquetError {
    ParquetError::General(what.to_string())
}

/// Returns the message without the crate's prefix "Parquet error:".
fn explain(error: &ParquetError) -> String {
    let text = error.to_string();
    text.strip_prefix("Parquet error: ").unwrap_or(&text).to_string()
}
