//! The one question that the schemes need not ask: is the curvature constant?

use std::rc::Rc;

use super::gain::Noise;
use super::laplace;
use super::multinomial;
use super::problem::Problem;
use super::solution::{At, Solution};
use crate::error::Result;
use crate::quadratic::Quadratic;
use crate::sums::Sums;

/// A problem with its quadratic form, if one serves the whole fit.
#[derive(Debug)]
pub(crate) struct Workspace<'p> {
    pub problem: &'p Problem<'p>,
    quadratic: Option<Rc<Quadratic<'p>>>,
}

impl<'p> Workspace<'p> {
    pub fn new(problem: &'p Problem<'p>, sums: Option<Sums>) -> Workspace<'p> {
        let quadratic = problem.constant_curvature().then(|| Rc::new(problem.constant_quadratic(sums)));
        Workspace { problem, quadratic }
    }

    /// A quadratic form in place of the likelihood.
    pub fn of(problem: &'p Problem<'p>, quadratic: Quadratic<'p>) -> Workspace<'p> {
        Workspace { problem, quadratic: Some(Rc::new(quadratic)) }
    }

    /// Another target for the quadratic form, which nobody else holds.
    pub fn set_target(&mut self, f: Vec<f64>, tt: f64) {
        let quadratic = self.quadratic.as_mut().and_then(Rc::get_mut);
        quadratic.expect("the form is this workspace's own").set_target(f, tt);
    }

    /// Whether a quadratic form stands in for a likelihood that is none.
    pub fn is_stand_in(&self) -> bool {
        self.quadratic.is_some() && !self.problem.constant_curvature()
    }

    /// Posterior and true log evidence at given relative precisions; `warm` is near the answer.
    pub fn solve(&self, active: &[usize], a: &[f64], noise: &Noise, at: At, warm: Option<&Solution>) -> Result<Solution> {
        self.problem.table.interrupt.check()?;
        match &self.quadratic {
            Some(quadratic) => Solution::of(quadratic, active, a, noise, at, warm),
            None if self.problem.table.outputs > 1 => multinomial::mode(self.problem, active, a, warm),
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
