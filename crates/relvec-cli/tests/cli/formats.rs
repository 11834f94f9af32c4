//! One table, in every format that is read: the same model from all of them.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use npyz::WriterBuilder;
use parquet::basic::Compression as ParquetCompression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};

use super::files::{doubles, npy, write_parquet};
use super::support::{Folder, class_table, regression_rows, regression_table};

const ROWS: usize = 40;

fn model_of(folder: &Folder, file: &str) -> String {
    folder.fit(&format!("{file} --target y -o m.json"));
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

/// Damage among the rows, where the footer is whole: an error that names the file, wherever it is seen at all.
#[test]
fn parquet_damaged_inside() {
    let folder = Folder::new();
    let rows = regression_rows(2000);
    let schema = "message table { required double a; required double b; required double y; }";
    for compression in [
        ParquetCompression::UNCOMPRESSED,
        ParquetCompression::SNAPPY,
        ParquetCompression::ZSTD(Default::default()),
        ParquetCompression::GZIP(Default::default()),
    ] {
        write_parquet(&folder.path("d.parquet"), schema, compression, |group| {
            (0..3).for_each(|k| doubles(group, &rows.iter().map(|r| r[k]).collect::<Vec<_>>()));
        });
        let good = std::fs::read(folder.path("d.parquet")).unwrap();
        // The first page's header, and places in the pages.
        for place in [4, 12, 30, 200, good.len() / 3, good.len() / 2] {
            let mut bad = good.clone();
            bad[place..place + 16].fill(0xff);
            std::fs::write(folder.path("d.parquet"), bad).unwrap();
            for stream in ["", " --stream"] {
                let line = format!(
                    "fit d.parquet --preset tipping2001 --target y --dictionary 5 --set max_iterations=2 -o m.json{stream}"
                );
                let run = folder.run(&line);
                if place < 30 {
                    assert_eq!(run.code, 1, "{compression} at {place}: {}", run.stderr);
                }
                // Numbers stored as they are may be others.
                assert!(run.code <= 1 && !run.stderr.contains("panicked"), "{compression} at {place}: {run:?}");
                assert!(run.code == 0 || run.stderr.contains("error: `d.parquet`"), "{compression} at {place}: {run:?}");
            }
        }
    }
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
    let run = folder.fit("d.parquet --target y --drop name --json");
    assert!(run.stderr.starts_with("Classification of `y` into 2 classes"), "{}", run.stderr);
    assert_eq!(run.json()["classes"], serde_json::json!(["false", "true"]));
    folder.fails(
        1,
        "fit d.parquet --target y -o m.json",
        &["row 2, column `name`: the cell is empty", "1 of 20 rows", "--missing"],
    );
    folder.fails(1, "fit d.parquet --target name --task classify -o m.json", &["row 2", "column `name`", "empty"]);
}

/// Every kind of number, beside columns that only the crate's row reader understands, in several row groups.
#[test]
fn parquet_columns_of_every_kind() {
    let schema = "message table { required int32 small (INTEGER(8,true)); optional int64 big; required int32 code (UINT_32);
        required float f; required binary word (UTF8); required int32 price (DECIMAL(9,2)); optional double y; }";
    let folder = Folder::new();
    write_parquet(&folder.path("d.parquet"), schema, ParquetCompression::SNAPPY, |group| {
        let n = 30i32;
        for column in 0..7 {
            let mut writer = group.next_column().unwrap().unwrap();
            let all: Vec<i16> = (0..n).map(|_| 1).collect();
            match column {
                0 => writer.typed::<Int32Type>().write_batch(&(0..n).map(|i| i - 15).collect::<Vec<_>>(), None, None),
                1 => writer.typed::<Int64Type>().write_batch(
                    &(0..n).map(|i| i64::from(i * i) << 20).collect::<Vec<_>>(),
                    Some(&all),
                    None,
                ),
                // Beyond the signed range.
                2 => writer.typed::<Int32Type>().write_batch(&(0..n).map(|i| i * 7 - 100).collect::<Vec<_>>(), None, None),
                3 => writer.typed::<parquet::data_type::FloatType>().write_batch(
                    &(0..n).map(|i| i as f32 * 0.5).collect::<Vec<_>>(),
                    None,
                    None,
                ),
                4 => writer.typed::<ByteArrayType>().write_batch(&vec![ByteArray::from("w"); 30], None, None),
                5 => writer.typed::<Int32Type>().write_batch(&(0..n).map(|i| i * 11).collect::<Vec<_>>(), None, None),
                _ => writer.typed::<parquet::data_type::DoubleType>().write_batch(
                    &(0..n).map(|i| f64::from(i).sin()).collect::<Vec<_>>(),
                    Some(&all),
                    None,
                ),
            }
            .unwrap();
            writer.close().unwrap();
        }
    });
    let mut text = "small,big,code,f,word,price,y\n".to_string();
    for i in 0..30i32 {
        let code = (i * 7 - 100) as u32;
        let price = f64::from(i * 11) / 100.0;
        text +=
            &format!("{},{},{code},{},w,{price},{}\n", i - 15, i64::from(i * i) << 20, f64::from(i) * 0.5, f64::from(i).sin());
    }
    let folder = folder.add("d.csv", text);
    folder.fit("d.csv --target y -o csv.json");
    let run = folder.fit("d.parquet --target y -o parquet.json");
    assert_eq!(folder.read("csv.json"), folder.read("parquet.json"));
    assert!(run.stderr.contains("warning: constant features have no effect: word=w"), "{}", run.stderr);
}

