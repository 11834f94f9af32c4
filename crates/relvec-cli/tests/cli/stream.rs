//! Tables read in blocks: the same model as from memory, from every format; and what goes wrong on the way.

use std::fs;
use std::io::Write;
use std::ops::Range;
#[cfg(unix)]
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use ndarray::{Array1, Array2, s};
use relvec::{Model, RowPlan, Rvm, Status, Targets};

use super::files::{npy, parquet};
use super::support::{Folder, class_table, noise, regression_rows, regression_table};

const ROWS: usize = 3000;
const NAMES: [&str; 3] = ["a", "b", "y"];

/// The text of a table; numbers come back as they are.
pub fn text(names: [&str; 3], rows: &[[f64; 3]]) -> String {
    let mut text = names.join(",") + "\n";
    rows.iter().for_each(|r| text += &(r.map(|v| v.to_string()).join(",") + "\n"));
    text
}

pub fn model(folder: &Folder, name: &str) -> Model {
    Model::from_json(&folder.read(name)).unwrap()
}

#[track_caller]
/// The precisions are those of two searches: at the same ones, nine digits agree (`relvec/tests/suite/statistics.rs`).
fn same(a: &Model, b: &Model) {
    assert!(
        (a.log_evidence.unwrap() - b.log_evidence.unwrap()).abs() <= 1e-8 * b.log_evidence.unwrap().abs(),
        "{} and {}",
        a.log_evidence.unwrap(),
        b.log_evidence.unwrap()
    );
    assert_eq!((&a.relevance, a.n_rows, &a.features, &a.target), (&b.relevance, b.n_rows, &b.features, &b.target));
}

#[test]
fn every_format_gives_the_same_bits() {
    let rows = regression_rows(30_000);
    let names = ["0", "1", "2"];
    let folder = Folder::with("d.csv", text(names, &rows));
    parquet(&folder.path("d.parquet"), names, &rows, 7000);
    npy(&folder.path("d.npy"), &rows);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(text(names, &rows).as_bytes()).unwrap();
    let folder = folder.add("d.csv.gz", gzip.finish().unwrap());
    // With so little memory, a block has 19,531 rows.
    let options = "--target 2 --stream --dictionary 40 --set memory_limit=10000000";
    folder.fit(&format!("d.csv {options} -o csv.json"));
    for (file, threads) in [("d.parquet", 1), ("d.npy", 2), ("d.csv.gz", 3)] {
        folder.fit(&format!("{file} {options} --threads {threads} -o other.json"));
        assert!(folder.read("other.json") == folder.read("csv.json"), "{file}");
    }
    let predicted = folder.ok("predict csv.json d.csv").stdout;
    for file in ["d.parquet", "d.npy", "d.csv.gz"] {
        assert!(folder.ok(&format!("predict csv.json {file}")).stdout == predicted, "{file}");
    }
}

/// Without settings the weights have the prior of a process, as in memory; with a checkpoint a precision each, which is said.
#[test]
fn without_settings_a_process_tells_the_weights() {
    let rows = regression_rows(4000);
    let folder = Folder::with("d.csv", text(NAMES, &rows)).add("z.csv", text(["b", "a", "more"], &rows[..30]));
    folder.ok("fit d.csv --target y -o held.json");
    let said = folder.ok("fit d.csv --target y --stream --set memory_limit=30000000 -o read.json").stderr;
    assert!(!said.contains("precision of each weight"), "{said}");
    let (held, read) = (model(&folder, "held.json"), model(&folder, "read.json"));
    assert!(held.process.is_some() && read.process.is_some() && read.n_rows == 4000);
    assert_eq!(read.process.as_ref().unwrap().searched, read.relevance);
    let x = Array2::from_shape_fn((50, 2), |(i, k)| 0.1 * (i + 3 * k) as f64 - 2.0);
    let scaled = |model: &Model| model.predict(model.scaling.as_ref().unwrap().apply(x.view()).view()).unwrap();
    let (held, read) = (scaled(&held), scaled(&read));
    for (a, b) in held.mean.iter().zip(&read.mean) {
        assert!((a - b).abs() < 0.05, "{a} {b}");
    }
    folder.ok("fit d.csv --target y --stream --landmarks z.csv -o given.json");
    let given = model(&folder, "given.json");
    assert!(given.process.is_some() && given.relevance.iter().all(|k| *k < 30), "{:?}", given.relevance);
    let said = folder.ok("fit d.csv --target y --checkpoint sums --dictionary 20 -o ard.json").stderr;
    assert!(said.contains("precision of each weight") && model(&folder, "ard.json").process.is_none(), "{said}");
    let said = folder.ok("fit d.csv --target y --weight-prior process --dictionary 2 -o few.json").stderr;
    assert!(said.contains("--dictionary 4"), "{said}");
}

