//! Priors, costs and rejection in `predict`; `score`.

use std::collections::HashMap;

use super::support::{Folder, class_table, noise, numbers, regression_table, three_classes};

/// A folder with a model of two classes and its table.
fn two() -> Folder {
    let folder = Folder::with("d.csv", class_table(120));
    folder.fit("d.csv --target kind -o m.json");
    folder
}

fn column(header: &[String], name: &str) -> usize {
    header.iter().position(|h| h == name).unwrap_or_else(|| panic!("no column {name} in {header:?}"))
}

#[test]
fn priors_shift_the_odds() {
    let folder = two();
    let (header, plain) = folder.ok("predict m.json d.csv").csv();
    let (same, shifted) = folder.ok("predict m.json d.csv --prior yes=0.9,no=0.1").csv();
    assert_eq!(header, same);
    let yes = class_table(120).lines().filter(|l| l.ends_with(",yes")).count() as f64;
    let ratio = (0.9 / 0.1) / (yes / (120.0 - yes));
    let (before, after) = (numbers(&plain, 2), numbers(&shifted, 2));
    for (p, q) in before.iter().zip(&after) {
        let odds = q / (1.0 - q) / (p / (1.0 - p));
        assert!((odds / ratio - 1.0).abs() < 1e-6, "{p} became {q}");
    }
    let count = |rows: &[Vec<String>]| rows.iter().filter(|r| r[0] == "yes").count();
    assert!(count(&shifted) > count(&plain));
    // In any order, in two flags, and in a file as on the screen.
    folder.ok("predict m.json d.csv --prior no=0.1 --prior yes=0.9 -o p.csv --threads 1");
    assert_eq!(folder.read("p.csv"), folder.ok("predict m.json d.csv --prior yes=0.9,no=0.1").stdout);
}

#[test]
fn costs_and_rejection_have_columns() {
    let folder = two().add("c.csv", "true,no,yes\nyes,50,0\nno,0,1\n").add("semi.csv", "t;yes;no\nno;1;0\nyes;0;50\n");
    let (header, rows) = folder.ok("predict m.json d.csv --costs yes:no=50,no:yes=1").csv();
    assert_eq!(header, ["prediction", "probability_no", "probability_yes", "expected_cost"]);
    for row in &rows {
        let (no, yes): (f64, f64) = (row[1].parse().unwrap(), row[2].parse().unwrap());
        let cost: f64 = row[3].parse().unwrap();
        assert_eq!(row[0] == "yes", no < 50.0 * yes);
        assert!((cost - no.min(50.0 * yes)).abs() < 1e-9);
    }
    let inline = folder.ok("predict m.json d.csv --costs yes:no=50,no:yes=1,no:no=0").stdout;
    for file in ["c.csv", "semi.csv"] {
        assert_eq!(folder.ok(&format!("predict m.json d.csv --costs {file}")).stdout, inline);
    }
    let (header, rows) = folder.ok("predict m.json d.csv --reject 0.9").csv();
    assert_eq!(header, ["prediction", "probability_no", "probability_yes", "rejected"]);
    let rejected = rows.iter().filter(|r| r[3] == "true").count();
    assert!(rejected > 0 && rejected < 120);
    for row in &rows {
        let largest = row[1].parse::<f64>().unwrap().max(row[2].parse().unwrap());
        assert_eq!(row[3], (largest < 0.9).to_string());
    }
    let (header, rows) = folder.ok("predict m.json d.csv --costs c.csv --reject-cost 0.25 --prior yes=0.2,no=0.8").csv();
    assert_eq!(header, ["prediction", "probability_no", "probability_yes", "rejected", "expected_cost"]);
    assert!(rows.iter().any(|r| r[3] == "true") && numbers(&rows, 4).iter().all(|cost| *cost <= 0.25));
    assert!(rows.iter().all(|r| (r[3] == "true") == (r[4] == "0.25")));
    // More rows than a block has.
    let many: String =
        class_table(120).lines().enumerate().map(|(i, l)| format!("{l}\n").repeat(if i == 0 { 1 } else { 80 })).collect();
    let folder = folder.add("many.csv", many);
    let (_, all) = folder.ok("predict m.json many.csv --reject 0.9").csv();
    let (_, once) = folder.ok("predict m.json d.csv --reject 0.9").csv();
    assert!(all.len() == 9600 && all.iter().enumerate().all(|(i, row)| *row == once[i / 80]));
}