/// The columns of a Parquet file as texts, by name; a null is an empty text.
fn columns_of(path: &std::path::Path) -> Vec<(String, Vec<String>)> {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut columns: Vec<(String, Vec<String>)> = vec![];
    for row in reader.get_row_iter(None).unwrap() {
        for (k, (name, field)) in row.unwrap().get_column_iter().enumerate() {
            if columns.len() == k {
                columns.push((name.clone(), vec![]));
            }
            columns[k].1.push(match field {
                Field::Null => String::new(),
                Field::Double(value) => format!("{value:?}"),
                Field::Bool(value) => value.to_string(),
                Field::Str(text) => text.clone(),
                other => panic!("{other:?}"),
            });
        }
    }
    columns
}

#[test]
fn predictions_are_written_as_parquet() {
    let folder = Folder::with("d.csv", regression_table(ROWS, ",")).add("k.csv", class_table(60));
    folder.fit("d.csv --target y -o m.json");
    folder.fit("k.csv --target kind -o k.json");
    let gaps = "a,b\n1,2\n,3\nNA,4\n5,6\n7,\n";
    let folder = folder.add("gaps.csv", gaps);
    for (line, names) in [
        ("m.json d.csv --quantiles 0.05,0.5", "prediction,std,lower,upper,quantile_0.05,quantile_0.5"),
        ("m.json gaps.csv --missing drop", "prediction,std,lower,upper"),
        ("m.json d.csv --samples 2", "prediction,std,lower,upper,sample_1,sample_2"),
        ("k.json k.csv --reject 0.9", "prediction,probability_no,probability_yes,rejected"),
        ("k.json k.csv --costs no:yes=1,yes:no=2", "prediction,probability_no,probability_yes,expected_cost"),
    ] {
        folder.ok(&format!("predict {line} -o p.csv"));
        folder.ok(&format!("predict {line} -o p.Parquet"));
        let (header, rows) = super::support::parse_csv(&folder.read("p.csv"));
        let columns = columns_of(&folder.path("p.Parquet"));
        assert_eq!(header.join(","), names);
        assert_eq!(columns.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), header);
        for (k, (name, values)) in columns.iter().enumerate() {
            assert_eq!(*values, rows.iter().map(|row| row[k].clone()).collect::<Vec<_>>(), "{line}: {name}");
        }
    }
    // What was written is read again, as a table.
    folder.ok("predict m.json d.csv -o p.parquet");
    let text = folder.ok("describe p.parquet").stdout;
    assert!(text.starts_with("p.parquet: 40 rows, 4 columns; Parquet"), "{text}");
    folder.fails(1, "predict m.json none.csv -o q.parquet", &["`none.csv`"]);
}

