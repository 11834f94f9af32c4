//! Writers of predictions as CSV or Parquet, chosen by the name of the file.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Error, Result, bail};
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

/// Receiver of rows of texts.
pub(crate) trait Sink {
    /// Writes the header, before the first row.
    fn begin(&mut self, header: &[String]) -> Result<()>;
    fn row(&mut self, cells: &[String]) -> Result<()>;
    /// Called after a block: the rows so far may be written.
    fn end_block(&mut self) -> Result<()>;
    /// Writes the remaining rows.
    fn finish(&mut self) -> Result<()>;
}

/// Type of a column of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Number,
    Text,
    Boolean,
}

/// True if the name of a file has the ending of Parquet.
pub(crate) fn is_parquet(path: Option<&Path>) -> bool {
    path.and_then(Path::extension).is_some_and(|extension| extension.eq_ignore_ascii_case("parquet"))
}

/// Writer of comma-separated rows.
pub(crate) struct CsvSink<'a> {
    writer: csv::Writer<&'a mut dyn Write>,
}

impl<'a> CsvSink<'a> {
    pub fn new(file: &'a mut dyn Write) -> CsvSink<'a> {
        CsvSink { writer: csv::Writer::from_writer(file) }
    }
}

impl Sink for CsvSink<'_> {
    fn begin(&mut self, header: &[String]) -> Result<()> {
        self.row(header)
    }

    fn row(&mut self, cells: &[String]) -> Result<()> {
        let written = self.writer.write_record(cells).map_err(|e| match e.into_kind() {
            // The error is kept unchanged, since its kind identifies a closed pipe.
            csv::ErrorKind::Io(e) => e,
            other => io::Error::other(format!("{other:?}")),
        });
        written.context("cannot write the predictions")
    }

    fn end_block(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.writer.flush().context("cannot write the predictions")
    }
}

/// Rows of a row group. Readers are efficient with many rows in each group. For narrow tables this is about a block of
/// rows in memory.
const GROUP: usize = 1 << 17;

/// A Parquet file, compressed with zstd.
pub(crate) struct ParquetSink<'a> {
    /// The file, until the header is written.
    file: Option<&'a mut (dyn Write + Send)>,
    writer: Option<SerializedFileWriter<&'a mut (dyn Write + Send)>>,
    kinds: Vec<Kind>,
    /// Cells of each column in the rows that are not written yet.
    columns: Vec<Vec<String>>,
}

impl<'a> ParquetSink<'a> {
    pub fn new(file: &'a mut (dyn Write + Send), kinds: Vec<Kind>) -> ParquetSink<'a> {
        let columns = vec![vec![]; kinds.len()];
        ParquetSink { file: Some(file), writer: None, kinds, columns }
    }

    /// Writes the collected rows.
    fn write(&mut self) -> Result<()> {
        let (Some(writer), false) = (&mut self.writer, self.columns[0].is_empty()) else { return Ok(()) };
        let mut group = writer.next_row_group().map_err(failed)?;
        for (cells, kind) in self.columns.iter_mut().zip(&self.kinds) {
            match kind {
                Kind::Number => column::<DoubleType>(&mut group, cells, |cell| cell.parse().ok())?,
                Kind::Boolean => column::<BoolType>(&mut group, cells, |cell| cell.parse().ok())?,
                Kind::Text => column::<ByteArrayType>(&mut group, cells, |cell| Some(ByteArray::from(cell)))?,
            }
            cells.clear();
        }
        group.close().map_err(failed)?;
        Ok(())
    }
}

/// Returns the schema of a column that may have no value in some rows.
fn field(name: &str, kind: Kind) -> Result<Arc<Type>> {
    let physical = match kind {
        Kind::Number => Physical::DOUBLE,
        Kind::Boolean => Physical::BOOLEAN,
        Kind::Text => Physical::BYTE_ARRAY,
    };
    let builder = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
    let builder = match kind {
        Kind::Text => builder.with_logical_type(Some(LogicalType::String)).with_converted_type(ConvertedType::UTF8),
        _ => builder,
    };
    Ok(Arc::new(builder.build().map_err(failed)?))
}

/// Writes a column. An empty cell becomes a missing value.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, &mut (dyn Write + Send)>,
    cells: &[String],
    value: impl Fn(&str) -> Option<T::T>,
) -> Result<()> {
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(!cell.is_empty())).collect();
    let there = cells.iter().filter(|cell| !cell.is_empty());
    let values = there.map(|cell| value(cell).with_context(|| format!("`{cell}` is not a value of its column")));
    let values = values.collect::<Result<Vec<_>>>()?;
    let Some(mut writer) = group.next_column().map_err(failed)? else {
        bail!("the Parquet file has fewer columns than its rows")
    };
    writer.typed::<T>().write_batch(&values, Some(&levels), None).map_err(failed)?;
    writer.close().map_err(failed)
}

impl Sink for ParquetSink<'_> {
    fn begin(&mut self, header: &[String]) -> Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let fields = header.iter().zip(&self.kinds).map(|(name, kind)| field(name, *kind)).collect::<Result<_>>()?;
        let schema = Type::group_type_builder("predictions").with_fields(fields).build().map_err(failed)?;
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        self.writer = Some(SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).map_err(failed)?);
        Ok(())
    }

    fn row(&mut self, cells: &[String]) -> Result<()> {
        self.columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell.clone()));
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        if self.columns[0].len() >= GROUP { self.write() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<()> {
        self.write()?;
        match self.writer.take() {
            Some(writer) => writer.close().map(drop).map_err(failed),
            None => Ok(()),
        }
    }
}

/// Wraps an error of the Parquet crate. An error of the file inside it is kept.
fn failed(error: parquet::errors::ParquetError) -> Error {
    Error::new(error).context("cannot write the predictions")
}