#[test]
fn several_classes_and_other_machines() {
    let folder = Folder::with("d.csv", three_classes(90, ["1", "2", "3"]));
    for (options, name) in [
        ("--preset tipping2001", "joint.json"),
        ("--preset tipping2001 --multi-class one_vs_rest", "rest.json"),
        ("--machine svm --probability", "svm.json"),
    ] {
        folder.ok(&format!("fit d.csv --target kind --task classify {options} -o {name}"));
        let line = format!("predict {name} d.csv --prior 3=0.98,1.0=0.01,2=0.01 --reject 0.6");
        let (header, rows) = folder.ok(&line).csv();
        assert_eq!(header, ["prediction", "probability_1", "probability_2", "probability_3", "rejected"]);
        assert!(rows.iter().filter(|r| r[0] == "3").count() > 45, "{name}");
    }
    folder.ok("fit d.csv --target kind --task classify --machine svm -o bare.json");
    folder.fails(1, "predict bare.json d.csv --reject 0.6", &["trained without probabilities"]);
    folder.fails(1, "score bare.json d.csv --reject 0.6", &["trained without probabilities"]);
    folder.fails(1, "score bare.json d.csv --figures f", &["--figures", "without probabilities"]);
    let score = folder.ok("score bare.json d.csv --format json").json();
    assert!(score["measures"]["error_rate"].is_f64() && score["measures"].as_object().unwrap().len() == 1);
}

