//! The one question that the schemes need not ask: is the curvature constant?

use std::rc::Rc;

use ndarray::{Array2, ArrayView1};

use crate::error::Result;
use crate::linalg::Cholesky;
use crate::quadratic::Quadratic;
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::column_gain::SparsityPrior;
use crate::rvm::evidence::{laplace, softmax_laplace};
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::sums::Sums;

/// A problem with its quadratic form, if one serves the whole fit.
#[derive(Debug)]
pub(crate) struct EvidenceSolver<'p> {
    pub problem: &'p ScaledProblem<'p>,
    /// What each kernel in the model costs; nothing where a form stands in for the likelihood, of a given model.
    pub prior: SparsityPrior,
    quadratic: Option<Rc<Quadratic<'p>>>,
}

impl<'p> EvidenceSolver<'p> {
    pub fn new(problem: &'p ScaledProblem<'p>, sums: Option<Sums>) -> EvidenceSolver<'p> {
        let quadratic = problem.constant_curvature().then(|| Rc::new(problem.constant_quadratic(sums)));
        let prior = SparsityPrior { nats: problem.training.rvm.nats(), free: usize::from(problem.has_bias) };
        EvidenceSolver { problem, prior, quadratic }
    }

    /// A quadratic form in place of the likelihood.
    pub fn of(problem: &'p ScaledProblem<'p>, quadratic: Quadratic<'p>) -> EvidenceSolver<'p> {
        EvidenceSolver { problem, prior: SparsityPrior::FLAT, quadratic: Some(Rc::new(quadratic)) }
    }

    /// The quadratic form at a solution in place of the likelihood.
    #[cfg(test)]
    pub fn held(&self, quadratic: Rc<Quadratic<'p>>) -> EvidenceSolver<'p> {
        EvidenceSolver { problem: self.problem, prior: self.prior, quadratic: Some(quadratic) }
    }

    /// A workspace for this problem with another prior of the kernels.
    pub fn with_prior(&self, prior: SparsityPrior) -> EvidenceSolver<'p> {
        EvidenceSolver { problem: self.problem, prior, quadratic: self.quadratic.clone() }
    }

    /// The quadratic form that serves all weights.
    pub fn form(&self) -> Rc<Quadratic<'p>> {
        self.quadratic.clone().expect("the curvature is constant, or held")
    }

    /// Whether no quadratic form serves all weights.
    pub fn curvature_moves(&self) -> bool {
        self.quadratic.is_none()
    }

    /// Whether a quadratic form stands in for a likelihood that is none.
    pub fn is_stand_in(&self) -> bool {
        self.quadratic.is_some() && !self.problem.constant_curvature()
    }

    /// Posterior and true log evidence (plus the log prior of the kernels) at given relative precisions; `warm` is near
    /// the answer.
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
            None if self.problem.training.outputs > 1 => softmax_laplace::mode(self.problem, active, a, warm),
            None => laplace::mode(self.problem, active, a, warm),
        }?;
        solution.log_evidence += self.prior.log(active);
        Ok(solution)
    }

    /// The model with its columns in the order of `order`.
    pub fn reordered(&self, solution: &ActivePosterior, order: &[usize], noise: &[NoisePrecision]) -> Result<ActivePosterior> {
        if let Some(joint) = &solution.joint {
            return softmax_laplace::reordered(solution, joint, order);
        }
        let active: Vec<usize> = order.iter().map(|i| solution.active[*i]).collect();
        let a: Vec<f64> = order.iter().map(|i| solution.a[*i]).collect();
        if self.quadratic.is_none()
            && solution.outputs == 1
            && let Some(gram) = solution.gram_of(&active)
        {
            // All that is known at the mode: no look at the rows.
            let (mean, factor) = (order.iter().map(|i| solution.mean[*i]).collect(), Cholesky::of_sum(&gram, &a)?);
            return Ok(ActivePosterior::at_mode(&active, &a, mean, factor, solution.log_evidence, Some(gram), None));
        }
        self.solve(&active, &a, noise, NoiseChoice::Precision(&solution.beta), Some(solution))
    }

    /// Log evidence of a solution (plus the log hyperprior of the noise), without the log prior of the kernels.
    pub fn log_evidence(&self, solution: &ActivePosterior) -> f64 {
        solution.log_evidence - self.prior.log(&solution.active)
    }

    /// The quadratic form over all columns that stands for the likelihood at a solution.
    ///
    /// # Errors
    /// Those of [`ScaledProblem::for_each_part`].
    pub fn quadratic(&self, solution: &ActivePosterior) -> Result<Rc<Quadratic<'p>>> {
        Ok(match &self.quadratic {
            Some(quadratic) => quadratic.clone(),
            None => Rc::new(laplace::expand(self.problem, solution)?),
        })
    }

    /// The likelihood near the mode of `solution` as Gaussian targets, over the active columns alone (named by their place) and
    /// without another look at the rows: B held, f = Phi'(B Phi w + residual), and the residual's part is A w there.
    pub fn frozen(&self, solution: &ActivePosterior) -> Result<EvidenceSolver<'p>> {
        let gram = solution.gram_of(&solution.active).expect("a mode keeps its curvature");
        let (problem, m) = (self.problem, solution.active.len());
        let (mut f, mut tt) = (vec![], 0.0);
        for k in 0..solution.outputs {
            let w = ArrayView1::from(&solution.mean[k * m..(k + 1) * m]);
            let pull: Vec<f64> = gram.dot(&w).iter().zip(&solution.a).zip(w).map(|((g, a), w)| g + a * w).collect();
            // Only differences matter: large enough that what is left of it is positive.
            tt += 2.0 * pull.iter().zip(w).map(|(f, w)| f * w).sum::<f64>().abs();
            f.push(pull);
        }
        let sums = Sums { gram: Array2::clone(&gram), f, tt: vec![tt + problem.training.count], count: problem.training.count };
        let free = usize::from(problem.has_bias && solution.active.first() == Some(&0));
        let prior = SparsityPrior { free: free.min(self.prior.free), ..self.prior };
        Ok(EvidenceSolver::of(problem, Quadratic::stored(sums, None)).with_prior(prior))
    }
}