#[test]
fn the_same_model_as_from_memory() {
    let rows = regression_rows(ROWS);
    // Some landmarks twice, columns in another order.
    let given: Vec<[f64; 3]> = rows[..9].iter().chain(&rows[3..40]).map(|[a, b, y]| [*b, *a, *y]).collect();
    let folder = Folder::with("d.csv", text(NAMES, &rows)).add("z.csv", text(["b", "a", "more"], &given));
    // Kernels so wide that their columns nearly depend on each other would leave nine digits of the evidence,
    // whoever computes it: a last digit of gamma changes the tenth.
    let narrow = "--set kernel.gamma=5";
    for options in [
        format!("--landmarks z.csv {narrow}"),
        "--landmarks z.csv --no-standardize --set kernel.gamma=auto".into(),
        format!("--dictionary 30 {narrow}"),
        "--dictionary 30 --landmarks uniform --kernel matern32".into(),
    ] {
        let fit = |more: &str, out: &str| folder.fit(&format!("d.csv --target y {options} {more} -o {out}"));
        fit("", "memory.json");
        fit("--stream", "stream.json");
        same(&model(&folder, "stream.json"), &model(&folder, "memory.json"));
        assert_eq!(model(&folder, "stream.json").scaling.is_none(), options.contains("--no-standardize"));
    }
}

#[test]
fn weights_count_in_blocks_too() {
    let rows = regression_rows(400);
    let mut table = "a,b,y,w\n".to_string();
    for (i, [a, b, y]) in rows.iter().enumerate() {
        // A third of the rows count for nothing, however far off they are.
        let (w, y) = ((i % 3) as f64 * 0.5, if i % 3 == 0 { 1e3 } else { *y });
        table += &format!("{a},{b},{y},{w}\n");
    }
    let folder = Folder::with("d.csv", table);
    folder.fit("d.csv --target y --weights w --dictionary 30 -o memory.json");
    folder.fit("d.csv --target y --weights w --dictionary 30 --stream -o stream.json");
    same(&model(&folder, "stream.json"), &model(&folder, "memory.json"));
}

#[test]
fn sizes_decide_where_nobody_says() {
    let rows = regression_rows(30_000);
    let folder = Folder::with("d.csv", text(NAMES, &rows));
    parquet(&folder.path("d.parquet"), NAMES, &rows, 10_000);
    // In memory, 8 (3 x 2 + 28) 30,000 bytes.
    for file in ["d.csv", "d.parquet"] {
        let line = format!("fit {file} --preset tipping2001 --target y --dictionary 20 --task regress --json --set memory_limit");
        let run = folder.ok(&format!("{line}=15000000"));
        assert!(run.stderr.contains("read in blocks"), "{file}: {}", run.stderr);
        let run = folder.ok(&format!("{line}=30000000"));
        assert!(!run.stderr.contains("read in blocks"), "{file}: {}", run.stderr);
    }
}

#[test]
fn the_sample_is_drawn_by_the_seed() {
    let folder = Folder::with("d.csv", text(NAMES, &regression_rows(21_000)));
    let fit = |seed: u64, out: &str| {
        folder.fit(&format!("d.csv --target y --dictionary 20 --landmarks uniform --stream --set seed={seed} -o {out}"));
        folder.read(out)
    };
    assert!(fit(1, "a.json") == fit(1, "b.json"));
    assert!(fit(1, "a.json") != fit(2, "b.json"));
    // The relevance is of rows of the table.
    let rows = model(&folder, "a.json").relevance;
    assert!(rows.windows(2).all(|w| w[0] < w[1]) && rows[rows.len() - 1] > 1000, "{rows:?}");
}

/// Blocks and partitions of the same rows have the same sample, and so the same centres; weights are those of all rows.
#[test]
fn blocks_have_the_sample_of_partitions() {
    let rows = regression_rows(21_000);
    let folder = Folder::with("d.csv", text(NAMES, &rows));
    folder.ok("fit d.csv --target y --dictionary 30 --stream --set seed=3 -o m.json");
    let blocks = model(&folder, "m.json");
    let x = Array2::from_shape_fn((rows.len(), 2), |(i, k)| rows[i][k]);
    let t = Array1::from_shape_fn(rows.len(), |i| rows[i][2]);
    let part = |rows: Range<usize>| (x.slice(s![rows.clone(), ..]), Targets::real(t.slice(s![rows])));
    let parts: Vec<_> = [0..5000, 5000..5001, 5001..21_000].into_iter().map(part).collect();
    let rvm = Rvm { dictionary: 30.into(), seed: 3, ..Rvm::default() };
    let plan = RowPlan { standardize: true, ..RowPlan::default() };
    let (parts, _) = rvm.fit_rows(&parts, &plan).unwrap();
    assert_eq!((&blocks.relevance, blocks.n_rows), (&parts.relevance, parts.n_rows));
    let (found, expected) = (blocks.log_evidence.unwrap(), parts.log_evidence.unwrap());
    assert!((found - expected).abs() < 1e-8 * expected.abs(), "{found} instead of {expected}");
}

