//! What a target is taken for: values or classes, however its cells are written.

use assert_cmd::Command;
use parquet::basic::Compression;
use parquet::data_type::Int64Type;
use serde_json::json;

use super::files::{doubles, npy, write_parquet};
use super::support::{Folder, class_table, noise, three_classes};

/// Rows (a, b, y), with `y` of the row number.
fn table(rows: usize, separator: &str, y: impl Fn(usize) -> String) -> String {
    let number = |v: f64| format!("{v:.4}");
    let row = |i: usize| [number(noise(2 * i)), number(noise(2 * i + 1)), y(i)].join(separator) + "\n";
    ["a", "b", "y"].join(separator) + "\n" + &(0..rows).map(row).collect::<String>()
}

/// The task of a fit, where it is said.
fn task(folder: &Folder, line: &str) -> String {
    folder.ok(&format!("{line} --json")).json()["task"].as_str().unwrap().to_string()
}

#[test]
fn few_whole_values_stop_the_fit_and_both_commands_can_be_typed() {
    let digits = |i: usize| (i % 10).to_string();
    let folder = Folder::with("my d.csv", table(60, ",", digits));
    let args = ["fit", "--target", "y", "-o", "m.json", "--dictionary", "5", "--", "my d.csv"];
    for command in ["fit", "compare"] {
        let args: Vec<&str> = match command {
            "fit" => args.to_vec(),
            _ => {
                vec!["compare", "my d.csv", "--target", "y", "--cv", "2", "--inner-cv", "2", "--machines", "svm", "--grid", "c=1"]
            }
        };
        let run = folder.run_args(&args);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{run:?}");
        assert!(run.stderr.starts_with("error: `my d.csv`: the target `y` has 10 distinct whole values (0, 1, 2, 3, 4, ...)"));
        assert_eq!(folder.names(), ["my d.csv"]);
        let lines: Vec<&str> = run.stderr.lines().filter(|line| line.contains(&format!("relvec {command} "))).collect();
        assert!(lines.len() == 2 && lines[0].contains("--task classify") && lines[1].contains("--task regress"), "{run:?}");
        // What is shown does what it says.
        if cfg!(unix) {
            for line in lines {
                Command::new("sh").args(["-c", line]).current_dir(folder.path("")).assert().success();
            }
            let _ = std::fs::remove_file(folder.path("m.json"));
        }
    }
}

#[test]
fn whole_values_are_undecided_only_if_few_and_in_several_rows_each() {
    let undecided = |y: &dyn Fn(usize) -> String, rows: usize| {
        let folder = Folder::with("d.csv", table(rows, ",", y));
        let run = folder.run("fit d.csv --preset tipping2001 --target y --dictionary 5 --json");
        let stream =
            folder.run("fit d.csv --preset tipping2001 --target y --dictionary 5 --json --stream --set memory_limit=30000000");
        assert_eq!(run.code, stream.code, "{run:?}\n{stream:?}");
        assert!(run.code == 0 || run.stderr.contains("distinct whole values"), "{run:?}");
        run.code == 1
    };
    assert!(undecided(&|i| (i % 20).to_string(), 60));
    assert!(undecided(&|i| format!("-{}.0", i % 3), 9));
    // 21 values; a value of two rows; a fraction; one value.
    assert!(!undecided(&|i| (i % 21).to_string(), 63));
    assert!(!undecided(&|i| (i % 20).to_string(), 59));
    assert!(!undecided(&|i| if i == 5 { "0.5".into() } else { (i % 3).to_string() }, 60));
    assert!(!undecided(&|_| "7".into(), 10));
}

#[test]
fn whole_values_are_undecided_unless_something_else_decides() {
    let folder = Folder::with("d.csv", three_classes(60, ["1", "2", "3"]).replace("kind", "y"))
        .add("two.csv", class_table(40).replace("yes", "1").replace("no", "0"));
    npy(&folder.path("d.npy"), &(0..30).map(|i| [i64::from(i * i), i64::from(i % 3)]).collect::<Vec<_>>());
    for (line, expected) in [
        ("--task classify", "classify"),
        ("--task regress", "regress"),
        ("--likelihood poisson", "regress"),
        ("--likelihood student_t", "regress"),
        ("--likelihood bernoulli", "classify"),
        ("--set likelihood.gaussian.noise_variance=0.1", "regress"),
        ("--noise-variance a2 --drop a", "regress"),
        ("--multi-class joint", "classify"),
        ("--machine svm --formulation epsilon_svr", "regress"),
        ("--machine svm --formulation c_svc", "classify"),
        ("--calibrate", "regress"),
        ("--variance healed", "regress"),
        ("--dictionary 5 --keep-statistics", "regress"),
        ("--dictionary 5 --checkpoint c", "regress"),
    ] {
        let name = if line.contains("a2") { "positive.csv" } else { "d.csv" };
        if name == "positive.csv" {
            let rows = folder.read("d.csv").lines().skip(1).map(|row| format!("1.5,{row}\n")).collect::<String>();
            std::fs::write(folder.path(name), format!("a2,a,b,y\n{rows}")).unwrap();
        }
        assert_eq!(task(&folder, &format!("fit {name} --target y {line}")), expected, "{line}");
    }
    folder.fit("d.csv --target y --target a -o m.json");
    for (line, fragment) in [
        ("fit d.csv --target y -o n.json", "`d.csv`: the target `y` has 3 distinct"),
        ("fit d.csv --target y --machine svm -o n.json", "3 distinct"),
        ("fit d.npy --target -1 -o n.json", "`d.npy`: the target `1` has 3 distinct whole values (0, 1, 2)"),
    ] {
        folder.fails(1, line, &[fragment, "--task classify", "--task regress"]);
    }
    assert_eq!(task(&folder, "fit two.csv --target kind"), "classify");
}

