//! The inner problem of a set of candidates, and the way back to the user's units: columns of unit norm.

use ndarray::{Array1, ArrayView2};
use rayon::prelude::*;

use crate::design::Design;
use crate::error::{Error, Result};
use crate::likelihood::{NoiseModel, Working};
use crate::memory::afford;
use crate::quadratic::Quadratic;
use crate::rvm::data::budget::{DENSE, LITTLE, sums_fit};
use crate::rvm::data::noise::{NoisePrecision, typical};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::data::units::{NOISE_CAP, Units};
use crate::rvm::settings::scheme::Hyperparameters;
use crate::sums::Sums;

/// Rows whose likelihood one thread works out at a time.
const WORKING_ROWS: usize = 4096;
/// From so many entries of Phi looks at the rows cost more than all else.
const MANY_ENTRIES: usize = 1_000_000;

/// Whether G of so many candidates is worth keeping, and fits into memory.
pub(crate) fn keeps_sums(training: &TrainingSet, candidates: usize) -> bool {
    sums_fit(training.rvm, (candidates + usize::from(training.rvm.bias)) as u64, training.memory_limit)
}

/// Whether Phi of so many candidates is so little that it is made once and kept.
fn is_little(training: &TrainingSet, candidates: usize) -> bool {
    8 * (training.rows.nrows() * (candidates + usize::from(training.rvm.bias))) as u64 <= LITTLE
}

/// What the inference schemes work on.
#[derive(Debug)]
pub(crate) struct ScaledProblem<'a> {
    pub training: &'a TrainingSet<'a>,
    pub design: Design,
    /// The candidates (places in the table) behind the columns, the bias left out; ascending.
    pub candidates: Vec<usize>,
    pub has_bias: bool,
    /// Bytes that the rows, Phi and G take, as far as they are kept.
    pub(crate) taken: u64,
}

impl<'a> ScaledProblem<'a> {
    /// The problem of the listed candidates, ascending; and G, f, t't where the curvature is constant and
    /// they fit into memory.
    pub fn new(training: &'a TrainingSet<'a>, candidates: Vec<usize>) -> Result<(ScaledProblem<'a>, Option<Sums>)> {
        if training.blocks.is_some() {
            return Ok((ScaledProblem::in_blocks(training, candidates)?, None));
        }
        let (rvm, limit) = (training.rvm, training.memory_limit);
        let p = (candidates.len() + usize::from(rvm.bias)) as u64;
        let gram = 8 * p * p;
        let (rows, columns) = training.columns(&candidates);
        let keeps_sums = keeps_sums(training, candidates.len());
        let mut one_pass = None;
        // A little Phi is made once and kept; its columns are scaled before anything is summed.
        if keeps_sums && !is_little(training, candidates.len()) {
            let mut design = Design::unscaled(rows.clone(), columns.clone(), rvm.bias, limit, training.interrupt.clone());
            let mut sums = training.sums(&design);
            // Columns of zeros, or at the ends of the numbers, need a pass of their own for their norms.
            if let Some(mut norms) = sums.norms() {
                training.refuse_far_centres(&mut norms);
                sums.divide(&norms);
                design.set_norms(norms);
                one_pass = Some((design, Some(sums)));
            }
        }
        let (design, sums) = match one_pass {
            Some(both) => both,
            None => {
                let mut design = Design::new(rows, columns, rvm.bias, &training.weights, limit, training.interrupt.clone())?;
                let mut norms = design.norms().to_vec();
                training.refuse_far_centres(&mut norms);
                design.refuse(&norms);
                let sums = keeps_sums.then(|| training.sums(&design));
                (design, sums)
            }
        };
        training.interrupt.check()?;
        let taken = training.taken + design.stored_bytes() + if sums.is_some() { gram } else { 0 };
        Ok((ScaledProblem { training, design, candidates, has_bias: rvm.bias, taken }, sums))
    }

