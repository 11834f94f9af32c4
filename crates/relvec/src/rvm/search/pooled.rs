//! Where the search for one model of several classes begins: with all that models of one class against the others
//! need, (M66). From nothing, with one basis function after another, it ends tens of nats lower.

use crate::error::{Error, Result};
use crate::likelihood::{Bernoulli, Likelihood};
use crate::model::PosteriorRule;
use crate::report::silent;
use crate::rvm::data::budget::DENSE;
use crate::rvm::data::table::Table;
use crate::rvm::evidence::batch::{Batch, Rule};
use crate::rvm::evidence::solution::At;
use crate::rvm::evidence::workspace::Workspace;
use crate::rvm::gram::problem::Problem;
use crate::rvm::search::run::Warm;
use crate::rvm::search::watch::{Fit, Watch};
use crate::rvm::settings::inference::Inference;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::{Hyperpriors, Start};
use crate::rvm::settings::search::Search;
use crate::targets::ClassPrecisions;

/// The models of one class against the others are only to find basis functions: actions gain so many nats for each
/// 1,000 rows.
const TOLERANCE: f64 = 1e-3;
/// Of fewer rows so few basis functions are needed that it makes no difference.
const LEAST_ROWS: usize = 500;
/// Share of the time that they may take.
const SHARE: f64 = 0.5;
/// Weights of all contrasts at most: their Hessian is dense.
const MOST_WEIGHTS: usize = 4096;
/// Multiplications of rows in the products of all pairs of classes at most: a sweep takes a few of these.
const MOST_PRODUCTS: f64 = 1e11;
/// Share of the memory that the first model may take: it has to have room to grow.
const MEMORY_SHARE: u64 = 2;
/// All precisions at once, from ones so small that the data speak, until they rest, or a sweep gains fewer nats for each
/// row than is worth its time.
const SETTLE: Batch = Batch {
    rules: &[Rule::MacKay, Rule::Em],
    hyperpriors: Hyperpriors { a: 0.0, b: 0.0, c: 0.0, d: 0.0 },
    clip: 50.0,
    gone: 0.0,
    halvings: 2,
};
const SETTLED: f64 = 1e-2;
const WORTHWHILE: f64 = 1e-5;

