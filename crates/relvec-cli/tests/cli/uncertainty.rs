//! Sparsity, cross-validation, calibrated and healed variances, draws: as flags, in files and in what is printed.

use serde_json::Value;

use super::support::Folder;

/// A wave with noise, and a gap between -1 and 1.
fn wave() -> String {
    let mut text = String::from("x,y\n");
    for i in 0..90 {
        let x = 0.1 * f64::from(i) - 4.5;
        if x.abs() > 1.0 {
            text += &format!("{x},{}\n", (1.5 * x).sin() + 0.2 * f64::from((i * 7919) % 97) / 97.0);
        }
    }
    text
}

fn folder() -> Folder {
    Folder::with("wave.csv", wave()).add("middle.csv", "x\n0\n-3\n50\n")
}

fn stds(text: &str) -> Vec<f64> {
    let column = |line: &str| line.split(',').nth(1).unwrap().parse().unwrap();
    text.lines().skip(1).map(column).collect()
}

#[test]
fn scores_of_rows_left_out_are_printed() {
    let folder = folder();
    let run = folder.run("fit wave.csv --preset tipping2001 --target y --sparsity cv --calibrate --cv 4 --json");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("4-fold check        RMSE") && run.stderr.contains("; sparsity"), "{}", run.stderr);
    let summary: Value = serde_json::from_str(&run.stdout).unwrap();
    let validation = &summary["validation"];
    assert_eq!((validation["folds"].as_u64(), validation["rows"].as_u64()), (Some(4), Some(69)));
    assert!(validation["rmse"].as_f64().unwrap() < 0.2 && validation["tried"].as_array().unwrap().len() == 7);
    assert!(validation["variance_factor"].as_f64().unwrap() >= 1.0);
    // The same by --set, and none without.
    let set = folder.fit("wave.csv --target y --set sparsity=cv --set calibrate=true --set cv=4 --json");
    let other: Value = serde_json::from_str(&set.stdout).unwrap();
    assert_eq!(other["validation"]["rmse"], validation["rmse"]);
    let plain = folder.run("fit wave.csv --preset tipping2001 --target y --json");
    assert!(!plain.stdout.contains("validation") && !plain.stderr.contains("-fold check"));
    let labelled = wave().replace(",-", ",low").replace(",0.", ",high").replace(",1.", ",high");
    let folder = folder.add("kinds.csv", labelled.lines().map(|l| l.to_string() + "\n").collect::<String>());
    let run = folder.run("fit kinds.csv --preset tipping2001 --target y --task regress --cv 3 -o m.json");
    assert_ne!(run.code, 0, "words are no numbers");
}

#[test]
fn sparsity_leaves_fewer_vectors() {
    let folder = folder();
    let vectors = |flags: &str| {
        let run = folder.run(&format!("fit wave.csv --preset tipping2001 --target y --gamma 20 --json {flags}"));
        let summary: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
        summary["n_vectors"].as_u64().unwrap()
    };
    assert!(vectors("--sparsity 4") <= vectors("") && vectors("") > 0);
    assert_eq!(vectors("--sparsity 1e9"), 0);
}

#[test]
fn a_healed_model_file_predicts_wide_where_nothing_is_known() {
    let folder = folder();
    assert_eq!(folder.run("fit wave.csv --preset tipping2001 --target y --gamma 3 --variance healed -o healed.json").code, 0);
    assert_eq!(folder.run("fit wave.csv --preset tipping2001 --target y --gamma 3 --keep-rows 30 -o kept.json").code, 0);
    assert_eq!(folder.run("fit wave.csv --preset tipping2001 --target y --gamma 3 -o plain.json").code, 0);
    let predict = |line: &str| stds(&folder.run(line).stdout);
    let (healed, plain) = (predict("predict healed.json middle.csv"), predict("predict plain.json middle.csv"));
    assert!(healed[0] > 1.3 * plain[0] && healed[2] > 2.0 * plain[2], "{healed:?} {plain:?}");
    assert!(healed[1] < 1.5 * plain[1]);
    assert_eq!(predict("predict healed.json middle.csv --variance posterior"), plain);
    assert_eq!(predict("predict kept.json middle.csv"), plain);
    assert!(predict("predict kept.json middle.csv --variance healed")[2] > 2.0 * plain[2]);
    let inspected = folder.run("inspect healed.json").stdout;
    assert!(inspected.contains("healed, 69 rows stored"), "{inspected}");
    let refused = folder.run("predict plain.json middle.csv --variance healed");
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("keep rows"), "{}", refused.stderr);
}

#[test]
fn samples_are_columns() {
    let folder = folder();
    assert_eq!(folder.run("fit wave.csv --preset tipping2001 --target y -o m.json").code, 0);
    let run = folder.run("predict m.json middle.csv --samples 3 --seed 5");
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines[0], "prediction,std,lower,upper,sample_1,sample_2,sample_3");
    assert!(lines[1..].iter().all(|l| l.split(',').count() == 7));
    assert_eq!(run.stdout, folder.run("predict m.json middle.csv --samples 3 --seed 5").stdout);
    assert_ne!(run.stdout, folder.run("predict m.json middle.csv --samples 3 --seed 6").stdout);
}

