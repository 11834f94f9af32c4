//! `fit`, `inspect`, `predict`: what goes in comes out.

use serde_json::{Value, json};

use super::support::{Folder, class_table, numbers, parse_csv, regression_rows, regression_table, three_classes};

const ROWS: usize = 60;

#[test]
fn a_regression_goes_from_fit_to_predictions() {
    let folder = Folder::with("d.csv", regression_table(ROWS, ","));
    let fit = folder.fit("d.csv --target y -o m.json");
    assert_eq!(fit.stdout, "", "words go to stderr");
    for word in
        ["Regression of `y` on 2 features", "converged in", "kernel", "relevance vectors", "nats", "noise", "Saved m.json"]
    {
        assert!(fit.stderr.contains(word), "{word}: {}", fit.stderr);
    }
    assert!(!fit.stderr.contains("task") && !fit.stderr.contains("iteration"), "{}", fit.stderr);
    let verbose = folder.fit("d.csv --target y -o m.json -v").stderr;
    assert!(verbose.contains("note: task regress, since") && verbose.contains("iteration 1: log evidence"), "{verbose}");

    let (header, rows) = folder.ok("predict m.json d.csv").csv();
    assert_eq!(header, ["prediction", "std", "lower", "upper"]);
    assert_eq!(rows.len(), ROWS);
    let (mean, std, lower, upper) = (numbers(&rows, 0), numbers(&rows, 1), numbers(&rows, 2), numbers(&rows, 3));
    for (i, row) in regression_rows(ROWS).iter().enumerate() {
        assert!((mean[i] - row[2]).abs() < 0.5, "row {i}: {} for {}", mean[i], row[2]);
        assert!(((upper[i] - mean[i]) / std[i] - 1.959964).abs() < 1e-6);
        assert!(((mean[i] - lower[i]) / std[i] - 1.959964).abs() < 1e-6);
    }
    let (_, narrow) = folder.ok("predict m.json d.csv --level 0.5").csv();
    assert!(((numbers(&narrow, 3)[0] - mean[0]) / std[0] - 0.6744898).abs() < 1e-6);
}

/// All weights stay unless they are to be pruned; the summary tells how many matter, and the bound.
#[test]
fn variational_inference_prunes_only_if_asked() {
    let folder = Folder::with("d.csv", regression_table(ROWS, ","));
    folder.fit("d.csv --target y --inference variational -o all.json");
    folder.fit("d.csv --target y --inference variational --set inference.variational.prune=true -o few.json");
    let (all, few) = (folder.ok("inspect all.json --json").json(), folder.ok("inspect few.json --json").json());
    assert_eq!(all["n_vectors"], json!(ROWS));
    assert!(few["n_vectors"].as_u64() < Some(ROWS as u64 / 2), "{few}");
    let in_use = |v: &Value| v["in_use"]["by_data"].as_i64().unwrap();
    assert!((in_use(&all) - in_use(&few)).abs() <= 3, "{all} {few}");
    let text = folder.ok("inspect few.json").stdout;
    for word in ["weights above 1e-3", "well determined", "lower bound"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains("log evidence"), "{text}");
}

