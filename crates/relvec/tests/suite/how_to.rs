//! Examples in Rust of the pages in docs/python/how-to, which show the lines between `// <name` and `// name>`. They read
//! the tables of these pages.

use std::path::Path;

use ndarray::{Array1, Array2, array};
use relvec::{Bernoulli, Decision, Model, Poisson, Result, Rvm, StudentT, Targets};

/// Reads a table of the documentation: its numbers, [N, D], and the texts of its last column, `[N]`.
fn table(name: &str) -> (Array2<f64>, Vec<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/python/tables").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let last = rows.iter().map(|row| row.last().unwrap().to_string()).collect();
    let cell = |(i, j): (usize, usize)| rows[i][j].parse().unwrap_or(f64::NAN);
    (Array2::from_shape_fn((rows.len(), rows[0].len()), cell), last)
}

/// Returns the first column, [N, 1], and two others, `[N]`, of a table of three columns.
fn columns(name: &str) -> (Array2<f64>, Array1<f64>, Array1<f64>) {
    let numbers = table(name).0;
    (numbers.select(ndarray::Axis(1), &[0]), numbers.column(1).to_owned(), numbers.column(2).to_owned())
}

#[test]
fn counts() -> Result<()> {
    let (x, days, visits) = columns("visits.csv");
    // <counts
    let rvm = Rvm { likelihood: Poisson::default().into(), ..Rvm::default() };
    let (model, _) = rvm.fit(x.view(), &Targets::real(visits.view()).with_exposure(days.view()))?;
    let rate = model.predict(array![[0.0]].view())?;
    let week = array![7.0];
    let counts = rate.counts(Some(week.view()))?;
    let quantiles = model.quantiles(&rate, &[0.025, 0.5, 0.975], Some(week.view()))?;
    // counts>
    assert_eq!(format!("{:.1} +- {:.1}", counts.mean[0], counts.std()[0]), "17.2 +- 4.3");
    assert_eq!(quantiles, array![[9.0, 17.0, 26.0]]);
    Ok(())
}

#[test]
fn known_noise() -> Result<()> {
    let (x, variance, y) = columns("instrument.csv");
    // <known-noise
    let (model, _) = Rvm::default().fit(x.view(), &Targets::real(y.view()).with_noise_variance(variance.view()))?;
    let prediction = model.predict(array![[-5.0], [5.0]].view())?;
    let intervals = model.interval(&prediction, 0.95, Some(array![0.0004, 0.16].view()))?;
    // known-noise>
    let widths = &intervals.1 - &intervals.0;
    assert!(widths[0] < 0.1 && widths[1] > 1.5, "{widths}");
    Ok(())
}

#[test]
fn outliers() -> Result<()> {
    let numbers = table("outliers.csv").0;
    let (x, y) = (numbers.select(ndarray::Axis(1), &[0]), numbers.column(1));
    // <outliers
    let rvm = Rvm { likelihood: StudentT::default().into(), ..Rvm::default() };
    let (model, report) = rvm.fit(x.view(), &Targets::real(y))?;
    // outliers>
    let off = (&model.predict_mean(x.view())? - &x.column(0).mapv(|x| x.sin() / x)).mapv(|d| d * d).mean().unwrap().sqrt();
    assert!(off < 0.05, "{off}");
    assert!(report.row_weights.iter().step_by(8).all(|weight| *weight < 0.01));
    Ok(())
}

#[test]
fn weights() -> Result<()> {
    let (x, copies, y) = columns("copies.csv");
    // <weights
    let (model, _) = Rvm::default().fit(x.view(), &Targets::real(y.view()).with_weights(copies.view()))?;
    // weights>
    let rows: Vec<usize> = (0..100).flat_map(|i| vec![i; copies[i] as usize]).collect();
    let repeated = (x.select(ndarray::Axis(0), &rows), y.select(ndarray::Axis(0), &rows));
    let (same, _) = Rvm::default().fit(repeated.0.view(), &Targets::real(repeated.1.view()))?;
    let off = &model.predict_mean(x.view())? - &same.predict_mean(x.view())?;
    assert!(off.iter().all(|off| off.abs() < 1e-6), "{off}");
    Ok(())
}

#[test]
fn decide() -> Result<()> {
    let (numbers, kind) = table("kinds.csv");
    let x = numbers.select(ndarray::Axis(1), &[0, 1]);
    let points = array![[-1.0, -1.0], [0.0, 0.0], [3.0, 1.0]];
    // <decide
    let labels: Vec<usize> = kind.iter().map(|kind| usize::from(kind == "red")).collect();
    let rvm = Rvm { likelihood: Bernoulli::default().into(), ..Rvm::default() };
    let (model, _) = rvm.fit(x.view(), &Targets::classes(&labels, 2))?;
    let costs = array![[0.0, 1.0], [20.0, 0.0]];
    let rule = Decision { prior: Some(vec![0.9, 0.1]), costs: Some(costs), reject_cost: Some(0.5), ..Decision::default() };
    let decisions = model.decide(points.view(), &rule)?;
    // decide>
    assert_eq!((decisions.label, decisions.rejected), (vec![0, 1, 1], vec![false, true, false]));
    Ok(())
}

#[test]
fn outputs() -> Result<()> {
    let (x, short, long) = columns("waves.csv");
    // <outputs
    let both = ndarray::stack![ndarray::Axis(1), short, long];
    let (model, _) = Rvm::default().fit(x.view(), &Targets::outputs(both.view()))?;
    let predictions = model.predict_outputs(array![[0.0], [3.0]].view())?;
    // outputs>
    let at = |k: usize| format!("{:.2} +- {:.2}", predictions[k].mean[0], predictions[k].std()[0]);
    assert_eq!([at(0), at(1)], ["0.97 +- 0.05", "98.93 +- 9.46"]);
    Ok(())
}

#[test]
fn model_files() -> Result<()> {
    let (x, _, y) = columns("copies.csv");
    let path = std::env::temp_dir().join(format!("relvec-how-to-{}.json", std::process::id()));
    let model = Rvm::default().fit(x.view(), &Targets::real(y.view()))?.0;
    // <model-files
    std::fs::write(&path, model.to_json()?).expect("the file can be written");
    let again = Model::from_json(&std::fs::read_to_string(&path).expect("the file can be read"))?;
    // model-files>
    std::fs::remove_file(&path).expect("the file is there");
    assert_eq!(again.predict(x.view())?, model.predict(x.view())?);
    Ok(())
}