/// Rows of two classes named by numbers.
fn class_rows(n: usize) -> Vec<[f64; 3]> {
    let label = |u: f64, v: f64, i: usize| f64::from(u + 0.5 * (3.0 * v).sin() + 0.3 * noise(7 * i + 2) > 0.0);
    (0..n).map(|i| (noise(7 * i), noise(7 * i + 1), i)).map(|(u, v, i)| [u, v, label(u, v, i)]).collect()
}

#[test]
fn classes_from_every_format() {
    let rows = class_rows(20_000);
    let names = ["0", "1", "2"];
    let folder = Folder::with("d.csv", text(names, &rows)).add("z.csv", text(names, &rows[..25]));
    parquet(&folder.path("d.parquet"), names, &rows, 7000);
    npy(&folder.path("d.npy"), &rows);
    // With so little memory, a block has 19,531 rows.
    let options = "--target 2 --stream --dictionary 25 --set memory_limit=10000000";
    let run = folder.fit(&format!("d.csv {options} -o csv.json"));
    assert!(run.stderr.contains("task classify, since the target `2` has exactly two distinct values"), "{}", run.stderr);
    for (file, threads) in [("d.parquet", 1), ("d.npy", 3)] {
        folder.fit(&format!("{file} {options} --task classify --threads {threads} -o other.json"));
        assert!(folder.read("other.json") == folder.read("csv.json"), "{file}");
    }
    let of_rows = model(&folder, "csv.json");
    assert_eq!((of_rows.n_rows, of_rows.features.len()), (20_000, 2));
    assert!(of_rows.relevance.windows(2).all(|w| w[0] < w[1]) && of_rows.relevance.iter().any(|k| *k > 1000));

    // The same landmarks as in memory; searches may end in different optima.
    folder.fit("d.csv --target 2 --landmarks z.csv -o memory.json");
    folder.fit("d.csv --target 2 --landmarks z.csv --stream -o stream.json");
    let (memory, stream) = (model(&folder, "memory.json"), model(&folder, "stream.json"));
    let (expected, found) = (memory.log_evidence.unwrap(), stream.log_evidence.unwrap());
    assert!(found > expected - 10.0, "{found}, in memory {expected}");
    assert_eq!((&stream.classes, &stream.features, &stream.target), (&memory.classes, &memory.features, &memory.target));
    let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
    assert!(stream.class_frequencies.iter().zip(&memory.class_frequencies).all(|(a, b)| near(*a, *b)));
}

#[test]
fn classes_without_settings_have_the_prior_of_a_process() {
    let folder = Folder::with("d.csv", class_table(6000));
    let said = folder.ok("fit d.csv --target kind --stream -o stream.json").stderr;
    assert!(said.contains("the kernel is learned from"), "{said}");
    folder.ok("fit d.csv --target kind -o memory.json");
    let (stream, memory) = (model(&folder, "stream.json"), model(&folder, "memory.json"));
    assert!(stream.labels.is_some() && memory.labels.is_some());
    // The sample holds all rows; moments differ by rounding.
    let (found, expected) = (stream.log_evidence.unwrap(), memory.log_evidence.unwrap());
    assert!((found - expected).abs() < 1e-3 * expected.abs(), "{found}, in memory {expected}");
    assert_eq!((stream.n_rows, &stream.classes), (6000, &memory.classes));
}

#[test]
fn names_of_classes_in_blocks() {
    let plain = class_table(9000);
    let codes = plain.replace("yes", "07").replace("no", "7");
    // Three classes, one of which comes late, and weights.
    let late = |i: usize, line: &str| {
        let kind = if i > 8600 && i.is_multiple_of(3) {
            "maybe".into()
        } else {
            line.rsplit(',').next().unwrap_or_default().to_string()
        };
        let features = line.rsplit_once(',').map_or("", |(features, _)| features);
        format!("{features},{},{kind}\n", 1 + i % 2)
    };
    let three: String = plain.lines().skip(1).enumerate().map(|(i, line)| late(i, line)).collect();
    let folder = Folder::with("d.csv", &plain).add("codes.csv", codes).add("three.csv", format!("u,v,w,kind\n{three}"));
    let limit = "--set memory_limit=6000000 --dictionary 6";
    for (file, more, names) in [
        ("d.csv", "", vec!["no", "yes"]),
        ("codes.csv", "--task classify", vec!["07", "7"]),
        ("three.csv", "--weights w", vec!["maybe", "no", "yes"]),
    ] {
        let run = folder.fit(&format!("{file} --target kind --stream {limit} {more} -o stream.json"));
        folder.fit(&format!("{file} --target kind --dictionary 6 {more} --set memory_limit=null -o memory.json"));
        let (stream, memory) = (model(&folder, "stream.json"), model(&folder, "memory.json"));
        let found: Vec<String> = stream.classes.iter().map(ToString::to_string).collect();
        assert_eq!(found, names, "{file}: {}", run.stderr);
        assert_eq!(stream.classes, memory.classes, "{file}");
        let predicted = |model: &str| folder.ok(&format!("predict {model} {file}")).csv().1;
        let same = predicted("stream.json").iter().zip(predicted("memory.json")).filter(|(a, b)| a[0] == b[0]).count();
        assert!(same > 8500, "{file}: {same} of 9000 predictions are the same");
    }
    let averaged = format!("fit d.csv --target kind --stream {limit} --preset tipping2001 --set posterior=averaged -o n.json");
    folder.fails(1, &averaged, &["posterior = averaged", "auto or laplace"]);
    let many = plain.lines().enumerate().map(|(i, line)| if i == 0 { format!("{line}\n") } else { format!("{line}{i}\n") });
    let folder = folder.add("many.csv", many.collect::<String>()).add("one.csv", plain.replace("yes", "no"));
    let fails = |file: &str, words: &[&str]| folder.fails(1, &format!("fit {file} --target kind --stream -o n.json"), words);
    fails("many.csv", &["`kind`", "more than 1000 different values"]);
    fails("one.csv", &["`kind`", "one class only", "`no`"]);
}

