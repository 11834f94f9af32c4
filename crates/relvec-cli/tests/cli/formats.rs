//! One table, in every format that is read: the same model from all of them.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use parquet::basic::Compression as ParquetCompression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::support::{Folder, class_table, regression_rows, regression_table};

const ROWS: usize = 40;

fn model_of(folder: &Folder, file: &str) -> String {
    folder.ok(&format!("fit {file} --target y -o m.json"));
    folder.read("m.json")
}

#[test]
fn comma_semicolon_tab_and_gzip_are_the_same_table() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(regression_table(ROWS, ",").as_bytes()).unwrap();
    let folder = Folder::with("comma.csv", regression_table(ROWS, ","))
        .add("semicolon.csv", regression_table(ROWS, ";"))
        .add("tab.tsv", regression_table(ROWS, "\t"))
        .add("crlf.csv", regression_table(ROWS, ",").replace('\n', "\r\n"))
        .add("bom.csv", format!("\u{feff}{}", regression_table(ROWS, ",")))
        .add("spaces.csv", regression_table(ROWS, " , "))
        .add("packed.csv.gz", gzip.finish().unwrap());
    let model = model_of(&folder, "comma.csv");
    for file in ["semicolon.csv", "tab.tsv", "crlf.csv", "bom.csv", "spaces.csv", "packed.csv.gz"] {
        assert_eq!(model_of(&folder, file), model, "{file}");
    }
}

#[test]
fn quoted_names_and_labels() {
    let table = class_table(40).replace("u,v,kind", "\"u, first\",v,\"the \"\"kind\"\"\"").replace("yes", "\"yes, sir\"");
    let folder = Folder::with("d.csv", table);
    folder.run_args(&["fit", "d.csv", "--target", "the \"kind\"", "-o", "m.json"]);
    let summary = folder.ok("inspect m.json --json").json();
    assert_eq!(summary["features"], serde_json::json!(["u, first", "v"]));
    assert_eq!(summary["classes"], serde_json::json!(["no", "yes, sir"]));
    let (header, rows) = folder.ok("predict m.json d.csv").csv();
    assert_eq!(header, ["prediction", "probability_no", "probability_yes, sir"]);
    assert_eq!(rows.len(), 40);
}

/// Writes one row group; `fill` writes the columns in the order of the schema.
fn write_parquet(path: &Path, schema: &str, compression: ParquetCompression, fill: impl Fn(&mut SerializedRowGroupWriter<File>)) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    fill(&mut group);
    group.close().unwrap();
    writer.close().unwrap();
}

fn doubles(group: &mut SerializedRowGroupWriter<File>, values: &[f64]) {
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(values, None, None).unwrap();
    column.close().unwrap();
}

#[test]
fn parquet_is_the_same_table() {
    let folder = Folder::with("d.csv", regression_table(ROWS, ","));
    let model = model_of(&folder, "d.csv");
    let rows = regression_rows(ROWS);
    let compressions = [
        ParquetCompression::UNCOMPRESSED,
        ParquetCompression::SNAPPY,
        ParquetCompression::ZSTD(Default::default()),
        ParquetCompression::GZIP(Default::default()),
    ];
    for compression in compressions {
        let schema = "message table { required double a; required double b; required double y; }";
        write_parquet(&folder.path("d.parquet"), schema, compression, |group| {
            for column in 0..3 {
                doubles(group, &rows.iter().map(|r| r[column]).collect::<Vec<_>>());
            }
        });
        assert_eq!(model_of(&folder, "d.parquet"), model, "{compression:?}");
    }
    assert_eq!(folder.ok("predict m.json d.parquet").stdout, folder.ok("predict m.json d.csv").stdout);
}

#[test]
fn parquet_types_and_nulls() {
    let folder = Folder::new();
    let schema = "message table { required int64 n; required double v; required boolean y; optional binary name (UTF8); }";
    write_parquet(&folder.path("d.parquet"), schema, ParquetCompression::SNAPPY, |group| {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&(0..20).collect::<Vec<i64>>(), None, None).unwrap();
        column.close().unwrap();
        doubles(group, &(0..20).map(|i| f64::from(i % 7)).collect::<Vec<_>>());
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<BoolType>().write_batch(&(0..20).map(|i| i % 7 > 2).collect::<Vec<_>>(), None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        // The second value is null.
        let names = vec![ByteArray::from("some"); 19];
        let levels: Vec<i16> = (0..20).map(|i| i16::from(i != 1)).collect();
        column.typed::<ByteArrayType>().write_batch(&names, Some(&levels), None).unwrap();
        column.close().unwrap();
    });
    let run = folder.ok("fit d.parquet --target y --drop name --json");
    assert!(run.stderr.contains("task classify"), "{}", run.stderr);
    assert_eq!(run.json()["classes"], serde_json::json!(["false", "true"]));
    folder.fails(1, "fit d.parquet --target y -o m.json", &["column `name` holds text", "--drop name"]);
    folder.fails(1, "fit d.parquet --target name --task classify -o m.json", &["row 2", "column `name`", "empty"]);
}