#[test]
fn wrong_priors_costs_and_thresholds() {
    let folder = two()
        .add("short.csv", "true,no,yes\nyes,50,0\n")
        .add("narrow.csv", "true,no\nyes,50\nno,0\n")
        .add("twice.csv", "true,no,yes\nyes,50,0\nyes,50,0\nno,0,1\n")
        .add("other.csv", "true,no,maybe\nyes,50,0\nno,0,1\n")
        .add("row.csv", "true,no,yes\nyes,50,0\nmaybe,0,1\n")
        .add("minus.csv", "true,no,yes\nyes,-5,0\nno,0,1\n")
        .add("text.csv", "true,no,yes\nyes,dear,0\nno,0,1\n")
        .add("r.csv", regression_table(40, ","));
    for command in ["predict", "score"] {
        let fails = |code, options: &str, fragments: &[&str]| {
            folder.fails(code, &format!("{command} m.json d.csv {options}"), fragments);
        };
        fails(2, "--prior yes=0.5,no=0.4", &["--prior", "sum to 0.9", "a sum of 1"]);
        fails(2, "--prior yes=0.5,yes=0.5", &["`yes` is given twice"]);
        let run = folder.run(&format!("{command} m.json d.csv --prior yes=1.5,no=-0.5"));
        assert!(run.code == 2 && run.stderr.contains("probability from 0 to 1"), "{run:?}");
        let run = folder.run(&format!("{command} m.json d.csv --prior yes"));
        assert!(run.code == 2 && run.stderr.contains("LABEL=P"), "{run:?}");
        fails(1, "--prior yes=0.5,maybe=0.5", &["no class `maybe`", "its classes are: no, yes"]);
        fails(1, "--prior yes=1", &["the class `no` is left out"]);
        fails(1, "--costs yes:no=50", &["no:yes is left out"]);
        fails(1, "--costs yes:no=50,no:yes=-1", &["costs[0, 1] = -1", "zero or positive"]);
        fails(1, "--costs yes:no=50,no:yes=x", &["TRUE:DECIDED=COST"]);
        fails(1, "--costs yes:maybe=50", &["no class `maybe`"]);
        fails(1, "--costs yes:no=50,yes:no=1,no:yes=1", &["given twice"]);
        fails(1, "--costs none.csv", &["none.csv", "cannot open"]);
        fails(1, "--costs short.csv", &["no row for the class `no`"]);
        fails(1, "--costs narrow.csv", &["no column for the class `yes`"]);
        fails(1, "--costs twice.csv", &["the class `yes` has two rows"]);
        fails(1, "--costs other.csv", &["the header", "no class `maybe`"]);
        fails(1, "--costs row.csv", &["row 2", "no class `maybe`"]);
        fails(1, "--costs minus.csv", &["costs[1, 0] = -5"]);
        fails(1, "--costs text.csv", &["`dear` is not a number"]);
        for (options, fragment) in [
            ("--reject 1", "between 0 and 1"),
            ("--reject -0.5", "between 0 and 1"),
            ("--reject 0.5 --costs short.csv", "cannot be used with"),
            ("--reject-cost 0.5", "--costs"),
            ("--costs short.csv --reject-cost -1", "zero or positive"),
        ] {
            let run = folder.run(&format!("{command} m.json d.csv {options}"));
            assert!(run.code == 2 && run.stderr.contains(fragment), "{options}: {run:?}");
        }
    }
    folder.fit("r.csv --target y -o r.json");
    for (options, flag) in [("--prior a=0.5,b=0.5", "--prior"), ("--costs short.csv", "--costs"), ("--reject 0.5", "--reject")] {
        folder.fails(1, &format!("predict r.json r.csv {options}"), &[flag, "is for classifiers"]);
        folder.fails(1, &format!("score r.json r.csv {options}"), &[flag, "is for classifiers"]);
    }
    // From before frequencies were kept.
    let mut model = relvec::Model::from_json(&folder.read("m.json")).unwrap();
    model.class_frequencies.clear();
    let folder = folder.add("old.json", model.to_json().unwrap());
    folder.ok("predict old.json d.csv --reject 0.5");
    folder.fails(1, "predict old.json d.csv --prior yes=0.5,no=0.5", &["class frequencies", "train it again"]);
}

