//! Examples from a textbook chapter on sparse kernel machines (Bishop 2006, chapter 7). Some can be computed by hand.

use anyhow::{Context, Result};
use ndarray::{Array1, Array2, Axis, array};
use relvec::{CSvc, EpsilonSvr, Formulation, Kernel, Linear, Model, MultiClass, Rvm, Svm, Targets};

use super::Bench;
use super::classes::Drawn;
use super::outcome::{Aim, Outcome, Row};
use super::set::{Set, loss, rbf};
use crate::figures::{self, Curve};
use crate::problems::{sine, three_classes, wave};

/// Gamma of the rbf kernel in the exclusive-or problem.
const XOR_WIDTH: f64 = 0.5;
const GRID_ROWS: usize = 80;
const GRID_COSTS: [f64; 4] = [0.1, 1.0, 100.0, f64::INFINITY];
const GRID_WIDTHS: [f64; 3] = [0.1, 1.0, 10.0];
const CLASS_ROWS: usize = 90;
const TEST_ROWS: usize = 10_000;
const TEST_SEED: u64 = 1 << 40;
const SINE_ROWS: usize = 40;
const SINE_NOISE: f64 = 0.2;
const SINE_TUBE: f64 = 0.3;
const SINE_WIDTH: f64 = 4.0;
const SINE_POINTS: usize = 301;
/// Tolerance of fits that are compared with values computed by hand, smaller than the default.
const CLOSE: f64 = 1e-6;

pub(super) fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    three_points(&mut outcome)?;
    exclusive_or(&mut outcome)?;
    grid(bench, &mut outcome)?;
    several(bench, &mut outcome)?;
    line(bench, &mut outcome)?;
    Ok(outcome)
}

/// Finds the widest margin between (1, 1) and the two points (3, 3), (4, 3). It lies half way, at x1 + x2 = 4.
fn three_points(outcome: &mut Outcome) -> Result<()> {
    let train = Set::classes(array![[1.0, 1.0], [3.0, 3.0], [4.0, 3.0]], &[0, 1, 1]);
    let model = fit(Linear::default().into(), CSvc { c: f64::INFINITY }.into(), &train, MultiClass::Auto)?;
    let f = model.decision_function(array![[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]].view())?;
    let (b, w) = (f[[0, 0]], [f[[1, 0]] - f[[0, 0]], f[[2, 0]] - f[[0, 0]]]);
    let note = "hard margin, linear kernel; by hand: w = (1/2, 1/2), b = -2, margin 1/|w| = sqrt 2, vectors (1, 1) and (3, 3)";
    let quantities = [
        ("w1", 0.5, w[0]),
        ("w2", 0.5, w[1]),
        ("b", -2.0, b),
        ("margin", 2f64.sqrt(), 1.0 / w[0].hypot(w[1])),
        ("support vectors", 2.0, model.relevance.len() as f64),
    ];
    let row = |(what, paper, ours)| Row::new("SVM, three points", what, paper, Aim::Exact).values([ours]).note(note);
    outcome.rows.extend(quantities.map(row));
    let drawn = Drawn::of(&model, &train)?;
    let caption =
        "Three points and the widest margin between them: the boundary, and the lines f = -1 and 1 through the vectors.";
    outcome.draw("three-points", caption, figures::plane(&drawn.plane(""))?);
    Ok(())
}

/// Separates the corners of a square with equal classes at opposite corners. By symmetry all multipliers are a = 1 / (1
/// - exp(-4 gamma))^2, and b = 0.
fn exclusive_or(outcome: &mut Outcome) -> Result<()> {
    let train = Set::classes(array![[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]], &[0, 0, 1, 1]);
    let model = fit(rbf(XOR_WIDTH), CSvc { c: f64::INFINITY }.into(), &train, MultiClass::Auto)?;
    let by_hand = (1.0 - (-4.0 * XOR_WIDTH).exp()).powi(-2);
    let weight = model.expansion.weights.iter().map(|w| w.abs()).sum::<f64>() / model.relevance.len().max(1) as f64;
    let note = "hard margin, rbf, gamma 0.5; by hand: every multiplier 1 / (1 - exp(-4 gamma))^2, b = 0";
    let quantities = [
        ("multiplier", by_hand, weight),
        ("b", 0.0, model.expansion.intercept[0]),
        ("support vectors", 4.0, model.relevance.len() as f64),
        ("errors of 4", 0.0, loss(&model, &train)?),
    ];
    let row = |(what, paper, ours)| Row::new("SVM, exclusive or", what, paper, Aim::Exact).values([ours]).note(note);
    outcome.rows.extend(quantities.map(row));
    Ok(())
}

