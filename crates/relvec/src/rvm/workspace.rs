//! The one question that the schemes need not ask: is the curvature constant?

use std::rc::Rc;

use super::gain::Noise;
use super::laplace;
use super::problem::Problem;
use super::solution::{At, Solution};
use crate::error::Result;
use crate::quadratic::Quadratic;

/// A problem with its quadratic form, if one serves the whole fit.
#[derive(Debug)]
pub(crate) struct Workspace<'p> {
    pub problem: &'p Problem<'p>,
    quadratic: Option<Rc<Quadratic<'p>>>,
}

impl<'p> Workspace<'p> {
    pub fn new(problem: &'p Problem<'p>) -> Workspace<'p> {
        let quadratic = problem.constant_curvature().then(|| Rc::new(problem.constant_quadratic()));
        Workspace { problem, quadratic }
    }

    /// Posterior and true log evidence at given relative precisions; `warm` is near the answer.
    pub fn solve(&self, active: &[usize], a: &[f64], noise: &Noise, at: At, warm: Option<&Solution>) -> Result<Solution> {
        self.problem.interrupt.check()?;
        match &self.quadratic {
            Some(quadratic) => Solution::of(quadratic, active, a, noise, at, warm),
            None => laplace::mode(self.problem, active, a, warm),
        }
    }

    /// The quadratic form over all columns that stands for the likelihood at a solution.
    pub fn quadratic(&self, solution: &Solution) -> Rc<Quadratic<'p>> {
        match &self.quadratic {
            Some(quadratic) => quadratic.clone(),
            None => Rc::new(laplace::expand(self.problem, solution)),
        }
    }
}