#[test]
fn classes_in_blocks_or_in_memory() {
    // Decided by sizes (272 bytes a row): what is too large to be at ease in memory is read in blocks.
    let folder =
        Folder::with("d.csv", class_table(300)).add("fits.csv", class_table(20_000)).add("large.csv", class_table(40_000));
    let options = "--target kind --dictionary 5 --set memory_limit=10500000 --set max_iterations=20";
    for task in ["", "--task classify"] {
        let run = folder.fit(&format!("large.csv {options} {task} -o m.json"));
        assert!(run.stderr.contains("read in blocks"), "{}", run.stderr);
        assert_eq!(model(&folder, "m.json").n_rows, 40_000);
    }
    // What needs all rows at once has them, if they fit.
    let run = folder.fit(&format!("fits.csv {options} --inference variational -o m.json"));
    assert!(run.stderr.contains("so the table is held in memory"), "{}", run.stderr);
    let line = format!("fit large.csv --preset tipping2001 {options} --inference variational -o m.json");
    folder.fails(1, &line, &["another --inference than variational", "memory_limit=BYTES", "10.9 MB needed"]);
    let line = "fit d.csv --preset tipping2001 --target kind --task classify -o n.json";
    folder.fails(2, &format!("{line} --checkpoint c"), &["--checkpoint is for regression"]);
    for more in ["--inference variational", "--multi-class one_vs_one"] {
        folder.fails(2, &format!("{line} --stream {more}"), &["--stream: classes are learned in blocks with", "leave it out"]);
    }
    // Without --task it is the target that tells.
    folder.fails(1, "fit d.csv --target kind --checkpoint c -o n.json", &["`kind` is not numeric", "without --checkpoint"]);
    folder.fails(1, "fit d.csv --target kind --stream --inference variational -o n.json", &["`kind`", "variational"]);
}

#[cfg(unix)]
#[test]
fn no_place_for_the_rows_of_classes() {
    let folder = Folder::with("d.csv", class_table(20_000));
    let line = "fit d.csv --preset tipping2001 --target kind --stream --dictionary 5 -o m.json";
    let command = assert_cmd::cargo::cargo_bin("relvec");
    let missing =
        Command::new(command).args(line.split(' ')).current_dir(folder.path("")).env("TMPDIR", "/none").output().unwrap();
    let message = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert_eq!(missing.status.code(), Some(1), "{message}");
    assert!(message.contains("cannot make a temporary file in `/none` (TMPDIR names another folder)"), "{message}");
    let message = with_small_files(&folder, line, 100);
    assert!(message.contains("cannot write the rows to a temporary file in"), "{message}");
    assert_eq!(folder.names(), ["d.csv"]);
}

#[test]
fn time_ends_a_fit_of_classes() {
    let folder = Folder::with("d.csv", class_table(60_000));
    let line = "fit d.csv --preset tipping2001 --target kind --stream --dictionary 5 --task classify -o m.json";
    let run = folder.ok(&format!("{line} --set time_limit=1e-6"));
    assert!(run.stderr.contains("the first 32768 rows only"), "{}", run.stderr);
    let cut = model(&folder, "m.json");
    assert_eq!((cut.n_rows, cut.status), (32_768, Status::TimeLimit));
}

#[test]
fn arguments_that_do_not_go_together() {
    let folder = Folder::new();
    folder.fails(2, "fit d.csv --target y -o m --stream --dictionary all", &["--dictionary 1000"]);
    for bad in ["0", "-3", "many"] {
        folder.fails(2, &format!("fit d.csv --target y -o m --stream --dictionary {bad}"), &[bad, "--dictionary", "at least 1"]);
    }
    folder.fails(2, "fit d.csv --target y -o m --landmarks none.csv", &["none.csv", "kmedoids, uniform", "no such file"]);
}

