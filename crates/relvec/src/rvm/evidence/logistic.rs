//! The logistic likelihood under the quadratic lower bound of Jaakkola and Jordan, (M27).

use ndarray::{ArrayView1, Axis};

use crate::error::Result;
use crate::linalg;
use crate::quadratic::Quadratic;
use crate::rvm::evidence::solution::Solution;
use crate::rvm::evidence::workspace::Workspace;
use crate::rvm::gram::problem::Problem;
use crate::sums::Sums;

/// Below this the quotient tanh(xi / 2) / (4 xi) is taken from its series.
const SMALL: f64 = 1e-3;

/// The bound at one xi per row.
pub(crate) struct Logistic<'p> {
    /// The quadratic form that the bound makes of the likelihood.
    pub work: Workspace<'p>,
    /// `[N]`.
    xi: Vec<f64>,
}

impl<'p> Logistic<'p> {
    /// At xi = 1 for every row.
    pub fn new(problem: &'p Problem<'p>) -> Logistic<'p> {
        Logistic::at(problem, vec![1.0; problem.design.n_rows()])
    }

    fn at(problem: &'p Problem<'p>, xi: Vec<f64>) -> Logistic<'p> {
        let table = problem.table;
        // B = 2 lambda and B t = z / 2, so that both sums of the form are those of weighted targets.
        let curvature: Vec<f64> = xi.iter().map(|x| 2.0 * lambda(*x)).collect();
        let targets: Vec<f64> = table.targets.iter().zip(&curvature).map(|(t, b)| (t - 0.5) / b).collect();
        let weights: Vec<f64> = table.weights.iter().zip(&curvature).map(|(c, b)| c * b).collect();
        let mut sums = Sums::new(problem.design.n_columns(), 1);
        problem.design.for_each_block(|rows, phi| sums.accumulate(phi, &targets[rows.clone()], &weights[rows]));
        let sums = Sums { count: table.count, ..sums.finish() };
        Logistic { work: Workspace::of(problem, Quadratic::stored(sums, None)), xi }
    }

    /// The bound at the xi that suit the posterior `q`, and what the rows add to the lower bound there.
    ///
    /// # Errors
    /// Interrupted: then some rows were passed over.
    pub fn updated(&self, q: &Solution) -> Result<(Logistic<'p>, f64)> {
        let problem = self.work.problem;
        let table = problem.table;
        let (mut xi, mut rows_bound) = (vec![0.0; self.xi.len()], 0.0);
        problem.design.for_each_block(|rows, phi| {
            let phi = phi.select(Axis(1), &q.active);
            let mean = phi.dot(&ArrayView1::from(&q.mean));
            let mut spread = phi.reversed_axes().as_standard_layout().into_owned();
            linalg::solve_lower(q.lower.view(), spread.view_mut());
            let variance = spread.map_axis(Axis(0), |u| u.dot(&u));
            for (k, n) in rows.enumerate() {
                xi[n] = (variance[k] + mean[k] * mean[k]).sqrt();
                let z = 2.0 * table.targets[n] - 1.0;
                rows_bound += table.weights[n] * (0.5 * (z * mean[k] - xi[n]) - (-xi[n]).exp().ln_1p());
            }
        });
        let next = Logistic::at(problem, xi);
        table.interrupt.check()?;
        Ok((next, rows_bound))
    }
}

/// lambda(xi) = tanh(xi / 2) / (4 xi).
fn lambda(xi: f64) -> f64 {
    if xi < SMALL { 0.125 - xi * xi / 96.0 } else { (0.5 * xi).tanh() / (4.0 * xi) }
}
