//! `relvec compare`: the table in its three forms, for values and for classes, and what it refuses.

use serde_json::Value;

use super::support::{Folder, class_table, noise, parse_csv, regression_table, three_classes};

/// Few settings, so that a comparison takes a moment.
const QUICK: &str = "--grid c=1,10 --grid gamma=0.3,1";
/// What depends on the clock.
const TIMES: [&str; 3] = ["choice_seconds", "fit_seconds", "predict_seconds_per_row"];

fn mean(machine: &Value, measure: &str) -> f64 {
    machine["measures"][measure]["mean"].as_f64().unwrap_or_else(|| panic!("{measure} of {machine}"))
}

fn names(json: &Value) -> Vec<&str> {
    json["machines"].as_array().unwrap().iter().map(|m| m["machine"].as_str().unwrap()).collect()
}

/// The same without times.
fn timeless(mut json: Value) -> Value {
    for machine in json["machines"].as_array_mut().unwrap() {
        for key in TIMES {
            machine["measures"].as_object_mut().unwrap().remove(key).unwrap();
        }
    }
    json
}

#[test]
fn values_as_json() {
    let folder = Folder::with("d.csv", regression_table(90, ","));
    let run = folder.ok(&format!("compare d.csv --target y --format json {QUICK} --grid epsilon=0.1 -v"));
    let json = run.json();
    assert_eq!(names(&json), ["rvm", "rvm evidence", "vrvm", "svm"]);
    assert_eq!((&json["task"], &json["rows"], &json["cv"], &json["seed"]), (&"regress".into(), &90.into(), &5.into(), &0.into()));
    assert_eq!(json["grid"], serde_json::json!({"gamma": [0.3, 1.0], "c": [1.0, 10.0], "epsilon": [0.1]}));
    for machine in json["machines"].as_array().unwrap() {
        // The noise is uniform, with a standard deviation of 0.058; that of the target is 1.8.
        let rmse = mean(machine, "rmse");
        assert!((0.05..0.3).contains(&rmse), "{machine}");
        assert!(mean(machine, "mae") <= rmse);
        assert!((2.0..=72.0).contains(&mean(machine, "kernels")));
        assert!(mean(machine, "fit_seconds") > 0.0 && mean(machine, "predict_seconds_per_row") > 0.0);
        let folds = machine["measures"]["rmse"]["folds"].as_array().unwrap();
        let folds: Vec<f64> = folds.iter().map(|v| v.as_f64().unwrap()).collect();
        let by_hand = folds.iter().sum::<f64>() / 5.0;
        let error = (folds.iter().map(|v| (v - by_hand).powi(2)).sum::<f64>() / 4.0 / 5.0).sqrt();
        assert!((rmse - by_hand).abs() < 1e-12);
        assert!((machine["measures"]["rmse"]["standard_error"].as_f64().unwrap() - error).abs() < 1e-12);
        if machine["machine"] == "svm" {
            assert!(machine["measures"]["negative_log_density"].is_null() && machine["measures"]["coverage_95"].is_null());
            assert_eq!(machine["chosen"][0]["epsilon"], 0.1);
        } else {
            assert!(mean(machine, "negative_log_density") < 0.5, "{machine}");
            assert!((0.6..=1.0).contains(&mean(machine, "coverage_95")), "{machine}");
        }
    }
    let [rvm, evidence, vrvm] = [0, 1, 2].map(|k| &json["machines"][k]);
    assert_eq!(rvm["chosen"], vrvm["chosen"]);
    assert_eq!(evidence["chosen"][0], serde_json::json!({}));
    assert!(run.stderr.contains("svm, fold 5 of 5: gamma "), "{}", run.stderr);
}

/// What is held out has no say: neither in the model, nor in the choice of settings.
#[test]
fn a_target_changes_only_how_its_own_fold_is_measured() {
    let text = regression_table(50, ",");
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    let (features, y) = lines[8].rsplit_once(',').unwrap();
    lines[8] = format!("{features},{}", y.parse::<f64>().unwrap() + 1000.0);
    let folder = Folder::with("d.csv", text).add("changed.csv", lines.join("\n"));
    let run =
        |table: &str| folder.ok(&format!("compare {table} --target y --machines rvm --grid gamma=0.3,1 --format json")).json();
    let [plain, changed] = ["d.csv", "changed.csv"].map(run);
    let fold = |json: &Value, measure: &str, k: usize| json["machines"][0]["measures"][measure]["folds"][k].as_f64().unwrap();
    let untouched = (0..5).filter(|k| {
        let more = 10.0 * (fold(&changed, "mae", *k) - fold(&plain, "mae", *k));
        let same = fold(&changed, "kernels", *k) == fold(&plain, "kernels", *k);
        same && (more - 1000.0).abs() < 1.0 && changed["machines"][0]["chosen"][*k] == plain["machines"][0]["chosen"][*k]
    });
    assert_eq!(untouched.count(), 1, "{plain} {changed}");
}

