//! Everything about a model at given precisions: evidence, gradients, and what every column would gain.

use ndarray::{Array2, ArrayView2, Axis, s};
use serde::{Deserialize, Serialize};

use super::Rvm;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::report::{Interrupt, Status};
use crate::rvm::compose::robust;
use crate::rvm::data::table::Table;
use crate::rvm::evidence::factor::{Action, Factor};
use crate::rvm::evidence::finish;
use crate::rvm::evidence::gain::{KernelPrior, Noise};
use crate::rvm::evidence::sensitivity::Sensitivity;
use crate::rvm::evidence::solution::{At, typical};
use crate::rvm::evidence::workspace::Workspace;
use crate::rvm::gram::problem::Problem;
use crate::rvm::search::by_class;
use crate::targets::Targets;

/// Precisions of a model, in the user's units: where to start a search, or what to evaluate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hyperparameters {
    /// Training rows (or columns of a given design matrix) in the model, each once.
    pub relevance: Vec<usize>,
    /// Their weight precisions, > 0, `[M]`.
    pub alpha: Vec<f64>,
    /// Precision of the bias, > 0; `None`: not in the model.
    pub intercept_alpha: Option<f64>,
    /// Noise variance, > 0; needed with a Gaussian likelihood whose noise is learnt.
    pub noise_variance: Option<f64>,
    /// Of several outputs: see [`Posterior::variance_ratios`](crate::Posterior::variance_ratios); what else is given is
    /// then that of the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variance_ratios: Vec<f64>,
    /// With a precision for each class: see [`Model::class_alpha`]; the others are then not looked at where a model is
    /// evaluated. A search begins at the others, and shares them. Empty: each class has the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub class_alpha: Vec<Vec<Option<f64>>>,
}

impl Hyperparameters {
    /// Those of a model.
    pub fn of(model: &Model) -> Hyperparameters {
        Hyperparameters {
            relevance: model.relevance.clone(),
            alpha: model.alpha.clone(),
            intercept_alpha: model.intercept_alpha,
            // Where that of each row is given, the model has none of its own.
            noise_variance: model.noise_variance().filter(|variance| *variance > 0.0),
            variance_ratios: model.posterior.as_ref().map_or(vec![], |posterior| posterior.variance_ratios.clone()),
            class_alpha: model.class_alpha.clone(),
        }
    }

    /// The candidates that they name; what is wrong with them is said where they are used.
    pub(crate) fn places(&self, table: &Table) -> Vec<usize> {
        self.relevance.iter().filter_map(|row| table.candidate_of.get(*row).copied().flatten()).collect()
    }

