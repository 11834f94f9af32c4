//! A precision of its own for the weight of each class, (M63): a search that goes on from a model whose classes share
//! theirs.
//!
//! Precisions are re-estimated all at once, and weights of which the data say nothing leave; then weights that promise
//! most are added, of columns in the model or not. What a weight promises is judged with the other classes held: K
//! factors, one of each class. Only what raises the evidence at the mode is kept.

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

/// Converged when no log precision of a weight that the data determine moves by more than this in a step; and steps
/// between two rounds of additions, at most.
const REST: f64 = 1e-3;
const UNDETERMINED: f64 = 1e-6;
const MAX_STEPS: usize = 30;
/// Weights with gamma below this are gone.
const GONE: f64 = 1e-7;
/// Largest |d log alpha| in a step; what the evidence may fall by in one: rounding.
const CLIP: f64 = 2.0;
const ROUNDING: f64 = 1e-11;
const MAX_HALVINGS: usize = 4;
/// Nats that a weight must promise, for each 1,000 rows.
const LEAST_GAIN: f64 = 1e-3;
/// Weights that are added at once; where that lowers the evidence one alone, the most promising that does not.
const BATCHES: [usize; 2] = [16, 4];
const MAX_SINGLES: usize = 10;
/// As in the factor: a candidate with a smaller share outside the span of the model is never added.
const SPAN_FLOOR: f64 = 1e-11;
/// What a class sees of a weight: its curvature is 1 in these units.
const PROFILE: [NoiseProfile; 1] = [NoiseProfile::Held { beta: 1.0, copies: 1.0 }];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    First,
    Settle,
    Grow,
    Done,
}

/// How precisions follow from a posterior.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Each at its best with the others held, weights whose best is infinite gone; clipped or not.
    Exact,
    Clipped,
    MacKay,
    Em,
}

/// The search.
pub(crate) struct ClassSearch {
    now: ActivePosterior,
    phase: Phase,
    steps: usize,
    largest_gain: Option<f64>,
    actions: Actions,
    reason: &'static str,
}

/// What the weights of one class would add, `[P]` each.
pub(crate) struct ClassCandidates {
    /// S and Q of every column, the other classes held.
    pub s: Vec<f64>,
    pub q: Vec<f64>,
    /// Sparsity and quality factors with the weight itself excluded.
    pub outside: Vec<ColumnFactors>,
}

impl ClassSearch {
    /// From a model whose classes share their precisions.
    pub fn start(solver: &EvidenceSolver, shared: &ActivePosterior) -> Result<ClassSearch> {
        let (problem, m) = (solver.problem, shared.active.len());
        let alpha = Array2::from_shape_fn((problem.training.outputs + 1, m), |(_, i)| shared.a[i]);
        let now = solve(problem, &shared.active, alpha, shared)?;
        Ok(ClassSearch {
            now,
            phase: Phase::First,
            steps: 0,
            largest_gain: None,
            actions: Actions::default(),
            reason: "ended before the search was over",
        })
    }

    fn own(&self) -> &ByClass {
        self.now.by_class().expect("the solution is one of classes")
    }

    /// One step of all precisions; whether there may be a further one.
    fn settle(&mut self, solver: &EvidenceSolver) -> Result<bool> {
        let floor = self.now.log_evidence - ROUNDING * self.now.log_evidence.abs().max(1.0);
        for rule in [Rule::Exact, Rule::Clipped, Rule::MacKay, Rule::Em] {
            if let Some(next) = self.attempt(solver, &self.now.active, self.propose(rule), floor)? {
                return Ok(self.take(next));
            }
        }
        // All overshoot, since the curvature is not constant: less of the last.
        let mut proposed = self.propose(Rule::Em);
        for _ in 0..MAX_HALVINGS {
            proposed.zip_mut_with(&self.own().alpha, |new, now| *new = if now.is_finite() { (*new * now).sqrt() } else { *new });
            if let Some(next) = self.attempt(solver, &self.now.active, proposed.clone(), floor)? {
                return Ok(self.take(next));
            }
        }
        Ok(false)
    }

    /// Returns the solution at the precisions `alpha`, `[K, M]`, of K classes and M active columns, if there is one and
    /// its evidence is at least `floor`.
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

    /// Takes the solution of a step; whether there may be a further one.
    fn take(&mut self, next: ActivePosterior) -> bool {
        let weights = |own: &ByClass| own.alpha.iter().filter(|a| a.is_finite()).count();
        let after = next.by_class().expect("the solution is one of classes");
        let gone = weights(self.own()) - weights(after);
        // Columns that no class has any more are gone from the new one.
        let slots: Vec<usize> = next.active.iter().filter_map(|j| self.now.active.iter().position(|k| k == j)).collect();
        let before = self.own().alpha.select(Axis(1), &slots);
        let moved = after.alpha.iter().zip(&before).zip(&after.variance).filter(|((a, _), v)| 1.0 - **a * **v >= UNDETERMINED);
        let change = moved.map(|((a, b), _)| (a / b).ln().abs()).fold(0.0, f64::max);
        self.actions.joint += 1;
        self.actions.deleted += gone;
        self.steps += 1;
        self.now = next;
        (gone > 0 || change >= REST) && self.steps < MAX_STEPS
    }

