//! Model files of every kind, written by commit 0d1570f, which every later version must read with the same predictions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ndarray::{Array1, Array2, Axis};
use relvec::*;
use serde_json::Value;

use crate::support::close;

/// Agreement of predictions, relative to the largest. Products may be summed in another order.
const TOLERANCE: f64 = 1e-11;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pinned")
}

/// Returns all numbers of a nested list, row by row.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        other => vec![other.as_f64().expect("a number")],
    }
}

fn rows(value: &Value) -> Array2<f64> {
    let n = value.as_array().expect("rows").len();
    Array1::from(numbers(value)).into_shape_with_order((n, numbers(&value[0]).len())).expect("rows of equal length")
}

/// Returns means and standard deviations, [N, K] row by row, of new values. For counts they are those of counts at
/// exposure 1.
fn mean_and_std(model: &Model, x: &Array2<f64>, kernel: &Array2<f64>) -> [Vec<f64>; 2] {
    let found = match model.expansion.basis {
        FittedBasis::External { .. } => {
            vec![model.predict_from_basis(kernel.select(Axis(1), &model.relevance).view()).unwrap()]
        }
        _ => model.predict_outputs(x.view()).unwrap(),
    };
    let parts = |p: &Prediction| match model.is_of_counts() {
        true => p.counts(None).map(|c| [c.mean.clone(), c.std()]).unwrap(),
        false if matches!(model.likelihood, Some(Likelihood::StudentT(_))) => [p.mean.clone(), p.deviation()],
        false => [p.mean.clone(), p.std()],
    };
    let parts: Vec<[Array1<f64>; 2]> = found.iter().map(parts).collect();
    [0, 1].map(|part| (0..x.nrows()).flat_map(|n| parts.iter().map(move |p| p[part][n])).collect())
}

#[test]
fn model_files_load_and_predict_as_when_they_were_written() {
    let text = fs::read_to_string(folder().join("predictions.json")).unwrap();
    let mut expected: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    let (x, kernel) = (rows(&expected.remove("rows").unwrap()), rows(&expected.remove("kernel_rows").unwrap()));
    assert_eq!(expected.len(), 42);
    for (name, expected) in &expected {
        let file = fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
        let model = Model::from_json(&file).unwrap_or_else(|e| panic!("{name}: {e}"));
        // Fields that a later version adds have defaults, which are not written.
        assert_eq!(model.to_json().unwrap(), file, "{name}");
        let mut checked = 0;
        let mut check = |key: &str, got: &[f64]| {
            close(&format!("{name}: {key}"), got, &numbers(&expected[key]), TOLERANCE);
            checked += 1;
        };
        if expected.get("mean").is_some() {
            let [mean, std] = mean_and_std(&model, &x, &kernel);
            check("mean", &mean);
            check("std", &std);
        }
        if expected.get("plug_in").is_some() {
            check("plug_in", model.predict_probability(x.view(), Moderation::PlugIn).unwrap().as_slice().unwrap());
        }
        if expected.get("probability").is_some() {
            check("probability", model.predict_probability(x.view(), Moderation::Posterior).unwrap().as_slice().unwrap());
        }
        if model.margins.is_some() && model.multi_class().is_none() {
            let key = if expected.get("decision").is_some() { "decision" } else { "prediction" };
            check(key, model.decision_function(x.view()).unwrap().as_slice().unwrap());
        }
        assert!(checked > 0, "{name}: nothing was compared");
        if !model.classes.is_empty() {
            let labels: Vec<String> =
                model.predict_class(x.view()).unwrap().iter().map(|k| model.classes[*k].to_string()).collect();
            let expected = expected["prediction"].as_array().unwrap();
            let expected: Vec<String> = expected.iter().map(|l| l.as_str().map_or_else(|| l.to_string(), String::from)).collect();
            assert_eq!(labels, expected, "{name}");
        }
    }
}

/// A model of sparse rows, written by commit c7b8bd0, predicts four rows of 12 features, given as pairs of column and value.
#[test]
fn model_of_sparse_rows_loads_and_predicts_as_when_it_was_written() {
    let entries: [&[(usize, f64)]; 4] = [
        &[(3, 0.654), (4, 0.378), (6, 0.03), (10, 0.538)],
        &[(3, 0.572), (7, 0.61), (9, 0.593), (10, 0.317), (11, 0.022)],
        &[(4, 0.569), (7, 0.542)],
        &[(3, 0.622), (4, 0.343), (7, 0.16)],
    ];
    let mut x = Array2::zeros((4, 12));
    entries.iter().enumerate().for_each(|(n, row)| row.iter().for_each(|(column, value)| x[[n, *column]] = *value));
    let file = fs::read_to_string(folder().join("sparse_svc.json")).unwrap();
    let model = Model::from_json(&file).unwrap();
    assert!(matches!(model.expansion.basis, FittedBasis::Sparse { .. }));
    assert_eq!(model.to_json().unwrap(), file);
    let decision = model.decision_function(x.view()).unwrap();
    close(
        "decision",
        decision.as_slice().unwrap(),
        &[0.9996368705328119, 0.999825370595529, -0.6382963580219128, 0.7914294143167862],
        TOLERANCE,
    );
}

/// Models whose relevance vectors, and rows for a healed variance, are sparse predict four rows of 12 features.
#[test]
fn relevance_vectors_of_sparse_rows_load_and_predict_as_when_they_were_written() {
    let entries: [&[(usize, f64)]; 4] = [
        &[(0, 0.58), (1, 0.2), (8, 0.62)],
        &[(4, 0.37), (6, 0.58), (7, 0.84), (11, 0.67)],
        &[(0, 0.93), (1, 0.56), (6, 0.82), (10, 0.01)],
        &[(0, 0.72), (4, 0.69), (7, 0.7)],
    ];
    let mut x = Array2::zeros((4, 12));
    entries.iter().enumerate().for_each(|(n, row)| row.iter().for_each(|(column, value)| x[[n, *column]] = *value));
    for (name, mean, std) in [
        (
            "sparse_healed",
            [1.3060706043013075, -0.30840233441709713, 1.9710516875484583, 1.2361795068171915],
            [0.21633204863696412, 0.22540423882712932, 0.24616097594866396, 0.22473524841827158],
        ),
        (
            "sparse_process",
            [1.0593362303696838, 0.005890717551043978, 1.8236868016271632, 0.8203516500003968],
            [0.4088351404601446, 0.5216654257110237, 0.5352781392026719, 0.4455437208949084],
        ),
    ] {
        let file = fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
        let model = Model::from_json(&file).unwrap();
        assert!(matches!(model.expansion.basis, FittedBasis::Sparse { .. }), "{name}");
        assert_eq!(model.kept_rows.as_ref().map(|kept| kept.rows.nrows()), (name == "sparse_healed").then_some(40));
        assert_eq!(model.to_json().unwrap(), file, "{name}");
        let found = model.predict(x.view()).unwrap();
        close(name, &found.mean.to_vec(), &mean, TOLERANCE);
        close(name, &found.std().to_vec(), &std, TOLERANCE);
    }
}

#[test]
fn statistics_load_as_they_were_written() {
    let bytes = fs::read(folder().join("statistics.bin")).unwrap();
    let statistics = Statistics::from_bytes(&bytes).unwrap();
    assert_eq!((statistics.n_rows(), statistics.weight()), (24, 24.0));
    assert_eq!(statistics.to_bytes(), bytes);
    Rvm::tipping2001().fit_statistics(&statistics).unwrap();
}