/// A single value of each setting is taken as it is.
#[test]
fn one_setting_is_not_chosen() {
    let folder = Folder::with("d.csv", regression_table(40, ","));
    let json = folder.ok("compare d.csv --target y --machines rvm --cv 2 --grid gamma=1 --format json").json();
    let rvm = &json["machines"][0];
    assert_eq!(mean(rvm, "choice_seconds"), 0.0);
    assert_eq!(rvm["chosen"], serde_json::json!([{"gamma": 1.0}, {"gamma": 1.0}]));
}

#[test]
fn two_classes_as_csv() {
    let folder = Folder::with("d.csv", class_table(120));
    let run = folder.ok(&format!("compare d.csv --target kind --format csv --cv 3 {QUICK}"));
    assert!(!run.stderr.contains("note:"), "{}", run.stderr);
    let (header, rows) = run.csv();
    assert_eq!(header[..4], ["machine", "error_rate", "error_rate_standard_error", "log_loss"]);
    assert_eq!(header.len(), 1 + 2 * 8);
    assert_eq!(rows.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["rvm", "rvm evidence", "vrvm", "svm"]);
    let column = |name: &str| header.iter().position(|h| h == name).unwrap();
    for row in &rows {
        let value = |name: &str| row[column(name)].parse::<f64>().unwrap();
        assert!((0.02..0.25).contains(&value("error_rate")), "{row:?}");
        assert!((0.1..0.6).contains(&value("log_loss")), "{row:?}");
        assert!((0.05..0.4).contains(&value("brier")), "{row:?}");
        assert!((0.0..0.3).contains(&value("calibration_error")), "{row:?}");
    }
    let kernels = |k: usize| rows[k][column("kernels")].parse::<f64>().unwrap();
    assert!(kernels(0) < kernels(3) && kernels(2) < kernels(3), "{rows:?}");
}

#[test]
fn three_classes_as_text() {
    let folder = Folder::with("d.csv", three_classes(90, ["a", "b", "c"]));
    let run = folder.ok(&format!("compare d.csv --target kind --cv 3 --inner-cv 2 {QUICK}"));
    let first = run.stdout.lines().next().unwrap();
    for words in ["3-fold cross-validation", "`kind` in d.csv", "90 rows", "2 features"] {
        assert!(first.contains(words), "{words}: {first}");
    }
    for words in [
        "error, %",
        "log loss, nats",
        "ECE, %",
        "fit, s",
        "rvm evidence",
        "vrvm",
        "svm",
        "±",
        "2 inner folds",
        "Kernel rbf",
        "seed 0",
    ] {
        assert!(run.stdout.contains(words), "{words}: {}", run.stdout);
    }
    let text = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("least error rate of the inner folds: gamma of rvm and vrvm (the same); c and gamma of svm"));
}

#[test]
fn equal_seeds_give_equal_tables() {
    let folder = Folder::with("d.csv", regression_table(60, ","));
    let json = |more: &str| timeless(folder.ok(&format!("compare d.csv --target y --cv 3 --format json {QUICK} {more}")).json());
    let first = json("");
    assert_eq!(json("--threads 1"), first);
    assert_ne!(json("--seed 1")["machines"], first["machines"]);
}

/// Every option is on in some test.
#[test]
fn options_of_a_comparison_have_their_effects() {
    let folder = Folder::with("d.csv", regression_table(60, ","));
    let line = "compare d.csv --target y --drop b --task regress --machines svm,rvm,svm --kernel matern32 --no-standardize \
                --cv 2 --inner-cv 2 --grid gamma=0.5 --grid epsilon=0,0.1 --grid c=1 --seed 3 --threads 1 --format csv -o out.csv";
    let run = folder.ok(line);
    assert_eq!(run.stdout, "");
    let (_, rows) = parse_csv(&folder.read("out.csv"));
    assert_eq!(rows.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["svm", "rvm", "rvm evidence"]);
    // An SVM has no density and no interval.
    assert_eq!(rows[0][5..9], ["", "", "", ""]);
    assert_eq!(folder.names(), ["d.csv", "out.csv"]);

    // A kernel without gamma has none to learn, and a text says so of what is missing.
    let text =
        folder.ok("compare d.csv --target y --machines rvm,svm --kernel linear --cv 2 --grid c=1,2 --grid epsilon=0.1").stdout;
    assert!(!text.contains("evidence") && !text.contains("gamma") && text.contains("c and epsilon of svm"), "{text}");
    assert!(text.lines().any(|line| line.contains("svm") && line.contains(" - ")), "{text}");

    let many = folder.add("many.csv", regression_table(420, ","));
    let text = many.ok("compare many.csv --target y --machines vrvm --cv 2 --grid gamma=0.3").stdout;
    assert!(text.contains("at most 200 rows are candidates") && text.contains("gamma of rvm"), "{text}");
}

