//! The scaled problem of a set of candidates: columns of unit norm, targets in internal units, and the conversion to
//! original units.

use ndarray::{Array1, ArrayView2};
use rayon::prelude::*;

use crate::design::{Design, GROUPS, TILE_ROWS};
use crate::error::{Error, Result};
use crate::likelihood::{NoiseModel, Working};
use crate::memory::afford;
use crate::quadratic::Quadratic;
use crate::rvm::data::build::{DENSE, LITTLE, sums_fit};
use crate::rvm::data::noise::{NOISE_CAP, NoisePrecision, Units, typical};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::settings::scheme::Hyperparameters;
use crate::sums::Sums;

/// Number of entries of Phi from which passes over the rows take most of the time of a fit.
const MANY_ENTRIES: usize = 1_000_000;

/// Returns true if G of `candidates` columns is computed and fits into memory.
pub(crate) fn keeps_sums(training: &TrainingSet, candidates: usize) -> bool {
    sums_fit(training.rvm, (candidates + usize::from(training.rvm.bias)) as u64, training.memory_limit)
}

/// The scaled problem that the inference schemes solve.
#[derive(Debug)]
pub(crate) struct ScaledProblem<'a> {
    pub training: &'a TrainingSet<'a>,
    /// Phi with columns of unit norm.
    pub design: Design,
    /// Candidates of the training set behind the columns, without the bias, ascending.
    pub candidates: Vec<usize>,
    /// True if column 0 is the bias.
    pub has_bias: bool,
    /// Bytes that the rows, Phi and G take in memory.
    pub(crate) taken: u64,
}