    /// The problem of rows that are not held, after a pass for the norms of the columns.
    fn in_blocks(training: &'a TrainingSet<'a>, candidates: Vec<usize>) -> Result<ScaledProblem<'a>> {
        let (rows, columns) = training.columns(&candidates);
        let design = Design::unscaled(rows, columns, training.rvm.bias, training.memory_limit, training.interrupt.clone());
        let mut problem = ScaledProblem { training, design, candidates, has_bias: training.rvm.bias, taken: training.taken };
        let mut norms = vec![0.0f64; problem.design.n_columns()];
        problem.for_each_part(|part| {
            let own = part.design.column_norms(&part.training.weights)?;
            norms.iter_mut().zip(own).for_each(|(norm, own)| *norm = norm.hypot(own));
            Ok(())
        })?;
        training.refuse_far_centres(&mut norms);
        problem.design.set_norms(norms);
        Ok(problem)
    }

    /// The problem of the listed candidates, of which `sums` (of the columns as they are) are known.
    pub fn of_sums(training: &'a TrainingSet<'a>, candidates: Vec<usize>, mut sums: Sums) -> (ScaledProblem<'a>, Sums) {
        let (rows, columns) = training.columns(&candidates);
        let mut design = Design::unscaled(rows, columns, training.rvm.bias, training.memory_limit, training.interrupt.clone());
        // A sum of squares says nothing of what it has lost at the ends of the numbers.
        let mut norms: Vec<f64> = sums.gram.diag().iter().map(|d| if d.is_normal() { d.sqrt() } else { 0.0 }).collect();
        training.refuse_far_centres(&mut norms);
        sums.divide(&norms);
        design.set_norms(norms);
        (ScaledProblem { training, design, candidates, has_bias: training.rvm.bias, taken: training.taken }, sums)
    }

    /// N, of rows that are held or not; 0 where only their sums are known.
    pub fn n_rows(&self) -> usize {
        self.training.height()
    }

    /// Whether looks at the rows cost more than all else.
    pub fn has_many_entries(&self) -> bool {
        self.n_rows() * self.design.n_columns() >= MANY_ENTRIES
    }

    /// The user's row (or landmark, or column of a given design matrix) behind a column that is no bias.
    pub fn origin(&self, column: usize) -> usize {
        self.training.origin[self.candidates[column - usize::from(self.has_bias)]]
    }

    /// The column of a candidate.
    pub fn column_of(&self, candidate: usize) -> Option<usize> {
        self.candidates.binary_search(&candidate).ok().map(|k| k + usize::from(self.has_bias))
    }

    /// Bytes of the dense matrices of `columns` active columns, of the weights of all outputs.
    pub fn dense_bytes(&self, columns: u64) -> u64 {
        let weights = columns * self.training.outputs as u64;
        8 * DENSE * weights * weights
    }

    /// Bytes that are left for the search.
    pub fn room(&self) -> u64 {
        self.training.memory_limit.saturating_sub(self.taken)
    }

    /// Checks that memory suffices for `bytes` of all columns that are re-estimated at once; the error names what is enough.
    pub fn afford_at_once(&self, what: &str, bytes: u64) -> Result<()> {
        self.afford(what, bytes).map_err(|e| match e {
            Error::Memory { what, needed, limit } => Error::Memory { what, needed: needed.max(self.training.least), limit },
            other => other,
        })
    }

    /// An error, before anything is allocated, if `bytes` are more than the fit may take.
    pub fn afford(&self, what: &str, bytes: u64) -> Result<()> {
        afford(what, self.taken + bytes, self.training.memory_limit)
    }

    /// Derivatives of the log-likelihood at `f`, [N, R] by rows.
    pub fn working(&self, f: &Array1<f64>) -> Working {
        let likelihood = self.training.rvm.likelihood.as_dyn();
        let f = f.as_slice().expect("f is contiguous");
        let (targets, rows) = (&self.training.targets, self.design.n_rows());
        // One number of each row, or one for each of several real outputs.
        let each = targets.len() / rows.max(1);
        if f.len() <= WORKING_ROWS * self.training.outputs {
            let solver = likelihood.working(targets, f);
            return Working { curvature: solver.curvature.into_iter().step_by(each.max(1)).collect(), ..solver };
        }
        let parts: Vec<Working> = targets
            .par_chunks(WORKING_ROWS * each)
            .zip(f.par_chunks(WORKING_ROWS * self.training.outputs))
            .map(|(t, f)| likelihood.working(t, f))
            .collect();
        let all = |part: &dyn Fn(&Working) -> &Vec<f64>| parts.iter().flat_map(|p| part(p).iter().copied()).collect();
        Working {
            log_likelihood: all(&|p| &p.log_likelihood),
            residual: all(&|p| &p.residual),
            // It does not depend on the output.
            curvature: parts.iter().flat_map(|p| p.curvature.iter().copied().step_by(each)).collect(),
            third: all(&|p| &p.third),
        }
    }

    /// The one allowed question.
    pub fn constant_curvature(&self) -> bool {
        self.training.rvm.likelihood.as_dyn().constant_curvature()
    }

    /// Of precisions in the user's units the active columns, inner precisions alpha (of several outputs by the typical precision of their noise), and the
    /// inner noise precisions.
    pub fn inner(&self, at: &Hyperparameters) -> Result<(Vec<usize>, Vec<f64>, Vec<f64>)> {
        let bad = |name: &str, found: String, expected: String| Err(Error::Parameter { name: name.into(), found, expected });
        if at.alpha.len() != at.relevance.len() {
            let expected = format!("{}, one per entry of relevance", at.relevance.len());
            return bad("alpha", format!("{} values", at.alpha.len()), expected);
        }
        let single = [("intercept_alpha", at.intercept_alpha), ("noise_variance", at.noise_variance)];
        let named = at.alpha.iter().map(|a| ("alpha", Some(*a))).chain(single);
        for (name, value) in named {
            let value = value.unwrap_or(1.0);
            if !(value.is_finite() && value > 0.0) {
                return bad(name, value.to_string(), "a positive, finite number".into());
            }
        }
        let (mut active, mut alpha) = (Vec::new(), Vec::new());
        if let Some(a) = at.intercept_alpha {
            if !self.has_bias {
                return bad("intercept_alpha", a.to_string(), "none: the bias is switched off".into());
            }
            active.push(0);
            alpha.push(a * self.alpha_in(0));
        }
        for (row, a) in at.relevance.iter().zip(&at.alpha) {
            let column = self.training.candidate_of.get(*row).copied().flatten().and_then(|c| self.column_of(c));
            match column {
                Some(j) if !active.contains(&j) && self.design.norms()[j] > 0.0 => {
                    active.push(j);
                    alpha.push(a * self.alpha_in(j));
                }
                _ => {
                    let expected =
                        "rows (of positive weight) of the training table and in the dictionary, inputs all different".into();
                    return bad("relevance", row.to_string(), expected);
                }
            }
        }
        let (units, noise) = (&self.training.units, &self.training.noise);
        let (ratios, outputs) = (&at.variance_ratios, noise.len());
        if ratios.len() != if outputs > 1 { outputs } else { 0 } {
            let expected = format!("{outputs}, one for each output (none for only one)");
            return bad("variance_ratios", format!("{} values", ratios.len()), expected);
        }
        if let Some(ratio) = ratios.iter().find(|r| !(r.is_finite() && **r > 0.0)) {
            return bad("variance_ratios", ratio.to_string(), "positive, finite numbers".into());
        }
        let ratio = |k: usize| ratios.get(k).copied().unwrap_or(1.0);
        let mut beta = Vec::with_capacity(outputs);
        for (k, (noise, units)) in noise.iter().zip(units).enumerate() {
            beta.push(match (noise, at.noise_variance) {
                (NoisePrecision::Fixed(beta), _) => *beta,
                (NoisePrecision::Learned { .. }, Some(variance)) => units.scale * units.scale / (variance * ratio(k)),
                (NoisePrecision::Learned { .. }, None) => {
                    return bad("noise_variance", "none".into(), "a number: the noise is learnt, so its start is needed".into());
                }
            });
        }
        if let [first, _, ..] = beta[..] {
            let unit = typical(&beta);
            alpha.iter_mut().for_each(|alpha| *alpha *= unit / first);
        }
        Ok((active, alpha, beta))
    }

    /// Where the bias stands among the active columns, and the means of the targets as its weights.
    pub fn mean_bias(&self, active: &[usize]) -> Option<(usize, Vec<f64>)> {
        active.iter().position(|j| *j == 0).filter(|_| self.has_bias).map(|p| (p, self.bias_means()))
    }

    /// First precisions of columns: `alpha`, but for the bias one that lets it take up the mean of the
    /// targets at once, however large, so that the others' way does not depend on it.
    pub fn first_precisions(&self, columns: &[usize], alpha: f64) -> Vec<f64> {
        // A contrast of two classes at unit norm is their difference over sqrt(2).
        let alpha = if self.training.rvm.likelihood.as_dyn().couples_classes() { 2.0 * alpha } else { alpha };
        // Columns are of unit norm with rows of counts that have the mean exposure.
        let counts = self.training.rvm.likelihood.as_dyn().counts();
        let alpha = if counts { alpha * self.training.count / self.training.weight() } else { alpha };
        let mean = self.training.units.iter().map(|units| units.mean.powi(2)).fold(1.0, f64::max);
        let bias = alpha / mean;
        columns.iter().map(|j| if *j == 0 && self.has_bias { bias } else { alpha }).collect()
    }

    /// The means of the targets as weights of the bias column.
    fn bias_means(&self) -> Vec<f64> {
        self.training.units.iter().map(|units| units.mean * self.design.norms()[0]).collect()
    }

    /// Log evidence (plus the log hyperprior of the noise) in the user's units.
    pub fn log_evidence_out(&self, inner: f64) -> f64 {
        let c = self.training.rvm.inference.as_dyn().hyperpriors().c;
        let of_output = |(units, noise): (&Units, &NoisePrecision)| match units.scale {
            1.0 => 0.0,
            scale => (self.training.count + if noise.is_learnt() { 2.0 * c } else { 0.0 }) * scale.ln(),
        };
        inner + self.training.log_constant() - self.training.units.iter().zip(&self.training.noise).map(of_output).sum::<f64>()
    }

    /// A lower bound on the log evidence in the user's units.
    pub fn bound_out(&self, inner: f64) -> f64 {
        inner + self.training.log_constant() - self.training.count * self.training.units[0].scale.ln()
    }

    /// Noise standard deviation in the user's units, of several outputs the geometric mean of theirs; `None` without
    /// noise.
    pub fn noise_std(&self, beta: &[f64]) -> Option<f64> {
        let noisy = self.training.rvm.likelihood.as_dyn().noise() != NoiseModel::None;
        let each: Vec<f64> = self.training.units.iter().zip(beta).map(|(units, beta)| units.scale / beta.sqrt()).collect();
        noisy.then(|| typical(&each))
    }

    /// The quadratic form where the curvature is constant, from `sums` if they were worth keeping.
    pub fn constant_quadratic(&self, sums: Option<Sums>) -> Quadratic<'_> {
        let mean = self.has_bias.then(|| self.bias_means());
        if let Some(sums) = sums {
            return Quadratic::stored(sums, mean);
        }
        let training = self.training;
        let outputs = training.outputs;
        let ct: Vec<f64> = training.targets.iter().enumerate().map(|(i, t)| training.weights[i / outputs] * t).collect();
        let product = |k: usize| ct.iter().zip(&training.targets).skip(k).step_by(outputs).map(|(c, t)| c * t).sum();
        let tt = (0..outputs).map(product).collect();
        let pull = ArrayView2::from_shape((training.weights.len(), outputs), &ct).expect("[N, K]");
        Quadratic::on_demand(&self.design, training.weights.clone(), pull, tt, training.count, mean, &[])
    }

    /// Whether a learnt noise precision has reached the cap of a perfect fit; a lower one is no sign of that.
    pub fn noise_capped(&self, beta: &[f64]) -> bool {
        let of_perfect = |cap: f64, beta: f64| cap >= NOISE_CAP && beta >= 0.999 * cap;
        let capped = |(noise, beta): (&NoisePrecision, &f64)| matches!(*noise, NoisePrecision::Learned { cap, .. } if of_perfect(cap, *beta));
        self.training.noise.iter().zip(beta).any(capped)
    }

    /// Columns that are not zero on every row.
    pub fn usable(&self) -> Vec<usize> {
        self.design.norms().iter().enumerate().filter(|(_, n)| **n > 0.0).map(|(j, _)| j).collect()
    }

    /// alpha of a column: inner from outer is this times it, (M16); of several outputs that of the first.
    pub fn alpha_in(&self, column: usize) -> f64 {
        let norm = self.design.norms()[column] / self.training.units[0].scale;
        1.0 / (norm * norm)
    }

    /// Calls `each` with the problems of consecutive rows, all of them in the end; one in memory is one such problem.
    ///
    /// # Errors
    /// As [`TrainingSet::for_each_part`].
    pub fn for_each_part(&self, mut each: impl FnMut(&ScaledProblem) -> Result<()>) -> Result<()> {
        if self.training.blocks.is_none() {
            return each(self);
        }
        self.training.for_each_part(|training| each(&self.of_rows(training)))
    }

    /// What `of` makes of each of them, added up in their order.
    ///
    /// # Errors
    /// As [`TrainingSet::for_each_part`]; and that there is none.
    pub fn sum_of_parts<T>(&self, of: impl Fn(&ScaledProblem) -> Result<T>, add: impl Fn(&mut T, T)) -> Result<T> {
        let mut total = None;
        self.for_each_part(|part| {
            let own = of(part)?;
            match &mut total {
                Some(total) => add(total, own),
                None => total = Some(own),
            }
            Ok(())
        })?;
        total.ok_or_else(|| Error::Rows("a pass over the rows found none".into()))
    }

    /// The problem with these columns on the rows of a part.
    fn of_rows<'t>(&self, training: &'t TrainingSet<'t>) -> ScaledProblem<'t> {
        let design = self.design.on_rows(training.rows.clone());
        ScaledProblem { training, design, candidates: self.candidates.clone(), has_bias: self.has_bias, taken: self.taken }
    }
}