/// The last test table has a season of 8 rows in `row`, which a sum learns.
#[test]
fn sums_with_named_columns_are_compared() {
    let mut text = "row,u,y\n".to_string();
    for i in 0..64 {
        let y = (std::f64::consts::TAU * f64::from(i) / 8.0).sin() + 2.0 * noise(i as usize) + 0.1 * noise(100 + i as usize);
        text += &format!("{i},{},{y}\n", noise(i as usize));
    }
    let folder = Folder::with("d.csv", text);
    let line = "compare d.csv --target y --machines rvm,svm --cv 2 --inner-cv 2 --grid c=10 --grid epsilon=0.1 --format json";
    let json = folder.ok(&format!("{line} --kernel periodic(period=8)[row]+linear[u]")).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["kernel"], &json["standardized"]), (&"periodic(period=8)[row]+linear[u]".into(), &false.into()));
    let names = json["machines"].as_array().unwrap().iter().map(|one| one["machine"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(names, ["rvm", "rvm evidence", "svm"]);
    let rmse = |k: usize| json["machines"][k]["measures"]["rmse"]["mean"].as_f64().unwrap();
    assert!((0..3).all(|k| rmse(k) < 0.3), "{} {} {}", rmse(0), rmse(1), rmse(2));
    folder.fails(1, "compare d.csv --target y --machines svm --kernel periodic[row]", &["kernel.periodic.period = none"]);
    folder.fails(1, "compare d.csv --target y --kernel rbf[w]+linear", &["d.csv", "with `w`", "nearest are"]);
    folder.fails(2, "compare d.csv --target y --kernel rbf+linear --grid gamma=1", &["rbf+linear", "no gamma to choose"]);
}

#[test]
fn wrong_arguments_of_a_comparison_are_refused() {
    let refused = |line: &str, fragments: &[&str]| Folder::new().fails(2, &format!("compare d.csv --target y {line}"), fragments);
    refused("--cv 1", &["--cv", "2 or more"]);
    refused("--inner-cv 0", &["--inner-cv", "2 or more"]);
    refused("--machines rvm,tree", &["tree", "rvm", "vrvm", "svm"]);
    refused("--machines=", &["--machines"]);
    refused("--grid nu=1", &["--grid nu=1", "known: gamma, c, epsilon"]);
    refused("--grid c=0,1", &["--grid c=0,1", "positive numbers"]);
    refused("--grid gamma", &["NAME=VALUE"]);
    refused("--grid c=1 --machines rvm", &["--grid c=1", "svm"]);
    refused("--grid gamma=1 --kernel linear", &["linear", "no gamma"]);
    refused("--grid epsilon=1 --task classify", &["epsilon", "regress"]);
    refused("--kernel gaussian", &["gaussian", "rbf"]);
    refused("--drop y", &["--drop y"]);
    refused("--format html", &["html", "json"]);
    refused("--threads 0", &["--threads"]);
    refused("--seed=-1", &["--seed"]);
}

#[test]
fn tables_that_cannot_be_parted() {
    let folder = Folder::with("d.csv", "x,y\n1,1\n2,3\n3,2\n4,5\n");
    folder.fails(1, "compare d.csv --target y --cv 5", &["the table has 4 rows", "5 folds", "--cv"]);
    folder.fails(1, "compare d.csv --target y --cv 2", &["4 rows", "leaves 2", "3 inner folds", "--inner-cv"]);
    folder.fails(1, "compare d.csv --target z --cv 2", &["no column `z`"]);
    folder.fails(1, "compare d.csv --target y -o there/out.csv", &["there"]);
    folder.fails(1, "compare none.csv --target y", &["none.csv"]);

    let mut text = "u,kind\n".to_string();
    (0..30).for_each(|i| text += &format!("{},{}\n", noise(i), if i < 4 { "rare" } else { "common" }));
    let folder = folder.add("rare.csv", text).add("one.csv", "u,kind\n1,a\n2,a\n3,a\n");
    folder.fails(1, "compare rare.csv --target kind", &["rare.csv", "class `rare` has 4 rows", "5 folds"]);
    folder.fails(1, "compare rare.csv --target kind --cv 2 --inner-cv 3", &["class `rare` has 4 rows", "leaves 2"]);
    folder.ok("compare rare.csv --target kind --cv 4 --inner-cv 3 --machines rvm,svm --grid c=1 --grid gamma=0.3,1");
    folder.fails(1, "compare one.csv --target kind", &["one class only"]);
}