impl<'a> ScaledProblem<'a> {
    /// Returns the scaled problem of `candidates`, which must be ascending. It also returns G, f and t't, if the
    /// Hessian is constant and they fit into memory.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] if the fit must stop, and an error if a column is too large.
    pub fn new(training: &'a TrainingSet<'a>, candidates: Vec<usize>) -> Result<(ScaledProblem<'a>, Option<Sums>)> {
        let (rvm, limit) = (training.rvm, training.memory_limit);
        let p = (candidates.len() + usize::from(rvm.bias)) as u64;
        let gram = 8 * p * p;
        let (rows, columns) = training.columns(&candidates);
        let keeps_sums = keeps_sums(training, candidates.len());
        let mut one_pass = None;
        // A small Phi is stored, and its columns are scaled before the sums. For a large one a single pass sums the
        // unscaled columns, and the sums are scaled.
        if keeps_sums && 8 * training.rows.nrows() as u64 * p > LITTLE {
            let mut design = Design::unscaled(rows.clone(), columns.clone(), rvm.bias, limit, training.interrupt.clone());
            let mut sums = training.sums(&design);
            // Columns that are zero, or whose squares overflow or underflow, need their own pass for the norms.
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

    /// Returns the scaled problem of `candidates` and its sums, from known `sums` of the unscaled columns.
    pub fn of_sums(training: &'a TrainingSet<'a>, candidates: Vec<usize>, mut sums: Sums) -> (ScaledProblem<'a>, Option<Sums>) {
        let (rows, columns) = training.columns(&candidates);
        let mut design = Design::unscaled(rows, columns, training.rvm.bias, training.memory_limit, training.interrupt.clone());
        // A sum of squares that is not a normal number has lost its digits: such columns are excluded.
        let mut norms: Vec<f64> = sums.gram.diag().iter().map(|d| if d.is_normal() { d.sqrt() } else { 0.0 }).collect();
        training.refuse_far_centres(&mut norms);
        sums.divide(&norms);
        design.set_norms(norms);
        (ScaledProblem { training, design, candidates, has_bias: training.rvm.bias, taken: training.taken }, Some(sums))
    }

    /// Returns N, or 0 if only sums over the rows are known.
    pub fn n_rows(&self) -> usize {
        self.training.rows.nrows()
    }

    /// Returns true if passes over the rows take most of the time of a fit.
    pub fn has_many_entries(&self) -> bool {
        self.n_rows() * self.design.n_columns() >= MANY_ENTRIES
    }

    /// Returns the row of the user's table (or the landmark, or the column of a given design matrix) behind a column
    /// other than the bias.
    pub fn origin(&self, column: usize) -> usize {
        self.training.origin[self.candidates[column - usize::from(self.has_bias)]]
    }

    /// Returns the column of a candidate, if it is in this problem.
    pub fn column_of(&self, candidate: usize) -> Option<usize> {
        self.candidates.binary_search(&candidate).ok().map(|k| k + usize::from(self.has_bias))
    }

    /// Returns the number of bytes of the dense matrices of `columns` active columns, for the weights of all outputs.
    pub fn dense_bytes(&self, columns: u64) -> u64 {
        let weights = columns * self.training.outputs as u64;
        8 * DENSE * weights * weights
    }

    /// Returns the number of bytes left for the search.
    pub fn room(&self) -> u64 {
        self.training.memory_limit.saturating_sub(self.taken)
    }

    /// Checks that memory suffices for `bytes` of all columns that are re-estimated at once.
    ///
    /// # Errors
    /// Returns [`Error::Memory`] with the limit that is enough for the whole fit.
    pub fn afford_at_once(&self, what: &str, bytes: u64) -> Result<()> {
        self.afford(what, bytes).map_err(|e| match e {
            Error::Memory { what, needed, limit } => Error::Memory { what, needed: needed.max(self.training.least), limit },
            other => other,
        })
    }

    /// Checks that memory suffices for `bytes`, before they are allocated.
    ///
    /// # Errors
    /// Returns [`Error::Memory`] if they exceed the memory limit.
    pub fn afford(&self, what: &str, bytes: u64) -> Result<()> {
        afford(what, self.taken + bytes, self.training.memory_limit)
    }

    /// Returns the derivatives of the log-likelihood of each row at `f`, [N, R], row by row.
    pub fn working(&self, f: &Array1<f64>) -> Working {
        let likelihood = self.training.rvm.likelihood.as_dyn();
        let f = f.as_slice().expect("f is contiguous");
        let (targets, rows) = (&self.training.targets, self.design.n_rows());
        // Number of targets of a row: one, or one for each of several real outputs.
        let each = (targets.len() / rows.max(1)).max(1);
        let size = rows.div_ceil(GROUPS).max(TILE_ROWS);
        let blocks: Vec<Working> = targets
            .par_chunks(size * each)
            .zip(f.par_chunks(size * self.training.outputs))
            .map(|(t, f)| likelihood.working(t, f))
            .collect();
        let all = |field: &dyn Fn(&Working) -> &Vec<f64>| blocks.iter().flat_map(|b| field(b).iter().copied()).collect();
        Working {
            log_likelihood: all(&|b| &b.log_likelihood),
            residual: all(&|b| &b.residual),
            // The curvature is the same for all outputs of a row.
            curvature: blocks.iter().flat_map(|b| b.curvature.iter().copied().step_by(each)).collect(),
            third: all(&|b| &b.third),
        }
    }

    /// Returns true if the Hessian does not depend on the weights.
    pub fn constant_curvature(&self) -> bool {
        self.training.rvm.likelihood.as_dyn().constant_curvature()
    }

    /// Returns the active columns, `[M]`, their precisions alpha, `[M]`, and the noise precisions, in internal units,
    /// of hyperparameters in original units. For several outputs alpha refers to the typical noise precision.
    ///
    /// # Errors
    /// Returns [`Error::Parameter`] if the hyperparameters do not fit the training set.
    pub fn inner(&self, at: &Hyperparameters) -> Result<(Vec<usize>, Vec<f64>, Vec<f64>)> {
        let bad = |name: &str, found: String, expected: String| Err(Error::Parameter { name: name.into(), found, expected });
        if at.alpha.len() != at.relevance.len() {
            let expected = format!("{} values, one for each entry of relevance", at.relevance.len());
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
                return bad("intercept_alpha", a.to_string(), "none, because the model has no bias".into());
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
                    let expected = "rows of the training set that have a positive weight, are in the dictionary, \
                                    have a basis function that is not zero, and differ in their inputs";
                    return bad("relevance", row.to_string(), expected.into());
                }
            }
        }
        let (units, noise) = (&self.training.units, &self.training.noise);
        let (ratios, outputs) = (&at.variance_ratios, noise.len());
        if ratios.len() != if outputs > 1 { outputs } else { 0 } {
            let expected = match outputs {
                1 => "no values, because there is one output".into(),
                _ => format!("{outputs} values, one for each output"),
            };
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
                    let expected = "a number, because the noise variance is learned and needs an initial value";
                    return bad("noise_variance", "none".into(), expected.into());
                }
            });
        }
        if let [first, _, ..] = beta[..] {
            let unit = typical(&beta);
            alpha.iter_mut().for_each(|alpha| *alpha *= unit / first);
        }
        Ok((active, alpha, beta))
    }

    /// Returns the slot of the bias among the active columns, and the means of the targets as its weights, `[R]`.
    pub fn mean_bias(&self, active: &[usize]) -> Option<(usize, Vec<f64>)> {
        active.iter().position(|j| *j == 0).filter(|_| self.has_bias).map(|p| (p, self.bias_means()))
    }

    /// Returns the initial precisions of `columns`, `[M]`: `alpha`, and a lower one for the bias. With it the bias fits
    /// the mean of the targets at once, however large, so that the other weights do not depend on that mean.
    pub fn first_precisions(&self, columns: &[usize], alpha: f64) -> Vec<f64> {
        // A contrast of two classes at unit norm is their difference divided by sqrt(2).
        let alpha = if self.training.rvm.likelihood.as_dyn().couples_classes() { 2.0 * alpha } else { alpha };
        // For counts `alpha` refers to columns of unit norm at the mean exposure.
        let counts = self.training.rvm.likelihood.as_dyn().counts();
        let alpha = if counts { alpha * self.training.count / self.training.weight() } else { alpha };
        let mean = self.training.units.iter().map(|units| units.mean.powi(2)).fold(1.0, f64::max);
        let bias = alpha / mean;
        columns.iter().map(|j| if *j == 0 && self.has_bias { bias } else { alpha }).collect()
    }

    /// Returns the means of the targets as weights of the bias column, `[R]`.
    fn bias_means(&self) -> Vec<f64> {
        self.training.units.iter().map(|units| units.mean * self.design.norms()[0]).collect()
    }

    /// Converts a log evidence (plus the log hyperprior of the noise) from internal to original units.
    pub fn log_evidence_out(&self, inner: f64) -> f64 {
        let c = self.training.rvm.inference.as_dyn().hyperpriors().c;
        let of_output = |(units, noise): (&Units, &NoisePrecision)| match units.scale {
            1.0 => 0.0,
            scale => (self.training.count + if noise.is_learned() { 2.0 * c } else { 0.0 }) * scale.ln(),
        };
        inner + self.training.log_constant() - self.training.units.iter().zip(&self.training.noise).map(of_output).sum::<f64>()
    }

    /// Converts a lower bound on the log evidence from internal to original units.
    pub fn bound_out(&self, inner: f64) -> f64 {
        inner + self.training.log_constant() - self.training.count * self.training.units[0].scale.ln()
    }

    /// Returns the noise standard deviation in original units, or the geometric mean over several outputs. Returns
    /// `None` for likelihoods without noise.
    pub fn noise_std(&self, beta: &[f64]) -> Option<f64> {
        let noisy = self.training.rvm.likelihood.as_dyn().noise() != NoiseModel::None;
        let each: Vec<f64> = self.training.units.iter().zip(beta).map(|(units, beta)| units.scale / beta.sqrt()).collect();
        noisy.then(|| typical(&each))
    }

    /// Returns the quadratic form of a likelihood with a constant Hessian, from `sums` if they were computed.
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
        let ct = ArrayView2::from_shape((training.weights.len(), outputs), &ct).expect("[N, R]");
        Quadratic::on_demand(&self.design, training.weights.clone(), ct, tt, training.count, mean, &[])
    }

    /// Returns true if a learned noise precision has reached the cap for perfect fits. Lower caps do not count.
    pub fn noise_capped(&self, beta: &[f64]) -> bool {
        let of_perfect = |cap: f64, beta: f64| cap >= NOISE_CAP && beta >= 0.999 * cap;
        let capped = |(noise, beta): (&NoisePrecision, &f64)| match *noise {
            NoisePrecision::Learned { cap, .. } => of_perfect(cap, *beta),
            NoisePrecision::Fixed(_) => false,
        };
        self.training.noise.iter().zip(beta).any(capped)
    }

    /// Returns the columns that are not zero on every row, ascending.
    pub fn usable(&self) -> Vec<usize> {
        self.design.norms().iter().enumerate().filter(|(_, n)| **n > 0.0).map(|(j, _)| j).collect()
    }

    /// Returns the factor that converts the precision alpha of a column from original to internal units, (M16). For
    /// several outputs it is that of the first.
    pub fn alpha_in(&self, column: usize) -> f64 {
        let norm = self.design.norms()[column] / self.training.units[0].scale;
        1.0 / (norm * norm)
    }
}