#[test]
fn scores_of_classes() {
    let folder = two().add("t.csv", class_table(300));
    let own = folder.ok("score m.json t.csv --format json").json();
    let measures = &own["measures"];
    let (header, rows) = folder.ok("predict m.json t.csv").csv();
    let truth: Vec<String> = class_table(300).lines().skip(1).map(|l| l.rsplit_once(',').unwrap().1.into()).collect();
    let p = numbers(&rows, column(&header, "probability_yes"));
    let wrong = rows.iter().zip(&truth).filter(|(r, t)| r[0] != **t).count();
    let close = |key: &str, expected: f64| {
        let found = measures[key].as_f64().unwrap();
        assert!((found - expected).abs() < 1e-9, "{key}: {found} is not {expected}");
    };
    close("error_rate", wrong as f64 / 300.0);
    let of_truth = |i: usize| if truth[i] == "yes" { p[i] } else { 1.0 - p[i] };
    close("log_loss", (0..300).map(|i| -of_truth(i).ln()).sum::<f64>() / 300.0);
    close("brier", (0..300).map(|i| 2.0 * (1.0 - of_truth(i)).powi(2)).sum::<f64>() / 300.0);
    let (mut pairs, mut ahead) = (0.0, 0.0);
    for i in (0..300).filter(|i| truth[*i] == "yes") {
        for j in (0..300).filter(|j| truth[*j] == "no") {
            pairs += 1.0;
            ahead += if p[i] > p[j] { 1.0 } else { 0.0 };
        }
    }
    close("auc", ahead / pairs);
    assert_eq!((own["rows"].as_u64(), own["target"].as_str(), own["task"].as_str()), (Some(300), Some("kind"), Some("classify")));
    let keys: Vec<&String> = measures.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 6, "{keys:?}");

    let line = "score m.json t.csv --costs yes:no=10,no:yes=1 --reject-cost 0.4 --prior yes=0.3,no=0.7";
    let (header, found) = folder.ok(&format!("{line} --format csv")).csv();
    let found: HashMap<&str, f64> =
        header.iter().zip(&found[0]).map(|(key, value)| (key.as_str(), value.parse().unwrap())).collect();
    let (names, rows) = folder.ok(&line.replace("score", "predict")).csv();
    let (rejected, expected) = (column(&names, "rejected"), numbers(&rows, column(&names, "expected_cost")));
    let paid = |i: usize| match (rows[i][rejected].as_str(), truth[i].as_str(), rows[i][0].as_str()) {
        ("true", ..) => 0.4,
        (_, "yes", "no") => 10.0,
        (_, "no", "yes") => 1.0,
        _ => 0.0,
    };
    assert!((found["cost"] - (0..300).map(paid).sum::<f64>() / 300.0).abs() < 1e-12);
    assert!((found["expected_cost"] - expected.iter().sum::<f64>() / 300.0).abs() < 1e-12);
    let kept: Vec<usize> = (0..300).filter(|i| rows[*i][rejected] == "false").collect();
    assert!((found["rejected"] - (1.0 - kept.len() as f64 / 300.0)).abs() < 1e-12 && found["rejected"] > 0.0);
    let wrong = kept.iter().filter(|i| rows[**i][0] != truth[**i]).count() as f64;
    assert!((found["error_rate_kept"] - wrong / kept.len() as f64).abs() < 1e-12);
    // A prior changes no order of the rows.
    assert_eq!(found["auc"], measures["auc"].as_f64().unwrap());

    let text = folder.ok("score m.json t.csv --reject 0.8 -o s.txt");
    assert_eq!(text.stdout, "");
    let text = folder.read("s.txt");
    for name in [
        "m.json on t.csv: 300 rows",
        "error rate incl. rejected rows (%)",
        "ROC AUC",
        "rejected rows (%)",
        "error of decided rows (%)",
        "decided rows",
    ] {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn figures_of_scores() {
    let folder = Folder::with("d.csv", three_classes(90, ["x", "y", "z"])).add("one.csv", "a,b,kind\n0,0,x\n0.1,0,x\n");
    folder.fit("d.csv --target kind -o m.json");
    let run = folder.ok("score m.json d.csv --figures f");
    for name in ["roc", "precision_recall", "reliability"] {
        let svg = std::fs::read_to_string(folder.path("f").join(format!("{name}.svg"))).unwrap();
        assert!(svg.contains("<svg") && (name == "reliability" || svg.contains('z')), "{name}");
        assert!(folder.path("f").join(format!("{name}.png")).is_file());
        assert!(run.stderr.contains(&format!("{name}.svg")), "{}", run.stderr);
    }
    // Of rows of one class there is no ranking.
    let run = folder.ok("score m.json one.csv --figures g --format json");
    assert!(run.stderr.contains("of one class"), "{}", run.stderr);
    let score = run.json();
    assert!(score["measures"]["auc"].is_null() && score["measures"]["log_loss"].is_f64());
    assert!(folder.path("g").join("reliability.svg").is_file() && !folder.path("g").join("roc.svg").exists());
    assert!(folder.ok("score m.json one.csv").stdout.lines().any(|l| l.starts_with("ROC AUC") && l.contains("   -   ")));
    // Nothing is left.
    let (header, rows) = folder.ok("score m.json one.csv --reject 0.999999999 --format csv").csv();
    assert_eq!(rows[0][column(&header, "rejected")], "1");
    assert_eq!(rows[0][column(&header, "error_rate_kept")], "");
}

/// A support vector machine without probabilities has a ranking of two classes.
#[test]
fn scores_of_machines_without_probabilities() {
    let folder = two();
    folder.ok("fit d.csv --target kind --machine svm -o s.json");
    folder.ok("score s.json d.csv --figures f");
    let own = folder.ok("score s.json d.csv --format json").json();
    let keys: Vec<&str> = own["measures"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["auc", "average_precision", "error_rate"]);
    assert!(own["measures"]["auc"].as_f64().unwrap() > 0.8);
    assert!(folder.path("f").join("roc.svg").is_file() && !folder.path("f").join("reliability.svg").exists());
}

#[test]
fn scores_of_values() {
    let folder = Folder::with("d.csv", regression_table(80, ","));
    folder.fit("d.csv --target y -o m.json");
    let own = folder.ok("score m.json d.csv --format json --level 0.5").json();
    let (_, rows) = folder.ok("predict m.json d.csv --level 0.5").csv();
    let truth: Vec<f64> =
        regression_table(80, ",").lines().skip(1).map(|l| l.rsplit_once(',').unwrap().1.parse().unwrap()).collect();
    let (mean, std, lower, upper) = (numbers(&rows, 0), numbers(&rows, 1), numbers(&rows, 2), numbers(&rows, 3));
    let average = |f: &dyn Fn(usize) -> f64| (0..80).map(f).sum::<f64>() / 80.0;
    let close = |key: &str, expected: f64| {
        let found = own["measures"][key].as_f64().unwrap();
        assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0), "{key}: {found} is not {expected}");
    };
    close("rmse", average(&|i| (truth[i] - mean[i]).powi(2)).sqrt());
    close("mae", average(&|i| (truth[i] - mean[i]).abs()));
    let two_pi = 2.0 * std::f64::consts::PI;
    close("negative_log_density", average(&|i| 0.5 * ((two_pi * std[i].powi(2)).ln() + ((truth[i] - mean[i]) / std[i]).powi(2))));
    close("coverage", average(&|i| f64::from(u8::from(truth[i] >= lower[i] && truth[i] <= upper[i]))));
    assert_eq!(own["level"].as_f64(), Some(0.5));
    assert!(folder.ok("score m.json d.csv").stdout.contains("95 % interval covers (%)"));
    folder.fails(1, "score m.json d.csv --figures f", &["--figures is for classifiers"]);
    folder.ok("fit d.csv --target y --machine svm -o s.json");
    let svr = folder.ok("score s.json d.csv --format json").json();
    assert_eq!(svr["measures"].as_object().unwrap().len(), 2);
    assert!(svr.get("level").is_none());
    assert!(folder.ok("score s.json d.csv --level 0.9").stderr.contains("--level is for regression by a relevance vector"));
}