/// With the noise precision integrated out intervals are those of Student's t: wider, the fewer the rows.
#[test]
fn student_t_intervals() {
    let folder = Folder::with("d.csv", regression_table(12, ","));
    folder.fit("d.csv --target y --inference variational -o m.json");
    let (_, plain) = folder.ok("predict m.json d.csv").csv();
    let (_, wide) = folder.ok("predict m.json d.csv --student-t").csv();
    for (plain, wide) in plain.iter().zip(&wide) {
        let number = |row: &Vec<String>, k: usize| row[k].parse::<f64>().unwrap();
        assert_eq!(plain[0], wide[0]);
        // Intervals are of that distribution in any case.
        assert_eq!(plain[2..], wide[2..]);
        // 12 + 2e-6 degrees of freedom: quantile 2.178813, standard deviation sqrt(12 / 10).
        let half = (number(wide, 3) - number(wide, 0)) / number(plain, 1);
        assert!((half - 2.178813).abs() < 1e-4, "{half}");
        assert!((number(wide, 1) / number(plain, 1) - 1.2f64.sqrt()).abs() < 1e-6);
    }
    // `score` by the same distribution: 12 rows are told of better by heavier tails only if they are far out.
    let score = |more: &str| folder.ok(&format!("score m.json d.csv --format json {more}")).json()["measures"].clone();
    let (normal, student) = (score(""), score("--student-t"));
    assert_eq!(normal["rmse"], student["rmse"]);
    let density: f64 = plain
        .iter()
        .zip(regression_rows(12))
        .map(|(row, truth)| {
            let (mean, std): (f64, f64) = (row[0].parse().unwrap(), row[1].parse().unwrap());
            // Of 12 degrees of freedom: Gamma(6.5) / Gamma(6) / sqrt(12 pi).
            let t = (truth[2] - mean) / std;
            (0.390_726_3 / std).ln() - 6.5 * (t * t / 12.0).ln_1p()
        })
        .sum();
    let found = student["negative_log_density"].as_f64().unwrap();
    assert!((found + density / 12.0).abs() < 1e-4, "{found} {}", -density / 12.0);
    assert_ne!(normal["negative_log_density"], student["negative_log_density"]);
    let inside = plain.iter().zip(regression_rows(12)).filter(|(row, truth)| {
        let (lower, upper): (f64, f64) = (row[2].parse().unwrap(), row[3].parse().unwrap());
        lower <= truth[2] && truth[2] <= upper
    });
    assert_eq!(normal["coverage"].as_f64().unwrap(), inside.count() as f64 / 12.0);
    assert_eq!(normal["coverage"], student["coverage"]);
    folder.fit("d.csv --target y -o n.json");
    folder.fails(1, "predict n.json d.csv --student-t", &["--student-t", "variational"]);
    folder.fails(1, "score n.json d.csv --student-t", &["--student-t", "variational"]);
    let classes = Folder::with("k.csv", class_table(30));
    classes.fit("k.csv --target kind --inference variational -o k.json");
    classes.fails(1, "score k.json k.csv --student-t", &["--student-t", "classifier"]);
}

/// Of models of two classes the summary counts what is of use in any of them; progress is that of a bound.
#[test]
fn variational_inference_of_three_classes() {
    let folder = Folder::with("d.csv", three_classes(60, ["red", "green", "blue"]));
    let run = folder.fit("d.csv --target kind --inference variational --set inference.tolerance=1e-3 -o m.json --json -v");
    let count = run.json()["in_use"]["by_data"].as_u64().unwrap();
    assert!(count > 0 && count <= 60, "{count}");
    assert!(run.stderr.contains(&format!("well determined     {count}\n")), "{}", run.stderr);
    assert!(run.stderr.contains("iteration 1: lower bound"), "{}", run.stderr);
    assert!(!run.stderr.contains("log evidence"), "{}", run.stderr);
    assert!(folder.ok("inspect m.json").stdout.contains(&format!("well determined     {count}\n")));
}

/// What is written 007 is no 7: such labels are texts, through fit, predict and score; other spellings of a number are one.
#[test]
fn codes_are_no_numbers() {
    let folder = Folder::with("d.csv", three_classes(90, ["007", "07", "7"]));
    let fit = "fit d.csv --preset tipping2001 --target kind --task classify --json";
    assert_eq!(folder.ok(&format!("{fit} -o m.json")).json()["classes"], json!(["007", "07", "7"]));
    let (header, rows) = folder.ok("predict m.json d.csv").csv();
    assert_eq!(header, ["prediction", "probability_007", "probability_07", "probability_7"]);
    let truth = parse_csv(&folder.read("d.csv")).1;
    let wrong = rows.iter().zip(&truth).filter(|(p, t)| p[0] != t[2]).count() as f64 / 90.0;
    assert!(wrong < 0.3, "{wrong}");
    let score = folder.ok("score m.json d.csv --format json").json();
    assert!((score["measures"]["error_rate"].as_f64().unwrap() - wrong).abs() < 1e-12, "{score}");
    let other = Folder::with("d.csv", three_classes(30, ["7", "7.0", "8"]));
    assert_eq!(other.ok(fit).json()["classes"], json!(["7", "8"]));
    // Longer than 64-bit floating point can tell apart.
    let other = Folder::with("d.csv", three_classes(30, ["9007199254740992", "9007199254740993", "1"]));
    assert_eq!(other.ok(fit).json()["classes"], json!(["1", "9007199254740992", "9007199254740993"]));
    // Beside texts a number is the text of it, in every table.
    let mixed = Folder::with("d.csv", three_classes(30, ["1.0", "x", "07"]));
    assert_eq!(mixed.ok(&format!("{fit} -o m.json")).json()["classes"], json!(["07", "1", "x"]));
    mixed.ok("score m.json d.csv");
    // To be predicted as values they are numbers.
    let values = Folder::with("d.csv", three_classes(30, ["007", "07", "8"]));
    let summary = values.fit("d.csv --target kind --task regress -o m.json --json").json();
    assert_eq!(summary["task"], "regress");
    let rmse = values.ok("score m.json d.csv --format json").json()["measures"]["rmse"].as_f64().unwrap();
    assert!(rmse < 0.6, "{rmse}");
}

