//! Friedman's three functions: 240 training rows and 1,000 test rows.

use anyhow::Result;
use ndarray::{Array1, s};
use relvec::GammaRule;

use super::Bench;
use super::outcome::{Aim, Outcome, Row};
use super::set::{Machine, Set, Setting, rbf, squares, width_in_words, widths};
use crate::problems::Friedman;

const ROWS: usize = 240;
const TEST_ROWS: usize = 1000;
/// Number of training sets on which widths and costs are chosen for all repeats.
const CHOSEN_ON: usize = 5;
const WIDTHS: [f64; 12] = [0.001, 0.002, 0.004, 0.007, 0.01, 0.015, 0.02, 0.03, 0.045, 0.07, 0.1, 0.2];
const SVR_WIDTHS: [f64; 5] = [0.005, 0.01, 0.02, 0.04, 0.08];
const SVR_COSTS: [f64; 4] = [1.0, 10.0, 100.0, 1000.0];
const SVR_TUBES: [f64; 3] = [0.03, 0.1, 0.3];

/// Errors and numbers of kernels printed in the paper.
struct Printed {
    rvm: [f64; 2],
    svr: [f64; 2],
}

pub(super) fn one(bench: &Bench) -> Result<Outcome> {
    run(bench, Friedman::One, &Printed { rvm: [2.80, 59.4], svr: [2.92, 116.6] })
}

pub(super) fn two(bench: &Bench) -> Result<Outcome> {
    run(bench, Friedman::Two, &Printed { rvm: [3505.0, 6.9], svr: [4140.0, 110.3] })
}

pub(super) fn three(bench: &Bench) -> Result<Outcome> {
    run(bench, Friedman::Three, &Printed { rvm: [0.0164, 11.5], svr: [0.0202, 106.5] })
}

/// Draws training rows, test rows, and the targets of the test rows without noise.
fn draw(problem: Friedman, seed: u64) -> (Set, Set, Array1<f64>) {
    let all = problem.draw(ROWS + TEST_ROWS, seed);
    let part = |range: std::ops::Range<usize>| {
        Set::values(all.x.slice(s![range.clone(), ..]).to_owned(), all.t.slice(s![range]).to_owned())
    };
    (part(0..ROWS), part(ROWS..ROWS + TEST_ROWS), all.truth.slice(s![ROWS..]).to_owned())
}

fn run(bench: &Bench, problem: Friedman, printed: &Printed) -> Result<Outcome> {
    let few = bench.repeats(CHOSEN_ON, 1);
    let sets: Vec<Set> = (0..few).map(|k| draw(problem, bench.seed(k)).0).collect();
    let width = bench.choose(&sets, &widths(&WIDTHS), |gamma, _| Machine::rvm(rbf(gamma.clone()), 0))?;
    let grid = Setting::grid(&SVR_WIDTHS, &SVR_COSTS, &SVR_TUBES);
    let setting = bench.choose(&sets, &grid, Machine::svm)?;
    let chosen = format!("by 5-fold cross-validation inside the first {few} training sets");

    let mut outcome = Outcome::default();
    let rvm = |_: &Set| Machine::rvm(rbf(width.clone()), 0);
    let note = format!("rbf, {} {chosen}", width_in_words(&width));
    outcome.rows.extend(rows(bench, problem, "RVM", Some(printed.rvm), Aim::Error, &note, bench.repeats(100, 3), rvm)?);
    let note = "rbf, a gamma for each input by the gradient of the evidence (evidence-ard); the paper's number is for one width";
    let ard = |_: &Set| Machine::rvm(rbf(relvec::Gamma::Rule(GammaRule::EvidenceArd)), 0);
    outcome.rows.extend(rows(bench, problem, "RVM, ARD", Some(printed.rvm), Aim::Shown, note, bench.repeats(25, 1), ard)?);
    let note = format!("rbf, {} {chosen}", setting.in_words(&sets[0]));
    let svr = |set: &Set| Machine::svm(&setting, set);
    outcome.rows.extend(rows(bench, problem, "SVR", Some(printed.svr), Aim::Shown, &note, bench.repeats(100, 3), svr)?);
    Ok(outcome)
}

/// Adds rows of errors against targets without and with noise, and of numbers of kernels.
#[expect(clippy::too_many_arguments, reason = "one call for each machine, all alike")]
fn rows(
    bench: &Bench,
    problem: Friedman,
    machine: &str,
    printed: Option<[f64; 2]>,
    aim: Aim,
    note: &str,
    repeats: usize,
    of: impl Fn(&Set) -> Machine + Sync,
) -> Result<[Row; 3]> {
    let found = bench.repeat(machine, repeats, |k| {
        let (train, test, truth) = draw(problem, bench.seed(k));
        let model = of(&train).fit(&train)?;
        let n = TEST_ROWS as f64;
        let errors = [squares(&model, &test, truth.view())? / n, squares(&model, &test, test.t.view())? / n];
        Ok([errors[0], errors[1], model.relevance.len() as f64])
    })?;
    let column = |i: usize| found.iter().map(move |f| f[i]);
    let kernels = if aim == Aim::Error { Aim::Kernels } else { Aim::Shown };
    let paper = |i: usize| printed.map(|p| p[i]);
    Ok([
        Row::new(machine, "squared error, truth", paper(0), aim).values(column(0)).note(note),
        Row::new(machine, "squared error, noisy", paper(0), Aim::Shown).values(column(1)).note(note),
        Row::new(machine, "kernels", paper(1), kernels).values(column(2)).note(note),
    ])
}
