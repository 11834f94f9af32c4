//! `relvec demo`: the papers' two synthetic problems, trained, measured against the truth and drawn.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table, presets};
use ndarray::{Array1, Array2};
use relvec::{Kernel, Model, Moderation, Rbf, Rvm, Targets};

use crate::args::{DemoArgs, Task};
use crate::figures::{self, Curve, Figure, Plane, Shade};
use crate::output;
use crate::problems::{Mixture, Sinc};
use crate::settings::likelihood;
use crate::text::significant;

/// Seed of the training samples; any other does as well.
const SEED: u64 = 2;
/// Seed of the fresh sample on which the classifier is tested.
const TEST_SEED: u64 = 1000;
const TEST_ROWS: usize = 20_000;
const SINC_ROWS: usize = 100;
const SINC_GAMMA: f64 = 1.0 / 9.0;
const MIXTURE_ROWS: usize = 250;
const MIXTURE_GAMMA: f64 = 4.0;
/// Grid points of the sinc figure and of its error.
const CURVE_POINTS: usize = 401;
/// Grid points of the shading, per axis.
const PLANE_POINTS: usize = 80;

pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    // Before the work: a folder that cannot be made should cost no time.
    fs::create_dir_all(&args.out).with_context(|| format!("cannot make the folder `{}`", args.out.display()))?;
    output::check(&args.out.join("sinc.svg"))?;

    let sinc = sinc()?;
    let mixture = mixture()?;
    output::print(&format!(
        "{}\n\
         sinc:    sin(x)/x on [-10, 10], noise {}; error: RMSE to the truth\n\
         mixture: two classes of two Gaussians each; error: on {TEST_ROWS} fresh rows (Bayes: {})\n\n",
        table(&[&sinc.row, &mixture.row]),
        Sinc::NOISE,
        mixture.best_error
    ))?;
    save(&args.out, "sinc", &sinc.figure)?;
    save(&args.out, "mixture", &mixture.figure)
}

struct SincResult {
    row: [String; 8],
    figure: Figure,
}

struct MixtureResult {
    row: [String; 8],
    /// Error rate of the best rule there is, on the test sample.
    best_error: String,
    figure: Figure,
}

fn sinc() -> Result<SincResult> {
    let sample = Sinc::draw(SINC_ROWS, SEED);
    let model = train(SINC_GAMMA, Task::Regress, &sample.x, &Targets::real(sample.t.view()))?;
    let grid = Sinc::grid(CURVE_POINTS);
    let prediction = model.predict(grid.view())?;
    let truth = grid.column(0).mapv(Sinc::truth);
    let rmse = (&prediction.mean - &truth).mapv(|e| e * e).mean().map_or(f64::NAN, f64::sqrt);
    let figure = figures::curve(&Curve {
        title: "",
        x: &sample.x.column(0).to_vec(),
        t: &sample.t.to_vec(),
        vectors: &model.relevance,
        name: "relevance vectors",
        grid: &grid.column(0).to_vec(),
        truth: &truth.to_vec(),
        mean: &prediction.mean.to_vec(),
        band: &(2.0 * prediction.std()).to_vec(),
        band_name: "fit ± 2 sd",
    })?;
    Ok(SincResult { row: row("sinc", SINC_ROWS, SINC_GAMMA, &model, significant(rmse, 3)), figure })
}

fn mixture() -> Result<MixtureResult> {
    let sample = Mixture::draw(MIXTURE_ROWS, SEED);
    let model = train(MIXTURE_GAMMA, Task::Classify, &sample.x, &Targets::classes(&sample.labels, 2))?;
    let test = Mixture::draw(TEST_ROWS, TEST_SEED);
    let learnt = class_one(&model, &test.x)?;
    let best: Array1<f64> = test.x.outer_iter().map(|row| Mixture::probability([row[0], row[1]])).collect();
    let error = |p: &Array1<f64>| {
        let wrong = p.iter().zip(&test.labels).filter(|(p, label)| usize::from(**p > 0.5) != **label).count();
        format!("{:.1} %", 100.0 * wrong as f64 / TEST_ROWS as f64)
    };
    let axis = |column: usize| {
        let values = sample.x.column(column);
        let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(*v), high.max(*v)));
        Array1::linspace(low - 0.1, high + 0.1, PLANE_POINTS)
    };
    let (xs, ys) = (axis(0), axis(1));
    let point = |i: usize| [xs[i % PLANE_POINTS], ys[i / PLANE_POINTS]];
    let grid = Array2::from_shape_fn((PLANE_POINTS * PLANE_POINTS, 2), |(i, d)| point(i)[d]);
    let probability = class_one(&model, &grid)?.to_vec();
    let figure = figures::plane(&Plane {
        title: "",
        points: &sample.x.outer_iter().map(|row| (row[0], row[1])).collect::<Vec<_>>(),
        labels: &sample.labels,
        vectors: &model.relevance,
        name: "relevance vectors",
        xs: &xs.to_vec(),
        ys: &ys.to_vec(),
        shade: Shade::Probability,
        values: &probability.chunks(PLANE_POINTS).map(<[f64]>::to_vec).collect::<Vec<_>>(),
    })?;
    let row = row("mixture", MIXTURE_ROWS, MIXTURE_GAMMA, &model, error(&learnt));
    Ok(MixtureResult { row, best_error: error(&best), figure })
}

fn train(gamma: f64, task: Task, x: &Array2<f64>, targets: &Targets) -> Result<Model> {
    let rvm = Rvm { kernel: Kernel::Rbf(Rbf { gamma: gamma.into() }), likelihood: likelihood(task), ..Rvm::tipping2001() };
    let (model, _) = rvm.fit(x.view(), targets, &mut relvec::silent)?;
    Ok(model)
}

/// Probability of class 1 at each row.
fn class_one(model: &Model, x: &Array2<f64>) -> Result<Array1<f64>> {
    Ok(model.predict_probability(x.view(), Moderation::Posterior)?.column(1).to_owned())
}

const HEADER: [&str; 8] = ["problem", "rows", "kernel", "relevance vectors", "log evidence", "noise", "error", "status"];

fn row(name: &str, rows: usize, gamma: f64, model: &Model, error: String) -> [String; 8] {
    [
        name.to_string(),
        rows.to_string(),
        format!("rbf, gamma {}", significant(gamma, 3)),
        model.relevance.len().to_string(),
        model.log_evidence.map_or("-".into(), |evidence| format!("{evidence:.2}")),
        model.noise_std().map_or("-".to_string(), |s| significant(s, 3)),
        error,
        model.status.name().replace('_', " "),
    ]
}

fn table(rows: &[&[String; 8]]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(HEADER);
    for row in rows {
        table.add_row(*row);
    }
    for column in [1, 3, 4, 5, 6] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn save(folder: &Path, name: &str, figure: &Figure) -> Result<()> {
    for (extension, bytes) in [("svg", figure.svg.as_bytes()), ("png", &figure.png)] {
        let path = folder.join(format!("{name}.{extension}"));
        output::write(&path, bytes)?;
        output::print(&format!("wrote {}\n", path.display()))?;
    }
    Ok(())
}