    /// The precisions, [K, M], that a rule asks for.
    fn propose(&self, rule: Rule) -> Array2<f64> {
        let own = self.own();
        let m = self.now.active.len();
        Array2::from_shape_fn(own.alpha.dim(), |(k, i)| {
            let (a, v, w) = (own.alpha[[k, i]], own.variance[[k, i]], self.now.mean[k * m + i]);
            if !a.is_finite() {
                return a;
            }
            let gamma = (1.0 - a * v).clamp(0.0, 1.0);
            if gamma < GONE {
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

    /// Adds the weights that promise most, or ends the search.
    fn grow(&mut self, solver: &EvidenceSolver) -> Result<()> {
        let problem = solver.problem;
        let least = LEAST_GAIN * (problem.training.count / 1000.0).max(1.0);
        let mut promising = Vec::new();
        for (k, class) in candidates(problem, &self.now)?.iter().enumerate() {
            for (j, candidate) in class.outside.iter().enumerate() {
                if self.has(k, j) {
                    continue;
                }
                let Some(a) = candidate.best(&PROFILE, 0.0) else { continue };
                promising.push((candidate.contribution(a, &PROFILE), k, j, a));
            }
        }
        promising.sort_by(|x, y| y.0.total_cmp(&x.0).then((x.2, x.1).cmp(&(y.2, y.1))));
        self.largest_gain = Some(promising.first().map_or(0.0, |best| best.0.max(0.0)));
        promising.retain(|(gain, ..)| *gain > least);
        if promising.is_empty() {
            self.reason = "no further weight of a class raises the evidence";
            self.phase = Phase::Done;
            return Ok(());
        }
        let floor = self.now.log_evidence + ROUNDING * self.now.log_evidence.abs().max(1.0);
        let batches = BATCHES.iter().filter(|size| **size <= promising.len()).map(|size| &promising[..*size]);
        let singles = promising.chunks(1).take(MAX_SINGLES);
        for some in batches.chain(singles) {
            let (active, alpha) = self.with(some);
            match self.attempt(solver, &active, alpha, floor)? {
                Some(next) => {
                    self.now = next;
                    self.actions.added += some.len();
                    (self.phase, self.steps) = (Phase::Settle, 0);
                    return Ok(());
                }
                None => self.actions.undone += 1,
            }
        }
        self.reason = "the weights of classes that promise most would lower the evidence";
        self.phase = Phase::Done;
        Ok(())
    }

    fn has(&self, class: usize, column: usize) -> bool {
        self.now.active.iter().position(|j| *j == column).is_some_and(|i| self.own().alpha[[class, i]].is_finite())
    }

    /// The model with further weights: its columns, and their precisions, [K, M].
    fn with(&self, further: &[(f64, usize, usize, f64)]) -> (Vec<usize>, Array2<f64>) {
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

/// Returns the mode at precisions `alpha`, `[K, M]`, without columns whose precisions are all infinite.
fn solve(problem: &ScaledProblem, active: &[usize], alpha: Array2<f64>, warm: &ActivePosterior) -> Result<ActivePosterior> {
    let used: Vec<usize> = (0..active.len()).filter(|i| alpha.column(*i).iter().any(|a| a.is_finite())).collect();
    let active: Vec<usize> = used.iter().map(|i| active[*i]).collect();
    let weights = (active.len() * alpha.nrows()) as u64;
    problem.afford(&format!("{weights} weights of classes"), 8 * DENSE * weights * weights)?;
    problem.training.interrupt.check()?;
    softmax_laplace::mode_by_class(problem, &active, alpha.select(Axis(1), &used), warm)
}

/// What weights of each class would add to the evidence, the other classes held.
pub(crate) fn candidates(problem: &ScaledProblem, now: &ActivePosterior) -> Result<Vec<ClassCandidates>> {
    let own = now.by_class().expect("the solution is one of classes");
    let (contrasts, weights) = (Contrasts::each(now.outputs), &problem.training.weights);
    let f = fitted(problem, now);
    let rows = ClassRows::new(&contrasts, &problem.training.targets, f.as_slice().expect("f is contiguous"));
    let (n, m) = (weights.len(), now.active.len());
    let residual = Array2::from_shape_vec((n, now.outputs), rows.residual(&contrasts)).expect("[N, K]");
    let phi = problem.design.select(&now.active);
    let of_class = |k: usize| {
        // y (1 - y), the second factor the sum of the others.
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

/// Everything about a model at given precisions, from the solution at those that the classes share.
pub(crate) fn evaluate(solver: &EvidenceSolver, shared: &ActivePosterior, at: &Hyperparameters) -> Result<Evaluation> {
    let (problem, m) = (solver.problem, shared.active.len());
    let classes = problem.training.outputs + 1;
    let given = at.class_alpha.len() == m && at.class_alpha.iter().all(|row| row.len() == classes);
    let positive = at.class_alpha.iter().flatten().flatten().all(|a| a.is_finite() && *a > 0.0);
    let found = || format!("{} rows", at.class_alpha.len());
    let expected =
        format!("none, or {m} rows (the bias, if it is in, first) of {classes} positive numbers (or none), one for each class");
    require(at.class_alpha.is_empty() || (given && positive), || "class_alpha".into(), found(), &expected)?;
    let alpha = Array2::from_shape_fn((classes, m), |(k, i)| match at.class_alpha.get(i) {
        Some(row) => row[k].map_or(f64::INFINITY, |a| a * problem.alpha_in(shared.active[i])),
        None => shared.a[i],
    });
    let solution = solve(problem, &shared.active, alpha, shared)?;
    let own = solution.by_class().expect("the solution is one of classes");
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
            Phase::First => self.phase = Phase::Settle,
            Phase::Settle => {
                if !self.settle(solver)? {
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
        let slope = |(k, i): (usize, usize)| self.now.class_gradient(own, k, i).abs();
        let largest_gradient = own.alpha.indexed_iter().map(|(at, _)| slope(at)).fold(0.0, f64::max);
        Certificate { largest_gain: self.largest_gain, largest_gradient, reason: self.reason.into() }
    }

    fn actions(&self) -> Actions {
        self.actions.clone()
    }
}
