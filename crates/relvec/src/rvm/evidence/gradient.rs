//! Exact gradient of the log evidence in the precisions and in the entries of Phi, including the movement of the mode:
//! (M15), and (M30) for several classes.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};

use crate::likelihood::ClassRows;
use crate::linalg;
use crate::rvm::evidence::active_posterior::{ActivePosterior, covariance, fitted};
use crate::rvm::gram::scaled_problem::ScaledProblem;

/// Exact derivatives of the log evidence at a posterior, for columns of unit norm.
pub(crate) struct EvidenceGradient {
    /// Derivatives in log alpha, `[M]`.
    pub log_alpha: Vec<f64>,
    /// Derivatives in the entries of Phi, [N, M].
    pub phi: Array2<f64>,
}

impl EvidenceGradient {
    /// Returns the gradient at a posterior.
    pub fn of(problem: &ScaledProblem, solution: &ActivePosterior) -> EvidenceGradient {
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
