//! The sinc function: without noise, with noise, and by two inference schemes.

use anyhow::Result;
use ndarray::{Array1, Array2};
use relvec::{Gaussian, Inference, LinearSpline, Model, Report, Rvm, Targets, Variational};

use super::Bench;
use super::outcome::{Aim, Outcome, Row};
use super::set::{COUNTED, vectors};
use crate::figures::{self, Curve, Series};
use crate::problems::Sinc;

const ROWS: usize = 100;
/// Noise standard deviation that the paper fixes for data without noise.
const SMALL_NOISE: f64 = 0.01;
/// Rows and noise of table 1 of Bishop and Tipping (2000).
const FEW_ROWS: usize = 50;
const FEW_ROWS_NOISE: f64 = 0.1;
const GRID: usize = 1001;

const SPLINE: &str = "linear spline, no width; noise by the evidence";

/// Reproduces section 4.1 and figure 1 of Tipping (1999).
pub(super) fn hundred(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let clean = Sinc::with_noise(ROWS, 0.0, 0);
    let fixed = Rvm { likelihood: Gaussian { noise_variance: Some(SMALL_NOISE * SMALL_NOISE) }.into(), ..machine(None) };
    let (exact, _) = fixed.fit(clean.x.view(), &Targets::real(clean.t.view()))?;
    let (grid, truth) = grid();
    let worst = (exact.predict_mean(grid.view())? - &truth).iter().fold(0.0f64, |worst, e| worst.max(e.abs()));
    let note = "linear spline, no width; noise fixed at 0.01, as in the paper";
    let kernels = exact.relevance.len() as f64;
    outcome.rows.push(Row::new("RVM, no noise", "largest error", 0.0087, Aim::Error).values([worst]).note(note));
    outcome.rows.push(Row::new("RVM, no noise", "kernels", 9.0, Aim::Kernels).values([kernels]).note(note));

    let n = bench.repeats(100, 10);
    let fits = bench.repeat("noise 0.2", n, |k| {
        let sample = Sinc::draw(ROWS, bench.seed(k));
        let (model, _) = machine(None).fit(sample.x.view(), &Targets::real(sample.t.view()))?;
        let drawn = (&sample.t - &sample.x.column(0).mapv(Sinc::truth)).mapv(|e| e * e).mean().unwrap_or(0.0).sqrt();
        Ok((model, sample, drawn))
    })?;
    let noise = fits.iter().map(|(model, ..)| model.noise_std().unwrap_or(f64::NAN));
    let drawn = fits.iter().map(|(.., drawn)| drawn).sum::<f64>() / n as f64;
    let kernels = fits.iter().map(|(model, ..)| model.relevance.len() as f64);
    outcome.rows.push(Row::new("RVM, noise 0.2", "kernels", 6.0, Aim::Kernels).values(kernels).note(SPLINE));
    let note = format!("{SPLINE}; the paper has one draw; our draw in the figure has {drawn:.4}");
    outcome.rows.push(Row::new("RVM, noise 0.2", "noise found", 0.189, Aim::Shown).values(noise).note(note));
    let errors = fits.iter().map(|(model, ..)| rmse(model)).collect::<Result<Vec<_>>>()?;
    outcome.rows.push(Row::new("RVM, noise 0.2", "error (root mean square)", None, Aim::Shown).values(errors).note(SPLINE));

    let (noisy, sample, _) = &fits[0];
    let panels = [Drawn::of(&exact, &clean)?, Drawn::of(noisy, sample)?];
    let titles = ["without noise", "noise 0.2"];
    let figure = figures::curves(&[panels[0].curve(titles[0]), panels[1].curve(titles[1])])?;
    let caption = format!(
        "sinc and the fits of {ROWS} points without noise ({} relevance vectors) and with noise ({}).",
        exact.relevance.len(),
        noisy.relevance.len()
    );
    outcome.draw("sinc", caption, figure);
    Ok(outcome)
}

