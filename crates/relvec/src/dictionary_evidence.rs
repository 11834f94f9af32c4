//! The log evidence of all kernels of a small dictionary at given precisions, and its exact gradient in the precisions,
//! the kernel's parameters and the centres, (M15) and (M35). Centres are learned by it.

use std::borrow::Cow;
use std::f64::consts::PI;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis, CowArray, s};
use rayon::prelude::*;

use crate::design::{self, GROUPS, TILE_ROWS};
use crate::error::{Error, Result};
use crate::kernel::{GradientSums, Kernel};
use crate::lbfgs::{self, Limits, Peak};
use crate::likelihood::{Likelihood, Working};
use crate::linalg::{self, Cholesky};
use crate::newton::{self, Iterate, Mode, Objective};
use crate::report::Interrupt;

/// Number of rows of a block of a Gram product. The fit can be interrupted between blocks.
const GRAM_ROWS: usize = 8192;
/// Relative precision of the bias.
pub(crate) const BIAS_PRECISION: f64 = 1e-2;
/// Largest relative precision that kernels may share, for columns with entries of about 1.
const MOST_PRECISION: f64 = 1e5;

/// Rows and targets from which a kernel is learned.
#[derive(Debug)]
pub(crate) struct Sample<'a> {
    /// Inputs, [n, D].
    pub x: Array2<f64>,
    /// Targets in internal units, each `[n]`. The evidences of several targets are summed.
    pub t: Vec<Vec<f64>>,
    /// Factors of the log-likelihoods of the rows, `[n]`.
    pub c: Vec<f64>,
    /// Number of rows, or the sum of the sample weights.
    pub count: f64,
    /// Likelihood of the fit. For more than two classes it is that of one class against the others.
    pub likelihood: Cow<'a, Likelihood>,
    /// Least and largest noise precision of each target, which are equal if it is fixed.
    pub noise: Vec<(f64, f64)>,
    pub bias: bool,
    pub interrupt: Interrupt,
}

/// The columns of one kernel at some centres, [n, P], the bias first, with sums that are computed once.
#[derive(Debug)]
pub(crate) struct Columns<'s> {
    sample: &'s Sample<'s>,
    pub kernel: &'s Kernel,
    pub centres: ArrayView2<'s, f64>,
    phi: Array2<f64>,
    /// Phi'c Phi and Phi'c t, if the Hessian is constant.
    sums: Option<(Array2<f64>, Vec<Array1<f64>>)>,
}

/// Posteriors at given precisions, one for each target, and the sum of their log evidences.
#[derive(Debug)]
pub(crate) struct Posteriors {
    pub log_evidence: f64,
    each: Vec<Posterior>,
}

/// Posterior and log evidence of one target at given precisions.
#[derive(Debug)]
struct Posterior {
    log_evidence: f64,
    /// Posterior mean or mode of the weights, `[P]`.
    w: Array1<f64>,
    /// Precisions alpha, `[P]`, and the noise precision beta, which is 1 for likelihoods without noise.
    alpha: Array1<f64>,
    beta: f64,
    /// Covariance of the weights, [P, P].
    sigma: Array2<f64>,
}

/// Derivatives of the log evidence.
#[derive(Debug)]
pub(crate) struct Gradient {
    /// Derivatives in log a_j of every column, `[P]`, with the noise precision at its maximum.
    pub log_a: Vec<f64>,
    /// Derivatives in the logs of the kernel's parameters.
    pub log_parameters: Vec<f64>,
    /// Derivatives in the centres, [m, D].
    pub centres: Array2<f64>,
}

impl Sample<'_> {
    /// Returns the number of columns before the kernels.
    pub fn first(&self) -> usize {
        usize::from(self.bias)
    }

    fn working(&self, t: &[f64], f: &Array1<f64>) -> Working {
        let mut out = self.likelihood.as_dyn().working(t, f.as_slice().expect("f is contiguous"));
        for v in [&mut out.log_likelihood, &mut out.residual, &mut out.curvature, &mut out.third] {
            v.iter_mut().zip(&self.c).for_each(|(v, c)| *v *= c);
        }
        out
    }
}

impl Posteriors {
    /// Returns the mean weights of each target, `[M]`, from which a fit nearby can start.
    pub fn weights(self) -> Vec<Array1<f64>> {
        self.each.into_iter().map(|one| one.w).collect()
    }
}

