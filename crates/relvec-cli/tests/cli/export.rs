//! `relvec export`: what is written, and what is refused.

use std::fs;

use super::support::{Folder, class_table, regression_table};

fn fitted() -> Folder {
    let folder = Folder::with("d.csv", regression_table(40, ",")).add("c.csv", class_table(60));
    folder.fit("d.csv --target y -o m.json");
    folder.fit("c.csv --target kind -o kind.json");
    folder
}

#[test]
fn the_ending_says_the_format() {
    let folder = fitted();
    let run = folder.ok("export m.json -o m.onnx");
    assert_eq!(run.stdout, "");
    assert!(run.stderr.starts_with("Saved m.onnx (") && run.stderr.ends_with(" kB)\n"), "{}", run.stderr);
    let onnx = fs::read(folder.path("m.onnx")).unwrap();
    assert!(onnx.windows(6).any(|bytes| bytes == b"relvec"));
    folder.ok("export m.json -o m.bin --format onnx -q");
    assert_eq!(fs::read(folder.path("m.bin")).unwrap(), onnx);
    folder.ok("export kind.json -o kind.h");
    let header = folder.read("kind.h");
    assert!(header.contains("int model_class(const model_real *x)") && header.contains("{\"no\", \"yes\"}"), "{header}");
    assert!(header.contains("from x, in this order: u, v."), "{header}");
}

#[test]
fn options_of_the_formats_are_taken() {
    let folder = fitted();
    let size = |name: &str| fs::metadata(folder.path(name)).unwrap().len();
    folder.ok("export m.json -o all.onnx");
    folder.ok("export m.json -o small.onnx --no-std --precision float32");
    assert!(size("small.onnx") < size("all.onnx"));
    folder.ok("export m.json -o level.h --name level --precision double");
    let header = folder.read("level.h");
    assert!(header.contains("typedef double level_real;") && header.contains("void level_predict("), "{header}");
    folder.ok("export m.json -o level.h --name level --precision int16");
    assert!(
        folder.read("level.h").contains("16-bit tables (centres and triangles) change\n   a mean by"),
        "{}",
        folder.read("level.h")
    );
}

#[test]
fn what_cannot_be_exported_is_named() {
    let folder = fitted();
    folder.fails(2, "export m.json -o m.txt", &["--output m.txt", ".onnx", ".h", "--format"]);
    folder.fails(2, "export m.json -o m", &["--output m:", "--format"]);
    folder.fails(2, "export m.json -o m.onnx --precision double", &["--precision double", "float64, mixed, float32"]);
    folder.fails(2, "export m.json -o m.h --precision float64", &["--precision float64", "float, double, int16"]);
    folder.fails(2, "export m.json -o m.h --name 2nd", &["--name \"2nd\"", "expected a letter"]);
    folder.fails(2, "export m.json -o m.libsvm --name level", &["--precision and --name are for ONNX and C"]);
    folder.fails(1, "export m.json -o m.libsvm", &["model `m.json`", "relevance vector machine cannot be written"]);
    folder.fails(2, "export m.json -o m.onnx --name level", &["--name", "--format c"]);
    folder.fails(2, "export m.json -o m.json --format c", &["--output m.json", "would be overwritten"]);
    folder.fails(1, "export none.json -o m.h", &["`none.json`", "No such file"]);
    folder.fails(1, "export m.json -o nowhere/m.h", &["nowhere/m.h"]);
    folder.fails(1, "export d.csv -o m.h", &["model `d.csv`", "not JSON"]);
    let table: String = (0..40).map(|i| format!("{},{},{}\n", i, ["a", "b", "c"][i % 3], (i * i) % 37)).collect();
    let raw = Folder::with("raw.csv", format!("x,kind,y\n{table}"));
    raw.ok("fit raw.csv --target y -o raw.json");
    raw.ok("fit raw.csv --target y --machine svm --set formulation.c=1 --no-standardize -o svm.json");
    for line in ["raw.json -o m.onnx", "raw.json -o m.h", "svm.json -o m.libsvm"] {
        raw.fails(1, &format!("export {line}"), &["categories", "TableEncoder"]);
    }
    folder.fit("d.csv --target y --variance healed -o healed.json");
    for output in ["healed.onnx", "healed.h"] {
        folder.fails(
            1,
            &format!("export healed.json -o {output}"),
            &["model `healed.json`", "--variance healed", "--weight-prior process"],
        );
    }
}

#[test]
fn models_of_libsvm_are_written_and_read() {
    let folder = fitted();
    folder.ok("fit c.csv --target kind --machine svm --probability --no-standardize -o svm.json");
    folder.ok("export svm.json -o svm.libsvm");
    folder.ok("fit c.csv --target kind --machine svm -o scaled.json");
    folder.fails(1, "export scaled.json -o scaled.libsvm", &["standardisation of the features", "--no-standardize"]);
    assert!(folder.read("svm.libsvm").starts_with("svm_type c_svc\nkernel_type rbf\ngamma "), "{}", folder.read("svm.libsvm"));
    // Ten rows in the format of tables, with their predictions.
    let test = folder.read("svm.libsvm.test");
    assert!(test.lines().count() == 10 && test.lines().all(|line| line.contains(" 1:")), "{test}");
    let run = folder.ok("import svm.libsvm -o again.json");
    assert!(run.stderr.starts_with("Saved again.json (") && run.stderr.ends_with(", 2 features)\n"), "{}", run.stderr);
    // Without names the columns are taken in their order.
    let rows: String = folder.read("c.csv").lines().map(|line| line.rsplit_once(',').unwrap().0.to_string() + "\n").collect();
    let folder = folder.add("rows.csv", rows);
    let (_, before) = folder.ok("predict svm.json rows.csv").csv();
    let (_, after) = folder.ok("predict again.json rows.csv").csv();
    let number = |cell: &str| cell.parse::<f64>().unwrap();
    for (a, b) in before.iter().zip(&after) {
        assert_eq!(a[0], if b[0] == "0" { "no" } else { "yes" });
        assert!((number(&a[1]) - number(&b[1])).abs() < 1e-12, "{a:?} {b:?}");
    }
    folder.fails(1, "import c.csv -o x.json", &["`c.csv`: LIBSVM, line 1", "expected svm_type"]);
    folder.fails(1, "import none.libsvm -o x.json", &["`none.libsvm`", "No such file"]);
    folder.fails(1, "import svm.libsvm -o x.json --features 1", &["2 features: expected at most 1"]);
    folder.fails(2, "import svm.libsvm -o svm.libsvm", &["would be overwritten"]);
}
