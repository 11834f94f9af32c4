//! Kernels and centres learnt from the data.

use serde_json::json;

use super::support::{Folder, regression_rows, regression_table};

#[test]
fn gamma_is_learnt() {
    let folder = Folder::with("d.csv", regression_table(60, ","));
    let plain = folder.fit("d.csv --target y --json").json();
    let ard = folder.fit("d.csv --target y --json --gamma evidence-ard -o m.json").json();
    let gamma = ard["kernel"]["parameters"]["gamma"].as_array().expect("one per feature");
    assert_eq!(gamma.len(), ard["features"].as_array().unwrap().len());
    assert!(ard["log_evidence"].as_f64() >= plain["log_evidence"].as_f64());
    let shares: f64 = ard["feature_relevance"].as_array().unwrap().iter().filter_map(|v| v.as_f64()).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    assert!(folder.ok("inspect m.json").stdout.contains("feature relevance   "));
    assert!(plain.get("feature_relevance").is_none());
    let one = folder.fit("d.csv --target y --json --set kernel.gamma=evidence-one").json();
    // One width, in units of the spread of each feature: the features are standardised.
    let widths = one["kernel"]["parameters"]["gamma"].as_array().unwrap();
    assert!(widths.iter().all(|gamma| (gamma.as_f64().unwrap() / widths[0].as_f64().unwrap() - 1.0).abs() < 1e-9), "{one}");
    let given = folder.fit("d.csv --target y --json --gamma 0.25").json();
    assert_eq!(given["kernel"]["parameters"]["gamma"], json!(0.25));
    let given = folder.fit("d.csv --target y --json --gamma [0.25,0.5]").json();
    assert_eq!(given["kernel"]["parameters"]["gamma"], json!([0.25, 0.5]));
}

#[test]
fn the_best_of_several_kernels() {
    let folder = Folder::with("d.csv", regression_table(60, ","));
    let run = folder.fit("d.csv --target y --json --kernel linear,rbf --gamma 1");
    assert!(run.stderr.contains("log evidence of the kernels tried: linear "), "{}", run.stderr);
    let alone = |kernel: &str| folder.fit(&format!("d.csv --target y --json --kernel {kernel}")).json();
    let best = run.json()["log_evidence"].as_f64();
    assert!(best >= alone("linear")["log_evidence"].as_f64());
    let run = folder.fit("d.csv --target y --json --kernel auto");
    let tried = run.stderr.lines().find(|line| line.contains("kernels tried")).unwrap();
    assert!(["rbf ", "matern52 ", "matern32 "].iter().all(|name| tried.contains(name)), "{tried}");
}

#[test]
fn centres_are_moved() {
    let folder = Folder::with("d.csv", regression_table(90, ","));
    let fixed = folder.fit("d.csv --target y --json --dictionary 5").json();
    let run = folder.fit("d.csv --target y --json --dictionary 5 --centres learned -o m.json");
    let moved = run.json();
    assert!(moved["log_evidence"].as_f64() > fixed["log_evidence"].as_f64());
    assert_eq!(moved["learned_centres"], json!(true));
    assert!(fixed.get("learned_centres").is_none());
    assert!(folder.ok("inspect m.json").stdout.contains("no training rows"));
    assert_eq!(folder.ok("predict m.json d.csv").csv().1.len(), 90);
}

/// A constant feature has no share, and is named; two that are the same share what one would have.
#[test]
fn constant_and_repeated_columns() {
    let mut table = "a,b,same,twice,y\n".to_string();
    for [a, b, y] in regression_rows(60) {
        table += &format!("{a},{b},7,{a},{y}\n");
    }
    let folder = Folder::with("d.csv", table);
    let run = folder.fit("d.csv --target y --json --gamma evidence-ard -o m.json");
    assert!(run.stderr.contains("constant features have no effect: same"), "{}", run.stderr);
    let shares: Vec<f64> = run.json()["feature_relevance"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    assert_eq!((shares.len(), shares[2]), (4, 0.0), "{shares:?}");
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    assert!(shares[0] + shares[3] > 0.5, "{shares:?}");
    assert!(!folder.ok("inspect m.json").stdout.contains("same 0"));
    let rmse = folder.ok("score m.json d.csv --format json").json()["measures"]["rmse"].as_f64().unwrap();
    assert!(rmse < 0.2, "{rmse}");
}

#[test]
fn kernels_without_widths_reject_learned_widths() {
    let folder = Folder::with("d.csv", regression_table(40, ","));
    let fails =
        |options: &str, fragments: &[&str]| folder.fails(2, &format!("fit d.csv --target y -o m.json {options}"), fragments);
    fails("--kernel linear --gamma evidence", &["--gamma evidence", "linear"]);
    fails("--kernel linear,linear_spline --gamma 1", &["linear,linear_spline"]);
    fails("--kernel rbf,auto", &["auto"]);
    fails("--kernel rbf,gauss", &["gauss", "matern52"]);
    fails("--kernel rbf,linear --set kernel.rbf.gamma=1", &["--set kernel.rbf.gamma=1", "--gamma"]);
    fails("--gamma wide", &["--gamma wide", "evidence-ard"]);
    fails("--gamma 0", &["--gamma 0: expected a positive"]);
    fails("--centres free", &["free", "learned"]);
    fails("--kernel linear_spline --centres learned", &["centres", "linear_spline"]);
    fails("--checkpoint c --weight-prior process", &["--checkpoint", "process", "ard"]);
    fails("--checkpoint c --dictionary 10 --centres learned", &["--checkpoint", "memory"]);
}