/// The log-likelihood of one target and the log prior of its weights.
struct OneTarget<'c, 's> {
    columns: &'c Columns<'s>,
    t: &'c [f64],
    /// Precisions, `[P]`.
    alpha: &'c Array1<f64>,
}

impl Objective for OneTarget<'_, '_> {
    type Rows = Working;
    type Gram = Array2<f64>;

    fn at(&self, w: Array2<f64>) -> Result<Iterate<Working>> {
        let (columns, prior) = (self.columns, &w * self.alpha);
        columns.sample.interrupt.check()?;
        let rows = columns.sample.working(self.t, &columns.phi.dot(&w.row(0)));
        let value = rows.log_likelihood.iter().sum::<f64>() - 0.5 * (&prior * &w).sum();
        Ok(Iterate { value, gradient: columns.sums(&rows.residual) - prior, w, rows })
    }

    fn times(&self, iterate: &Iterate<Working>, d: &Array2<f64>) -> Result<Array2<f64>> {
        let mut f = self.columns.phi.dot(&d.row(0));
        f.iter_mut().zip(&iterate.rows.curvature).for_each(|(f, b)| *f *= b);
        Ok(d * self.alpha + self.columns.sums(f.as_slice().expect("f is contiguous")))
    }

    fn gram(&self, iterate: &Iterate<Working>) -> Result<Array2<f64>> {
        let curvature = ArrayView1::from(&iterate.rows.curvature).to_owned();
        weighted_gram(&self.columns.phi, &curvature, &self.columns.sample.interrupt)
    }

    fn factor(&self, gram: &Array2<f64>) -> Result<Cholesky> {
        Cholesky::of_sum(gram, self.alpha)
    }

    fn is_cheap(&self) -> bool {
        false
    }
}