    /// Active columns, inner precisions alpha (of several outputs by the typical precision of their noise), and the
    /// inner noise precisions.
    pub(crate) fn inner(&self, problem: &Problem) -> Result<(Vec<usize>, Vec<f64>, Vec<f64>)> {
        let bad = |name: &str, found: String, expected: String| Err(Error::Parameter { name: name.into(), found, expected });
        if self.alpha.len() != self.relevance.len() {
            let expected = format!("{}, one per entry of relevance", self.relevance.len());
            return bad("alpha", format!("{} values", self.alpha.len()), expected);
        }
        let single = [("intercept_alpha", self.intercept_alpha), ("noise_variance", self.noise_variance)];
        let named = self.alpha.iter().map(|a| ("alpha", Some(*a))).chain(single);
        for (name, value) in named {
            let value = value.unwrap_or(1.0);
            if !(value.is_finite() && value > 0.0) {
                return bad(name, value.to_string(), "a positive, finite number".into());
            }
        }
        let (mut active, mut alpha) = (Vec::new(), Vec::new());
        if let Some(a) = self.intercept_alpha {
            if !problem.has_bias {
                return bad("intercept_alpha", a.to_string(), "none: the bias is switched off".into());
            }
            active.push(0);
            alpha.push(a * problem.alpha_in(0));
        }
        for (row, a) in self.relevance.iter().zip(&self.alpha) {
            let column = problem.table.candidate_of.get(*row).copied().flatten().and_then(|c| problem.column_of(c));
            match column {
                Some(j) if !active.contains(&j) && problem.design.norms()[j] > 0.0 => {
                    active.push(j);
                    alpha.push(a * problem.alpha_in(j));
                }
                _ => {
                    let expected =
                        "rows (of positive weight) of the training table and in the dictionary, inputs all different".into();
                    return bad("relevance", row.to_string(), expected);
                }
            }
        }
        let (units, noise) = (&problem.table.units, &problem.table.noise);
        let (ratios, outputs) = (&self.variance_ratios, noise.len());
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
            beta.push(match (noise, self.noise_variance) {
                (Noise::Fixed(beta), _) => *beta,
                (Noise::Learnt { .. }, Some(variance)) => units.scale * units.scale / (variance * ratio(k)),
                (Noise::Learnt { .. }, None) => {
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
}

/// A single action on one basis function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnAction {
    /// What would be done.
    pub kind: ActionKind,
    /// Exact change of the log evidence (curvature held fixed), nats.
    pub gain: f64,
    /// The precision it would have then; `None`: not in the model.
    pub alpha: Option<f64>,
}

/// The kinds of single actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionKind {
    /// Add it to the model.
    Add,
    /// Give it another precision.
    Reestimate,
    /// Take it out of the model.
    Delete,
    /// Nothing to be gained.
    None,
}

/// A model at given precisions, in the user's units.
///
/// Of several outputs there are weights of each; what else differs between them is that of the first. Vectors over the
/// model are `[M]`, the bias first if it is in; vectors over columns are `[P]`, the bias first if there is one, then one
/// entry per training row (rows of equal inputs share their values; `NaN` for rows of weight 0), or per column of a
/// given design matrix. Where each class has precisions of its own, both have K numbers in the place of each, one for
/// each class: 0 in the former where the weight is not in the model; the latter with the other classes held.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Evaluation {
    /// The model itself: ready to predict; status `stopped`, no iterations.
    pub model: Model,
    /// Log evidence, all constants included.
    pub log_evidence: f64,
    /// Posterior means, `[M]`; of several outputs and under the softmax [M, K] by rows.
    pub weights: Vec<f64>,
    /// Posterior variances, `[M]`; under the softmax summed over the contrasts of the classes.
    pub variances: Vec<f64>,
    /// gamma_i = 1 - alpha_i Sigma_ii, `[M]`; under the softmax summed over the contrasts, up to K - 1, and of
    /// several outputs over those.
    pub well_determined: Vec<f64>,
    /// |t - Phi mu|^2 by weight; `None` where there is no noise.
    pub residual_sum: Option<f64>,
    /// d log evidence / d log alpha_i with the curvature held fixed, `[M]`.
    pub gradient_log_alpha_fixed: Vec<f64>,
    /// The same, exact: the mode moves with alpha, `[M]`.
    pub gradient_log_alpha: Vec<f64>,
    /// d log evidence / d log noise precision; `None` where there is no noise.
    pub gradient_log_noise: Option<f64>,
    /// Exact d log evidence / d log theta for each of [`Kernel::parameters`](crate::Kernel::parameters),
    /// alpha, noise and centres held; empty for a given design matrix.
    pub gradient_log_kernel: Vec<f64>,
    /// S_j = phi_j' inv(C) phi_j, `[P]` (Tipping & Faul 2003, eq. 22); under the softmax with the mean curvature of
    /// the contrasts.
    pub sparsity_in_model: Vec<f64>,
    /// Q_j = phi_j' inv(C) t, `[P]`; under the softmax its norm over the contrasts.
    pub quality_in_model: Vec<f64>,
    /// s_j: S_j with basis function j left out of C, `[P]`.
    pub sparsity: Vec<f64>,
    /// q_j: Q_j with basis function j left out of C, `[P]`.
    pub quality: Vec<f64>,
    /// The best single action on each column, `[P]`.
    pub actions: Vec<ColumnAction>,
}

impl Rvm {
    /// Evaluates a model at given precisions instead of learning them: posterior, log evidence, its
    /// gradients, and the gain of the best action on every column.
    ///
    /// # Errors
    /// As [`Rvm::fit`]; and precisions that do not fit the rows.
    pub fn evaluate(&self, x: ArrayView2<f64>, targets: &Targets, at: &Hyperparameters) -> Result<Evaluation> {
        self.check()?;
        match self.several(targets)? {
            Some(_) => self.joint().evaluate(x, targets, at),
            None => self.pool()?.install(|| self.evaluate_here(x, targets, at)),
        }
    }

