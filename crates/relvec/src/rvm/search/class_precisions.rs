//! Precisions for the weight of each class, (M63): a search that starts from a model whose classes share their
//! precisions.
//!
//! All precisions are re-estimated together, and weights that the data do not determine are pruned. Then the weights
//! with the largest predicted gains are added, whether or not their column is in the model. A gain is predicted with
//! the other classes fixed, from one factor for each of the K classes. Only changes that raise the evidence at the mode
//! are kept.

use ndarray::{Array2, Axis, concatenate, s};

use crate::error::{Error, Result, require};
use crate::likelihood::{ClassRows, Contrasts};
use crate::linalg::{self, Cholesky};
use crate::report::{Actions, Certificate, Status};
use crate::rvm::data::budget::DENSE;
use crate::rvm::data::noise::NoiseProfile;
use crate::rvm::evidence::active_posterior::{ActivePosterior, ByClass};
use crate::rvm::evidence::column_gain::{ColumnFactors, Quality};
use crate::rvm::evidence::evaluation::{ActionKind, ColumnAction, Evaluation, columns, gradient_log_kernel};
use crate::rvm::evidence::function_values::fitted;
use crate::rvm::evidence::gradient::EvidenceGradient;
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::evidence::{model_assembly, softmax_laplace};
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::rvm::search::fit_run::FitRun;
use crate::rvm::settings::scheme::Hyperparameters;

/// Largest change of a log precision in a joint update that counts as convergence.
const CONVERGED: f64 = 1e-3;
/// Well-determinedness gamma below which a change of the precision does not count.
const UNDETERMINED: f64 = 1e-6;
/// Largest number of joint updates between two additions.
const MAX_STEPS: usize = 30;
/// Well-determinedness gamma below which a weight is pruned.
const PRUNED: f64 = 1e-7;
/// Largest |d log alpha| in a joint update.
const CLIP: f64 = 2.0;
/// Relative fall of the log evidence that counts as rounding.
const ROUNDING: f64 = 1e-11;
/// Largest number of times that a joint update is halved.
const MAX_HALVINGS: usize = 4;
/// Predicted gain that an added weight must exceed, in nats for each 1,000 rows.
const LEAST_GAIN: f64 = 1e-3;
/// Numbers of weights that are added at once. If both lower the evidence, single weights are tried.
const BATCHES: [usize; 2] = [16, 4];
/// Largest number of single additions that are tried.
const MAX_SINGLES: usize = 10;
/// Share of a candidate's squared norm outside the span of the model below which it is never added, as in
/// [`ActiveFactor`](crate::rvm::evidence::active_factor::ActiveFactor).
const SPAN_FLOOR: f64 = 1e-11;
/// Noise profile of the quadratic form of one class, whose rows have their precisions in the sums.
const PROFILE: [NoiseProfile; 1] = [NoiseProfile::Fixed { beta: 1.0, copies: 1.0 }];

/// Next step of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Report the initial model.
    Initial,
    /// Update all precisions.
    Refit,
    /// Add weights.
    Grow,
    Done,
}

/// Update rules for the precisions of a posterior.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Step to the optimum of each precision with the others fixed, clipped at [`CLIP`]. Weights whose optimum is
    /// infinite are pruned.
    Exact,
    /// Step to the same optimum, clipped for weights whose optimum is infinite as well.
    Clipped,
    MacKay,
    Em,
}

/// The search for a precision of each class and basis function.
pub(crate) struct ClassSearch {
    now: ActivePosterior,
    phase: Phase,
    steps: usize,
    largest_gain: Option<f64>,
    actions: Actions,
    reason: &'static str,
}

/// Sparsity and quality factors of the weights of one class, `[P]` each, with the other classes fixed.
pub(crate) struct ClassCandidates {
    /// S of every column.
    pub s: Vec<f64>,
    /// Q of every column.
    pub q: Vec<f64>,
    /// Factors s and q of the model without the weight.
    pub outside: Vec<ColumnFactors>,
}

impl ClassSearch {
    /// Starts from a model whose classes share their precisions.
    ///
    /// # Errors
    /// Returns an error if the fit must stop, memory does not suffice, or there is no mode.
    pub fn start(solver: &EvidenceSolver, shared: &ActivePosterior) -> Result<ClassSearch> {
        let (problem, m) = (solver.problem, shared.active.len());
        let alpha = Array2::from_shape_fn((problem.training.outputs + 1, m), |(_, i)| shared.a[i]);
        let now = solve(problem, &shared.active, alpha, shared)?;
        Ok(ClassSearch {
            now,
            phase: Phase::Initial,
            steps: 0,
            largest_gain: None,
            actions: Actions::default(),
            reason: "the search ended before it converged",
        })
    }