/// The candidates that models of one class against the others need, ascending, and the precisions to begin at;
/// nothing where the scheme or the classes leave no choice, or there is no time for it. `fit`: to two classes.
pub(crate) fn start(rvm: &Rvm, table: &Table, watch: &Watch, fit: Fit) -> Result<Option<(Vec<usize>, Warm)>> {
    let Some(scheme) = suits(rvm, table) else { return Ok(None) };
    let places = pool(rvm, scheme, table, watch, fit)?;
    if places.is_empty() {
        return Ok(None);
    }
    let (problem, sums) = Problem::new(table, places.clone())?;
    let work = Workspace::new(&problem, sums);
    let active = problem.usable();
    let alpha = problem.first_precisions(&active, 1.0 / (table.count * table.count));
    let interrupt = &table.interrupt;
    let mut now = match interrupt.in_time(|| work.solve(&active, &alpha, &table.noise, At::Best, None)) {
        Ok(Some(first)) => first,
        // Then there is no such model to begin at.
        Ok(None) | Err(Error::Singular { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    while let Some(Some(step)) = interrupt.in_time(|| SETTLE.step(&work, &table.noise, &now))? {
        let gain = step.solution.log_evidence - now.log_evidence;
        now = step.solution;
        if step.change < SETTLED || gain < WORTHWHILE * table.count {
            break;
        }
    }
    Ok(Some((places, Warm::of(&work, &now))))
}

/// The scheme, if the search is free to begin anywhere, and there is one function for each of three classes or more.
fn suits<'r>(rvm: &'r Rvm, table: &Table) -> Option<&'r Search> {
    let classes = table.outputs + 1;
    let several = table.outputs > 1 && rvm.likelihood.as_dyn().couples_classes();
    match &rvm.inference {
        Inference::Search(scheme)
            if several && scheme.start == Start::Auto && table.height() > LEAST_ROWS && classes * classes <= MOST_WEIGHTS =>
        {
            Some(scheme)
        }
        _ => None,
    }
}

/// The candidates in models of one class against the others; of too many those of the largest weights.
fn pool(rvm: &Rvm, scheme: &Search, table: &Table, watch: &Watch, fit: Fit) -> Result<Vec<usize>> {
    let classes = table.outputs + 1;
    let member = Rvm {
        likelihood: Likelihood::Bernoulli(Bernoulli::default()),
        class_precisions: ClassPrecisions::default(),
        posterior: PosteriorRule::Laplace,
        inference: Inference::Search(Search { tolerance: scheme.tolerance.max(TOLERANCE), ..scheme.clone() }),
        ..rvm.clone()
    };
    // Chosen before there are members, whose time is shorter: they share the landmarks of the whole.
    let _ = table.dictionary();
    // The largest weight of each candidate in any of them.
    let mut weight = vec![0.0f64; table.origin.len()];
    for class in 0..classes {
        let left = rvm.time_limit.map(|limit| (SHARE * limit - watch.elapsed().as_secs_f64()) / (classes - class) as f64);
        let own = Rvm { time_limit: left.map(|left| left.max(1e-3)), ..member.clone() };
        let start = std::time::Instant::now();
        let one = table.against_others(&own, class, table.interrupt.for_one_fit(own.deadline(start)));
        let (model, _) = fit(&own, &one, &mut Watch::of(&own, &mut silent, &one.interrupt, start))?;
        for (row, w) in model.relevance.iter().zip(model.expansion.weights.column(0)) {
            let place = table.candidate_of[*row].expect("a candidate stands for it");
            weight[place] = weight[place].max(w.abs());
        }
    }
    let mut places: Vec<usize> = (0..weight.len()).filter(|place| weight[*place] > 0.0).collect();
    places.sort_by(|i, j| weight[*j].total_cmp(&weight[*i]).then(i.cmp(j)));
    places.truncate(most(table));
    places.sort_unstable();
    Ok(places)
}

/// Most basis functions of the first model.
fn most(table: &Table) -> usize {
    let outputs = table.outputs as u64;
    let room = table.memory_limit.saturating_sub(table.taken) / MEMORY_SHARE;
    let weights = ((room / (8 * DENSE)) as f64).sqrt() as u64;
    let pairs = (outputs * (outputs + 1) / 2) as f64;
    let affordable = (MOST_PRODUCTS / (pairs * table.height() as f64)).sqrt() as u64;
    (weights.min(MOST_WEIGHTS as u64) / outputs).min(affordable).saturating_sub(u64::from(table.rvm.bias)) as usize
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::likelihood::Softmax;
    use crate::report::Interrupt;
    use crate::targets::Targets;

    /// The first model has as many basis functions as its weights, its products over the rows, or its memory allow.
    #[test]
    fn the_first_model_is_bounded_by_weights_products_and_memory() {
        let most = |rows: usize, memory: u64, bias: bool| {
            let x = Array2::from_shape_fn((rows, 1), |(i, _)| i as f64);
            let labels: Vec<usize> = (0..rows).map(|i| i % 3).collect();
            let rvm = Rvm { likelihood: Softmax::default().into(), memory_limit: Some(memory), bias, ..Rvm::tipping2001() };
            most(&Table::new(&rvm, x.view(), &Targets::classes(&labels, 3), &Interrupt::default()).unwrap())
        };
        // Two contrasts of 4,096 weights in all.
        assert_eq!(most(1000, 1 << 40, false), 2048);
        assert_eq!(most(1000, 1 << 40, true), 2047);
        // Three pairs of contrasts.
        assert_eq!(most(30_000, 1 << 40, false), (1e11f64 / 3.0 / 30_000.0).sqrt() as usize);
        let few = most(1000, 4_000_000, false);
        assert!(few > 50 && 8 * 8 * (2 * few as u64).pow(2) <= 2_000_000, "{few}");
    }
}