    fn evaluate_here(&self, x: ArrayView2<f64>, targets: &Targets, at: &Hyperparameters) -> Result<Evaluation> {
        let mut table = Table::new(self, x, targets, &Interrupt::default())?;
        let mut degrees = None;
        if let Some(mixture) = self.likelihood.as_dyn().scale_mixture() {
            let (rested, own) = robust::rested(self, &table, mixture, at)?;
            (table, degrees) = (rested, Some(own));
        }
        let (problem, sums) = Problem::new(&table, table.dictionary())?;
        let work = Workspace::new(&problem, sums);
        let (active, alpha, beta) = at.inner(&problem)?;
        let noise: Vec<Noise> = beta.iter().map(|beta| Noise::Fixed(*beta)).collect();
        let unit = typical(&beta);
        let a: Vec<f64> = alpha.iter().map(|x| x / unit).collect();
        let solution = work.solve(&active, &a, &noise, At::Precision(&beta), None)?;
        if self.by_class() {
            return by_class::evaluate(&work, &solution, at);
        }
        let factor = Factor::new(work.quadratic(&solution)?, &solution, &noise, KernelPrior::FLAT);
        let (beta, noises) = (beta[0], noise.len() as f64);
        let m = active.len();
        let scale = problem.table.units[0].scale;
        let norm = |j: usize| problem.design.norms()[j];
        let regression = self.likelihood.as_dyn().noise() != crate::likelihood::NoiseModel::None;

        let Sensitivity { log_alpha: gradient_log_alpha, phi: slope } = Sensitivity::of(&problem, &solution);
        let gradient_log_kernel = gradient_log_kernel(&problem, &active, slope);
        let columns = columns(&problem);
        let spread = |f: &dyn Fn(usize) -> f64| columns.iter().map(|c| c.map_or(f64::NAN, f)).collect::<Vec<f64>>();
        let s_unit = |j: usize| beta / (scale * scale) * norm(j) * norm(j);
        let q_unit = |j: usize| beta / scale * norm(j);
        let candidates = factor.candidates();
        let actions = factor.actions();
        let describe = |j: usize| {
            let outside = |a: f64| Some(a * beta / problem.alpha_in(j));
            match actions[j] {
                Some((Action::Add { a, .. }, gain)) => ColumnAction { kind: ActionKind::Add, gain, alpha: outside(a) },
                Some((Action::Reestimate { a, .. }, gain)) => {
                    ColumnAction { kind: ActionKind::Reestimate, gain, alpha: outside(a) }
                }
                Some((Action::Delete { .. }, gain)) => ColumnAction { kind: ActionKind::Delete, gain, alpha: None },
                _ => ColumnAction { kind: ActionKind::None, gain: 0.0, alpha: None },
            }
        };
        let unit = |k: usize| scale / norm(active[k]);
        let determined: Vec<f64> = (0..m).map(|i| solution.determined(i)).collect();
        let log_evidence = problem.log_evidence_out(work.log_evidence(&solution));
        let mut model = finish::model(&work, &solution, log_evidence, Status::Stopped, 0)?;
        if let Some(posterior) = &mut model.posterior {
            posterior.noise_degrees = degrees.or(posterior.noise_degrees);
        }
        Ok(Evaluation {
            model,
            log_evidence,
            weights: finish::weights(&problem, &solution).iter().copied().collect(),
            variances: (0..m).map(|k| solution.variance[k] / noises / beta * unit(k) * unit(k)).collect(),
            residual_sum: regression.then(|| solution.residuals(problem.table.count)[0] * scale * scale),
            gradient_log_alpha_fixed: (0..m).map(|i| solution.gradient(i)).collect(),
            gradient_log_alpha,
            gradient_log_noise: regression.then(|| {
                let count = problem.table.count;
                0.5 * (count - beta * solution.residuals(count)[0] - determined.iter().sum::<f64>() / noises)
            }),
            well_determined: determined,
            gradient_log_kernel,
            sparsity_in_model: spread(&|j| factor.s()[j] * s_unit(j)),
            quality_in_model: spread(&|j| factor.q(j) * q_unit(j)),
            sparsity: spread(&|j| candidates[j].s * s_unit(j)),
            quality: spread(&|j| candidates[j].seen[0].q * q_unit(j)),
            actions: columns
                .iter()
                .map(|c| c.map_or(ColumnAction { kind: ActionKind::None, gain: 0.0, alpha: None }, describe))
                .collect(),
        })
    }
}

/// The columns behind the user's rows, the bias first if there is one.
pub(crate) fn columns(problem: &Problem) -> Vec<Option<usize>> {
    let mut columns: Vec<Option<usize>> = if problem.has_bias { vec![Some(0)] } else { vec![] };
    columns.extend(problem.table.candidate_of.iter().map(|c| c.and_then(|c| problem.column_of(c))));
    columns
}

/// Derivatives of the log evidence in the logarithms of the kernel's parameters, from those in the entries of unit-norm
/// columns, [N, M].
pub(crate) fn gradient_log_kernel(problem: &Problem, active: &[usize], mut slope: Array2<f64>) -> Vec<f64> {
    for (k, j) in active.iter().enumerate() {
        slope.column_mut(k).map_inplace(|v| *v /= problem.design.norms()[*j]);
    }
    let first = usize::from(problem.has_bias);
    let skip = active.iter().take_while(|j| **j < first).count();
    problem.design.kernel().map_or(Vec::new(), |(kernel, centres)| {
        let kept = centres.select(Axis(0), &active[skip..].iter().map(|j| j - first).collect::<Vec<_>>());
        kernel.gradient(problem.design.rows(), kept.view(), slope.slice(s![.., skip..]))
    })
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Array2};
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::kernel::Rbf;
    use crate::likelihood::{Bernoulli, Gaussian, Likelihood, Softmax};
    use crate::rvm::data::landmarks::{Centres, Landmarks};
    use crate::rvm::{Dictionary, DictionaryRule};
    use crate::statistics::Statistics;