/// Reproduces table 1 and figures of Bishop and Tipping (2000).
pub(super) fn fifty(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut shown: Vec<(Model, Report)> = Vec::new();
    let first = Sinc::with_noise(FEW_ROWS, FEW_ROWS_NOISE, bench.seed(0));
    let schemes =
        [("RVM", None, [0.0494, 6.9, 0.0943]), ("RVM, variational", Some(Variational::default()), [0.0494, 7.4, 0.0950])];
    for (name, scheme, [error, kernels, noise]) in schemes {
        let rvm = machine(scheme);
        let fit = |sample: &Sinc| rvm.fit(sample.x.view(), &Targets::real(sample.t.view()));
        let found = bench.repeat(name, bench.repeats(25, 5), |k| {
            let (model, _) = fit(&Sinc::with_noise(FEW_ROWS, FEW_ROWS_NOISE, bench.seed(k)))?;
            Ok([rmse(&model)?, vectors(&model).len() as f64, model.noise_std().unwrap_or(f64::NAN)])
        })?;
        let column = |i: usize| found.iter().map(move |f| f[i]).collect::<Vec<_>>();
        let counted = format!("{SPLINE}; {COUNTED}");
        let row = |quantity, paper, aim, i| Row::new(name, quantity, paper, aim).values(column(i)).note(SPLINE);
        outcome.rows.push(row("error (root mean square)", error, Aim::Error, 0));
        outcome.rows.push(row("kernels", kernels, Aim::Kernels, 1).note(counted));
        outcome.rows.push(row("noise found", noise, Aim::Shown, 2));
        shown.push(fit(&first)?);
    }
    let panels = [Drawn::of(&shown[0].0, &first)?, Drawn::of(&shown[1].0, &first)?];
    let figure = figures::curves(&[panels[0].curve("type-II maximum likelihood"), panels[1].curve("variational")])?;
    outcome.draw(
        "sinc50",
        "sinc from 50 points by both kinds of inference. In the variational fit the circled points have weights that the data determine.",
        figure,
    );

    let spectrum = |k: usize, name| Series {
        name,
        points: shown[k].0.relevance.iter().zip(&shown[k].0.alpha).map(|(i, a)| (*i as f64, a.log10())).collect(),
    };
    let series = [spectrum(1, "variational: posterior mean"), spectrum(0, "type II: the value")];
    let figure = figures::spikes("basis function (row)", "log₁₀ precision of the weight", &series)?;
    let caption = "The precisions of the weights. Weights with low precisions are in use. The type-II fit has pruned all others, whose \
                   precisions are infinite; in the variational fit their posterior means are finite.";
    outcome.draw("sinc50-precisions", caption, figure);
    let trace = &shown[1].1.trace;
    let points = trace.iter().enumerate().skip(1).map(|(i, p)| (((i + 1) as f64).log10(), p.log_evidence)).collect();
    let series = [Series { name: "lower bound on the log evidence", points }];
    let figure = figures::lines("log₁₀ iteration", "nats", &series)?;
    outcome.draw("sinc50-bound", format!("The lower bound over {} iterations: it never falls.", trace.len()), figure);
    Ok(outcome)
}

fn machine(variational: Option<Variational>) -> Rvm {
    let inference = variational.map_or_else(|| Rvm::tipping2001().inference, Inference::Variational);
    Rvm { kernel: LinearSpline::default().into(), inference, threads: Some(1), ..Rvm::tipping2001() }
}

fn grid() -> (Array2<f64>, Array1<f64>) {
    let grid = Sinc::grid(GRID);
    let truth = grid.column(0).mapv(Sinc::truth);
    (grid, truth)
}

/// Returns the root mean squared error against the true function.
fn rmse(model: &Model) -> Result<f64> {
    let (grid, truth) = grid();
    Ok((model.predict_mean(grid.view())? - truth).mapv(|e| e * e).mean().unwrap_or(f64::NAN).sqrt())
}

/// Content of a panel for a fit.
struct Drawn {
    x: Vec<f64>,
    t: Vec<f64>,
    vectors: Vec<usize>,
    grid: Vec<f64>,
    truth: Vec<f64>,
    mean: Vec<f64>,
    band: Vec<f64>,
}

impl Drawn {
    fn of(model: &Model, sample: &Sinc) -> Result<Drawn> {
        let (grid, truth) = grid();
        let prediction = model.predict(grid.view())?;
        Ok(Drawn {
            x: sample.x.column(0).to_vec(),
            t: sample.t.to_vec(),
            vectors: vectors(model),
            grid: grid.column(0).to_vec(),
            truth: truth.to_vec(),
            mean: prediction.mean.to_vec(),
            band: (2.0 * prediction.std()).to_vec(),
        })
    }

    fn curve<'a>(&'a self, title: &'a str) -> Curve<'a> {
        Curve {
            title,
            x: &self.x,
            t: &self.t,
            vectors: &self.vectors,
            name: "relevance vectors",
            grid: &self.grid,
            truth: &self.truth,
            mean: &self.mean,
            band: &self.band,
            band_name: "fit ± 2 sd",
        }
    }
}
