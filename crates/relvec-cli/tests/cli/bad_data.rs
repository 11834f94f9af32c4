//! Bad tables and unwritable outputs: exit code 1, one message that says where and what.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::support::{Folder, class_table, regression_table};

const FIT: &str = "fit d.csv --target y -o m.json";

#[track_caller]
fn refused(table: impl AsRef<[u8]>, fragments: &[&str]) {
    Folder::with("d.csv", table).fails(1, FIT, fragments);
}

#[test]
fn files_that_are_no_tables() {
    Folder::new().fails(1, FIT, &["`d.csv`", "No such file"]);
    Folder::new().fails(1, "fit . --target y -o m.json", &["folder"]);
    refused("", &["`d.csv`", "empty"]);
    refused("\n  \n", &["empty"]);
    refused("a,y\n", &["no rows below the header"]);
    refused(b"a,y\n1,\xff\xfe\n2,3\n", &["row 1 (line 2)", "UTF-8"]);
    refused(b"\xff\xfea\0,\0y\0", &["header", "UTF-8"]);
    refused(b"PAR1 and then nothing of the kind", &["Parquet"]);
}

#[test]
fn a_compressed_file_cut_off() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(regression_table(2000, ",").as_bytes()).unwrap();
    let bytes = encoder.finish().unwrap();
    refused(&bytes[..bytes.len() / 2], &["cut off"]);
    refused([&[0x1f, 0x8b], &b"nothing of the kind"[..]].concat(), &["cannot read"]);
}

#[test]
fn columns_that_do_not_exist_or_have_two_roles_are_refused() {
    let folder = Folder::with("d.csv", "a,b,c\n1,2,3\n4,5,6\n");
    folder.fails(1, FIT, &["no column `y`", "the target", "a, b, c"]);
    folder.fails(1, "fit d.csv --target a --weights w -o m.json", &["no column `w`", "the weights", "a, b, c"]);
    folder.fails(1, "fit d.csv --target a --drop q -o m.json", &["no column `q`", "to drop", "a, b, c"]);
    folder.fails(1, "fit d.csv --target a --drop b,c -o m.json", &["no feature"]);
    refused("a,y,a\n1,2,3\n", &["`a` twice", "1 and 3"]);
    refused(",a,y\n1,2,3\n", &["column 1", "no name"]);
    refused("a;b;y\n1;2\n", &["row 1 (line 2)", "2 cells", "3"]);
    refused("a,y\n1,2\n3,4,5\n", &["row 2 (line 3)", "3 cells", "2"]);
}

#[test]
fn bad_cells_are_named_by_row_and_column() {
    refused("a,y\n1,2\n3,4\nx7,6\n", &["row 3 (line 4)", "column `a`", "`x7` is not a number"]);
    refused("a,y\n1,2\n,4\n", &["row 2", "column `a`", "empty", "1 of 2 rows: a 1", "--missing"]);
    refused("a,y\n1,2\n3,\n", &["row 2", "column `y`", "empty", "--missing drop"]);
    refused("a,y\n1,2\nNaN,4\n", &["row 2", "column `a`", "`NaN`, a missing value", "--missing"]);
    refused("a,y\n1,2\n-inf,4\n", &["column `a`", "-inf", "finite"]);
    refused("a,y\n1,2\n1e999,4\n", &["column `a`", "inf", "finite"]);
    refused("a,y\n1,2\n3,nan\n", &["column `y`", "`nan`, a missing value", "--missing drop"]);
    refused("a,y\n1,2\nNA,4\n", &["`NA`, a missing value", "--missing"]);
    refused("a,y\n1,2\n\"1,5\",4\n", &["`1,5`", "decimal point"]);
    // One bad cell at the very top does not make a text column.
    refused("a,y\noops,2\n3,4\n5,6\n", &["row 1", "column `a`", "`oops`"]);
}

