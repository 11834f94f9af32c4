//! Tables as binary files.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use npyz::WriterBuilder;
use parquet::basic::Compression;
use parquet::data_type::DoubleType;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// Writes one row group; `fill` writes the columns in the order of the schema.
pub fn write_parquet(path: &Path, schema: &str, compression: Compression, fill: impl Fn(&mut SerializedRowGroupWriter<File>)) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    fill(&mut group);
    group.close().unwrap();
    writer.close().unwrap();
}

pub fn doubles(group: &mut SerializedRowGroupWriter<File>, values: &[f64]) {
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(values, None, None).unwrap();
    column.close().unwrap();
}

/// Writes a table of numbers in row groups of `group` rows.
pub fn parquet<const D: usize>(path: &Path, names: [&str; D], rows: &[[f64; D]], group: usize) {
    let fields: String = names.iter().map(|n| format!("required double {n}; ")).collect();
    let schema = Arc::new(parse_message_type(&format!("message table {{ {fields} }}")).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
    for part in rows.chunks(group) {
        let mut group = writer.next_row_group().unwrap();
        (0..D).for_each(|k| doubles(&mut group, &part.iter().map(|r| r[k]).collect::<Vec<_>>()));
        group.close().unwrap();
    }
    writer.close().unwrap();
}

/// Writes a matrix row after row.
pub fn npy<T: npyz::AutoSerialize + Copy, const D: usize>(path: &Path, rows: &[[T; D]]) {
    let file = std::io::BufWriter::new(File::create(path).unwrap());
    let options = npyz::WriteOptions::new().default_dtype().shape(&[rows.len() as u64, D as u64]);
    let mut writer = options.writer(file).begin_nd().unwrap();
    writer.extend(rows.iter().flatten().copied()).unwrap();
    writer.finish().unwrap();
}
