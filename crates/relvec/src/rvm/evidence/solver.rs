//! The evidence solver: posterior and evidence at given precisions, in closed form if the Hessian is constant, and by
//! Laplace's approximation otherwise.

use std::rc::Rc;

use ndarray::{Array2, ArrayView1};

use crate::error::Result;
use crate::linalg::Cholesky;
use crate::quadratic::Quadratic;
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::column_gain::SparsityPrior;
use crate::rvm::evidence::laplace;
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::sums::Sums;

/// A scaled problem with its quadratic form, if the Hessian is constant.
#[derive(Debug)]
pub(crate) struct EvidenceSolver<'p> {
    pub problem: &'p ScaledProblem<'p>,
    /// Penalty for each kernel of a model.
    pub prior: SparsityPrior,
    quadratic: Option<Rc<Quadratic<'p>>>,
}

impl<'p> EvidenceSolver<'p> {
    /// Returns the solver of a scaled problem. `sums` are G, f and t't of its columns, if they are known.
    pub fn new(problem: &'p ScaledProblem<'p>, sums: Option<Sums>) -> EvidenceSolver<'p> {
        let quadratic = problem.constant_curvature().then(|| Rc::new(problem.constant_quadratic(sums)));
        let prior = SparsityPrior { nats: problem.training.rvm.nats(), free: usize::from(problem.has_bias) };
        EvidenceSolver { problem, prior, quadratic }
    }

    /// Returns the solver of a quadratic form that replaces the likelihood, without a penalty per kernel.
    pub fn of(problem: &'p ScaledProblem<'p>, quadratic: Quadratic<'p>) -> EvidenceSolver<'p> {
        EvidenceSolver { problem, prior: SparsityPrior::default(), quadratic: Some(Rc::new(quadratic)) }
    }

    /// Returns this solver with another penalty per kernel.
    pub fn with_prior(&self, prior: SparsityPrior) -> EvidenceSolver<'p> {
        EvidenceSolver { problem: self.problem, prior, quadratic: self.quadratic.clone() }
    }

    /// Returns the quadratic form. The Hessian must be constant.
    pub fn form(&self) -> Rc<Quadratic<'p>> {
        self.quadratic.clone().expect("the Hessian is constant, or frozen")
    }

    /// Returns true if the Hessian depends on the weights, so that there is no quadratic form for all of them.
    pub fn hessian_varies(&self) -> bool {
        self.quadratic.is_none()
    }

    /// Returns true if a quadratic form replaces a likelihood whose Hessian is not constant.
    pub fn is_stand_in(&self) -> bool {
        self.quadratic.is_some() && !self.problem.constant_curvature()
    }

    /// Returns posterior and log evidence of the columns `active`, `[M]`, at relative precisions `a`, `[M]`. The log
    /// evidence contains the log prior of the kernels. A search for the mode starts from the posterior `warm`.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`](crate::error::Error::Interrupted) if the fit must stop, and
    /// [`Error::Singular`](crate::error::Error::Singular) if a matrix cannot be factorised.
    pub fn solve(
        &self,
        active: &[usize],
        a: &[f64],
        noise: &[NoisePrecision],
        at: NoiseChoice,
        warm: Option<&ActivePosterior>,
    ) -> Result<ActivePosterior> {
        self.problem.training.interrupt.check()?;
        let mut solution = match &self.quadratic {
            Some(quadratic) => ActivePosterior::of(quadratic, active, a, noise, at, warm),
            None if self.problem.training.outputs > 1 => laplace::mode_of_classes(self.problem, active, a, warm),
            None => laplace::mode(self.problem, active, a, warm),
        }?;
        solution.log_evidence += self.prior.log(active);
        Ok(solution)
    }

    /// Returns the posterior with its columns in another order, the slots of `solution` in `order`.
    ///
    /// # Errors
    /// Returns the errors of [`EvidenceSolver::solve`].
    pub fn reordered(&self, solution: &ActivePosterior, order: &[usize], noise: &[NoisePrecision]) -> Result<ActivePosterior> {
        if let Some(joint) = &solution.joint {
            return laplace::reordered_classes(solution, joint, order);
        }
        let active: Vec<usize> = order.iter().map(|i| solution.active[*i]).collect();
        let a: Vec<f64> = order.iter().map(|i| solution.a[*i]).collect();
        if self.quadratic.is_none()
            && solution.outputs == 1
            && let Some(gram) = solution.gram_of(&active)
        {
            // Everything is known at the mode, so that no pass over the rows is needed.
            let (mean, factor) = (order.iter().map(|i| solution.mean[*i]).collect(), Cholesky::of_sum(&gram, &a)?);
            return Ok(ActivePosterior::at_mode(&active, &a, mean, factor, solution.log_evidence, Some(gram), None));
        }
        self.solve(&active, &a, noise, NoiseChoice::Precision(&solution.beta), Some(solution))
    }

    /// Returns the log evidence of a posterior (plus the log hyperprior of the noise), without the log prior of the
    /// kernels.
    pub fn log_evidence(&self, solution: &ActivePosterior) -> f64 {
        solution.log_evidence - self.prior.log(&solution.active)
    }

    /// Returns the quadratic form over all columns that equals the log-likelihood to second order at the mode of
    /// `solution`.
    pub fn quadratic(&self, solution: &ActivePosterior) -> Rc<Quadratic<'p>> {
        self.quadratic.clone().unwrap_or_else(|| Rc::new(laplace::expand(self.problem, solution)))
    }

    /// Returns the solver of the quadratic form at the mode of `solution`, with the Hessian frozen there.
    ///
    /// It covers the active columns alone, by their slots, and needs no pass over the rows: at the mode Phi'r is A w,
    /// so that f = Phi'(B Phi w + r) is G w + A w.
    pub fn frozen(&self, solution: &ActivePosterior) -> Result<EvidenceSolver<'p>> {
        let gram = solution.gram_of(&solution.active).expect("a posterior at a mode has its Gram matrix");
        let (problem, m) = (self.problem, solution.active.len());
        let (mut f, mut tt) = (vec![], 0.0);
        for k in 0..solution.outputs {
            let w = ArrayView1::from(&solution.mean[k * m..(k + 1) * m]);
            let f_k: Vec<f64> = gram.dot(&w).iter().zip(&solution.a).zip(w).map(|((g, a), w)| g + a * w).collect();
            // Only differences of t't matter. It is so large that E stays positive.
            tt += 2.0 * f_k.iter().zip(w).map(|(f, w)| f * w).sum::<f64>().abs();
            f.push(f_k);
        }
        let sums = Sums { gram: Array2::clone(&gram), f, tt: vec![tt + problem.training.count], count: problem.training.count };
        let free = usize::from(problem.has_bias && solution.active.first() == Some(&0));
        let prior = SparsityPrior { free: free.min(self.prior.free), ..self.prior };
        Ok(EvidenceSolver::of(problem, Quadratic::stored(sums, None)).with_prior(prior))
    }
}