#[test]
fn odd_tables() {
    let folder = Folder::with("d.csv", regression_table(40, ","));
    let run = folder.fit("d.csv --target y --stream --dictionary 500 -o m.json");
    assert!(run.stderr.contains("warning: --dictionary 500") && run.stderr.contains("all 40"), "{}", run.stderr);
    let run = folder.fit("d.csv --target y --dictionary 500 -o m.json");
    assert!(run.stderr.contains("warning: --dictionary 500"), "{}", run.stderr);

    // Two rows, a thousand features.
    let header: Vec<String> = (0..1000).map(|k| format!("f{k}")).collect();
    let row = |i: usize| (0..1000).map(|k| noise(1000 * i + k).to_string()).collect::<Vec<_>>().join(",");
    let folder = folder.add("wide.csv", format!("{},y\n{},1.5\n{},2.5\n", header.join(","), row(0), row(1)));
    folder.fit("wide.csv --target y --task regress --stream --dictionary 10 -o m.json");

    let folder = folder.add("same.csv", "a,b,y\n".to_string() + &"1,2,3\n".repeat(50)).add("equal.csv", {
        let rows: String = (0..50).map(|i| format!("1,2,{}\n", noise(i))).collect();
        "a,b,y\n".to_string() + &rows
    });
    for file in ["same.csv", "equal.csv"] {
        let run = folder.fit(&format!("{file} --target y --stream --dictionary 10 -o m.json"));
        assert!(run.stderr.contains("no effect: a, b"), "{}", run.stderr);
    }
    folder.fails(1, "fit none.csv --target y --stream -o m.json", &["none.csv", "No such file"]);
}

#[test]
fn bad_cells_are_found_in_the_first_pass() {
    let table = |bad: &str, row: usize| {
        let mut lines: Vec<String> = regression_table(2000, ",").lines().map(String::from).collect();
        lines[row] = bad.into();
        lines.join("\n")
    };
    let folder = Folder::new()
        .add("a.csv", table("1,x7,3", 1700))
        .add("y.csv", table("1,2,oops", 1700))
        .add("nan.csv", table("1,2,nan", 1700))
        .add("short.csv", table("1,2", 1700))
        .add("one.csv", "a,y\n1,2\n")
        .add("none.csv", "a,y\n");
    let fit = |file: &str| format!("fit {file} --preset tipping2001 --target y --stream --set memory_limit=30000000 -o m.json");
    folder.fails(1, &fit("a.csv"), &["`a.csv`", "row 1700 (line 1701)", "column `b`", "`x7`"]);
    folder.fails(1, &fit("y.csv"), &["row 1700", "column `y`", "`oops`", "--task classify"]);
    folder.fails(1, &(fit("y.csv") + " --task regress"), &["row 1700", "column `y`", "`oops`"]);
    folder.fails(1, &fit("nan.csv"), &["row 1700", "column `y`", "`nan`, a missing value"]);
    folder.fails(1, &fit("short.csv"), &["row 1700", "2 cells"]);
    folder.fails(1, &fit("one.csv"), &["found 1", "at least 2"]);
    folder.fails(1, &fit("none.csv"), &["no rows"]);
}

#[test]
fn files_cut_off() {
    let rows = regression_rows(2000);
    let folder = Folder::new();
    parquet(&folder.path("d.parquet"), NAMES, &rows, 500);
    npy(&folder.path("d.npy"), &rows);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(text(NAMES, &rows).as_bytes()).unwrap();
    let folder = folder.add("d.csv.gz", gzip.finish().unwrap());
    for (file, target, word) in [("d.parquet", "y", "Parquet"), ("d.npy", "2", "cut off"), ("d.csv.gz", "y", "cut off")] {
        let bytes = fs::read(folder.path(file)).unwrap();
        fs::write(folder.path(file), &bytes[..bytes.len() * 2 / 3]).unwrap();
        folder.fails(1, &format!("fit {file} --target {target} --stream -o m.json"), &[file, word]);
    }
}

#[test]
fn too_little_memory_names_the_least_that_works() {
    let folder = Folder::with("d.csv", regression_table(500, ","));
    let line = "fit d.csv --preset tipping2001 --target y --stream --dictionary 20 -o m.json --set memory_limit";
    let run = folder.run(&format!("{line}=100000"));
    assert_eq!(run.code, 1);
    let least = needed(&run.stderr);
    assert!(run.stderr.contains("blocks of rows"), "{}", run.stderr);
    folder.ok(&format!("{line}={least}"));
    folder.fails(1, &format!("{line}={}", least - 100_000), &["needed"]);
}

#[test]
fn landmarks_that_do_not_fit() {
    let folder = Folder::with("d.csv", regression_table(500, ","))
        .add("names.csv", "a,c\n1,2\n")
        .add("empty.csv", "a,b\n")
        .add("text.csv", "a,b\n1,x\n");
    npy(&folder.path("wide.npy"), &[[1.0, 2.0, 3.0]]);
    let folder = folder.add("d0.csv", regression_table(500, ",").replacen("a,b,y", "0,1,y", 1));
    folder.fails(1, "fit d0.csv --target y -o m.json --landmarks wide.npy", &["found 3 columns, expected 2 features", "0, 1"]);
    npy(&folder.path("two.npy"), &[[1.0, 2.0], [-1.0, 5.0], [2.0, -9.0]]);
    for stream in ["", " --stream"] {
        let line = |file: &str| format!("fit d.csv --preset tipping2001 --target y -o m.json --landmarks {file}{stream}");
        folder.fails(1, &line("names.csv"), &["landmarks `names.csv`", "missing: b", "a, c"]);
        folder.fails(1, &line("wide.npy"), &["landmarks `wide.npy`", "found 3 columns, expected 2 features", "a, b"]);
        folder.fails(1, &line("empty.csv"), &["no rows"]);
        folder.fails(1, &line("text.csv"), &["row 1", "column `b`"]);
    }
    folder.fit("d.csv --target y -o m.json --landmarks two.npy --stream");
}