fn measures(folder: &Folder, file: &str) -> serde_json::Value {
    folder.ok(&format!("score points.json {file} --format json")).json()["measures"].clone()
}

/// A table with decimal commas is the table with decimal points.
#[test]
fn decimal_commas_are_read_where_no_comma_separates_cells() {
    let smooth = |i: usize| format!("{:.3}", (i as f64 / 9.0).sin());
    for (name, separator) in [("semicolon", ";"), ("tab", "\t")] {
        let points = table(50, separator, smooth);
        let folder = Folder::with("points.csv", &points).add("commas.csv", points.replace('.', ","));
        for line in ["--target y", "--target y --dictionary 9 --stream"] {
            folder.fit(&format!("points.csv {line} -o points.json"));
            folder.fit(&format!("commas.csv {line} -o commas.json"));
            assert_eq!(folder.read("commas.json"), folder.read("points.json"), "{name} {line}");
        }
        assert_eq!(folder.ok("predict points.json commas.csv").stdout, folder.ok("predict points.json points.csv").stdout);
        assert_eq!(measures(&folder, "commas.csv"), measures(&folder, "points.csv"));
    }
    // Names of classes are numbers, too, if all are.
    let halves = table(40, ";", |i| if i % 2 == 0 { "0.5".into() } else { "1.0".into() });
    let folder = Folder::with("points.csv", &halves).add("commas.csv", halves.replace('.', ","));
    for line in ["", "--task classify --dictionary 9 --stream"] {
        folder.fit(&format!("points.csv --target y -o points.json {line}"));
        folder.fit(&format!("commas.csv --target y -o commas.json {line}"));
        assert_eq!(folder.read("commas.json"), folder.read("points.json"), "{line}");
    }
    assert_eq!(measures(&folder, "commas.csv"), measures(&folder, "points.csv"));
}

#[test]
fn commas_that_may_separate_thousands_are_refused_with_both_readings() {
    let fit = "fit d.csv --preset tipping2001 --target y -o m.json";
    let both = &["1.01", "1010", "`1,010`"][..];
    let semicolon = |y: &str| Folder::with("d.csv", table(30, ";", |i| if i == 2 { y.into() } else { (100 + i).to_string() }));
    for line in [
        fit,
        "fit d.csv --preset tipping2001 --target y -o m.json --task regress",
        "fit d.csv --preset tipping2001 --target y --stream --dictionary 5 -o m.json",
    ] {
        semicolon("1,010").fails(1, line, both);
    }
    semicolon("1,010").fails(1, fit, &["row 3", "--task classify"]);
    semicolon("1,010,500").fails(1, fit, &["1,010,500", "1010500"]);
    semicolon("1.010,5").fails(1, fit, &["1.010,5", "1010.5"]);
    // One cell that tells is enough; two decimal marks are one too many.
    Folder::with("d.csv", table(30, ";", |i| format!("1,{}", 3 * i))).ok(fit);
    let mixed = |i: usize| format!("1{}{}", if i == 9 { "." } else { "," }, 10 * i + 7);
    Folder::with("d.csv", table(30, ";", mixed)).fails(1, fit, &["row 10", "`1.97`", "decimal comma in row 1"]);
    // Features as well.
    let feature = table(30, ";", |i| format!("{i}.5")).replace("y\n", "z\n").replace("a;", "y;");
    let feature = feature.lines().map(|l| l.replace(".5", "").replace('.', "") + "\n").collect::<String>();
    let feature = feature.replacen(";7\n", ";7,010\n", 1);
    Folder::with("d.csv", feature).fails(1, fit, &["column `z`", "7.01 with a decimal comma", "7010"]);
    // Where commas separate cells, too.
    Folder::with("d.csv", table(60, ",", |i| format!("\"1,{:03}\"", 10 + i))).fails(1, fit, both);
    Folder::with("d.csv", "x,y\n\"1,010\",1.5\n\"2,020\",2.5\n").fails(1, fit, &["column `x`", "1.01", "1010"]);
}

