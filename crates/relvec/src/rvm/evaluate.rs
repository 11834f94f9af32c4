//! Evaluation of a model at given precisions: evidence, its gradients, and the gain of every column.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};

use super::Rvm;
use crate::error::Result;
use crate::likelihood::ClassRows;
use crate::linalg;
use crate::model::Model;
use crate::report::{Interrupt, Status};
use crate::rvm::compose::student_t;
use crate::rvm::data::noise::{NoisePrecision, typical};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::evidence::active_factor::{Action, ActiveFactor};
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice, covariance, fitted};
use crate::rvm::evidence::column_gain::SparsityPrior;
use crate::rvm::evidence::model_assembly;
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::rvm::settings::scheme::Hyperparameters;
use crate::targets::Targets;

/// A single action on one basis function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnAction {
    /// Kind of the action.
    pub kind: ActionKind,
    /// Exact change of the log evidence at a fixed Hessian, in nats.
    pub gain: f64,
    /// Precision after the action; `None` if the basis function is not in the model then.
    pub alpha: Option<f64>,
}

/// The kinds of single actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionKind {
    /// Add the basis function to the model.
    Add,
    /// Change the precision of the basis function.
    Reestimate,
    /// Delete the basis function from the model.
    Delete,
    /// No action raises the evidence.
    None,
}

/// A model at given precisions, in original units.
///
/// Vectors over the model are `[M]`, with the bias first if the model has one. Vectors over columns are `[P]`, with the
/// bias first if there is one. Then follows one entry for each training row, or for each column of a given design
/// matrix. Rows with equal inputs have equal entries, and rows of weight 0 have `NaN`.
///
/// For several outputs there are weights of each output. Other values that depend on the output are those of the first.
///
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Evaluation {
    /// The model, ready to predict, with the status `stopped` and no iterations.
    pub model: Model,
    /// Log evidence in nats, with all constants.
    pub log_evidence: f64,
    /// Posterior means, `[M]`; [M, K], row by row, for several outputs and for the softmax.
    pub weights: Vec<f64>,
    /// Posterior variances, `[M]`; summed over the contrasts of the classes for the softmax.
    pub variances: Vec<f64>,
    /// Well-determinedness gamma_i = 1 - alpha_i Sigma_ii, `[M]`. For the softmax it is summed over the contrasts, up
    /// to K - 1, and for several outputs over the outputs.
    pub well_determined: Vec<f64>,
    /// |t - Phi mu|^2 with sample weights; `None` for likelihoods without noise.
    pub residual_sum: Option<f64>,
    /// d log evidence / d log alpha_i at a fixed Hessian, `[M]`.
    pub gradient_log_alpha_fixed: Vec<f64>,
    /// Exact gradient of the log evidence in log alpha, including the movement of the mode, `[M]`.
    pub gradient_log_alpha: Vec<f64>,
    /// d log evidence / d log noise precision; `None` for likelihoods without noise.
    pub gradient_log_noise: Option<f64>,
    /// Exact d log evidence / d log theta for each of [`Kernel::parameters`](crate::Kernel::parameters), with alpha,
    /// noise and centres fixed. Empty for a given design matrix.
    pub gradient_log_kernel: Vec<f64>,
    /// Sparsity factors S_j = phi_j' inv(C) phi_j, `[P]` (Tipping & Faul 2003, eq. 22). For the softmax they use the
    /// mean curvature of the contrasts.
    pub sparsity_in_model: Vec<f64>,
    /// Quality factors Q_j = phi_j' inv(C) t, `[P]`; for the softmax the norm over the contrasts.
    pub quality_in_model: Vec<f64>,
    /// Sparsity factors s_j: S_j with basis function j excluded from C, `[P]`.
    pub sparsity: Vec<f64>,
    /// Quality factors q_j: Q_j with basis function j excluded from C, `[P]`.
    pub quality: Vec<f64>,
    /// Best single action on each column, `[P]`.
    pub actions: Vec<ColumnAction>,
}

