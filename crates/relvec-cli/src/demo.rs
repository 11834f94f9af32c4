//! `relvec demo`: fits two synthetic problems of the papers, compares the fits with the truth and draws them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use ndarray::{Array1, Array2};
use relvec::{Kernel, Model, Moderation, Rbf, Rvm, Targets};

use crate::args::{DemoArgs, Task};
use crate::figures::{self, Curve, Figure, Plane};
use crate::layout::Lines;
use crate::output;
use crate::problems::{Mixture, Sinc};
use crate::settings::likelihood;
use crate::terminal::{self, Stream};
use crate::text::{count, share, significant, thousands};

/// Seed of the training samples. Its value has no special meaning.
const SEED: u64 = 2;
/// Seed of the independent sample on which the classifier is tested.
const TEST_SEED: u64 = 1000;
const TEST_ROWS: usize = 20_000;
const SINC_ROWS: usize = 100;
const SINC_GAMMA: f64 = 1.0 / 9.0;
const MIXTURE_ROWS: usize = 250;
const MIXTURE_GAMMA: f64 = 4.0;
/// Grid points of the sinc figure and of the error against the true function.
const CURVE_POINTS: usize = 401;
/// Grid points of the shading along each axis.
const PLANE_POINTS: usize = 80;

pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    // The folder is created before the fits, so that an error costs no time.
    fs::create_dir_all(&args.out).with_context(|| format!("cannot create the folder `{}`", args.out.display()))?;
    output::check(&args.out.join("sinc.svg"))?;

    let sinc = sinc()?;
    let mixture = mixture()?;
    let mut lines = Lines::new(Stream::Stdout);
    let headline = format!("Regression of sin(x)/x with noise from {SINC_ROWS} rows: {}", sinc.fit.status);
    lines.line("relevance vectors", &share(sinc.fit.vectors, SINC_ROWS, "row"));
    lines.line("noise", &format!("standard deviation {} (true: {})", sinc.noise, Sinc::NOISE));
    lines.line("error", &format!("RMSE {} from the true function", sinc.fit.error));
    lines.line("kernel", &format!("rbf, gamma {}", significant(SINC_GAMMA, 3)));
    lines.line("log evidence", &sinc.fit.evidence);
    output::print(&format!("{}\n{}\n", terminal::headline(&headline, Stream::Stdout), lines.text))?;

    let mut lines = Lines::new(Stream::Stdout);
    let headline =
        format!("Classification of points of two mixtures of Gaussians from {MIXTURE_ROWS} rows: {}", mixture.fit.status);
    lines.line("relevance vectors", &share(mixture.fit.vectors, MIXTURE_ROWS, "row"));
    let test = format!("{} of {} new rows (best possible rule: {})", mixture.fit.error, thousands(TEST_ROWS), mixture.best_error);
    lines.line("error", &test);
    lines.line("kernel", &format!("rbf, gamma {}", significant(MIXTURE_GAMMA, 3)));
    lines.line("log evidence", &mixture.fit.evidence);
    output::print(&format!("{}\n{}\n", terminal::headline(&headline, Stream::Stdout), lines.text))?;

    save(&args.out, "sinc", &sinc.fit.figure)?;
    save(&args.out, "mixture", &mixture.fit.figure)
}

/// Results of a fit that are shown.
struct Fit {
    status: String,
    vectors: usize,
    evidence: String,
    error: String,
    figure: Figure,
}

struct SincResult {
    fit: Fit,
    /// Estimated standard deviation of the noise.
    noise: String,
}

struct MixtureResult {
    fit: Fit,
    /// Error rate of the Bayes rule on the test sample.
    best_error: String,
}

impl Fit {
    fn new(model: &Model, error: String, figure: Figure) -> Fit {
        Fit {
            status: format!("{} after {}", model.status.name().replace('_', " "), count(model.iterations, "iteration")),
            vectors: model.relevance.len(),
            evidence: model.log_evidence.map_or("-".into(), |evidence| format!("{} nats", significant(evidence, 4))),
            error,
            figure,
        }
    }
}

fn sinc() -> Result<SincResult> {
    let sample = Sinc::draw(SINC_ROWS, SEED);
    let model = train(SINC_GAMMA, Task::Regress, &sample.x, &Targets::real(sample.t.view()))?;
    let grid = Sinc::grid(CURVE_POINTS);
    let prediction = model.predict(grid.view())?;
    let truth = grid.column(0).mapv(Sinc::truth);
    let rmse = (&prediction.mean - &truth).mapv(|e| e * e).mean().map_or(f64::NAN, f64::sqrt);
    let figure = figures::curve(&Curve {
        x: &sample.x.column(0).to_vec(),
        t: &sample.t.to_vec(),
        vectors: &model.relevance,
        grid: &grid.column(0).to_vec(),
        truth: &truth.to_vec(),
        mean: &prediction.mean.to_vec(),
        band: &(2.0 * prediction.std()).to_vec(),
    })?;
    let noise = model.noise_std().map_or("-".into(), |std| significant(std, 3));
    Ok(SincResult { fit: Fit::new(&model, significant(rmse, 3), figure), noise })
}

fn mixture() -> Result<MixtureResult> {
    let sample = Mixture::draw(MIXTURE_ROWS, SEED);
    let model = train(MIXTURE_GAMMA, Task::Classify, &sample.x, &Targets::classes(&sample.labels, 2))?;
    let test = Mixture::draw(TEST_ROWS, TEST_SEED);
    let learned = class_one(&model, &test.x)?;
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
        points: &sample.x.outer_iter().map(|row| (row[0], row[1])).collect::<Vec<_>>(),
        labels: &sample.labels,
        vectors: &model.relevance,
        xs: &xs.to_vec(),
        ys: &ys.to_vec(),
        probability: &probability.chunks(PLANE_POINTS).map(<[f64]>::to_vec).collect::<Vec<_>>(),
    })?;
    Ok(MixtureResult { fit: Fit::new(&model, error(&learned), figure), best_error: error(&best) })
}

fn train(gamma: f64, task: Task, x: &Array2<f64>, targets: &Targets) -> Result<Model> {
    let rvm = Rvm { kernel: Kernel::Rbf(Rbf { gamma: gamma.into() }), likelihood: likelihood(task), ..Rvm::tipping2001() };
    let (model, _) = rvm.fit(x.view(), targets)?;
    Ok(model)
}

/// Returns the probability of class 1 at each row of `x`.
fn class_one(model: &Model, x: &Array2<f64>) -> Result<Array1<f64>> {
    Ok(model.predict_probability(x.view(), Moderation::Posterior)?.column(1).to_owned())
}

fn save(folder: &Path, name: &str, figure: &Figure) -> Result<()> {
    for (extension, bytes) in [("svg", figure.svg.as_bytes()), ("png", &figure.png)] {
        let path = folder.join(format!("{name}.{extension}"));
        output::write(&path, bytes)?;
        output::print(&format!("Saved {}\n", path.display()))?;
    }
    Ok(())
}
