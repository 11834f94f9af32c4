//! `--set` reaches the parameters of the library.

use serde_json::json;

use super::support::{Folder, class_table, regression_table};

#[test]
fn settings_show_in_the_model() {
    let folder = Folder::with("d.csv", regression_table(40, ","));
    let fit = |settings: &str| folder.fit(&format!("d.csv --target y --json {settings}")).json();
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
fn every_kernel_and_scheme_fits_and_predicts() {
    let folder = Folder::with("d.csv", regression_table(40, ","));
    for kernel in relvec::Kernel::NAMES {
        for inference in relvec::Inference::NAMES {
            // A sum has no name to ask for.
            let asked = if *kernel == "sum" { "2*rbf+1*linear" } else { kernel };
            let options = format!("--kernel {asked} --inference {inference} --set max_iterations=50");
            let summary = folder.fit(&format!("d.csv --target y -o m.json --json {options}")).json();
            assert_eq!((&summary["kernel"]["name"], &summary["inference"]), (&json!(kernel), &json!(inference)));
            assert_eq!(folder.ok("predict m.json d.csv").csv().1.len(), 40, "{options}");
        }
    }
}

#[test]
fn stopping_early_is_a_warning() {
    let folder = Folder::with("d.csv", regression_table(40, ","));
    let run = folder.fit("d.csv --target y -o m.json --inference em --set max_iterations=2 -v");
    assert!(run.stderr.contains("warning: not converged after 2 iterations"), "{}", run.stderr);
    assert!(run.stderr.contains("iteration 1:"), "{}", run.stderr);
    assert_eq!(folder.ok("inspect m.json --json").json()["iterations"], json!(2));
}

#[test]
fn rows_that_there_is_no_time_for_are_a_warning() {
    let folder = Folder::with("d.csv", regression_table(5000, ","));
    let run = folder.fit("d.csv --target y -o m.json --dictionary 3000 --set time_limit=1e-9");
    for words in ["time_limit = 0.000000001 s is not enough for all rows: 3000 rows left out", "no time for all rows"] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
    assert!(!run.stderr.contains("--dictionary"), "{}", run.stderr);
    let model = folder.ok("inspect m.json --json").json();
    assert_eq!((&model["n_rows"], &model["status"]), (&json!(2000), &json!("time_limit")));
}

#[test]
fn a_setting_of_a_likelihood_settles_the_task() {
    // Two distinct numbers would mean classes; a noise variance says that they are values.
    let table = class_table(40).replace("yes", "1").replace("no", "0");
    let folder = Folder::with("d.csv", table);
    assert_eq!(folder.fit("d.csv --target kind --json").json()["task"], "classify");
    let run = folder.fit("d.csv --target kind --json --set likelihood.gaussian.noise_variance=0.1");
    assert_eq!(run.json()["task"], "regress");
    assert_eq!(folder.fit("d.csv --target kind --task regress --json").json()["task"], "regress");
}

#[test]
fn dictionary_and_landmarks() {
    let folder = Folder::with("d.csv", regression_table(90, ","));
    let all = folder.fit("d.csv --target y -o all.json");
    assert!(!all.stderr.contains("candidates"), "{}", all.stderr);
    folder.fit("d.csv --target y --dictionary all -o same.json");
    assert_eq!(folder.read("all.json"), folder.read("same.json"));
    for landmarks in ["kmedoids", "uniform"] {
        let line = format!(
            "fit d.csv --preset tipping2001 --target y --dictionary 6 --landmarks {landmarks} -o {landmarks}.json --json"
        );
        let run = folder.ok(&line);
        assert!(run.stderr.contains("note: 6 of 90 rows are candidates"), "{}", run.stderr);
        assert!(run.json()["n_vectors"].as_u64().unwrap() <= 6);
    }
    assert_ne!(folder.read("kmedoids.json"), folder.read("uniform.json"));
    folder.fit("d.csv --target y --set dictionary=6 -o set.json");
    assert_eq!(folder.read("set.json"), folder.read("kmedoids.json"));
    for bad in ["--dictionary 0", "--dictionary some", "--landmarks some", "--set dictionary=some"] {
        folder.fails(2, &format!("fit d.csv --target y -o m.json {bad}"), &[bad.split(['=', ' ']).next_back().unwrap()]);
    }
}

/// The bound contains the normalisation of the hyperpriors, so they have to have one.
#[test]
fn variational_hyperpriors_are_proper() {
    let folder = Folder::with("d.csv", regression_table(20, ","));
    let line =
        "fit d.csv --preset tipping2001 --target y --inference variational -o m.json --set inference.variational.hyperpriors";
    for name in ["a", "b", "c", "d"] {
        for value in ["0", "-1", "-1e-300"] {
            let found = value.parse::<f64>().unwrap().to_string();
            let fragments = [&format!("inference.variational.hyperpriors.{name} = {found}"), "positive number"];
            folder.fails(2, &format!("{line}.{name}={value}"), &fragments);
        }
        for value in ["nan", "inf", "-inf", "1e999", "small"] {
            let said = format!("hyperpriors.{name}={value}");
            folder.fails(2, &format!("{line}.{name}={value}"), &["--set", &said, "expected f64"]);
        }
    }
    // Those that are not set stay what they were.
    folder.ok(&format!("{line}.a=1e-3 --set max_iterations=20"));
}