#[test]
fn tables_that_cannot_be_scored() {
    let folder = two()
        .add("other.csv", "u,v,kind\n0,0,yes\n0,1,maybe\n")
        .add("empty.csv", "u,v,kind\n")
        .add("gap.csv", "u,v,kind\n0,0,yes\n0,1,\n")
        .add("bare.csv", "u,v\n0,0\n")
        .add("renamed.csv", "u,v,what,more\n0,0,yes,3\n");
    folder.fails(1, "score m.json other.csv", &["other.csv", "row 2", "no class `maybe`", "its classes are: no, yes"]);
    folder.fails(1, "score m.json empty.csv", &["no rows"]);
    folder.fails(1, "score m.json gap.csv", &["row 2", "empty"]);
    folder.fails(1, "score m.json bare.csv", &["no column `kind`", "--target"]);
    folder.fails(1, "score m.json d.csv --target w", &["no column `w`"]);
    let run = folder.ok("score m.json renamed.csv --target what --format json");
    assert!(run.stderr.contains("note: 1 column not used by the model: more"), "{}", run.stderr);
    folder.fails(1, "score m.json d.csv -o none/s.txt", &["no folder"]);
    // A model of a library that gave no names: classes are numbers, features are places.
    let mut model = relvec::Model::from_json(&folder.read("m.json")).unwrap();
    (model.features, model.classes, model.target) = (vec![], vec![], None);
    let numbered: String = (0..40).map(|i| format!("{},{},{}\n", noise(2 * i), noise(2 * i + 1), i % 2)).collect();
    let folder = folder.add("bare.json", model.to_json().unwrap()).add("n.csv", format!("a,b,t\n{numbered}"));
    folder.fails(2, "score bare.json n.csv", &["--target NAME is needed"]);
    let own = folder.ok("score bare.json n.csv --target t --format json").json();
    assert_eq!(own["rows"].as_u64(), Some(40));
    folder.fails(1, "score bare.json n.csv --target t --prior 0=0.5,2=0.5", &["no class `2`", "its classes are: 0, 1"]);
    folder.fails(1, "predict bare.json n.csv", &["expects 2 columns, found 3"]);
}