impl Rvm {
    /// Evaluates a model of rows `x`, `[N, D]`, at given precisions: posterior, log evidence, its gradients, and the
    /// gain of the best action on every column.
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::fit`], and an error for precisions that do not match the rows.
    pub fn evaluate(&self, x: ArrayView2<f64>, targets: &Targets, at: &Hyperparameters) -> Result<Evaluation> {
        self.check()?;
        match self.several(targets)? {
            Some(_) => self.joint().evaluate(x, targets, at),
            None => self.pool()?.install(|| self.evaluate_here(x, targets, at)),
        }
    }

    fn evaluate_here(&self, x: ArrayView2<f64>, targets: &Targets, at: &Hyperparameters) -> Result<Evaluation> {
        let mut training = TrainingSet::new(self, x, targets, &Interrupt::default())?;
        let mut degrees = None;
        if let Some(mixture) = self.likelihood.as_dyn().scale_mixture() {
            let (rested, own) = student_t::rested(self, &training, mixture, at)?;
            (training, degrees) = (rested, Some(own));
        }
        let (problem, sums) = ScaledProblem::new(&training, training.dictionary())?;
        let solver = EvidenceSolver::new(&problem, sums);
        let (active, alpha, beta) = problem.inner(at)?;
        let noise: Vec<NoisePrecision> = beta.iter().map(|beta| NoisePrecision::Fixed(*beta)).collect();
        let unit = typical(&beta);
        let a: Vec<f64> = alpha.iter().map(|x| x / unit).collect();
        let solution = solver.solve(&active, &a, &noise, NoiseChoice::Precision(&beta), None)?;
        let factor = ActiveFactor::new(solver.quadratic(&solution), &solution, &noise, SparsityPrior::default());
        let (beta, noises) = (beta[0], noise.len() as f64);
        let m = active.len();
        let scale = problem.training.units[0].scale;
        let norm = |j: usize| problem.design.norms()[j];
        let regression = self.likelihood.as_dyn().noise() != crate::likelihood::NoiseModel::None;

        let EvidenceGradient { log_alpha: gradient_log_alpha, phi: slope } = EvidenceGradient::of(&problem, &solution);
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
        let log_evidence = problem.log_evidence_out(solver.log_evidence(&solution));
        let mut model = model_assembly::model(&solver, &solution, log_evidence, Status::Stopped, 0)?;
        if let Some(posterior) = &mut model.posterior {
            posterior.noise_degrees = degrees.or(posterior.noise_degrees);
        }
        Ok(Evaluation {
            model,
            log_evidence,
            weights: model_assembly::weights(&problem, &solution).iter().copied().collect(),
            variances: (0..m).map(|k| solution.variance[k] / noises / beta * unit(k) * unit(k)).collect(),
            residual_sum: regression.then(|| solution.residuals(problem.training.count)[0] * scale * scale),
            gradient_log_alpha_fixed: (0..m).map(|i| solution.gradient(i)).collect(),
            gradient_log_alpha,
            gradient_log_noise: regression.then(|| {
                let count = problem.training.count;
                0.5 * (count - beta * solution.residuals(count)[0] - determined.iter().sum::<f64>() / noises)
            }),
            well_determined: determined,
            gradient_log_kernel,
            sparsity_in_model: spread(&|j| factor.s[j] * s_unit(j)),
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

/// Returns the columns of the rows of the user's table, `[P]`, with the bias first if there is one. Rows without a
/// column have `None`.
fn columns(problem: &ScaledProblem) -> Vec<Option<usize>> {
    let mut columns: Vec<Option<usize>> = if problem.has_bias { vec![Some(0)] } else { vec![] };
    columns.extend(problem.training.candidate_of.iter().map(|c| c.and_then(|c| problem.column_of(c))));
    columns
}

/// Returns the derivatives of the log evidence in the logarithms of the kernel's parameters. `of_phi`, [N, M], are its
/// derivatives in the entries of columns of unit norm.
fn gradient_log_kernel(problem: &ScaledProblem, active: &[usize], mut of_phi: Array2<f64>) -> Vec<f64> {
    for (k, j) in active.iter().enumerate() {
        of_phi.column_mut(k).map_inplace(|v| *v /= problem.design.norms()[*j]);
    }
    let first = usize::from(problem.has_bias);
    let skip = active.iter().take_while(|j| **j < first).count();
    problem.design.kernel().map_or(Vec::new(), |(kernel, centres)| {
        let kept = centres.select(Axis(0), &active[skip..].iter().map(|j| j - first).collect::<Vec<_>>());
        crate::kernel::KernelGradient::gradient(kernel, problem.design.rows(), kept.view(), of_phi.slice(s![.., skip..]))
    })
}

/// Exact derivatives of the log evidence at a posterior, for columns of unit norm, including the movement of the mode:
/// (M15), and (M30) for several classes.
struct EvidenceGradient {
    /// Derivatives in log alpha, `[M]`.
    log_alpha: Vec<f64>,
    /// Derivatives in the entries of Phi, [N, M].
    phi: Array2<f64>,
}

impl EvidenceGradient {
    /// Returns the gradient at a posterior.
    fn of(problem: &ScaledProblem, solution: &ActivePosterior) -> EvidenceGradient {
        match &solution.joint {
            None if problem.constant_curvature() => gaussian(problem, solution),
            None => single(problem, solution),
            Some(joint) => several(problem, solution, joint.lower.view()),
        }
    }
}

/// Returns the outer product of `x`, `[N]`, and `y`, `[M]`, [N, M].
fn outer(x: &Array1<f64>, y: &Array1<f64>) -> Array2<f64> {
    linalg::times(x.view().insert_axis(Axis(1)), y.view().insert_axis(Axis(0)))
}

/// Returns the gradient for Gaussian noise: dL/dPhi is beta r mu', summed over the outputs, minus R Phi Sigma'. The
/// Hessian is constant, so that the movement of the mode has no effect.
fn gaussian(problem: &ScaledProblem, solution: &ActivePosterior) -> EvidenceGradient {
    let (outputs, m) = (solution.outputs, solution.active.len());
    let c = ArrayView1::from(&problem.training.weights);
    let residual = problem.working(&fitted(problem, solution)).residual;
    let residual = Array2::from_shape_vec((c.len(), outputs), residual).expect("[N, K]");
    let phi = problem.design.select(&solution.active);
    let mut of_phi = phi.dot(&covariance(&solution.inverse)) * -(outputs as f64);
    for (k, beta) in solution.beta.iter().enumerate() {
        let mean = Array1::from_iter(solution.mean[k * m..(k + 1) * m].iter().map(|mean| beta * mean));
        of_phi += &outer(&residual.column(k).to_owned(), &mean);
    }
    let log_alpha = (0..m).map(|i| solution.gradient(i)).collect();
    EvidenceGradient { log_alpha, phi: of_phi * c.insert_axis(Axis(1)) }
}

/// Returns the gradient for one output whose Hessian depends on the weights, (M15). r, B and b are multiplied by the
/// sample weights.
fn single(problem: &ScaledProblem, solution: &ActivePosterior) -> EvidenceGradient {
    let derivatives = problem.working(&fitted(problem, solution));
    let times = |v: &[f64]| -> Array1<f64> { v.iter().zip(&problem.training.weights).map(|(v, c)| v * c).collect() };
    let (r, b, third) = (times(&derivatives.residual), times(&derivatives.curvature), times(&derivatives.third));
    let phi = problem.design.select(&solution.active);
    let sigma = covariance(&solution.inverse);
    let phi_sigma = phi.dot(&sigma);
    let h: Array1<f64> = (&phi_sigma * &phi).sum_axis(Axis(1));
    let hb = &h * &third;
    let u = sigma.dot(&phi.t().dot(&hb));
    let mean = Array1::from_vec(solution.mean.clone());
    let log_alpha = (0..mean.len()).map(|i| solution.gradient(i) + 0.5 * solution.a[i] * mean[i] * u[i]).collect();
    let factor = &r - &(&hb * 0.5) + &(&b * &phi.dot(&u) * 0.5);
    let of_phi = outer(&factor, &mean) - &phi_sigma * &b.view().insert_axis(Axis(1)) - outer(&r, &u) * 0.5;
    EvidenceGradient { log_alpha, phi: of_phi }
}

/// Returns the gradient for several classes, (M30). `lower` is the factor of H, `[R M, R M]`, for R contrasts of the
/// classes.
///
/// Let S_rs be the blocks of Sigma between contrasts, h^kl = phi'S_kl phi between classes, and v_k = h^kk - 2 sum_l
/// h^kl y_l. Then c = B v and u = Sigma Phi'c.
fn several(problem: &ScaledProblem, solution: &ActivePosterior, lower: ArrayView2<f64>) -> EvidenceGradient {
    let (outputs, m) = (solution.outputs, solution.active.len());
    let (contrasts, weights) = (solution.contrasts(), &problem.training.weights);
    let classes = contrasts.n_classes();
    let f = fitted(problem, solution);
    let phi = problem.design.select(&solution.active);
    let n = phi.nrows();
    let rows = ClassRows::new(&contrasts, &problem.training.targets, f.as_slice().expect("f is contiguous"));
    let (residual, y) = (rows.residual(&contrasts), rows.y);
    let r = Array2::from_shape_fn((n, outputs), |(n, k)| weights[n] * residual[n * outputs + k]);
    let mut half = Array2::eye(outputs * m);
    linalg::solve_lower(lower, half.view_mut());
    let sigma = covariance(&half);
    let block = |r: usize, s: usize| sigma.slice(s![r * m..(r + 1) * m, s * m..(s + 1) * m]);
    // The products Phi S_rs are computed twice: here for h^rs of all rows, and below for the gradient in Phi.
    let mut h = vec![Array2::zeros((outputs, outputs)); n];
    for r in 0..outputs {
        for s in 0..=r {
            let products = &linalg::times(phi.view(), block(r, s)) * &phi;
            for (h, sum) in h.iter_mut().zip(products.sum_axis(Axis(1))) {
                (h[[r, s]], h[[s, r]]) = (sum, sum);
            }
        }
    }
    let mut c = Array2::zeros((n, outputs));
    for i in 0..n {
        let own = y.row(i);
        let between = contrasts.between_classes(h[i].view());
        let v: Vec<f64> =
            (0..classes).map(|k| between[[k, k]] - 2.0 * (0..classes).map(|l| between[[k, l]] * own[l]).sum::<f64>()).collect();
        let mean = v.iter().zip(own).map(|(v, y)| v * y).sum::<f64>();
        let moved: Vec<f64> = v.iter().zip(own).map(|(v, y)| weights[i] * y * (v - mean)).collect();
        contrasts.contrasts(&moved, c.row_mut(i).as_slice_mut().expect("rows are contiguous"));
    }
    let w = ArrayView2::from_shape((outputs, m), &solution.mean).expect("[R, M]");
    let phi_c: Array1<f64> = c.t().dot(&phi).iter().copied().collect();
    let u = sigma.dot(&phi_c).into_shape_with_order((outputs, m)).expect("[R, M]");
    let log_alpha = (0..m)
        .map(|i| solution.gradient(i) + 0.5 * solution.a[i] * (0..outputs).map(|r| w[[r, i]] * u[[r, i]]).sum::<f64>())
        .collect();
    // B of row n between contrasts r and s, times the sample weight.
    let curvature = |n: usize, r: usize, s: usize| -> f64 {
        let mean = |r: usize| (0..classes).map(|k| y[[n, k]] * contrasts.at(k, r)).sum::<f64>();
        let both = (0..classes).map(|k| y[[n, k]] * contrasts.at(k, r) * contrasts.at(k, s)).sum::<f64>();
        weights[n] * (both - mean(r) * mean(s))
    };
    let phi_u = phi.dot(&u.t());
    let mut factor = &r - &(&c * 0.5);
    let mut of_phi = Array2::zeros((n, m));
    for s in 0..outputs {
        // The blocks of Sigma between contrast s and all others need one product each.
        for t in 0..outputs {
            let b: Array1<f64> = (0..n).map(|n| curvature(n, s, t)).collect();
            factor.column_mut(s).scaled_add(0.5, &(&b * &phi_u.column(t)));
            of_phi -= &(&linalg::times(phi.view(), block(t, s)) * &b.insert_axis(Axis(1)));
        }
    }
    of_phi += &linalg::times(factor.view(), w);
    of_phi.scaled_add(-0.5, &linalg::times(r.view(), u.view()));
    EvidenceGradient { log_alpha, phi: of_phi }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::kernel::Rbf;
    use crate::likelihood::{Bernoulli, Gaussian, Likelihood, Softmax};
    use crate::rvm::settings::dictionary::{Centres, Dictionary, DictionaryRule, Landmarks};
    use crate::statistics::Statistics;

    /// Results of one way of computing at given precisions, for columns of unit norm, by the user's rows.
    struct Judged {
        log_evidence: f64,
        s: Vec<f64>,
        q: Vec<f64>,
        /// phi'B phi of each column, and the norm |r| of the gradient r of the log-likelihoods.
        square: Vec<f64>,
        residual: Option<f64>,
    }

    fn judged(solver: &EvidenceSolver, at: &Hyperparameters) -> Judged {
        let problem = solver.problem;
        let (active, alpha, beta) = problem.inner(at).unwrap();
        let noise: Vec<NoisePrecision> = beta.iter().map(|beta| NoisePrecision::Fixed(*beta)).collect();
        let a: Vec<f64> = alpha.iter().map(|x| x / beta[0]).collect();
        let solution = solver.solve(&active, &a, &noise, NoiseChoice::Precision(&beta), None).unwrap();
        let form = solver.quadratic(&solution);
        let factor = ActiveFactor::new(form.clone(), &solution, &noise, SparsityPrior::default());
        let columns: Vec<usize> = columns(problem).into_iter().map(|c| c.expect("every row counts")).collect();
        let residual = || {
            let r = problem.working(&fitted(problem, &solution)).residual;
            let weights = problem.training.weights.iter().flat_map(|c| std::iter::repeat_n(c, solution.outputs));
            r.iter().zip(weights).map(|(r, c)| c * r * r).sum::<f64>().sqrt()
        };
        Judged {
            log_evidence: problem.log_evidence_out(solver.log_evidence(&solution)),
            s: columns.iter().map(|j| factor.s[*j]).collect(),
            q: columns.iter().map(|j| factor.q(*j)).collect(),
            square: columns.iter().map(|j| form.diag[*j]).collect(),
            residual: (!problem.training.weights.is_empty()).then(residual),
        }
    }

    /// Compares the evidence to 1e-9, S of every candidate to 1e-9 of phi'B phi, and Q to 1e-9 of |phi| |r|.
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

    /// The evidence, and S and Q of every candidate, do not depend on whether columns are stored, recomputed or given.
    #[test]
    fn regimes_agree_at_given_precisions() {
        // Phi of the former is small and may be stored beside G. Some of its rows share their inputs, so that G is
        // smaller.
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
            // Equal rows of the same class would be merged.
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
                // Four times the size of G, and Phi: this limit is just enough.
                let (rows, columns) = (n as u64, (n - shared + 1) as u64);
                let (gram, phi) = (32 * columns * columns, 32 * rows * columns);
                let (ample, scarce) = (1 << 31, 20_000_000);
                // For a constant Hessian, G and Phi are stored.
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
                    let training = TrainingSet::new(&rvm, x.view(), &targets, &Interrupt::default()).unwrap();
                    let (problem, sums) = ScaledProblem::new(&training, training.dictionary()).unwrap();
                    let name = format!("{n} rows, {name}, {likelihood:?}, known noise {known}");
                    assert_eq!(sums.is_some(), keeps_gram && constant, "{name}: G");
                    let keeps_phi = if constant { keeps_phi } else { phi <= rvm.memory_limit.unwrap() };
                    assert_eq!(problem.design.stored_bytes(), if keeps_phi { phi / 4 } else { 0 }, "{name}: Phi");
                    let got = judged(&EvidenceSolver::new(&problem, sums), &at);
                    agree(&name, &got, first.as_ref().unwrap_or(&got));
                    first.get_or_insert(got);
                }
                if constant && shared == 0 {
                    let mut statistics = Statistics::new(&kernel, x.view()).unwrap();
                    statistics.update(x.view(), &targets).unwrap();
                    let rvm = rvm(ample, Landmarks::Kmedoids);
                    let (training, sums) = TrainingSet::of_statistics(&rvm, &statistics, &Interrupt::default()).unwrap();
                    let (problem, sums) = ScaledProblem::of_sums(&training, training.dictionary(), sums);
                    let got = judged(&EvidenceSolver::new(&problem, sums), &at);
                    let name = format!("{n} rows, statistics, {likelihood:?}, known noise {known}");
                    agree(&name, &got, first.as_ref().expect("the others came first"));
                }
            }
        }
    }
}