impl<'s> Columns<'s> {
    /// Returns the columns at `centres`, [m, D]; `None` if an entry is not finite.
    pub fn new(sample: &'s Sample<'s>, kernel: &'s Kernel, centres: ArrayView2<'s, f64>) -> Result<Option<Columns<'s>>> {
        sample.interrupt.check()?;
        let (n, first) = (sample.x.nrows(), sample.first());
        let mut phi = Array2::ones((n, first + centres.nrows()));
        let fill = kernel.at(centres);
        let tiles = phi.axis_chunks_iter_mut(Axis(0), TILE_ROWS).into_par_iter();
        tiles.zip(sample.x.axis_chunks_iter(Axis(0), TILE_ROWS).into_par_iter()).for_each(|(mut phi, x)| {
            fill(x, phi.slice_mut(s![.., first..]));
        });
        let sums = if sample.likelihood.as_dyn().constant_curvature() {
            let c = Array1::from_vec(sample.c.clone());
            let targets = sample.t.iter().map(|t| {
                let (mut f, ct) = (vec![0.0; phi.ncols()], &c * &ArrayView1::from(t));
                design::add_sums(ct.as_slice().expect("a vector is contiguous"), phi.view(), &mut f);
                Array1::from_vec(f)
            });
            let f: Vec<_> = targets.collect();
            Some((weighted_gram(&phi, &c, &sample.interrupt)?, f))
        } else {
            None
        };
        let fine = match &sums {
            Some((gram, f)) => gram.diag().iter().chain(f.iter().flatten()).all(|v| v.is_finite()),
            None => phi.iter().all(|v| v.is_finite()),
        };
        Ok(fine.then_some(Columns { sample, kernel, centres, phi, sums }))
    }

    /// Returns the number P of columns.
    pub fn count(&self) -> usize {
        self.phi.ncols()
    }

    /// Returns the smallest relative precision at which G retains its digits, for columns of this size.
    pub fn least(&self) -> f64 {
        1e-12 * self.phi.nrows() as f64 * self.size()
    }

    /// Returns the mean square of the entries of the kernels' columns.
    pub fn size(&self) -> f64 {
        let kernels = self.phi.slice(s![.., self.sample.first()..]);
        kernels.iter().map(|v| v * v).sum::<f64>() / kernels.len().max(1) as f64
    }

    /// Returns the posteriors at relative precisions `a`, `[P]`. Newton's method starts from the weights `near`, if
    /// they are given. Returns `None` if a posterior is singular.
    pub fn at(&self, a: &[f64], near: Option<&Vec<Array1<f64>>>) -> Result<Option<Posteriors>> {
        let mut each = vec![];
        for (k, t) in self.sample.t.iter().enumerate() {
            self.sample.interrupt.check()?;
            let found = match &self.sums {
                Some((gram, f)) => self.gaussian(gram, &f[k], t, self.sample.noise[k], a),
                None => self.laplace(a, t, near.map(|near| &near[k])),
            };
            match found {
                Ok(posterior) if posterior.log_evidence.is_finite() => each.push(posterior),
                Ok(_) | Err(Error::Singular { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(Posteriors { log_evidence: each.iter().map(|one| one.log_evidence).sum(), each }))
    }

    /// Returns the posterior under Gaussian noise (M7); gram: `[M, M]`, f: `[M]`, where `a` are the relative precisions.
    fn gaussian(
        &self,
        gram: &Array2<f64>,
        f: &Array1<f64>,
        t: &[f64],
        (least, most): (f64, f64),
        a: &[f64],
    ) -> Result<Posterior> {
        let factor = Cholesky::of_sum(gram, a)?;
        let mut z = f.clone().insert_axis(Axis(1));
        linalg::solve_lower(factor.lower.view(), z.view_mut());
        let squares = z.iter().map(|z| z * z).sum::<f64>();
        linalg::solve_lower_transposed(factor.lower.view(), z.view_mut());
        let count = self.sample.count;
        let tt: f64 = self.sample.c.iter().zip(t).map(|(c, t)| c * t * t).sum();
        let residual_squares = (tt - squares).max(1e-13 * tt.max(f64::MIN_POSITIVE));
        let beta = (count / residual_squares).clamp(least, most);
        let sum_log_a: f64 = a.iter().map(|a| a.ln()).sum();
        let log_evidence =
            -0.5 * (count * ((2.0 * PI).ln() - beta.ln()) + factor.log_det() - sum_log_a + beta * residual_squares);
        let sigma = covariance(&factor) / beta;
        Ok(Posterior { log_evidence, w: z.remove_axis(Axis(1)), alpha: a.iter().map(|a| a * beta).collect(), beta, sigma })
    }

    /// Returns Phi'v, `[P]`, for `v`, `[n]`.
    fn sums(&self, v: &[f64]) -> Array1<f64> {
        let mut out = Array1::zeros(self.count());
        design::add_sums(v, self.phi.view(), out.as_slice_mut().expect("a vector is contiguous"));
        out
    }

    /// Returns Laplace's posterior (M13), (M14) at precisions `alpha`; Newton's method starts from the weights `near`, `[M]`, or
    /// from 0.
    fn laplace(&self, alpha: &[f64], t: &[f64], near: Option<&Array1<f64>>) -> Result<Posterior> {
        let alpha: Array1<f64> = alpha.iter().copied().collect();
        let objective = OneTarget { columns: self, t, alpha: &alpha };
        let start = near.cloned().unwrap_or_else(|| Array1::zeros(alpha.len()));
        let Mode { iterate, factor, .. } = newton::mode(&objective, objective.at(start.insert_axis(Axis(0)))?, None)?;
        let log_evidence = iterate.value + 0.5 * alpha.iter().map(|a| a.ln()).sum::<f64>() - 0.5 * factor.log_det();
        let w = iterate.w.row(0).to_owned();
        Ok(Posterior { log_evidence, w, alpha, beta: 1.0, sigma: covariance(&factor) })
    }

    /// Returns the relative precisions of all columns if the kernels share one, `[P]`.
    pub fn precisions(&self, log_a: f64) -> Vec<f64> {
        (0..self.count()).map(|j| if j < self.sample.first() { BIAS_PRECISION } else { log_a.exp() }).collect()
    }

    /// Returns the bounds of the log of the shared precision.
    pub fn range(&self) -> (f64, f64) {
        let size = self.size().max(f64::MIN_POSITIVE);
        (self.least().max(f64::MIN_POSITIVE).ln(), (MOST_PRECISION * size).ln())
    }

    /// Maximises the evidence in the log of the shared precision, starting from `log_a`, to within `tolerance` nats.
    pub fn shared(&self, log_a: f64, tolerance: f64) -> Result<Option<Peak>> {
        let limits = Limits { evaluations: 15, tolerance, patience: 2, step: 4.0 };
        let mut near = None;
        lbfgs::maximise(&[log_a], &[self.range()], limits, |x| {
            let Some(posterior) = self.at(&self.precisions(x[0]), near.as_ref())? else { return Ok(None) };
            let slope = self.log_a_gradient(&posterior)[self.sample.first()..].iter().sum();
            let value = posterior.log_evidence;
            near = Some(posterior.weights());
            Ok(Some((value, vec![slope])))
        })
    }

    /// Returns d log evidence / d log a_j, `[P]`, with the noise precision at its maximum. Unlike the whole gradient,
    /// this needs no pass over the rows.
    pub fn log_a_gradient(&self, posteriors: &Posteriors) -> Vec<f64> {
        let each = posteriors.each.iter().zip(&self.sample.t);
        total(each.map(|(one, t)| self.gradient_terms(one, t).log_a(one)))
    }

    /// Returns the terms of the gradient for one target.
    fn gradient_terms(&self, posterior: &Posterior, t: &[f64]) -> GradientTerms {
        let Posterior { w, beta, sigma, .. } = posterior;
        let phi = &self.phi;
        let mut solver = self.sample.working(t, &phi.dot(w));
        for v in [&mut solver.residual, &mut solver.curvature, &mut solver.third] {
            v.iter_mut().for_each(|v| *v *= beta);
        }
        let (r, b) = (Array1::from_vec(solver.residual), Array1::from_vec(solver.curvature));
        // If the Hessian is constant, the mode depends on the precisions only through the noise, which is at its
        // maximum.
        if self.sums.is_some() {
            return GradientTerms { u: Array1::zeros(w.len()), adjusted: r.clone(), r, b, phi_sigma: None };
        }
        let phi_sigma = linalg::times(phi.view(), sigma.view());
        let h: Array1<f64> = phi_sigma.outer_iter().zip(phi.outer_iter()).map(|(s, p)| s.dot(&p)).collect();
        let hb = h * Array1::from_vec(solver.third);
        let u = sigma.dot(&self.sums(hb.as_slice().expect("a vector is contiguous")));
        let adjusted = &r - &(&hb * 0.5) + &(&b * &phi.dot(&u) * 0.5);
        GradientTerms { r, b, u, adjusted, phi_sigma: Some(phi_sigma) }
    }

    /// Returns the exact gradient, (M15), computed by tiles of rows.
    pub fn gradient(&self, posteriors: &Posteriors) -> Result<Gradient> {
        let (phi, first, n) = (&self.phi, self.sample.first(), self.phi.nrows());
        let group = n.div_ceil(GROUPS).max(1);
        // The derivatives in the entries of Phi are summed target by target, because those of one target are as large
        // as Phi.
        let mut slope = Array2::zeros(phi.dim());
        let mut log_a = vec![];
        for (one, t) in posteriors.each.iter().zip(&self.sample.t) {
            self.sample.interrupt.check()?;
            let terms = self.gradient_terms(one, t);
            slope.axis_chunks_iter_mut(Axis(0), group).into_par_iter().enumerate().for_each(|(g, mut slope)| {
                for (k, mut slope) in slope.axis_chunks_iter_mut(Axis(0), TILE_ROWS).enumerate() {
                    let start = g * group + k * TILE_ROWS;
                    self.add_slope(one, &terms, start, slope.view_mut());
                }
            });
            log_a.push(terms.log_a(one));
        }
        let mut parts: Vec<GradientSums> = (0..n.div_ceil(group)).map(|_| GradientSums::new(self.kernel, self.centres)).collect();
        let slopes = slope.axis_chunks_iter_mut(Axis(0), group).into_par_iter();
        parts.par_iter_mut().zip(slopes).zip(self.sample.x.axis_chunks_iter(Axis(0), group)).for_each(
            |((sums, mut slope), x)| {
                let tiles = slope.axis_chunks_iter_mut(Axis(0), TILE_ROWS).zip(x.axis_chunks_iter(Axis(0), TILE_ROWS));
                // After an interrupt the sums are incomplete and not used.
                for (mut slope, x) in tiles.take_while(|_| !self.sample.interrupt.is_raised()) {
                    sums.add(x, slope.slice_mut(s![.., first..]));
                }
            },
        );
        self.sample.interrupt.check()?;
        let mut parts = parts.into_iter();
        let mut sums = parts.next().expect("there are rows");
        parts.for_each(|part| sums.merge(&part));
        let (log_parameters, centres) = sums.finish();
        Ok(Gradient { log_a: total(log_a.into_iter()), log_parameters, centres })
    }

    /// Adds d log evidence / d Phi of the rows from `start` on to `out`, [rows, P].
    fn add_slope(&self, posterior: &Posterior, terms: &GradientTerms, start: usize, mut out: ArrayViewMut2<f64>) {
        let rows = start..start + out.nrows();
        let own = match &terms.phi_sigma {
            Some(phi_sigma) => CowArray::from(phi_sigma.slice(s![rows.clone(), ..])),
            None => {
                let mut own = Array2::zeros(out.dim());
                linalg::product_alone(false, self.phi.slice(s![rows.clone(), ..]), posterior.sigma.view(), own.view_mut());
                CowArray::from(own)
            }
        };
        for ((n, mut row), own) in rows.zip(out.outer_iter_mut()).zip(own.outer_iter()) {
            let (adjusted, b, half) = (terms.adjusted[n], terms.b[n], 0.5 * terms.r[n]);
            for (((out, s), w), u) in row.iter_mut().zip(own).zip(&posterior.w).zip(&terms.u) {
                *out += adjusted * w - b * s - half * u;
            }
        }
    }
}

/// Terms of the gradient, (M15): r and B, including the noise precision and the weights of rows, `[n]`; u, `[P]`; and r
/// - h o b / 2 + B Phi u / 2, `[n]`.
struct GradientTerms {
    r: Array1<f64>,
    b: Array1<f64>,
    u: Array1<f64>,
    adjusted: Array1<f64>,
    /// Phi Sigma, [n, P], if the Hessian is not constant.
    phi_sigma: Option<Array2<f64>>,
}

impl GradientTerms {
    fn log_a(&self, posterior: &Posterior) -> Vec<f64> {
        let Posterior { w, alpha, sigma, .. } = posterior;
        (0..w.len()).map(|j| 0.5 * (1.0 - alpha[j] * (sigma[[j, j]] + w[j] * (w[j] - self.u[j])))).collect()
    }
}

/// Returns the sum of lists, entry by entry.
fn total(lists: impl Iterator<Item = Vec<f64>>) -> Vec<f64> {
    let add = |mut sum: Vec<f64>, list: Vec<f64>| {
        sum.iter_mut().zip(list).for_each(|(s, v)| *s += v);
        sum
    };
    lists.reduce(add).unwrap_or_default()
}

/// Returns Phi'diag(c) Phi, symmetric, `[M, M]`; phi: `[N, M]`, c: `[N]`.
fn weighted_gram(phi: &Array2<f64>, c: &Array1<f64>, interrupt: &Interrupt) -> Result<Array2<f64>> {
    let mut out = Array2::zeros((phi.ncols(), phi.ncols()));
    let plain = c.iter().all(|c| *c == 1.0);
    for (phi, c) in phi.axis_chunks_iter(Axis(0), GRAM_ROWS).zip(c.axis_chunks_iter(Axis(0), GRAM_ROWS)) {
        interrupt.check()?;
        if plain {
            linalg::add_gram(phi, out.view_mut());
            continue;
        }
        let mut weighted = phi.to_owned();
        let rows = weighted.axis_chunks_iter_mut(Axis(0), TILE_ROWS).into_par_iter().enumerate();
        rows.for_each(|(k, mut tile)| {
            tile.outer_iter_mut().zip(c.iter().skip(k * TILE_ROWS)).for_each(|(mut row, c)| row *= c.sqrt());
        });
        linalg::add_gram(weighted.view(), out.view_mut());
    }
    linalg::mirror(&mut out);
    Ok(out)
}

/// Returns inv(R R'), `[M, M]`.
fn covariance(factor: &Cholesky) -> Array2<f64> {
    linalg::gram(factor.inverse().view())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{DataScale, Form, Gamma};
    use crate::likelihood::{Bernoulli, Gaussian};

    fn draw(n: usize, features: usize, seed: u64) -> Array2<f64> {
        let mut state = seed;
        Array2::from_shape_simple_fn((n, features), || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
    }

    fn log_evidence(sample: &Sample, kernel: &Kernel, z: &Array2<f64>, log_a: &[f64]) -> f64 {
        let columns = Columns::new(sample, kernel, z.view()).unwrap().expect("finite columns");
        let a: Vec<f64> = log_a.iter().map(|v| v.exp()).collect();
        columns.at(&a, None).unwrap().expect("a posterior").log_evidence
    }

    /// Covers every kernel, both likelihoods, one or two targets, row weights, and a noise precision that is learned,
    /// fixed or at its cap. The gradient in every precision, parameter and centre agrees with finite differences.
    #[test]
    fn gradient_equals_finite_differences() {
        let (regression, classes) = (Likelihood::from(Gaussian::default()), Likelihood::from(Bernoulli::default()));
        let cases = [
            (&regression, (0.0, 1e6), true),
            (&regression, (0.0, 2.0), false),
            (&regression, (3.0, 3.0), true),
            (&classes, (1.0, 1.0), true),
            (&classes, (1.0, 1.0), false),
        ];
        for name in Kernel::NAMES {
            for gamma in [Gamma::Value(0.4), vec![0.3, 0.9].into()] {
                for (likelihood, noise, bias) in cases {
                    let kernel = Kernel::from_name(name).expect("a name").with_gamma(gamma.clone());
                    let kernel = kernel.resolve(&DataScale { features: 2, variance: 1.0 }).unwrap();
                    let x = draw(40, 2, 1);
                    let f = x.map_axis(Axis(1), |r| 2.0 * (2.0 * r[0]).sin() + r[1] + 0.3 * (37.0 * r[0]).sin());
                    let real = matches!(likelihood, Likelihood::Gaussian(_));
                    let one = |at: f64| f.iter().map(|f| if real { *f - at } else { f64::from(*f > at) }).collect();
                    let t = if bias { vec![one(0.3)] } else { vec![one(0.3), one(-0.4)] };
                    let c: Vec<f64> = (0..40).map(|i| 0.5 + (i % 3) as f64).collect();
                    // The count is smaller than the sum of the weights, as if these contained row precision factors.
                    let count = 0.8 * c.iter().sum::<f64>();
                    let (noise, interrupt) = (vec![noise; 2], Interrupt::default());
                    let sample = Sample { x, t, c, count, likelihood: Cow::Borrowed(likelihood), noise, bias, interrupt };
                    let z = draw(5, 2, 2);
                    let log_a: Vec<f64> = (0..5 + sample.first()).map(|j| -2.0 + 0.3 * j as f64).collect();
                    let columns = Columns::new(&sample, &kernel, z.view()).unwrap().unwrap();
                    let a: Vec<f64> = log_a.iter().map(|v| v.exp()).collect();
                    let gradient = columns.gradient(&columns.at(&a, None).unwrap().unwrap()).unwrap();
                    let check = |what: &str, got: f64, at: &dyn Fn(f64) -> f64| {
                        let expected = (at(1e-4) - at(-1e-4)) / 2e-4;
                        assert!(
                            (got - expected).abs() < 1e-5 * (1.0 + expected.abs()),
                            "{kernel:?} {likelihood:?}: {what}: {got} instead of {expected}"
                        );
                    };
                    for (j, got) in gradient.log_a.iter().enumerate() {
                        check("log a", *got, &|h| {
                            let mut log_a = log_a.clone();
                            log_a[j] += h;
                            log_evidence(&sample, &kernel, &z, &log_a)
                        });
                    }
                    let parameters: Vec<f64> = kernel.parameters().into_iter().map(|(_, v)| v).collect();
                    assert_eq!(gradient.log_parameters.len(), parameters.len());
                    for (k, got) in gradient.log_parameters.iter().enumerate() {
                        check("parameter", *got, &|h| {
                            let mut parameters = parameters.clone();
                            parameters[k] *= h.exp();
                            log_evidence(&sample, &kernel.with_parameters(&parameters), &z, &log_a)
                        });
                    }
                    for ((j, d), got) in gradient.centres.indexed_iter().filter(|_| !matches!(kernel.form(), Form::Other)) {
                        check("centre", *got, &|h| {
                            let mut z = z.clone();
                            z[[j, d]] += h;
                            log_evidence(&sample, &kernel, &z, &log_a)
                        });
                    }
                }
            }
        }
    }
}