/// How several classes are told apart is a question of classes.
#[test]
fn multi_class_means_classes() {
    let folder = Folder::with("d.csv", three_classes(60, ["1", "2", "3"]));
    for said in [
        "--preset tipping2001 --multi-class joint",
        "--preset tipping2001 --set multi_class=one_vs_rest",
        "--machine svm --multi-class one_vs_one",
    ] {
        let run = folder.ok(&format!("fit d.csv --target kind --json -v {said}"));
        assert_eq!((&run.json()["task"], &run.json()["classes"]), (&json!("classify"), &json!(["1", "2", "3"])), "{said}");
        assert!(run.stderr.contains("note: task classify, since"), "{}", run.stderr);
    }
    for said in ["--multi-class auto", "--set multi_class=auto"] {
        folder.fails(1, &format!("fit d.csv --target kind --json {said}"), &["`kind` has 3 distinct whole values (1, 2, 3)"]);
    }
    for other in ["--task regress", "--likelihood gaussian", "--machine svm --task regress"] {
        let line = format!("fit d.csv --target kind -o m.json --multi-class one_vs_one {other}");
        folder.fails(2, &line, &["--multi-class one_vs_one", "regress"]);
    }
    folder.fails(2, "fit d.csv --target kind --stream --multi-class one_vs_rest --dictionary 5 -o m.json", &["--stream"]);
    let run = folder.ok("fit d.csv --target kind --stream --multi-class joint --dictionary 5 --json");
    assert_eq!(run.json()["task"], "classify");
    let line = "fit d.csv --target kind --stream --multi-class joint --preset tipping2001 --dictionary 5 -o m.json";
    folder.fails(2, line, &["--stream", "auto or one_vs_rest with --weight-prior ard"]);
    folder.fails(2, "fit d.csv --target kind --target a --multi-class joint -o m.json", &["--multi-class joint", "2 targets"]);
}

#[test]
fn classification_with_text_labels() {
    let folder = Folder::with("d.csv", class_table(ROWS));
    let fit = folder.fit("d.csv --target kind -o m.json");
    assert!(fit.stderr.starts_with("Classification of `kind` into 2 classes (no, yes) by"), "{}", fit.stderr);
    assert!(fit.stderr.contains("training errors"), "{}", fit.stderr);
    assert!(!fit.stderr.contains("noise  "), "a classifier has no noise: {}", fit.stderr);
    let (header, rows) = folder.ok("predict m.json d.csv").csv();
    assert_eq!(header, ["prediction", "probability_no", "probability_yes"]);
    let truth = parse_csv(&folder.read("d.csv")).1;
    let right = rows.iter().zip(&truth).filter(|(p, t)| p[0] == t[2]).count();
    assert!(right > ROWS * 3 / 4, "{right} of {ROWS}");
    for row in &rows {
        let (no, yes): (f64, f64) = (row[1].parse().unwrap(), row[2].parse().unwrap());
        assert!((no + yes - 1.0).abs() < 1e-12);
        assert_eq!(row[0] == "yes", yes > no);
    }
    assert!(folder.ok("predict m.json d.csv --level 0.9").stderr.contains("note: --level"));
}