#[test]
fn npy_is_the_same_table() {
    let rows = regression_rows(ROWS);
    let folder = Folder::with("d.csv", regression_table(ROWS, ",").replacen("a,b,y", "0,1,2", 1));
    folder.fit("d.csv --target 2 -o csv.json");
    npy(&folder.path("d.npy"), &rows);
    for target in ["2", "-1"] {
        folder.fit(&format!("d.npy --target {target} -o npy.json"));
        assert_eq!(folder.read("npy.json"), folder.read("csv.json"));
    }
    // Columns one after the other; other byte order; single precision: all are numbers.
    let by_columns: Vec<f64> = (0..3).flat_map(|k| rows.iter().map(move |r| r[k])).collect();
    let file = std::fs::File::create(folder.path("fortran.npy")).unwrap();
    let options = npyz::WriteOptions::new().dtype(npyz::DType::Plain(">f8".parse().unwrap()));
    let mut writer = options.shape(&[ROWS as u64, 3]).order(npyz::Order::Fortran).writer(file).begin_nd().unwrap();
    writer.extend(by_columns).unwrap();
    writer.finish().unwrap();
    folder.fit("fortran.npy --target 2 -o npy.json");
    assert_eq!(folder.read("npy.json"), folder.read("csv.json"));
    let singles: Vec<[f32; 3]> = rows.iter().map(|r| r.map(|v| v as f32)).collect();
    npy(&folder.path("single.npy"), &singles);
    folder.fit("single.npy --target 2 -o single.json");

    let predicted = folder.ok("predict csv.json d.csv").stdout;
    assert_eq!(folder.ok("predict csv.json d.npy").stdout, predicted);
    // The features alone, by their order; also for a model whose features have other names.
    let features: Vec<[f64; 2]> = rows.iter().map(|r| [r[0], r[1]]).collect();
    npy(&folder.path("x.npy"), &features);
    assert_eq!(folder.ok("predict csv.json x.npy").stdout, predicted);
    let folder = folder.add("named.csv", regression_table(ROWS, ","));
    folder.fit("named.csv --target y -o named.json");
    assert_eq!(folder.ok("predict named.json x.npy").stdout, predicted);
    folder.fails(1, "predict named.json d.npy", &["2 features", "missing: a, b", "0, 1, 2"]);
}

/// Rows as svmlight has them: the label, then features that are not zero, counted from `first`.
fn svmlight(rows: &[[f64; 3]], first: usize) -> String {
    let line = |r: &[f64; 3]| {
        let entries = (0..2).filter(|k| r[*k] != 0.0).map(|k| format!(" {}:{}", k + first, r[k]));
        format!("{}{}\n", r[2], entries.collect::<String>())
    };
    rows.iter().map(line).collect()
}

#[test]
fn svmlight_is_the_same_table() {
    let mut rows = regression_rows(ROWS);
    rows[3][1] = 0.0;
    rows[7][0] = 0.0;
    let csv = |names: &str| {
        let lines = rows.iter().map(|r| format!("{},{},{}\n", r[0], r[1], r[2])).collect::<String>();
        format!("{names}\n{lines}")
    };
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(svmlight(&rows, 1).as_bytes()).unwrap();
    let folder = Folder::with("one.csv", csv("1,2,label"))
        .add("zero.csv", csv("0,1,label"))
        .add("one.svm", svmlight(&rows, 1))
        .add("commented.libsvm", svmlight(&rows, 1).replace('\n', " # a comment\r\n\n"))
        .add("packed.svmlight.gz", gzip.finish().unwrap())
        .add("zero.svmlight", svmlight(&rows, 0));
    for name in ["one", "zero"] {
        folder.fit(&format!("{name}.csv --target label -o {name}.json"));
    }
    for (file, same) in
        [("one.svm", "one"), ("commented.libsvm", "one"), ("packed.svmlight.gz", "one"), ("zero.svmlight", "zero")]
    {
        folder.fit(&format!("{file} --target label -o m.json"));
        assert_eq!(folder.read("m.json"), folder.read(&format!("{same}.json")), "{file}");
    }
    let predicted = folder.ok("predict one.json one.csv").stdout;
    assert_eq!(folder.ok("predict one.json one.svm").stdout, predicted);
    assert_eq!(
        folder.ok("score one.json one.svm").stdout,
        folder.ok("score one.json one.csv").stdout.replace("one.csv", "one.svm")
    );
    let text = folder.ok("describe zero.svmlight").stdout;
    assert!(text.starts_with("zero.svmlight: 40 rows, 3 columns; svmlight"), "{text}");
}