/// Varies cost and width on two noisy classes.
fn grid(bench: &Bench, outcome: &mut Outcome) -> Result<()> {
    let set = |n, seed| {
        let (x, labels) = wave(n, seed);
        Set::classes(x, &labels)
    };
    let (train, test) = (set(GRID_ROWS, bench.seed(0)), set(TEST_ROWS, bench.seed(0).wrapping_add(TEST_SEED)));
    let (mut drawn, mut titles) = (Vec::new(), Vec::new());
    for c in GRID_COSTS {
        for gamma in GRID_WIDTHS {
            let cost = if c.is_finite() { format!("{c}") } else { "infinity".into() };
            let machine = format!("SVM, C {cost}, gamma {gamma}");
            match fit(rbf(gamma), CSvc { c }.into(), &train, MultiClass::Auto) {
                Ok(model) => {
                    let wrong = 100.0 * loss(&model, &test)? / TEST_ROWS as f64;
                    let own = loss(&model, &train)?;
                    let note = format!("{} support vectors, {own} errors of {GRID_ROWS} own rows", model.relevance.len());
                    outcome.rows.push(Row::new(machine, "error, %", None, Aim::Shown).values([wrong]).note(note));
                    drawn.push(Drawn::of(&model, &train)?);
                    titles.push(format!("C {cost}, gamma {gamma}"));
                }
                Err(e) => outcome.rows.push(Row::new(machine, "error, %", None, Aim::Shown).note(format!("none: {e:#}"))),
            }
        }
    }
    let panels: Vec<_> = drawn.iter().zip(&titles).map(|(d, title)| d.plane(title)).collect();
    let caption = "Two noisy classes. The cost grows from top to bottom, the width of the kernel changes from left to right. A hard \
                   margin leads to an irregular boundary.";
    outcome.draw("cost-and-width", caption, figures::planes(&panels, GRID_WIDTHS.len())?);
    Ok(())
}

/// Fits three classes with binary models.
fn several(bench: &Bench, outcome: &mut Outcome) -> Result<()> {
    let set = |n, seed| {
        let (x, labels) = three_classes(n, seed);
        Set::classes(x, &labels)
    };
    let (train, test) = (set(CLASS_ROWS, bench.seed(0)), set(TEST_ROWS, bench.seed(0).wrapping_add(TEST_SEED)));
    let mut drawn = Vec::new();
    for (machine, rule) in [("SVM, one against the rest", MultiClass::OneVsRest), ("SVM, one against one", MultiClass::OneVsOne)]
    {
        let model = fit(rbf(0.5), CSvc { c: 1.0 }.into(), &train, rule)?;
        let note = format!("rbf, gamma 0.5, C 1; {} support vectors", model.relevance.len());
        let wrong = 100.0 * loss(&model, &test)? / TEST_ROWS as f64;
        outcome.rows.push(Row::new(machine, "error, %", None, Aim::Shown).values([wrong]).note(note));
        drawn.push(Drawn::of(&model, &train)?);
    }
    let figure = figures::planes(&[drawn[0].plane("one against the rest"), drawn[1].plane("one against one")], 2)?;
    outcome.draw("three-classes", "Three classes by binary models.", figure);
    Ok(())
}

/// Fits sin(pi x) with noise by a tube and by error bars.
fn line(bench: &Bench, outcome: &mut Outcome) -> Result<()> {
    let (x, t) = sine(SINE_ROWS, SINE_NOISE, bench.seed(0));
    let train = Set::values(x, t);
    let svr = fit(rbf(SINE_WIDTH), EpsilonSvr { c: 1.0, epsilon: SINE_TUBE }.into(), &train, MultiClass::Auto)?;
    let rvm = Rvm { kernel: rbf(SINE_WIDTH), threads: Some(1), ..Rvm::tipping2001() };
    let (rvm, _) = rvm.fit(train.x.view(), &Targets::real(train.t.view()))?;
    let grid = Array1::linspace(-1.0, 1.0, SINE_POINTS);
    let truth = grid.mapv(|x| (std::f64::consts::PI * x).sin());
    let rows: Array2<f64> = grid.clone().insert_axis(Axis(1));
    let band = (2.0 * rvm.predict(rows.view())?.std()).to_vec();
    let tube = vec![SINE_TUBE; SINE_POINTS];
    let (xs, ts) = (train.x.column(0).to_vec(), train.t.to_vec());
    let (grid, truth) = (grid.to_vec(), truth.to_vec());
    let mut means = Vec::new();
    for (machine, model) in [("SVR, sin(pi x)", &svr), ("RVM, sin(pi x)", &rvm)] {
        let mean = model.predict_mean(rows.view())?;
        let rmse = (mean.iter().zip(&truth).map(|(m, t)| (m - t).powi(2)).sum::<f64>() / SINE_POINTS as f64).sqrt();
        let note = format!("rbf, gamma {SINE_WIDTH}; {SINE_ROWS} points, noise {SINE_NOISE}; error against the true function");
        let vectors = model.relevance.len() as f64;
        outcome.rows.push(Row::new(machine, "error (root mean square)", None, Aim::Shown).values([rmse]).note(note.clone()));
        outcome.rows.push(Row::new(machine, "kernels", None, Aim::Shown).values([vectors]).note(note));
        means.push(mean.to_vec());
    }
    let panel = |model: usize| Curve {
        title: ["SVR, epsilon 0.3", "RVM"][model],
        x: &xs,
        t: &ts,
        vectors: &[&svr, &rvm][model].relevance,
        name: "vectors",
        grid: &grid,
        truth: &truth,
        mean: &means[model],
        band: [&tube, &band][model],
        band_name: "tube; ± 2 sd",
    };
    let caption = "sin(pi x) with noise. Left: support vectors lie on or outside the tube of half width 0.3. Right: error bars of \
                   two standard deviations; relevance vectors may lie anywhere.";
    outcome.draw("sine", caption, figures::curves(&[panel(0), panel(1)])?);
    Ok(())
}

fn fit(kernel: Kernel, formulation: Formulation, set: &Set, multi_class: MultiClass) -> Result<Model> {
    let svm = Svm { kernel, formulation, multi_class, tolerance: CLOSE, threads: Some(1), ..Svm::default() };
    let labels = set.labels();
    let targets = if set.classes > 0 { Targets::classes(&labels, set.classes) } else { Targets::real(set.t.view()) };
    let (model, _) = svm.fit(set.x.view(), &targets).context("support vector machine")?;
    Ok(model)
}