/// Any number of labels: one model of all, or models of two; a label that only the new table has is of no account.
#[test]
fn three_text_labels() {
    let names = ["pear", "apple", "fig"];
    let folder = Folder::with("d.csv", three_classes(ROWS, names));
    for (rule, told) in [
        ("auto", "joint"),
        ("joint", "joint"),
        ("one_vs_rest", "one-vs-rest (3 binary models)"),
        ("one_vs_one", "one-vs-one (3 binary models)"),
    ] {
        let fit = folder.fit(&format!("d.csv --target kind --multi-class {rule} -o m.json"));
        assert!(fit.stderr.contains("into 3 classes (apple, fig, pear)") && fit.stderr.contains(told), "{}", fit.stderr);
        let (header, rows) = folder.ok("predict m.json d.csv").csv();
        assert_eq!(header, ["prediction", "probability_apple", "probability_fig", "probability_pear"]);
        let right = rows.iter().enumerate().filter(|(i, row)| row[0] == names[i % 3]).count();
        assert!(right > ROWS * 6 / 10, "{rule}: {right} of {ROWS}");
        for row in &rows {
            let p: Vec<f64> = row[1..].iter().map(|p| p.parse().unwrap()).collect();
            assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{row:?}");
            let best = (0..3).max_by(|k, l| p[*k].total_cmp(&p[*l])).unwrap();
            assert_eq!(row[0], ["apple", "fig", "pear"][best]);
        }
        let summary = folder.ok("inspect m.json --json").json();
        assert_eq!(summary["classes"], json!(["apple", "fig", "pear"]));
        assert_eq!(summary["multi_class"], json!(if rule == "auto" { "joint" } else { rule }));
        let members = summary["members"].as_array().map_or(0, Vec::len);
        assert_eq!(members, if told == "joint" { 0 } else { 3 });
        let text = folder.ok("inspect m.json").stdout;
        assert!(text.contains("row ") && text.contains(told), "{text}");
    }
    let new = folder.read("d.csv").replace("pear", "plum");
    let folder = folder.add("new.csv", new);
    assert_eq!(folder.ok("predict m.json new.csv").stdout, folder.ok("predict m.json d.csv").stdout);
}