/// A table can be read twice from a file only.
#[cfg(unix)]
#[test]
fn a_pipe_is_read_once() {
    let folder = Folder::with("d.csv", regression_table(50, ","));
    let run = |more: &str| {
        let command = assert_cmd::cargo::cargo_bin("relvec");
        let line = format!("cat d.csv | {} fit /dev/stdin --preset tipping2001 --target y -o m.json {more}", command.display());
        Command::new("sh").args(["-c", &line]).current_dir(folder.path("")).output().unwrap()
    };
    let run_stream = run("--stream");
    let message = String::from_utf8_lossy(&run_stream.stderr);
    assert_eq!(run_stream.status.code(), Some(1), "{message}");
    assert!(message.contains("not a file") && message.contains("leave out --stream"), "{message}");
    assert!(run("").status.success());
}

/// A machine with much to do may stop a test for longer than a pass takes: then it tries again.
#[cfg(unix)]
const ATTEMPTS: usize = 5;

/// A table whose second pass takes a while, in several blocks; and the fit to it.
#[cfg(unix)]
fn slow_table() -> (Folder, &'static str) {
    let folder = Folder::new();
    let rows: Vec<[f64; 61]> = (0..30_000).map(|i| std::array::from_fn(|k| noise(61 * i + k))).collect();
    npy(&folder.path("d.npy"), &rows);
    let options = "fit d.npy --preset tipping2001 --target -1 --dictionary 700 --landmarks uniform \
        --set memory_limit=90000000 --threads 1 --set max_iterations=20 -o m.json --checkpoint c";
    (folder, options)
}

/// Starts the command, and waits for its first checkpoint.
#[cfg(unix)]
fn start(folder: &Folder, line: &str) -> Child {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("relvec"))
        .args(line.split_whitespace())
        .current_dir(folder.path(""))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !folder.path("c").exists() && child.try_wait().unwrap().is_none() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

/// Rows that the sums in the checkpoint hold.
#[cfg(unix)]
fn done(folder: &Folder) -> Option<usize> {
    let bytes = fs::read(folder.path("c")).ok()?;
    String::from_utf8_lossy(&bytes).split("\"done\":").nth(1)?.split('}').next()?.parse().ok()
}

/// Rows of a block of that table: a sixteenth of the memory limit.
#[cfg(unix)]
const BLOCK: usize = 90_000_000 / 16 / (8 * 62);