/// Zeros are not written, so that a table need not mention the last features of a model.
#[test]
fn svmlight_features_that_a_table_leaves_out_are_zeros() {
    let folder = Folder::with("d.svm", svmlight(&regression_rows(ROWS), 1))
        .add("new.svm", "0 1:0.5\n0\n")
        .add("new.csv", "1,2\n0.5,0\n0,0\n")
        .add("wide.svm", "0 1:0.5 9:1\n0\n");
    folder.fit("d.svm --target label -o m.json");
    folder.ok("fit d.svm --target label --no-standardize --machine svm -o raw.json");
    for model in ["m.json", "raw.json"] {
        let predicted = folder.ok(&format!("predict {model} new.csv")).stdout;
        assert_eq!(folder.ok(&format!("predict {model} new.svm")).stdout, predicted);
        let wide = folder.ok(&format!("predict {model} wide.svm"));
        assert_eq!(wide.stdout, predicted);
        assert!(wide.stderr.contains("not used by the model: 3, 4, 5, 6, 7, 8, 9"), "{}", wide.stderr);
    }
    let folder = folder.add("named.csv", regression_table(ROWS, ","));
    folder.fit("named.csv --target y -o named.json");
    folder.fails(1, "predict named.json d.svm", &["2 features", "missing: a, b", "1, 2, label"]);
}

#[test]
fn svmlight_files_that_are_no_tables() {
    for (text, fragments) in [
        ("", &["`d.svm`", "no rows"][..]),
        ("# nothing\n", &["no rows"]),
        ("1\n2\n", &["no features", "index:value"]),
        ("1 1:2\n\n2 2:1 1:1\n", &["row 2 (line 3)", "the index 1 follows 2", "ascending"]),
        ("1 1:2\na,b,c\n", &["row 2 (line 2)", "`a,b,c` names several classes"]),
        ("1 1:2\n1 1:nan\n", &["row 2 (line 2), column `1`: the cell is NaN"]),
        ("1 1:2\n1 1:inf\n", &["row 2 (line 2), column `1`: inf is not allowed"]),
    ] {
        Folder::with("d.svm", text).fails(1, "fit d.svm --target label -o m.json", fragments);
    }
}

#[test]
fn npy_files_that_are_no_tables() {
    let folder = Folder::with("cut.npy", "\u{93}NUMPY");
    npy(&folder.path("d.npy"), &regression_rows(ROWS));
    let bytes = std::fs::read(folder.path("d.npy")).unwrap();
    std::fs::write(folder.path("cut.npy"), &bytes[..bytes.len() - 1]).unwrap();
    folder.fails(1, "fit cut.npy --target 2 -o m.json", &["`cut.npy`", "cut off", "40 rows of 3"]);
    folder.fails(1, "fit d.npy --target 3 -o m.json", &["no column `3`", "0, 1, 2"]);
    folder.fails(1, "fit d.npy --target -4 -o m.json", &["no column `-4`"]);
    std::fs::write(folder.path("cut.npy"), &bytes[..20]).unwrap();
    folder.fails(1, "fit cut.npy --target 2 -o m.json", &["header of the .npy file"]);
    let file = std::fs::File::create(folder.path("flat.npy")).unwrap();
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(&[3]).writer(file).begin_nd().unwrap();
    writer.extend([1.0, 2.0, 3.0]).unwrap();
    writer.finish().unwrap();
    folder.fails(1, "fit flat.npy --target 0 -o m.json", &["1 dimension", "rows and columns"]);
    let mut rows = regression_rows(ROWS);
    rows[6][1] = f64::NAN;
    npy(&folder.path("d.npy"), &rows);
    folder.fails(1, "fit d.npy --target 2 -o m.json", &["row 7, column `1`: the cell is NaN, a missing value", "--missing"]);
}