#[test]
fn quantities_with_units_are_no_classes_unless_it_is_said() {
    let fit = "fit d.csv --preset tipping2001 --target y -o m.json";
    type Cells = &'static dyn Fn(usize) -> String;
    let cases: [(Cells, &[&str]); 5] = [
        (&|i| format!("{}%", 5 + i), &["`5%` is 5 in percent and 0.05 as a share", "--task classify"]),
        (&|i| format!("${}.50", 5 + i), &["`$5.50` is 5.5", "--task classify"]),
        (&|i| format!("{}.50 €", 5 + i), &["`5.50 €` is 5.5"]),
        (&|i| format!("{} kg", 5 + i), &["`5 kg` is 5"]),
        (&|i| format!("1'{:03}", 10 + i), &["`1'010` is 1010"]),
    ];
    for (y, fragments) in cases {
        let folder = Folder::with("d.csv", table(60, ",", y));
        folder.fails(1, fit, fragments);
        folder.fails(1, "fit d.csv --target y --stream --dictionary 5 -o m.json", fragments);
        folder.fails(1, "fit d.csv --target y --task regress -o m.json", &["row 1", "is not a number", fragments[0]]);
    }
    let few = |i: usize| format!("{}%", 5 * (i % 3));
    let folder = Folder::with("d.csv", table(60, ",", few));
    folder.fails(1, fit, &["`0%`"]);
    let run = folder.fit("d.csv --target y --task classify --json");
    assert_eq!(run.json()["classes"], json!(["0%", "10%", "5%"]));
    // Names are names.
    for names in
        [["red", "blue", "green"], ["Q1", "Q2", "Q3"], ["1st", "2nd", "3rd"], ["10-20", "20-30", "65+"], ["<=50K", ">50K", "x"]]
    {
        let folder = Folder::with("d.csv", table(30, ",", |i| names[i % 3].into()));
        assert_eq!(task(&folder, "fit d.csv --target y"), "classify", "{names:?}");
    }
}

#[test]
fn more_classes_than_a_fifth_of_the_rows_are_warned_of() {
    let names = |classes: usize| Folder::with("d.csv", table(60, ",", |i| format!("name{}x", i % classes)));
    for (classes, warned) in [(12, false), (13, true), (60, true)] {
        let run = names(classes).ok("fit d.csv --target y --machine svm --json");
        let text = format!("warning: `y` has {classes} classes in 60 rows");
        assert_eq!(run.stderr.contains(&text), warned, "{}", run.stderr);
    }
}

#[test]
fn codes_and_whole_numbers_beyond_two_to_the_53_are_labels_of_their_own() {
    for names in [["007", "7"], ["9007199254740992", "9007199254740993"], ["-9007199254740993", "-9007199254740992"]] {
        let text = table(40, ",", |i| names[usize::from(noise(2 * i) > 0.0)].into());
        let folder = Folder::with("d.csv", &text);
        let preset = "--preset tipping2001";
        for line in [preset, &format!("{preset} --stream --dictionary 9"), "--machine svm --probability"] {
            let run = folder.ok(&format!("fit d.csv --target y -o m.json --json {line}"));
            assert!(line.contains("svm") || run.stderr.contains("exactly two distinct values"), "{}", run.stderr);
            assert_eq!(run.json()["classes"].as_array().unwrap().len(), 2, "{names:?}");
            let found: Vec<String> = folder.ok("predict m.json d.csv").csv().1.into_iter().map(|row| row[0].clone()).collect();
            let right = text.lines().skip(1).zip(&found).filter(|(row, found)| row.ends_with(&format!(",{found}"))).count();
            assert!(right > 30, "{right} {names:?} {line}");
            let rate = folder.ok("score m.json d.csv --format json").json()["measures"]["error_rate"].as_f64().unwrap();
            assert_eq!(rate, 1.0 - right as f64 / 40.0, "{names:?} {line}");
        }
    }
    // In files of 64-bit whole numbers as well.
    let big = |i: usize| (1i64 << 53) + i64::from(noise(2 * i) > 0.0);
    let folder = Folder::new();
    npy(&folder.path("d.npy"), &(0..40).map(|i| [(1e6 * noise(2 * i)) as i64, big(i)]).collect::<Vec<_>>());
    let schema = "message table { required double a; required int64 y; }";
    write_parquet(&folder.path("d.parquet"), schema, Compression::SNAPPY, |group| {
        doubles(group, &(0..40).map(|i| noise(2 * i)).collect::<Vec<_>>());
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&(0..40).map(big).collect::<Vec<_>>(), None, None).unwrap();
        column.close().unwrap();
    });
    for (file, target) in [("d.npy", "-1"), ("d.parquet", "y")] {
        let run = folder.fit(&format!("{file} --target {target} -o m.json --json"));
        assert_eq!(run.json()["classes"], json!(["9007199254740992", "9007199254740993"]), "{file}");
        assert_eq!(folder.ok(&format!("score m.json {file} --format json")).json()["measures"]["error_rate"], 0.0, "{file}");
    }
}