    /// What a regime says at given precisions, on columns of unit norm, by the user's rows.
    struct Judged {
        log_evidence: f64,
        s: Vec<f64>,
        q: Vec<f64>,
        /// phi'B phi of each column, and |r| of the slopes r of the log-likelihoods.
        square: Vec<f64>,
        residual: Option<f64>,
    }

    fn judged(work: &Workspace, at: &Hyperparameters) -> Judged {
        let problem = work.problem;
        let (active, alpha, beta) = at.inner(problem).unwrap();
        let noise: Vec<Noise> = beta.iter().map(|beta| Noise::Fixed(*beta)).collect();
        let a: Vec<f64> = alpha.iter().map(|x| x / beta[0]).collect();
        let solution = work.solve(&active, &a, &noise, At::Precision(&beta), None).unwrap();
        let form = work.quadratic(&solution).expect("rows that are held");
        let factor = Factor::new(form.clone(), &solution, &noise, KernelPrior::FLAT);
        let columns: Vec<usize> = columns(problem).into_iter().map(|c| c.expect("every row counts")).collect();
        let residual = || {
            let r = problem.working(&problem.fitted(&solution)).residual;
            let weights = problem.table.weights.iter().flat_map(|c| std::iter::repeat_n(c, solution.outputs));
            r.iter().zip(weights).map(|(r, c)| c * r * r).sum::<f64>().sqrt()
        };
        Judged {
            log_evidence: problem.log_evidence_out(work.log_evidence(&solution)),
            s: columns.iter().map(|j| factor.s()[*j]).collect(),
            q: columns.iter().map(|j| factor.q(*j)).collect(),
            square: columns.iter().map(|j| form.diag[*j]).collect(),
            residual: (!problem.table.weights.is_empty()).then(residual),
        }
    }

