//! The command and the library write the same model, byte for byte; and models that only a library makes.

use std::fs;

use ndarray::{Array1, Array2, s};
use relvec::{Bernoulli, FittedBasis, Kernel, Label, Likelihood, Model, Rbf, Rvm, Targets};
use serde_json::Value;

use super::support::{Folder, golden, regression_table};

/// Columns of a table of numbers: the features, their names, and the last column.
fn table(text: &str) -> (Array2<f64>, Vec<String>, Array1<f64>) {
    let names: Vec<String> = text.lines().next().unwrap().split(',').map(String::from).collect();
    let values: Vec<f64> = text.lines().skip(1).flat_map(|l| l.split(',')).map(|v| v.parse().unwrap()).collect();
    let d = names.len() - 1;
    let all = Array2::from_shape_vec((values.len() / (d + 1), d + 1), values).unwrap();
    (all.slice(s![.., ..d]).to_owned(), names[..d].to_vec(), all.column(d).to_owned())
}

#[test]
fn the_command_and_the_library_write_the_same_model() {
    let golden = golden();
    let mut sets = 0;
    for (case, classes) in [
        ("reg_sinc_gauss_n40", false),
        ("reg_2d_gauss_n50", false),
        ("reg_spline_fixednoise_n24", false),
        ("reg_vb_n30", false),
        ("cls_1d_gauss_n36", true),
        ("cls_2d_gauss_n50", true),
        ("cls_vb_jj_n30", true),
    ] {
        let text = fs::read_to_string(golden.join(format!("{case}.csv"))).unwrap();
        let json: Value = serde_json::from_str(&fs::read_to_string(golden.join(format!("{case}.json"))).unwrap()).unwrap();
        let (x, features, t) = table(&text);
        let (kernel, words) = match json["kernel"].as_str() {
            Some("gaussian") => {
                let gamma: Vec<f64> = json["gamma"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
                let words = format!("--kernel rbf --set kernel.gamma={}", serde_json::to_string(&gamma).unwrap());
                (Kernel::Rbf(Rbf { gamma: gamma.into() }), words)
            }
            Some(name) => (Kernel::from_name(name).unwrap(), format!("--kernel {name}")),
            None => panic!("{case} names no kernel"),
        };
        let task = if classes { "classify" } else { "regress" };
        let folder = Folder::with("d.csv", &text);
        folder.fit(&format!("d.csv --target t --task {task} --no-standardize {words} -o m.json"));

        let labels: Vec<usize> = t.iter().map(|v| usize::from(*v == 1.0)).collect();
        let likelihood = if classes { Likelihood::Bernoulli(Bernoulli::default()) } else { Rvm::default().likelihood };
        let targets = if classes { Targets::classes(&labels, 2) } else { Targets::real(t.view()) };
        let rvm = Rvm { kernel, likelihood, ..Rvm::tipping2001() };
        let (mut model, _) = rvm.fit(x.view(), &targets).unwrap();
        model.features = features;
        model.target = Some("t".into());
        if classes {
            model.classes = vec![Label::Integer(0), Label::Integer(1)];
        }
        assert!(model.to_json().unwrap() == folder.read("m.json"), "{case}: the two files differ");
        sets += 1;
    }
    assert_eq!(sets, 7);
}

/// Only who computes an external kernel may predict with it; everyone may look.
#[test]
fn a_model_with_an_external_kernel() {
    let folder = Folder::with("d.csv", regression_table(30, ","));
    folder.fit("d.csv --target y -o m.json");
    let mut model = Model::from_json(&folder.read("m.json")).unwrap();
    model.expansion.basis = FittedBasis::External { centres: None };
    let folder = folder.add("external.json", model.to_json().unwrap());
    folder.fails(1, "predict external.json d.csv -o p.csv", &["kernel of this model is external"]);
    assert!(folder.ok("inspect external.json").stdout.contains("external"));
    let summary = folder.ok("inspect external.json --json").json();
    assert_eq!(summary["kernel"], serde_json::json!({"name": "external", "parameters": {}}));
}