/// A checkpoint of the first `blocks` blocks, which a kill has left.
#[cfg(unix)]
fn killed_after(folder: &Folder, line: &str, blocks: usize) {
    let in_time = (0..ATTEMPTS).any(|_| {
        let _ = fs::remove_file(folder.path("c"));
        let mut child = start(folder, line);
        let mut found = vec![];
        while found.last().is_none_or(|last| *last < blocks * BLOCK) && child.try_wait().unwrap().is_none() {
            found.extend(done(folder).filter(|done| found.last() != Some(done)));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Every block is there, one after the other, unless the machine was stopped meanwhile.
        found == (1..=blocks).map(|k| k * BLOCK).collect::<Vec<_>>() && done(folder) == Some(blocks * BLOCK)
    });
    assert!(in_time, "no checkpoint after block {blocks}");
}

/// No more is lost than the block at hand.
#[cfg(unix)]
#[test]
fn a_fit_goes_on_after_a_kill() {
    let (folder, line) = slow_table();
    folder.ok(&line.replace("-o m.json --checkpoint c", "--stream -o whole.json"));
    killed_after(&folder, line, 2);
    let run = folder.ok(line);
    assert!(run.stderr.contains(&format!("resuming after row {} of 30000", 2 * BLOCK)), "{}", run.stderr);
    assert!(folder.read("m.json") == folder.read("whole.json"), "the models differ");

    // At the end, the sums are those of all rows: another search starts from them.
    let run = folder.ok(&line.replace("iterations=20", "iterations=5"));
    assert!(run.stderr.contains("resuming after row 30000 of 30000"), "{}", run.stderr);
}

#[test]
fn checkpoints_of_something_else() {
    let folder = Folder::with("d.csv", regression_table(400, ","))
        .add("other.csv", regression_table(401, ","))
        .add("text.csv", "no checkpoint");
    let fit = "fit d.csv --preset tipping2001 --target y --dictionary 20 -o m.json";
    folder.ok(&format!("{fit} --checkpoint c"));
    let refused = |line: &str, fragments: &[&str]| {
        let before = fs::read(folder.path("c")).unwrap();
        folder.fails(1, &format!("{line} --checkpoint c"), fragments);
        assert!(fs::read(folder.path("c")).unwrap() == before);
    };
    refused(
        "fit other.csv --preset tipping2001 --target y --dictionary 20 -o m.json",
        &["checkpoint `c`", "other data", "bytes", "delete it"],
    );
    refused(
        "fit d.csv --preset tipping2001 --target b --dictionary 20 -o m.json",
        &["other parameters", "target", "\"y\" there and \"b\" here"],
    );
    refused(&format!("{fit} --kernel matern52"), &["other parameters", "kernel"]);
    refused(&format!("{fit} --no-standardize"), &["standardize is true there and false here"]);
    refused(&format!("{fit} --set seed=3"), &["seed is 0 there and 3 here"]);
    refused("fit d.csv --preset tipping2001 --target y --dictionary 21 -o m.json", &["dictionary is 20 there and 21 here"]);
    refused(&format!("{fit} --landmarks d.csv"), &["landmarks"]);
    folder.fails(1, &format!("{fit} --checkpoint text.csv"), &["checkpoint `text.csv`", "not a checkpoint"]);
    folder.fails(1, &format!("{fit} --checkpoint none/c"), &["cannot write `none/c`", "no folder"]);
    // The same table under another name.
    fs::copy(folder.path("d.csv"), folder.path("same.csv")).unwrap();
    let run = folder.fit("same.csv --target y --dictionary 20 -o same.json --checkpoint c");
    assert!(run.stderr.contains("resuming after row 400 of 400"), "{}", run.stderr);
    assert!(folder.read("m.json") == folder.read("same.json"));
}

/// The same size, another size, another number of rows.
#[test]
fn a_table_changed_since_its_checkpoint() {
    let rows = regression_rows(12_000);
    let folder = Folder::new();
    npy(&folder.path("d.npy"), &rows);
    let line = "fit d.npy --preset tipping2001 --target -1 --dictionary 20 -o m.json --checkpoint c";
    folder.ok(line);
    let (table, sums) = (fs::read(folder.path("d.npy")).unwrap(), fs::read(folder.path("c")).unwrap());
    let refused = |fragments: &[&str]| {
        folder.fails(1, line, &[&["checkpoint `c`", "other data", "delete it"], fragments].concat());
        assert!(fs::read(folder.path("c")).unwrap() == sums);
    };
    // The last bit of one number, far from either end.
    let mut changed = table.clone();
    changed[128 + 8 * 18_000] ^= 1;
    fs::write(folder.path("d.npy"), &changed).unwrap();
    refused(&["modified since", "checksum is"]);
    npy(&folder.path("d.npy"), &rows[..11_000]);
    refused(&["bytes is 288128 there and 264128 here"]);
    // As many numbers in other rows.
    let header = String::from_utf8_lossy(&table[..128]).replace("(12000, 3", "(18000, 2");
    fs::write(folder.path("d.npy"), [&table[..10], &header.as_bytes()[header.len() - 118..], &table[128..]].concat()).unwrap();
    refused(&["rows is 12000 there and 18000 here"]);
    // Written again, the same bytes are the same table.
    fs::write(folder.path("d.npy"), &table).unwrap();
    assert!(folder.ok(line).stderr.contains("resuming after row 12000 of 12000"));
}

/// Runs the command where no file may grow beyond so many blocks of the shell.
#[cfg(unix)]
fn with_small_files(folder: &Folder, line: &str, blocks: usize) -> String {
    let command = assert_cmd::cargo::cargo_bin("relvec");
    let shell = format!("trap '' XFSZ; ulimit -f {blocks}; exec {} {line}", command.display());
    let output = Command::new("sh").args(["-c", &shell]).current_dir(folder.path("")).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(!message.contains(".part"), "{message}");
    message
}

/// The old file stays, and is good to go on from.
#[cfg(unix)]
#[test]
fn a_full_disk() {
    #[cfg(target_os = "linux")]
    {
        let folder = Folder::with("d.csv", regression_table(400, ","));
        folder.fails(1, "fit d.csv --target y --stream -o m.json --checkpoint /dev/full", &["/dev/full", "No space"]);
    }
    let (folder, line) = slow_table();
    folder.ok(&line.replace("-o m.json --checkpoint c", "--stream -o whole.json"));
    killed_after(&folder, line, 1);
    let (old, names) = (fs::read(folder.path("c")).unwrap(), folder.names());
    let message = with_small_files(&folder, line, 100);
    assert!(message.contains("checkpoint: cannot write `c`: File too large"), "{message}");
    assert!(fs::read(folder.path("c")).unwrap() == old);
    assert_eq!(folder.names(), names);
    let run = folder.ok(line);
    assert!(run.stderr.contains(&format!("resuming after row {BLOCK} of 30000")), "{}", run.stderr);
    assert!(folder.read("m.json") == folder.read("whole.json"), "the models differ");

    let old = folder.read("m.json");
    let message = with_small_files(&folder, line, 10);
    assert!(message.contains("cannot write `m.json`: File too large"), "{message}");
    assert!(folder.read("m.json") == old);
}

/// Rows that arrive, change or go during the second pass.
#[cfg(unix)]
#[test]
fn a_table_that_changes_meanwhile() {
    let (folder, line) = slow_table();
    let table = fs::read(folder.path("d.npy")).unwrap();
    let file = || fs::File::options().write(true).open(folder.path("d.npy")).unwrap();
    let more = || file().write_all_at(b"more", table.len() as u64).unwrap();
    let other = || file().write_all_at(&table[1000..9000], table.len() as u64 / 2).unwrap();
    let fewer = || file().set_len(table.len() as u64 / 2).unwrap();
    let changes: [(&dyn Fn(), &str); 3] = [(&more, "bytes"), (&other, "a program has written to it"), (&fewer, "bytes")];
    for (change, words) in changes {
        let noticed = (0..ATTEMPTS).any(|_| {
            let _ = fs::remove_file(folder.path("c"));
            fs::write(folder.path("d.npy"), &table).unwrap();
            let child = start(&folder, line);
            change();
            let output = child.wait_with_output().unwrap();
            let message = String::from_utf8_lossy(&output.stderr);
            if output.status.success() {
                // Too late: the second pass had ended.
                return false;
            }
            assert_eq!(output.status.code(), Some(1), "{message}");
            assert!(message.contains("`d.npy` changed while it was read") && message.contains(words), "{message}");
            true
        });
        assert!(noticed, "{words}");
    }
}

/// The passes count, and end between blocks with a model of the rows so far.
#[cfg(unix)]
#[test]
fn time_ends_the_reading() {
    let (folder, line) = slow_table();
    folder.ok(&line.replace("-o m.json --checkpoint c", "--stream -o whole.json"));
    // In the first pass.
    let start = Instant::now();
    let run = folder.ok(&format!("{line} --set time_limit=1e-6 --json"));
    let elapsed = start.elapsed().as_secs_f64();
    let seconds = run.json()["seconds"].as_f64().unwrap();
    assert!(seconds > 0.5 * elapsed && seconds < elapsed, "{seconds} of {elapsed}");
    for words in
        ["not converged: time_limit = 0.000001 s ended the reading", &format!("the first {BLOCK} rows only"), "no checkpoint"]
    {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
    let cut = model(&folder, "m.json");
    assert_eq!((cut.n_rows, cut.status), (BLOCK, Status::TimeLimit));
    assert!(!folder.path("c").exists());
    // In the second: the next run goes on.
    killed_after(&folder, line, 1);
    let run = folder.ok(&format!("{line} --set time_limit=1e-6"));
    for words in [&format!("to {} of 30000 rows only", 2 * BLOCK), "the checkpoint contains the sums"] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
    let cut = model(&folder, "m.json");
    assert_eq!((cut.n_rows, cut.status, done(&folder)), (2 * BLOCK, Status::TimeLimit, Some(2 * BLOCK)));
    folder.ok(line);
    assert!(folder.read("m.json") == folder.read("whole.json"), "the models differ");
}

#[test]
fn a_dictionary_of_more_than_there_are_rows() {
    let rows = regression_rows(300);
    let folder = Folder::with("d.csv", text(NAMES, &rows));
    parquet(&folder.path("d.parquet"), NAMES, &rows, 100);
    for file in ["d.csv", "d.parquet"] {
        let run = folder.fit(&format!("{file} --target y --stream --dictionary 90000 --set memory_limit=30000000 -o m.json"));
        assert!(run.stderr.contains("all 300 rows are candidates"), "{file}: {}", run.stderr);
    }
}

/// All rows would be candidates in memory, where no sums over all of them are kept.
#[test]
fn landmarks_where_sums_over_all_rows_are_too_large() {
    let folder = Folder::with("d.csv", regression_table(1500, ","));
    let line = "fit d.csv --preset tipping2001 --target y --stream --set max_iterations=2 -o m.json --set memory_limit";
    let run = folder.ok(&format!("{line}=120000000"));
    assert!(run.stderr.contains("1500 candidates need more than the memory limit, and 1000 are taken"), "{}", run.stderr);
    assert!(run.stderr.contains("rows are candidates for relevance vectors"), "{}", run.stderr);
    let run = folder.ok(&format!("{line}=240000000"));
    assert!(!run.stderr.contains("candidates"), "{}", run.stderr);
    // The first error names the least that works for these, and not for the first pass alone.
    let run = folder.run(&format!("{line}=30000"));
    assert!(run.stderr.contains("1000 landmarks") && run.code == 1, "{}", run.stderr);
    folder.ok(&format!("{line}={}", needed(&run.stderr)));
}

/// Bytes that the message says are needed.
pub fn needed(message: &str) -> u64 {
    let words: Vec<&str> = message.split("error: ").nth(1).unwrap().split(' ').collect();
    let number: f64 = words[0].parse().unwrap();
    if words[1] == "MB" { (1e6 * number).round() as u64 } else { number as u64 }
}