    /// The evidence to 1e-9, S of every candidate to 1e-9 of phi'B phi, and Q to 1e-9 of |phi| |r|.
    fn agree(name: &str, got: &Judged, expected: &Judged) {
        let off = (got.log_evidence - expected.log_evidence).abs();
        assert!(off < 1e-9 * expected.log_evidence.abs(), "{name}: {} {}", got.log_evidence, expected.log_evidence);
        assert_eq!(got.s.len(), expected.s.len(), "{name}");
        let residual = expected.residual.expect("the first has rows");
        for j in 0..expected.s.len() {
            let (s, q) = ((got.s[j] - expected.s[j]).abs(), (got.q[j] - expected.q[j]).abs());
            assert!(s < 1e-9 * expected.square[j], "{name}: S of {j} is off by {s:e} of {:e}", expected.square[j]);
            assert!(q < 1e-9 * residual, "{name}: Q of {j} is off by {q:e} of {residual:e}");
        }
    }

    /// The evidence, and S and Q of every candidate, do not depend on what is stored, made again or given.
    #[test]
    fn regimes_agree_at_given_precisions() {
        // Phi of the former is little: it may be kept beside G. Some of its rows share their inputs, so that G is smaller.
        for (n, shared) in [(1400, 40), (1500, 0)] {
            let mut random = rand_pcg::Pcg64::seed_from_u64(1);
            let mut x = Array2::from_shape_simple_fn((n, 10), || random.random_range(0.0..1.0f64));
            for k in 0..shared {
                let row = x.row(k).to_owned();
                x.row_mut(n - 1 - k).assign(&row);
            }
            let f: Array1<f64> =
                x.map_axis(Axis(1), |r| 10.0 * (3.0 * r[0] * r[1]).sin() + 20.0 * (r[2] - 0.5).powi(2) + 5.0 * r[3]);
            let t: Array1<f64> = f.mapv(|f| f + random.random_range(-2.0..2.0));
            let mut labels: Vec<usize> = t.iter().map(|t| usize::from(*t > 10.0)).collect();
            let mut kinds: Vec<usize> = t.iter().map(|t| (t / 6.0).clamp(0.0, 2.0) as usize).collect();
            // Of the same class they would be merged.
            for k in 0..shared {
                (labels[n - 1 - k], kinds[n - 1 - k]) = (1 - labels[k], (kinds[k] + 1) % 3);
            }
            let c = Array1::from_shape_fn(n, |i| 0.5 * (1 + i % 3) as f64);
            let variances = Array1::from_shape_fn(n, |i| 0.5 * (1 + i % 4) as f64);
            let relevance: Vec<usize> = (0..n - shared).step_by(61).collect();
            let alpha = (0..relevance.len()).map(|k| 10f64.powi(k as i32 % 4 - 2)).collect();
            let noise_variance = Some(1.3);
            let at = Hyperparameters { relevance, alpha, intercept_alpha: Some(1e-3), noise_variance, ..Default::default() };
            let likelihoods: [(Likelihood, bool); 5] = [
                (Gaussian::default().into(), false),
                (Gaussian::default().into(), true),
                (Gaussian { noise_variance }.into(), false),
                (Bernoulli::default().into(), false),
                (Softmax::default().into(), false),
            ];
            for (likelihood, known) in likelihoods {
                let targets = match likelihood.name() {
                    "bernoulli" => Targets::classes(&labels, 2),
                    "softmax" => Targets::classes(&kinds, 3),
                    _ => Targets::real(t.view()),
                };
                let targets = targets.with_weights(c.view());
                let targets = if known { targets.with_noise_variance(variances.view()) } else { targets };
                let constant = likelihood.as_dyn().constant_curvature();
                let kernel: crate::kernel::Kernel = Rbf { gamma: 0.3.into() }.into();
                let dictionary = Dictionary::Rule(DictionaryRule::All);
                let rvm = |memory: u64, landmarks: Landmarks| Rvm {
                    kernel: kernel.clone(),
                    dictionary,
                    likelihood: likelihood.clone(),
                    memory_limit: Some(memory),
                    landmarks,
                    ..Rvm::tipping2001()
                };
                let given = || Landmarks::Given(Centres(x.clone()));
                // Four times what G takes, and Phi: so much memory just holds it.
                let (rows, columns) = (n as u64, (n - shared + 1) as u64);
                let (gram, phi) = (32 * columns * columns, 32 * rows * columns);
                let (ample, scarce) = (1 << 31, 20_000_000);
                // What is stored where the curvature is constant: G, Phi.
                let regimes = if shared > 0 {
                    assert!(gram < phi && phi / 4 <= 1 << 24);
                    vec![
                        ("G and Phi", rvm(ample, Landmarks::Kmedoids), true, true),
                        ("G", rvm(gram, Landmarks::Kmedoids), true, false),
                        ("neither", rvm(scarce, Landmarks::Kmedoids), false, false),
                        ("given, G and Phi", rvm(ample, given()), true, true),
                        ("given, neither", rvm(scarce, given()), false, false),
                    ]
                } else {
                    assert!(phi < gram && phi / 4 > 1 << 24);
                    vec![
                        ("G in one pass", rvm(ample, Landmarks::Kmedoids), true, false),
                        ("Phi", rvm(phi, Landmarks::Kmedoids), false, true),
                        ("neither", rvm(scarce, Landmarks::Kmedoids), false, false),
                        ("given, G in one pass", rvm(ample, given()), true, false),
                    ]
                };
                let mut first = None;
                for (name, rvm, keeps_gram, keeps_phi) in regimes {
                    let table = Table::new(&rvm, x.view(), &targets, &Interrupt::default()).unwrap();
                    let (problem, sums) = Problem::new(&table, table.dictionary()).unwrap();
                    let name = format!("{n} rows, {name}, {likelihood:?}, known noise {known}");
                    assert_eq!(sums.is_some(), keeps_gram && constant, "{name}: G");
                    let keeps_phi = if constant { keeps_phi } else { phi <= rvm.memory_limit.unwrap() };
                    assert_eq!(problem.design.stored_bytes(), if keeps_phi { phi / 4 } else { 0 }, "{name}: Phi");
                    let got = judged(&Workspace::new(&problem, sums), &at);
                    agree(&name, &got, first.as_ref().unwrap_or(&got));
                    first.get_or_insert(got);
                }
                if constant && shared == 0 {
                    let mut statistics = Statistics::new(&kernel, x.view()).unwrap();
                    statistics.update(x.view(), &targets).unwrap();
                    let rvm = rvm(ample, Landmarks::Kmedoids);
                    let (table, sums) = Table::of_statistics(&rvm, &statistics, &Interrupt::default()).unwrap();
                    let (problem, sums) = Problem::of_sums(&table, table.dictionary(), sums);
                    let got = judged(&Workspace::new(&problem, Some(sums)), &at);
                    let name = format!("{n} rows, statistics, {likelihood:?}, known noise {known}");
                    agree(&name, &got, first.as_ref().expect("the others came first"));
                }
            }
        }
    }
}
