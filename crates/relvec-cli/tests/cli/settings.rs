//! `--set` reaches the parameters of the library.

use serde_json::json;

use super::support::{Folder, class_table, regression_table};

#[test]
fn settings_show_in_the_model() {
    let folder = Folder::with("d.csv", regression_table(40, ","));
    let fit = |settings: &str| folder.ok(&format!("fit d.csv --target y --json {settings}")).json();
    assert_eq!(fit("--set kernel.rbf.gamma=0.5")["kernel"], json!({"name": "rbf", "parameters": {"gamma": 0.5}}));
    assert_eq!(fit("--set kernel.gamma=[0.5,0.25]")["kernel"]["parameters"]["gamma"], json!([0.5, 0.25]));
    assert_eq!(fit("--set kernel.gamma=auto")["kernel"]["parameters"]["gamma"], json!(0.5));
    assert_eq!(fit("--kernel matern52")["kernel"]["name"], "matern52");
    assert_eq!(fit("--kernel poly --set kernel.poly.degree=2")["kernel"]["parameters"]["degree"], json!(2));
    assert_eq!(fit("--inference mackay --set max_iterations=3")["status"], "iteration_limit");
    assert_eq!(fit("--inference em --set inference.em.tolerance=0.5")["inference"], "em");
    let fixed = fit("--set likelihood.gaussian.noise_variance=0.25");
    assert_eq!(fixed["noise_std"], json!(0.5));
    assert_eq!(fixed["likelihood"], "gaussian");
}

#[test]
fn stopping_early_is_a_warning() {
    let folder = Folder::with("d.csv", regression_table(40, ","));
    let run = folder.ok("fit d.csv --target y -o m.json --inference em --set max_iterations=2");
    assert!(run.stderr.contains("warning: not converged after 2 iterations"), "{}", run.stderr);
    assert!(run.stderr.contains("iteration 1:"), "{}", run.stderr);
    assert_eq!(folder.ok("inspect m.json --json").json()["iterations"], json!(2));
}

#[test]
fn a_setting_of_a_likelihood_settles_the_task() {
    // Two distinct numbers would mean classes; a noise variance says that they are values.
    let table = class_table(40).replace("yes", "1").replace("no", "0");
    let folder = Folder::with("d.csv", table);
    assert_eq!(folder.ok("fit d.csv --target kind --json").json()["task"], "classify");
    let run = folder.ok("fit d.csv --target kind --json --set likelihood.gaussian.noise_variance=0.1");
    assert_eq!(run.json()["task"], "regress");
    assert_eq!(folder.ok("fit d.csv --target kind --task regress --json").json()["task"], "regress");
}