/// Rows left out are predicted worse than rows that were learnt from, but not by much; only of the table trained on.
#[test]
fn rows_left_out() {
    let measure = |folder: &Folder, line: &str, key: &str| {
        folder.ok(&format!("{line} --format json")).json()["measures"][key].as_f64().unwrap()
    };
    let folder = Folder::with("c.csv", class_table(200)).add("r.csv", regression_table(80, ","));
    folder.fit("c.csv --target kind -o c.json");
    folder.fit("r.csv --target y -o r.json");
    folder.fit("r.csv --target y --likelihood student_t -o t.json");
    let folder = folder.add("t.csv", regression_table(80, ",")).add("k.csv", three_classes(90, ["a", "b", "c"]));
    folder.fit("k.csv --target kind -o k.json");
    for (name, key) in
        [("c", "log_loss"), ("k", "log_loss"), ("r", "rmse"), ("r", "negative_log_density"), ("t", "negative_log_density")]
    {
        let line = format!("score {name}.json {name}.csv");
        let (seen, left) = (measure(&folder, &line, key), measure(&folder, &format!("{line} --leave-one-out"), key));
        assert!(left > seen && left - seen < 0.5 * seen.abs(), "{name} {key}: {seen} {left}");
    }
    let folder = folder.add("few.csv", regression_table(20, ","));
    folder.fails(1, "score r.json few.csv --leave-one-out", &["80 rows", "20"]);
    folder.fit("k.csv --target kind --multi-class one_vs_rest -o k.json");
    folder.fails(1, "score k.json k.csv --leave-one-out", &["a single relevance vector machine"]);
    folder.ok("fit c.csv --target kind -o labels.json");
    folder.fails(1, "score labels.json c.csv --leave-one-out", &["process prior does not have", "--weight-prior ard"]);
    folder.ok("fit c.csv --target kind --machine svm -o s.json");
    folder.fails(1, "score s.json c.csv --leave-one-out", &["relevance vector machine"]);
}

/// A label that only the table has is an error that names it, its row, and the classes that there are.
#[test]
fn score_of_a_label_that_was_not_learnt() {
    let folder = Folder::with("d.csv", three_classes(60, ["red", "green", "blue"]));
    folder.fit("d.csv --target kind -o joint.json");
    folder.fit("d.csv --target kind --multi-class one_vs_rest -o rest.json");
    let folder = folder.add("new.csv", "a,b,kind\n0,0,red\n1,1,violet\n");
    for model in ["joint.json", "rest.json"] {
        folder.fails(1, &format!("score {model} new.csv"), &["row 2", "`kind`", "`violet`", "blue, green, red"]);
        assert_eq!(folder.ok(&format!("predict {model} new.csv")).csv().1.len(), 2);
    }
}