    /// Returns the precisions and variances of each class.
    fn own(&self) -> &ByClass {
        self.now.by_class().expect("the posterior is that of classes")
    }

    /// Updates all precisions once, with the first rule that does not lower the evidence. Returns true if another
    /// update may follow.
    fn update(&mut self, solver: &EvidenceSolver) -> Result<bool> {
        let floor = self.now.log_evidence - ROUNDING * self.now.log_evidence.abs().max(1.0);
        for rule in [Rule::Exact, Rule::Clipped, Rule::MacKay, Rule::Em] {
            if let Some(next) = self.attempt(solver, &self.now.active, self.propose(rule), floor)? {
                return Ok(self.accept(next));
            }
        }
        // All rules can overshoot, since the Hessian is not constant: the step of the last one is halved.
        let mut proposed = self.propose(Rule::Em);
        for _ in 0..MAX_HALVINGS {
            proposed.zip_mut_with(&self.own().alpha, |new, now| *new = if now.is_finite() { (*new * now).sqrt() } else { *new });
            if let Some(next) = self.attempt(solver, &self.now.active, proposed.clone(), floor)? {
                return Ok(self.accept(next));
            }
        }
        Ok(false)
    }

    /// Returns the posterior at the precisions `alpha`, `[K, M]`, of K classes and M active columns, if there is one
    /// and its evidence is at least `floor`.
    fn attempt(
        &self,
        solver: &EvidenceSolver,
        active: &[usize],
        alpha: Array2<f64>,
        floor: f64,
    ) -> Result<Option<ActivePosterior>> {
        match solve(solver.problem, active, alpha, &self.now) {
            Ok(next) => Ok(Some(next).filter(|next| next.log_evidence >= floor)),
            Err(error @ Error::Interrupted) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Accepts the posterior of an update. Returns true if another update may follow.
    fn accept(&mut self, next: ActivePosterior) -> bool {
        let weights = |own: &ByClass| own.alpha.iter().filter(|a| a.is_finite()).count();
        let after = next.by_class().expect("the posterior is that of classes");
        let pruned = weights(self.own()) - weights(after);
        // The new posterior lacks columns whose weights are pruned in all classes.
        let slots: Vec<usize> = next.active.iter().filter_map(|j| self.now.active.iter().position(|k| k == j)).collect();
        let before = self.own().alpha.select(Axis(1), &slots);
        let moved = after.alpha.iter().zip(&before).zip(&after.variance).filter(|((a, _), v)| 1.0 - **a * **v >= UNDETERMINED);
        let change = moved.map(|((a, b), _)| (a / b).ln().abs()).fold(0.0, f64::max);
        self.actions.joint += 1;
        self.actions.deleted += pruned;
        self.steps += 1;
        self.now = next;
        (pruned > 0 || change >= CONVERGED) && self.steps < MAX_STEPS
    }

    /// Returns the precisions, `[K, M]`, that a rule gives; infinite for weights that it prunes.
    fn propose(&self, rule: Rule) -> Array2<f64> {
        let own = self.own();
        let m = self.now.active.len();
        Array2::from_shape_fn(own.alpha.dim(), |(k, i)| {
            let (a, v, w) = (own.alpha[[k, i]], own.variance[[k, i]], self.now.mean[k * m + i]);
            if !a.is_finite() {
                return a;
            }
            let gamma = (1.0 - a * v).clamp(0.0, 1.0);
            if gamma < PRUNED {
                return if rule == Rule::Em { a } else { f64::INFINITY };
            }
            let surplus = w * w - gamma * v;
            let best = if surplus > 0.0 { gamma * gamma / surplus } else { f64::INFINITY };
            let clipped = |target: f64| a * (target / a).ln().clamp(-CLIP, CLIP).exp();
            match rule {
                Rule::Exact if !best.is_finite() => best,
                Rule::Exact | Rule::Clipped => clipped(best),
                Rule::MacKay => clipped(gamma / (w * w).max(f64::MIN_POSITIVE)),
                Rule::Em => 1.0 / (w * w + v),
            }
        })
    }

    /// Adds the weights with the largest predicted gains, or ends the search if none raises the evidence.
    fn grow(&mut self, solver: &EvidenceSolver) -> Result<()> {
        let problem = solver.problem;
        let least = LEAST_GAIN * (problem.training.count / 1000.0).max(1.0);
        let mut additions = Vec::new();
        for (k, class) in candidates(problem, &self.now)?.iter().enumerate() {
            for (j, candidate) in class.outside.iter().enumerate() {
                if self.contains(k, j) {
                    continue;
                }
                let Some(a) = candidate.best(&PROFILE, 0.0) else { continue };
                additions.push((candidate.contribution(a, &PROFILE), k, j, a));
            }
        }
        additions.sort_by(|x, y| y.0.total_cmp(&x.0).then((x.2, x.1).cmp(&(y.2, y.1))));
        self.largest_gain = Some(additions.first().map_or(0.0, |best| best.0.max(0.0)));
        additions.retain(|(gain, ..)| *gain > least);
        if additions.is_empty() {
            self.reason = "no further weight of a class raises the log evidence by enough";
            self.phase = Phase::Done;
            return Ok(());
        }
        let floor = self.now.log_evidence + ROUNDING * self.now.log_evidence.abs().max(1.0);
        let batches = BATCHES.iter().filter(|size| **size <= additions.len()).map(|size| &additions[..*size]);
        let singles = additions.chunks(1).take(MAX_SINGLES);
        for some in batches.chain(singles) {
            let (active, alpha) = self.with_weights(some);
            match self.attempt(solver, &active, alpha, floor)? {
                Some(next) => {
                    self.now = next;
                    self.actions.added += some.len();
                    (self.phase, self.steps) = (Phase::Refit, 0);
                    return Ok(());
                }
                None => self.actions.undone += 1,
            }
        }
        self.reason = "the weights of classes with the largest predicted gains would lower the log evidence";
        self.phase = Phase::Done;
        Ok(())
    }

    /// Returns true if the weight of a class on a column is in the model.
    fn contains(&self, class: usize, column: usize) -> bool {
        self.now.active.iter().position(|j| *j == column).is_some_and(|i| self.own().alpha[[class, i]].is_finite())
    }

    /// Returns the columns and precisions, `[K, M]`, of the model with further weights: gain, class, column and
    /// precision of each.
    fn with_weights(&self, further: &[(f64, usize, usize, f64)]) -> (Vec<usize>, Array2<f64>) {
        let mut active = self.now.active.clone();
        for (_, _, j, _) in further {
            if !active.contains(j) {
                active.push(*j);
            }
        }
        let new = active.len() - self.now.active.len();
        let own = &self.own().alpha;
        let mut alpha = concatenate![Axis(1), own.view(), Array2::from_elem((own.nrows(), new), f64::INFINITY)];
        for (_, k, j, a) in further {
            let i = active.iter().position(|l| l == j).expect("it is listed");
            alpha[[*k, i]] = *a;
        }
        (active, alpha)
    }
}

/// Returns the posterior at precisions `alpha`, `[K, M]`, without columns whose precisions are all infinite.
fn solve(problem: &ScaledProblem, active: &[usize], alpha: Array2<f64>, warm: &ActivePosterior) -> Result<ActivePosterior> {
    let used: Vec<usize> = (0..active.len()).filter(|i| alpha.column(*i).iter().any(|a| a.is_finite())).collect();
    let active: Vec<usize> = used.iter().map(|i| active[*i]).collect();
    let weights = (active.len() * alpha.nrows()) as u64;
    problem.afford(&format!("{weights} weights of classes"), 8 * DENSE * weights * weights)?;
    problem.training.interrupt.check()?;
    softmax_laplace::mode_by_class(problem, &active, alpha.select(Axis(1), &used), warm)
}

/// Returns the sparsity and quality factors of the weights of each class, with the other classes fixed.
///
/// # Errors
/// Returns [`Error::Interrupted`] if the fit must stop, and an error if the posterior of a class cannot be factorised.
pub(crate) fn candidates(problem: &ScaledProblem, now: &ActivePosterior) -> Result<Vec<ClassCandidates>> {
    let own = now.by_class().expect("the posterior is that of classes");
    let (contrasts, weights) = (Contrasts::each(now.outputs), &problem.training.weights);
    let f = fitted(problem, now);
    let rows = ClassRows::new(&contrasts, &problem.training.targets, f.as_slice().expect("f is contiguous"));
    let (n, m) = (weights.len(), now.active.len());
    let residual = Array2::from_shape_vec((n, now.outputs), rows.residual(&contrasts)).expect("[N, K]");
    let phi = problem.design.select(&now.active);
    let of_class = |k: usize| {
        // 1 - y is the sum of the other probabilities, which is accurate for y near 1.
        let others = |n: usize| (0..now.outputs).filter(|l| *l != k).map(|l| rows.y[[n, l]]).sum::<f64>();
        let b: Vec<f64> = (0..n).map(|n| weights[n] * rows.y[[n, k]] * others(n)).collect();
        let present: Vec<usize> = (0..m).filter(|i| own.alpha[[k, *i]].is_finite()).collect();
        let mut left = Array2::zeros((n, present.len() + 1));
        left.slice_mut(s![.., ..present.len()]).assign(&phi.select(Axis(1), &present));
        for (n, mut row) in left.outer_iter_mut().enumerate() {
            row *= b[n];
            row[present.len()] = weights[n] * residual[[n, k]];
        }
        let (diag, mut sums) = problem.design.products(&b, left.view());
        problem.training.interrupt.check()?;
        let q = sums.row(present.len()).to_vec();
        let columns: Vec<usize> = present.iter().map(|i| now.active[*i]).collect();
        let gram = sums.slice(s![..present.len(), ..]).select(Axis(1), &columns);
        let alpha: Vec<f64> = present.iter().map(|i| own.alpha[[k, *i]]).collect();
        let factor = Cholesky::of_sum(&gram, &alpha)?;
        let mut inside = sums.slice_mut(s![..present.len(), ..]);
        linalg::solve_lower(factor.lower.view(), inside.view_mut());
        let s: Vec<f64> = (0..diag.len()).map(|j| diag[j] - inside.column(j).iter().map(|v| v * v).sum::<f64>()).collect();
        let candidate = |s: f64, q: f64| ColumnFactors { s, seen: std::iter::once(Quality { q, energy: 0.0 }).collect() };
        let mut outside: Vec<ColumnFactors> =
            (0..diag.len()).map(|j| candidate(if s[j] > SPAN_FLOOR * diag[j] { s[j] } else { 0.0 }, q[j])).collect();
        let inverse = factor.inverse();
        for (p, j) in columns.iter().enumerate() {
            let v = inverse.column(p).iter().map(|v| v * v).sum::<f64>();
            outside[*j] = candidate((1.0 - alpha[p] * v).clamp(0.0, 1.0) / v, now.mean[k * m + present[p]] / v);
        }
        Ok(ClassCandidates { s, q, outside })
    };
    (0..now.outputs).map(of_class).collect()
}

/// Returns the evaluation of a model at the precisions of each class in `at`. `shared` is its posterior at precisions
/// that the classes share.
///
/// # Errors
/// Returns an error if the precisions do not fit the model, if the fit must stop, or if there is no mode.
pub(crate) fn evaluate(solver: &EvidenceSolver, shared: &ActivePosterior, at: &Hyperparameters) -> Result<Evaluation> {
    let (problem, m) = (solver.problem, shared.active.len());
    let classes = problem.training.outputs + 1;
    let given = at.class_alpha.len() == m && at.class_alpha.iter().all(|row| row.len() == classes);
    let positive = at.class_alpha.iter().flatten().flatten().all(|a| a.is_finite() && *a > 0.0);
    let found = || match at.class_alpha.len() {
        1 => "1 row".to_string(),
        rows => format!("{rows} rows"),
    };
    let expected = format!(
        "no rows, or {m} rows (the bias first, if the model has one) of {classes} entries, one for each class: a positive \
         number, or none for a weight that is not in the model"
    );
    require(at.class_alpha.is_empty() || (given && positive), || "class_alpha".into(), found(), &expected)?;
    let alpha = Array2::from_shape_fn((classes, m), |(k, i)| match at.class_alpha.get(i) {
        Some(row) => row[k].map_or(f64::INFINITY, |a| a * problem.alpha_in(shared.active[i])),
        None => shared.a[i],
    });
    let solution = solve(problem, &shared.active, alpha, shared)?;
    let own = solution.by_class().expect("the posterior is that of classes");
    let active = &solution.active;
    let norm = |j: usize| problem.design.norms()[j];
    let weights = || (0..active.len()).flat_map(|i| (0..classes).map(move |k| (k, i)));
    let present = |(k, i): (usize, usize)| own.alpha[[k, i]].is_finite();
    let EvidenceGradient { log_alpha, phi } = EvidenceGradient::of(problem, &solution);
    let by_column = columns(problem);
    let of_classes = candidates(problem, &solution)?;
    let spread = |f: &dyn Fn(&ClassCandidates, usize) -> f64| -> Vec<f64> {
        let entry = |c: &Option<usize>| of_classes.iter().map(|class| c.map_or(f64::NAN, |j| f(class, j))).collect::<Vec<_>>();
        by_column.iter().flat_map(entry).collect()
    };
    let action = |k: usize, j: usize| {
        let candidate = &of_classes[k].outside[j];
        let now = active.iter().position(|l| *l == j).map(|i| own.alpha[[k, i]]).filter(|a| a.is_finite());
        let has = now.map_or(0.0, |a| candidate.contribution(a, &PROFILE));
        let best = candidate.best(&PROFILE, 0.0);
        let alpha = best.map(|a| a / problem.alpha_in(j));
        let gain = best.map_or(0.0, |a| candidate.contribution(a, &PROFILE)) - has;
        match (now, best) {
            (None, Some(_)) => ColumnAction { kind: ActionKind::Add, gain, alpha },
            (Some(_), Some(_)) => ColumnAction { kind: ActionKind::Reestimate, gain, alpha },
            (Some(_), None) => ColumnAction { kind: ActionKind::Delete, gain, alpha },
            (None, None) => ColumnAction { kind: ActionKind::None, gain: 0.0, alpha },
        }
    };
    let nothing = ColumnAction { kind: ActionKind::None, gain: 0.0, alpha: None };
    let entry = |c: &Option<usize>| (0..classes).map(|k| c.map_or(nothing, |j| action(k, j))).collect::<Vec<_>>();
    let actions = by_column.iter().flat_map(entry).collect();
    let log_evidence = problem.log_evidence_out(solution.log_evidence);
    Ok(Evaluation {
        model: model_assembly::model(solver, &solution, log_evidence, Status::Stopped, 0)?,
        log_evidence,
        weights: model_assembly::weights(problem, &solution).iter().copied().collect(),
        variances: weights().map(|(k, i)| own.variance[[k, i]] / norm(active[i]).powi(2)).collect(),
        well_determined: weights()
            .map(|(k, i)| if present((k, i)) { (1.0 - own.alpha[[k, i]] * own.variance[[k, i]]).clamp(0.0, 1.0) } else { 0.0 })
            .collect(),
        residual_sum: None,
        gradient_log_alpha_fixed: weights().map(|(k, i)| solution.class_gradient(own, k, i)).collect(),
        gradient_log_alpha: log_alpha,
        gradient_log_noise: None,
        gradient_log_kernel: gradient_log_kernel(problem, active, phi),
        sparsity_in_model: spread(&|class, j| class.s[j] * norm(j).powi(2)),
        quality_in_model: spread(&|class, j| class.q[j] * norm(j)),
        sparsity: spread(&|class, j| class.outside[j].s * norm(j).powi(2)),
        quality: spread(&|class, j| class.outside[j].seen[0].q * norm(j)),
        actions,
    })
}

impl<'p> FitRun<'p> for ClassSearch {
    fn step(&mut self, solver: &EvidenceSolver<'p>) -> Result<Option<Status>> {
        match self.phase {
            Phase::Initial => self.phase = Phase::Refit,
            Phase::Refit => {
                if !self.update(solver)? {
                    (self.phase, self.steps) = (Phase::Grow, 0);
                }
            }
            Phase::Grow => self.grow(solver)?,
            Phase::Done => {}
        }
        Ok((self.phase == Phase::Done).then_some(Status::Converged))
    }

    fn best(&self) -> &ActivePosterior {
        &self.now
    }

    fn objective(&self, solver: &EvidenceSolver<'p>) -> f64 {
        solver.problem.log_evidence_out(self.now.log_evidence)
    }

    fn certificate(&self, _work: &EvidenceSolver<'p>, _late: bool) -> Certificate {
        let own = self.own();
        let gradient = |(k, i): (usize, usize)| self.now.class_gradient(own, k, i).abs();
        let largest_gradient = own.alpha.indexed_iter().map(|(at, _)| gradient(at)).fold(0.0, f64::max);
        Certificate { largest_gain: self.largest_gain, largest_gradient, reason: self.reason.into() }
    }

    fn actions(&self) -> Actions {
        self.actions.clone()
    }
}
