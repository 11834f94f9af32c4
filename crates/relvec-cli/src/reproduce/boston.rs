//! Boston housing: repeated random splits into 481 training rows and 25 test rows.

use anyhow::Result;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use relvec::{Kernel, Poly};

use super::Bench;
use super::outcome::{Aim, Outcome, Row};
use super::set::{COUNTED, Machine, Set, Setting, loss, rbf, vectors, width_in_words, widths};
use crate::text::significant;

const TRAIN_ROWS: usize = 481;
/// Number of splits on which widths and costs are chosen for all repeats.
const CHOSEN_ON: usize = 2;
const WIDTHS: [f64; 6] = [0.003, 0.01, 0.02, 0.04, 0.08, 0.16];
const SVR_COSTS: [f64; 4] = [3.0, 10.0, 30.0, 100.0];
const SVR_TUBES: [f64; 3] = [0.03, 0.1, 0.2];
/// Scales of x.x' in (gamma x.x' + 1)^3.
const CUBIC_SCALES: [f64; 6] = [0.003, 0.01, 0.03, 0.1, 0.3, 1.0];
/// Tolerance of a variational fit of 482 weights, in nats per iteration. The bound rises slowly.
const BOUND_TOLERANCE: f64 = 1e-3;

/// Reproduces the experiment of Tipping (2001).
pub(super) fn gaussian(bench: &Bench) -> Result<Outcome> {
    let all = read(bench)?;
    let few = bench.repeats(CHOSEN_ON, 1);
    let sets: Vec<Set> = (0..few).map(|k| split(&all, bench.seed(k)).0).collect();
    let candidates = if bench.args.quick { widths(&WIDTHS)[..6].to_vec() } else { widths(&WIDTHS) };
    let width = bench.choose(&sets, &candidates, |gamma, _| Machine::rvm(rbf(gamma.clone()), 0))?;
    let setting = bench.choose(&sets, &Setting::grid(&WIDTHS, &SVR_COSTS, &SVR_TUBES), Machine::svm)?;
    let chosen = format!("by 5-fold cross-validation inside the first {few} training sets");

    let mut outcome = Outcome::default();
    let n = bench.repeats(100, 3);
    let machines: [(&str, [f64; 2], bool); 2] = [("RVM", [7.46, 39.0], true), ("SVR", [8.04, 142.8], false)];
    for (name, [error, kernels], is_rvm) in machines {
        let words = if is_rvm { width_in_words(&width) } else { setting.in_words(&all) };
        let note = format!("rbf, {words} {chosen}");
        let found = bench.repeat(name, n, |k| {
            let (train, test) = split(&all, bench.seed(k));
            let machine = if is_rvm { Machine::rvm(rbf(width.clone()), 0) } else { Machine::svm(&setting, &train) };
            let model = machine.fit(&train)?;
            Ok([loss(&model, &test)? / test.t.len() as f64, model.relevance.len() as f64])
        })?;
        let column = |i: usize| found.iter().map(move |f| f[i]);
        let (less, fewer) = if is_rvm { (Aim::Error, Aim::Kernels) } else { (Aim::Shown, Aim::Shown) };
        outcome.rows.push(Row::new(name, "squared error", error, less).values(column(0)).note(note.clone()));
        outcome.rows.push(Row::new(name, "kernels", kernels, fewer).values(column(1)).note(note));
    }
    Ok(outcome)
}

/// Reproduces table 2 of Bishop and Tipping (2000).
pub(super) fn cubic(bench: &Bench) -> Result<Outcome> {
    let all = read(bench)?;
    let few = bench.repeats(CHOSEN_ON, 1);
    let sets: Vec<Set> = (0..few).map(|k| split(&all, bench.seed(k)).0).collect();
    let scale = bench.choose(&sets, &CUBIC_SCALES, |scale, _| Machine::rvm(kernel(*scale), 0))?;
    let chosen = format!("by 5-fold cross-validation inside the first {few} training sets");
    let note = format!("(gamma x.x' + 1)^3, gamma {} {chosen}", significant(scale, 3));

    let mut outcome = Outcome::default();
    let machines = [("RVM", [10.17, 41.1, 2.49]), ("RVM, variational", [10.36, 40.9, 2.49])];
    for (name, [error, kernels, noise]) in machines {
        let machine = Machine::rvm(kernel(scale), 0);
        let machine = if name == "RVM" { machine } else { machine.variational(false, BOUND_TOLERANCE) };
        let found = bench.repeat(name, bench.repeats(10, 2), |k| {
            let (train, test) = split(&all, bench.seed(k));
            let model = machine.fit(&train)?;
            let error = loss(&model, &test)? / test.t.len() as f64;
            Ok([error, vectors(&model).len() as f64, model.noise_std().unwrap_or(f64::NAN)])
        })?;
        let column = |i: usize| found.iter().map(move |f| f[i]);
        let counted = format!("{note}; {COUNTED}");
        outcome.rows.push(Row::new(name, "squared error", error, Aim::Error).values(column(0)).note(note.clone()));
        outcome.rows.push(Row::new(name, "kernels", kernels, Aim::Kernels).values(column(1)).note(counted));
        outcome.rows.push(Row::new(name, "noise found", noise, Aim::Shown).values(column(2)).note(note.clone()));
    }
    Ok(outcome)
}

fn kernel(scale: f64) -> Kernel {
    Poly { degree: 3, gamma: scale.into(), coef0: 1.0 }.into()
}

fn read(bench: &Bench) -> Result<Set> {
    Set::read(bench.folder()?, super::BOSTON[0], 0)
}

/// Splits the rows at random into training and test rows.
fn split(all: &Set, seed: u64) -> (Set, Set) {
    let mut order: Vec<usize> = (0..all.t.len()).collect();
    order.shuffle(&mut Pcg64::seed_from_u64(seed));
    let (train, test) = order.split_at(TRAIN_ROWS.min(order.len()));
    (all.rows(train), all.rows(test))
}