#[test]
fn targets_that_cannot_be_learned_are_refused() {
    let classify = "fit d.csv --target y --task classify -o m.json";
    let folder = |table: &str| Folder::with("d.csv", table);
    folder("a,y\n1,p\n2,p\n3,p\n").fails(1, FIT, &["one class only", "`p`"]);
    folder("a,y\n1,7\n2,7\n3,7\n").fails(1, classify, &["one class only", "`7`"]);
    folder("a,y\n1,p\n2,p\n3,p\n").fails(1, FIT, &["one class only", "`p`"]);
    folder("a,y\n1,p\n2,q\n3,r\n").fails(2, &format!("{FIT} --multi-class all"), &["--multi-class", "one_vs_rest"]);
    folder("a,y\n1,1\n2,2\n3,oops\n").fails(1, FIT, &["row 3", "column `y`", "`oops`", "--task classify"]);
    folder("a,y\n1,p\n2,q\n").fails(1, "fit d.csv --target y --task regress -o m.json", &["row 1", "`p`", "--task classify"]);
    folder("a,y\n1,2\n").fails(1, FIT, &["1 row", "at least 2"]);
}

#[test]
fn bad_weights_are_refused() {
    let line = "fit d.csv --target y --weights w -o m.json";
    let folder = |table: &str| Folder::with("d.csv", table);
    folder("a,w,y\n1,1,1\n2,-1,2\n3,1,3\n").fails(1, line, &["row 2", "column `w`", "negative"]);
    folder("a,w,y\n1,1,1\n2,x,2\n3,1,3\n").fails(1, line, &["row 2", "column `w`", "`x`"]);
    folder("a,w,y\n1,0,1\n2,0,2\n3,1,3\n").fails(1, line, &["1 row", "at least 2"]);
}

#[test]
fn as_many_scales_as_features() {
    let folder = Folder::with("d.csv", regression_table(20, ","));
    folder.fails(1, "fit d.csv --target y --set kernel.gamma=[1,2,3] -o m.json", &["gamma", "3 values", "2"]);
}

#[test]
fn unwritable_outputs_fail_before_the_work() {
    let folder = Folder::with("d.csv", regression_table(20, ","));
    folder.fails(1, "fit d.csv --target y -o none/m.json", &["cannot write `none/m.json`", "no folder"]);
    folder.fails(1, "fit d.csv --target y -o .", &["cannot write `.`", "folder"]);
    folder.fails(1, "fit d.csv --target y -o d.csv/m.json", &["cannot write"]);
    // The data are not read first: there are none.
    folder.fails(1, "fit none.csv --target y -o none/m.json", &["cannot write"]);
    folder.fit("d.csv --target y -o m.json");
    folder.fails(1, "predict m.json d.csv -o none/p.csv", &["cannot write `none/p.csv`", "no folder"]);
    folder.fails(1, "predict m.json none.csv -o p.csv", &["No such file"]);
    folder.fails(1, "demo --out d.csv", &["cannot create the folder", "d.csv"]);
}

#[test]
fn an_old_output_survives_a_failure() {
    let folder = Folder::with("d.csv", regression_table(20, ",")).add("p.csv", "kept").add("bad.csv", "a,b\n1,2\n3,x\n");
    folder.fit("d.csv --target y -o m.json");
    folder.fails(1, "predict m.json bad.csv -o p.csv", &["row 2", "`x`"]);
    assert_eq!(folder.read("p.csv"), "kept");
}

#[test]
fn predict_needs_the_features_of_the_model() {
    let folder = Folder::with("d.csv", regression_table(20, ","))
        .add("other.csv", "a,c\n1,2\n")
        .add("none.csv", "q,r\n1,2\n")
        .add("twice.csv", "a,b,a\n1,2,3\n")
        .add("header.csv", "a,b\n")
        .add("text.csv", "a,b\n1,2\n1,x\n");
    folder.fit("d.csv --target y -o m.json");
    folder.fails(1, "predict m.json other.csv -o p.csv", &["`other.csv`", "1 feature", "missing: b", "a, c"]);
    folder.fails(1, "predict m.json none.csv", &["2 features", "missing: a, b"]);
    folder.fails(1, "predict m.json twice.csv", &["`a` twice"]);
    folder.fails(1, "predict m.json header.csv -o p.csv", &["no rows"]);
    folder.fails(1, "predict m.json text.csv -o p.csv", &["row 2 (line 3)", "column `b`", "`x`"]);
}

#[test]
fn classes_in_a_file_of_weights_zero() {
    // What is left is one class: the core says so.
    let mut table = class_table(12).replace("kind", "kind,w");
    table = table.replace("yes\n", "yes,1\n").replace("no\n", "no,0\n");
    let folder = Folder::with("d.csv", table);
    let run = folder.run("fit d.csv --target kind --weights w -o m.json");
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("rows of two classes are needed"), "{run:?}");
}