#[test]
fn wrong_options_of_error_bars_are_refused() {
    let folder = folder().add("kinds.csv", "x,y\n0,a\n1,b\n2,a\n3,b\n4,a\n5,b\n");
    assert_eq!(folder.run("fit kinds.csv --preset tipping2001 --target y -o kinds.json").code, 0);
    for (line, code, words) in [
        ("fit wave.csv --target y --sparsity -1 -o m.json", 2, "sparsity = -1"),
        ("fit wave.csv --target y --sparsity much -o m.json", 2, "sparsity = much"),
        ("fit wave.csv --target y --sparsity 1 --inference mackay -o m.json", 2, "search"),
        ("fit wave.csv --target y --cv 1 -o m.json", 2, "1"),
        ("fit wave.csv --target y --cv 71 -o m.json", 1, "at most as many folds as there are rows (there are 69)"),
        ("fit kinds.csv --target y --cv 4 -o m.json", 1, "(class 0 has 3)"),
        ("fit kinds.csv --target y --calibrate --task classify -o m.json", 2, "calibrate"),
        ("fit kinds.csv --target y --variance healed --task classify -o m.json", 2, "variance"),
        ("fit wave.csv --target y --variance wide -o m.json", 2, "posterior"),
        ("fit wave.csv --target y --cv 3 --stream --dictionary 10 -o m.json", 2, "--stream"),
        ("fit wave.csv --target y --cv 3 --machine svm -o m.json", 2, "--cv"),
        ("predict kinds.json middle.csv --variance healed", 1, "--variance"),
        ("predict kinds.json middle.csv --samples 2", 1, "--samples"),
        ("predict kinds.json middle.csv --quantiles 0.5", 1, "--quantiles"),
        ("predict kinds.json middle.csv --quantiles 0.5,1", 2, "between 0 and 1"),
        ("predict kinds.json middle.csv --seed 2", 2, "--samples"),
    ] {
        let run = folder.run(line);
        assert_eq!(run.code, code, "{line}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{line}: {}", run.stderr);
        assert!(!folder.path("m.json").exists(), "{line}");
    }
}

/// The process prior by flags: a standard deviation that grows away from the data, draws that agree with it, and what is printed.
#[test]
fn a_process_prior_predicts_wide_where_nothing_is_known() {
    let folder = folder();
    let fit = "fit wave.csv --target y --gamma 3";
    let summary = folder.ok(&format!("{fit} --weight-prior process -o process.json --json")).json();
    let (all, searched) = (summary["n_vectors"].as_u64().unwrap(), summary["process"]["searched"].as_u64().unwrap());
    assert!(searched > 0 && searched < all && all < 69, "{summary}");
    assert!(summary["process"]["residual"].as_f64().unwrap() <= 0.3, "{summary}");
    let finer = folder.ok(&format!("{fit} --weight-prior auto --residual 0.01 --json")).json();
    assert!(finer["n_vectors"].as_u64().unwrap() > all, "{finer}");
    let found = stds(&folder.ok("predict process.json middle.csv").stdout);
    assert!(found[2] > 2.0 * found[1] && found[0] > 1.2 * found[1], "{found:?}");
    let draws = folder.ok("predict process.json middle.csv --samples 3");
    assert_eq!(draws.stdout, folder.ok("predict process.json middle.csv --samples 3").stdout);
    let text = folder.ok("inspect process.json").stdout;
    assert!(
        text.contains("process prior") && text.contains("of them chosen by the search") && !text.contains("precision"),
        "{text}"
    );
    assert!(!folder.ok(&format!("{fit} --weight-prior ard --json")).stdout.contains("process"));
    folder.fails(2, &format!("{fit} --weight-prior process --kernel sigmoid -o x.json"), &["weight_prior", "sigmoid"]);
    folder.fails(2, &format!("{fit} --weight-prior process --variance healed -o x.json"), &["weight_prior", "variance = healed"]);
    folder.fails(2, &format!("{fit} --residual 0 -o x.json"), &["--residual 0: expected a positive number"]);
    folder.fails(2, &format!("{fit} --machine svm --weight-prior process -o x.json"), &["--weight-prior"]);
}

/// Columns of their own before the samples, of each output; by the variance that is asked for.
#[test]
fn quantiles_are_written_in_columns_of_their_own() {
    // The second output is the first, doubled.
    let both = |line: &str| match line.split_once(',') {
        Some((_, "y")) => "x,y,z\n".to_string(),
        Some((_, y)) => format!("{line},{}\n", 2.0 * y.parse::<f64>().unwrap()),
        None => panic!("{line}"),
    };
    let folder = folder().add("two.csv", wave().lines().map(both).collect::<String>());
    assert_eq!(folder.run("fit wave.csv --target y --variance healed -o m.json").code, 0);
    for variance in ["posterior", "healed"] {
        let line = format!("predict m.json middle.csv --variance {variance} --quantiles 0.025,0.5,0.9 --samples 1");
        let (header, rows) = folder.ok(&line).csv();
        let names = ["prediction", "std", "lower", "upper", "quantile_0.025", "quantile_0.5", "quantile_0.9", "sample_1"];
        assert_eq!(header, names);
        for row in rows {
            let v: Vec<f64> = row.iter().map(|cell| cell.parse().unwrap()).collect();
            assert!((v[4] - v[2]).abs() < 1e-12 && v[5] == v[0], "{v:?}");
            assert!((v[6] - v[0] - 1.281_551_565_544_600_4 * v[1]).abs() < 1e-12, "{v:?}");
        }
    }
    assert_eq!(folder.run("fit two.csv --target y --target z -o two.json").code, 0);
    let (header, rows) = folder.ok("predict two.json middle.csv --quantiles 0.5").csv();
    assert_eq!(header[4..6], ["quantile_0.5_y", "prediction_z"]);
    assert!(rows.iter().all(|row| row.len() == 10 && row[4] == row[0] && row[9] == row[5]));
}