/// A model in which each class has its own precisions, which earlier versions fitted, predicts, and its file says how
/// many weights the classes have.
#[test]
fn models_with_precisions_of_each_class_are_read() {
    let folder = Folder::with("d.csv", "a,b\n-0.5,1\n0.25,0\n");
    let pinned = concat!(env!("CARGO_MANIFEST_DIR"), "/../relvec/tests/pinned/rvc_class_precisions.json");
    let folder = folder.add("own.json", std::fs::read_to_string(pinned).unwrap());
    let own = folder.ok("inspect own.json --json").json();
    let count = |name: &str| own["class_weights"][name].as_u64().unwrap();
    assert!(count("present") < count("all"), "{own}");
    let text = folder.ok("inspect own.json").stdout;
    assert!(text.contains(&format!("weights of classes  {} of {}", count("present"), count("all"))), "{text}");
    for row in folder.ok("predict own.json d.csv").csv().1 {
        let sum: f64 = row[1..].iter().map(|p| p.parse::<f64>().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{row:?}");
    }
}

/// The posterior of the mean curvature, of several classes where no other is asked for: another covariance, and the file
/// says so.
#[test]
fn a_posterior_of_the_mean_curvature() {
    let folder = Folder::with("d.csv", three_classes(ROWS, ["pear", "apple", "fig"]));
    let laplace = folder.fit("d.csv --target kind --set posterior=laplace -o laplace.json --json").json();
    let own = folder.fit("d.csv --target kind -o own.json --json").json();
    assert_eq!(own["log_evidence"], laplace["log_evidence"]);
    assert_eq!((own["posterior"].as_str(), laplace.get("posterior")), (Some("averaged"), None));
    assert!(folder.ok("inspect own.json").stdout.contains("posterior           averaged"));
    let probabilities = |model: &str| folder.ok(&format!("predict {model} d.csv")).csv().1;
    assert_ne!(probabilities("own.json"), probabilities("laplace.json"));
    folder.fit("d.csv --target kind --set posterior=averaged -o asked.json");
    assert_eq!(probabilities("asked.json"), probabilities("own.json"));
    folder.fails(2, "fit d.csv --target kind --set posterior=mean -o m.json", &["posterior", "laplace", "averaged"]);
    let refused = "fit d.csv --target kind --inference variational --set posterior=averaged -o m.json";
    folder.fails(2, refused, &["posterior = averaged", "its own posterior"]);
}

/// Classes named by numbers are numbers, in their order, and more than two of them need to be asked for.
#[test]
fn three_numeric_labels() {
    let folder = Folder::with("d.csv", three_classes(ROWS, ["10", "9", "-1.5"]));
    assert!(folder.fit("d.csv --target kind --json").stderr.starts_with("Regression of `kind`"));
    let summary = folder.fit("d.csv --target kind --task classify -o m.json --json").json();
    assert_eq!(summary["classes"], json!(["-1.5", "9", "10"]));
    let header = folder.ok("predict m.json d.csv").csv().0;
    assert_eq!(header, ["prediction", "probability_-1.5", "probability_9", "probability_10"]);
    let summary = Folder::with("d.csv", class_table(ROWS)).fit("d.csv --target kind --json").json();
    assert_eq!(summary.get("multi_class"), None, "there are two classes only");
}

#[test]
fn numeric_classes_are_sorted_as_numbers() {
    let table = class_table(ROWS).replace("yes", "10").replace("no", "9.0");
    let folder = Folder::with("d.csv", table);
    let summary = folder.fit("d.csv --target kind --json").json();
    assert_eq!(summary["classes"], json!(["9", "10"]));
}

#[test]
fn inspect_has_the_keys_that_are_promised() {
    let folder = Folder::with("d.csv", regression_table(ROWS, ","));
    let fit = folder.fit("d.csv --target y -o m.json --json").json();
    let inspect = folder.ok("inspect m.json --json");
    let keys = [
        "format_version",
        "machine",
        "task",
        "likelihood",
        "inference",
        "kernel",
        "features",
        "classes",
        "n_rows",
        "n_vectors",
        "relevance",
        "log_evidence",
        "noise_std",
        "status",
        "iterations",
    ];
    let positions: Vec<usize> = keys.map(|k| inspect.stdout.find(&format!("\n  \"{k}\":")).expect(k)).to_vec();
    assert!(positions.is_sorted(), "{}", inspect.stdout);
    let object = inspect.json();
    assert_eq!(object.as_object().unwrap().len(), keys.len());
    // `fit --json` is the same and the seconds.
    let mut without = fit.clone();
    assert!(without.as_object_mut().unwrap().remove("seconds").unwrap().is_f64());
    assert_eq!(without, object);

    assert_eq!(object["format_version"], json!(1));
    assert_eq!(object["machine"], "rvm");
    assert_eq!(object["task"], "regress");
    assert_eq!(object["likelihood"], "gaussian");
    assert_eq!(object["inference"], "search");
    assert_eq!(object["kernel"]["name"], "rbf");
    assert!(object["kernel"]["parameters"]["gamma"].is_f64());
    assert_eq!(object["features"], json!(["a", "b"]));
    assert_eq!(object["classes"], json!([]));
    assert_eq!(object["n_rows"], json!(ROWS));
    assert_eq!(object["n_vectors"], json!(object["relevance"].as_array().unwrap().len()));
    assert!(object["relevance"].as_array().unwrap().iter().all(|r| r.as_u64().unwrap() < ROWS as u64));
    assert_eq!(object["status"], "converged");

    let text = folder.ok("inspect m.json").stdout;
    for word in [
        "m.json: relevance vector machine, regression of `y`\n",
        "gaussian likelihood",
        "relevance vectors",
        "Features: a, b",
        "precision",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn a_classifier_has_null_noise() {
    let folder = Folder::with("d.csv", class_table(ROWS));
    let object = folder.fit("d.csv --target kind --json").json();
    assert_eq!(object["noise_std"], Value::Null);
    assert_eq!(object["likelihood"], "bernoulli");
    assert_eq!(object["classes"], json!(["no", "yes"]));
}

#[test]
fn columns_in_any_order_and_more_of_them() {
    let folder = Folder::with("d.csv", regression_table(ROWS, ","));
    let shuffled: String = regression_table(ROWS, ",")
        .lines()
        .enumerate()
        .map(|(i, line)| {
            let cells: Vec<&str> = line.split(',').collect();
            let extra = if i == 0 { "id".to_string() } else { format!("row {i}") };
            format!("{},{extra},{}\n", cells[1], cells[0])
        })
        .collect();
    let folder = folder.add("shuffled.csv", shuffled);
    folder.fit("d.csv --target y -o m.json");
    let straight = folder.ok("predict m.json d.csv");
    let other = folder.ok("predict m.json shuffled.csv");
    assert_eq!(straight.stdout, other.stdout);
    assert_eq!(straight.stderr, "", "that the target is no feature goes without saying");
    assert!(other.stderr.contains("note: 1 column not used by the model: id"), "{}", other.stderr);
}

#[test]
fn the_model_is_the_same_on_any_number_of_threads() {
    let folder = Folder::with("d.csv", regression_table(300, ","));
    folder.fit("d.csv --target y -o one.json --threads 1");
    folder.fit("d.csv --target y -o two.json --threads 2");
    folder.fit("d.csv --target y -o again.json --threads 2");
    assert_eq!(folder.read("one.json"), folder.read("two.json"));
    assert_eq!(folder.read("two.json"), folder.read("again.json"));
    let one = folder.ok("predict one.json d.csv --threads 1").stdout;
    assert_eq!(one, folder.ok("predict one.json d.csv --threads 2").stdout);
}

#[test]
fn many_rows_are_predicted_in_blocks() {
    let folder = Folder::with("d.csv", regression_table(50, ",")).add("long.csv", regression_table(20_000, ","));
    folder.fit("d.csv --target y -o m.json");
    folder.ok("predict m.json long.csv -o p.csv");
    let rows = parse_csv(&folder.read("p.csv")).1;
    assert_eq!(rows.len(), 20_000);
    let few = folder.ok("predict m.json d.csv").csv().1;
    assert_eq!(rows[..50], few);
    assert_eq!(folder.names(), ["d.csv", "long.csv", "m.json", "p.csv"]);
}

#[test]
fn standardising_is_undone_by_nobody() {
    // A feature in other units gives the same predictions, if features are standardised.
    let thousandfold: String = regression_table(ROWS, ",")
        .lines()
        .enumerate()
        .map(|(i, line)| {
            let (a, rest) = line.split_once(',').unwrap();
            if i == 0 { format!("{line}\n") } else { format!("{},{rest}\n", 1024.0 * a.parse::<f64>().unwrap()) }
        })
        .collect();
    let folder = Folder::with("d.csv", regression_table(ROWS, ",")).add("k.csv", thousandfold);
    let means = |file: &str, options: &str| {
        folder.fit(&format!("{file} --target y -o m.json {options}"));
        numbers(&folder.ok(&format!("predict m.json {file}")).csv().1, 0)
    };
    let difference = |p: &[f64], q: &[f64]| p.iter().zip(q).map(|(p, q)| (p - q).abs()).fold(0.0, f64::max);
    assert!(difference(&means("d.csv", ""), &means("k.csv", "")) < 1e-6);
    let raw = "--no-standardize --set kernel.gamma=0.1";
    assert!(difference(&means("d.csv", raw), &means("k.csv", raw)) > 1e-3);
    assert!(!folder.ok("inspect m.json").stdout.contains("standardised"));
}

#[test]
fn a_weight_of_two_is_the_row_twice() {
    let rows = regression_rows(ROWS);
    let line = |row: &[f64; 3], w: f64| format!("{},{},{},{w}\n", row[0], row[1], row[2]);
    let head = "a,b,y,w\n".to_string();
    let weighted: String =
        head.clone() + &rows.iter().enumerate().map(|(i, r)| line(r, 1.0 + (i % 2) as f64)).collect::<String>();
    let repeated: String = head + &rows.iter().enumerate().map(|(i, r)| line(r, 1.0).repeat(1 + i % 2)).collect::<String>();
    let folder = Folder::with("weighted.csv", weighted).add("repeated.csv", repeated);
    folder.fit("weighted.csv --target y --weights w -o weighted.json");
    folder.fit("repeated.csv --target y --drop w -o repeated.json");
    let means = |model: &str| numbers(&folder.ok(&format!("predict {model} weighted.csv")).csv().1, 0);
    for (p, q) in means("weighted.json").iter().zip(means("repeated.json")) {
        assert!((p - q).abs() < 1e-6, "{p} {q}");
    }
    assert_eq!(folder.ok("inspect weighted.json --json").json()["features"], json!(["a", "b"]));
}

#[test]
fn models_that_found_nothing_are_warned_of() {
    let folder = Folder::with("d.csv", regression_table(ROWS, ","));
    let run = folder.fit("d.csv --target y --gamma 1e-18 -o m.json");
    let text = "Standardise the features, use another kernel width (--gamma evidence learns it), or check that the features";
    assert!(run.stderr.contains("than a constant does. ") || run.stderr.contains("predicts a constant. "), "{}", run.stderr);
    assert!(run.stderr.contains("warning: ") && run.stderr.contains(text), "{}", run.stderr);
    let run = folder.fit("d.csv --target y -o m.json");
    assert!(!run.stderr.contains(text), "{}", run.stderr);
}

#[test]
fn nothing_found_with_a_learned_kernel_does_not_advise_to_learn_it() {
    // A feature and a target at right angles: the signs of the one repeat within those of the other.
    let rows = (0..40).map(|i| format!("{},{}\n", i % 2, if i / 2 % 2 == 0 { 1.5 } else { -1.5 }));
    let folder = Folder::with("d.csv", "x,y\n".to_string() + &rows.collect::<String>());
    let run = folder.ok("fit d.csv --target y --task regress -o m.json");
    assert!(run.stderr.contains("predicts a constant. The kernel was learned from the data: check that"), "{}", run.stderr);
    assert!(!run.stderr.contains("--gamma"), "{}", run.stderr);
}

#[test]
fn models_that_miss_structure_are_warned_of() {
    let rows = (0..100).map(|i| format!("{},{}\n", i as f64 / 5.0, (i as f64 / 5.0).sin()));
    let folder = Folder::with("d.csv", "x,y\n".to_string() + &rows.collect::<String>());
    let text = "times that of the Gaussian process that learned the kernel: the model misses structure. Raise --dictionary.";
    let run = folder.ok("fit d.csv --target y --dictionary 3 -o m.json");
    assert!(run.stderr.contains("warning: the noise of the model is ") && run.stderr.contains(text), "{}", run.stderr);
    let run = folder.ok("fit d.csv --target y -o m.json");
    assert!(!run.stderr.contains("misses structure"), "{}", run.stderr);
}

#[test]
fn constant_features_and_targets_are_warned_of() {
    let table: String = regression_table(ROWS, ",")
        .lines()
        .enumerate()
        .map(|(i, l)| format!("{l},{}\n", if i == 0 { "same" } else { "5" }))
        .collect();
    let folder = Folder::with("d.csv", table).add("flat.csv", "a,y\n1,4\n2,4\n3,4\n");
    let run = folder.fit("d.csv --target y -o m.json");
    assert!(run.stderr.contains("warning: constant features have no effect: same"), "{}", run.stderr);
    let run = folder.fit("flat.csv --target y -o flat.json");
    assert!(run.stderr.contains("warning: the target is constant"), "{}", run.stderr);
}

#[test]
fn a_model_of_the_bias_alone_predicts() {
    let folder = Folder::with("flat.csv", "a,y\n1,4\n2,4\n3,4\n");
    folder.fit("flat.csv --target y -o flat.json");
    let predictions = numbers(&folder.ok("predict flat.json flat.csv").csv().1, 0);
    assert!(predictions.iter().all(|p| (p - 4.0).abs() < 1e-6), "{predictions:?}");
}

#[test]
fn no_file_without_being_asked() {
    let folder = Folder::with("d.csv", regression_table(20, ","));
    folder.fit("d.csv --target y --json");
    assert_eq!(folder.names(), ["d.csv"]);
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_quiet() {
    let folder = Folder::with("d.csv", regression_table(50, ",")).add("long.csv", regression_table(20_000, ","));
    folder.fit("d.csv --target y -o m.json");
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("relvec"))
        .args(["predict", "m.json", "long.csv"])
        .current_dir(folder.path(""))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("error"), "{output:?}");
}

/// The members of a committee see standardised rows when it predicts, as they did when it was trained.
#[test]
fn committees_predict_alike_in_any_units() {
    let text = three_classes(60, ["p", "q", "r"]);
    let in_other_units = |line: &str| {
        let (a, rest) = line.split_once(',').unwrap();
        a.parse::<f64>().map_or(line.to_string(), |a| format!("{},{rest}", 1024.0 * a + 4096.0))
    };
    let other: Vec<String> = text.lines().map(in_other_units).collect();
    let folder = Folder::with("one.csv", text).add("other.csv", other.join("\n"));
    for rule in ["one_vs_rest", "one_vs_one"] {
        let [one, other] = ["one.csv", "other.csv"].map(|table| {
            folder.fit(&format!("{table} --target kind --multi-class {rule} --gamma 0.5 -o m.json"));
            folder.ok(&format!("predict m.json {table}")).csv().1
        });
        for column in 1..4 {
            let pairs = numbers(&one, column).into_iter().zip(numbers(&other, column));
            pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-6, "{rule}: {a} is not {b}"));
        }
    }
}
