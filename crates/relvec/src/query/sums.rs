//! Sums over rows: for the weights under a process prior, (M72), for regression on labels, (M87), and of the
//! log-likelihood of two classes or of counts at given weights, with its gradient and Hessian, (M13).

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::likelihood::{Bernoulli, LikelihoodFunction, Poisson, check_counts};
use crate::linalg;
use crate::query::bytes::{Reader, Writer};
use crate::query::gaussian_targets::LARGEST;
use crate::query::merged_rows::{DistinctRows, Totals};
use crate::query::survey::{Checked, Further};
use crate::report::Interrupt;

/// Number of rows of a block of the sums.
const BLOCK_ROWS: usize = 4096;
/// Number of rows of a tile of kernel values, which one thread computes.
const TILE_ROWS: usize = 64;

/// Kernel, centres and ratios at which sums over rows are computed.
#[derive(Debug, Clone)]
pub(crate) struct SumsRequest {
    /// Kernel whose parameters are all numbers.
    pub kernel: Kernel,
    /// Centres, [M, D].
    pub centres: Array2<f64>,
    /// The factor L of K = L L', [M, M]. Without it, [0, 0], the columns of F are the values of the kernel.
    pub lower: Array2<f64>,
    /// True if the first column of F is constant.
    pub bias: bool,
    /// Ratios of the amplitude to the noise variance, `[J]`, each with its own sums. The noise variance of a row is
    /// increased by the ratio times the prior's residual variance there, in units of the noise variance. A ratio of 0
    /// ignores the residual.
    pub ratios: Vec<f64>,
    /// Means m, [P, R]. If they are given, only F' inv(Lambda) (t - F m) is computed.
    pub mean: Option<Array2<f64>>,
}

/// Sums over rows, which can be added.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PartSums {
    /// Sums at each ratio, `[J]`.
    pub at_ratios: Vec<RatioSums>,
    pub totals: Totals,
}

/// Sums at one ratio. If means m were given, `right` is F' inv(Lambda) (t - F m), and the other sums are not computed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RatioSums {
    /// F' inv(Lambda) F, [P, P], lower triangle.
    pub gram: Array2<f64>,
    /// F' inv(Lambda) t, [P, R].
    pub right: Array2<f64>,
    /// t' inv(Lambda) t of each output, `[R]`.
    pub squares: Array1<f64>,
    /// log|Lambda|.
    pub log_det: f64,
}

impl SumsRequest {
    /// Returns the number P of columns of F.
    fn columns(&self) -> usize {
        usize::from(self.bias) + self.centres.nrows()
    }

    /// Returns F, [n, P], for rows `x`, [n, D], and the residual variance d of the prior at each row, `[n]`.
    fn features(&self, x: ArrayView2<f64>) -> (Array2<f64>, Vec<f64>) {
        let (first, fill) = (usize::from(self.bias), self.kernel.at(self.centres.view()));
        let mut f = Array2::ones((x.nrows(), self.columns()));
        f.axis_chunks_iter_mut(Axis(0), TILE_ROWS)
            .into_par_iter()
            .zip(x.axis_chunks_iter(Axis(0), TILE_ROWS).into_par_iter())
            .for_each(|(mut f, x)| fill(x, f.slice_mut(s![.., first..])));
        if self.lower.is_empty() {
            return (f, vec![0.0; x.nrows()]);
        }
        linalg::solve_lower(self.lower.view(), f.slice_mut(s![.., first..]).reversed_axes());
        let diagonal = self.kernel.diagonal(x);
        let left = |(f, diagonal): (ArrayView1<f64>, &f64)| {
            let phi = f.slice(s![first..]);
            (diagonal - phi.dot(&phi)).max(0.0)
        };
        let residual = f.outer_iter().zip(&diagonal).map(left).collect();
        (f, residual)
    }
}

impl PartSums {
    /// Returns sums over no rows, for targets with `outputs` columns.
    pub fn new(at: &SumsRequest, outputs: usize) -> PartSums {
        let p = at.columns();
        // If means are given, no Gram matrix is computed.
        let width = if at.mean.is_some() { 0 } else { p };
        let (gram, right) = (Array2::zeros((width, width)), Array2::zeros((p, outputs)));
        let sums = RatioSums { gram, right, squares: Array1::zeros(outputs), log_det: 0.0 };
        let totals = Totals { scatter: vec![0.0; outputs], ..Totals::default() };
        PartSums { at_ratios: vec![sums; at.ratios.len()], totals }
    }

    /// Adds rows. The work runs on the current thread pool.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] if the fit must stop or its deadline has passed, and [`Error::Overflow`] if a sum
    /// is not finite.
    pub fn add_rows(&mut self, at: &SumsRequest, rows: &DistinctRows, interrupt: &Interrupt) -> Result<()> {
        for begin in (0..rows.len()).step_by(BLOCK_ROWS) {
            if interrupt.is_raised_by_hand() || interrupt.is_late() {
                return Err(Error::Interrupted);
            }
            let some = begin..(begin + BLOCK_ROWS).min(rows.len());
            let weights = &rows.weights[some.clone()];
            self.add_block(at, rows.x.slice(s![some.clone(), ..]), rows.t.slice(s![some, ..]), weights);
        }
        self.totals.add(&rows.totals());
        if !self.at_ratios.iter().all(|sums| sums.log_det.is_finite() && sums.right.iter().all(|v| v.is_finite())) {
            let what = format!("a sum over the values of the kernel {} for rows and centres", at.kernel.name());
            return Err(Error::Overflow { what });
        }
        Ok(())
    }

    fn add_block(&mut self, at: &SumsRequest, x: ArrayView2<f64>, t: ArrayView2<f64>, weights: &[f64]) {
        let (mut f, residual) = at.features(x);
        // F is rescaled in place from one ratio to the next.
        let mut before = Array2::ones((x.nrows(), 1));
        for (sums, ratio) in self.at_ratios.iter_mut().zip(&at.ratios) {
            // An infinite residual times the ratio 0 would not be a number.
            let more = |residual: f64| if *ratio > 0.0 { ratio * residual } else { 0.0 };
            let lambda: Array1<f64> = residual.iter().zip(weights).map(|(residual, c)| more(*residual) + 1.0 / c).collect();
            if let Some(mean) = &at.mean {
                let mut left = t.to_owned();
                linalg::product(true, -1.0, f.view(), mean.view(), left.view_mut());
                left /= &lambda.insert_axis(Axis(1));
                linalg::product(true, 1.0, f.t(), left.view(), sums.right.view_mut());
                continue;
            }
            sums.log_det += lambda.iter().map(|v| v.ln()).sum::<f64>();
            let roots = lambda.mapv(|v| 1.0 / v.sqrt()).insert_axis(Axis(1));
            f *= &(&roots / &before);
            let t = &t * &roots;
            linalg::add_gram(f.view(), sums.gram.view_mut());
            linalg::product(true, 1.0, f.t(), t.view(), sums.right.view_mut());
            sums.squares += &t.mapv(|v| v * v).sum_axis(Axis(0));
            before = roots;
        }
    }

    /// Returns the sums of a query at one ratio, and the totals.
    pub fn single(mut self) -> (RatioSums, Totals) {
        assert_eq!(self.at_ratios.len(), 1, "one ratio was asked for");
        (self.at_ratios.remove(0), self.totals)
    }

    /// Adds the sums over other rows.
    ///
    /// # Errors
    /// Returns [`Error::Rows`] if the shapes differ.
    pub fn add(&mut self, other: &PartSums) -> Result<()> {
        let shapes = |sums: &PartSums| sums.at_ratios.iter().map(|s| (s.right.dim(), s.gram.dim())).collect::<Vec<_>>();
        let (a, b) = (shapes(self), shapes(other));
        if a != b {
            return Err(Error::Rows(format!("sums of shapes {b:?} cannot be added to sums of shapes {a:?}")));
        }
        for (own, other) in self.at_ratios.iter_mut().zip(&other.at_ratios) {
            own.gram += &other.gram;
            own.right += &other.right;
            own.squares += &other.squares;
            own.log_det += other.log_det;
        }
        self.totals.add(&other.totals);
        Ok(())
    }

    pub(super) fn write(&self, out: &mut Writer) {
        let (p, outputs) = self.at_ratios[0].right.dim();
        let counts = [self.at_ratios.len(), p, outputs, self.at_ratios[0].gram.nrows(), self.totals.inputs];
        out.counts(counts.map(|count| count as u64));
        out.numbers(&[self.totals.count, self.totals.log_constant]);
        out.numbers(&self.totals.scatter);
        for sums in &self.at_ratios {
            out.number(sums.log_det);
            out.numbers(&sums.squares);
            out.numbers(&sums.right);
            out.triangle(sums.gram.view());
        }
    }

    pub(super) fn read(from: &mut Reader) -> Result<PartSums> {
        let ratios = from.size()?;
        if ratios == 0 {
            return Err(Error::Rows("damaged relvec answer: found sums at 0 ratios, expected at least 1".into()));
        }
        let (p, outputs, width) = (from.size()?, from.size()?, from.size()?);
        let inputs = from.count()? as usize;
        let (count, log_constant) = (from.number()?, from.number()?);
        let scatter = from.finite(outputs)?;
        let mut at_ratios = vec![];
        for _ in 0..ratios {
            let log_det = from.number()?;
            let squares = Array1::from_vec(from.finite(outputs)?);
            let right = from.matrix(p, outputs)?;
            at_ratios.push(RatioSums { gram: from.triangle(width)?, right, squares, log_det });
        }
        Ok(PartSums { at_ratios, totals: Totals { inputs, count, scatter, log_constant } })
    }
}

impl SumsRequest {
    pub(super) fn write(&self, out: &mut Writer) {
        let (m, d) = self.centres.dim();
        let outputs = self.mean.as_ref().map_or(0, Array2::ncols);
        out.counts([m, d, outputs, self.ratios.len(), self.lower.nrows()].map(|count| count as u64));
        out.numbers(&self.ratios);
        out.numbers(&self.centres);
        out.triangle(self.lower.view());
        out.numbers(self.mean.iter().flatten());
    }

    pub(super) fn read(kernel: Kernel, bias: bool, from: &mut Reader) -> Result<SumsRequest> {
        let (m, d, outputs, ratios, factored) = (from.size()?, from.size()?, from.size()?, from.size()?, from.size()?);
        if factored != m && factored != 0 {
            return Err(Error::Rows(format!("damaged relvec query: a factor of {factored} rows for {m} centres")));
        }
        let ratios = from.finite(ratios)?;
        let centres = from.matrix(m, d)?;
        let lower = from.triangle(factored)?;
        let mean = if outputs > 0 { Some(from.matrix(m + usize::from(bias), outputs)?) } else { None };
        Ok(SumsRequest { kernel, centres, lower, bias, ratios, mean })
    }
}
/// Kernel, centres and weights at which the log-likelihood is summed.
#[derive(Debug, Clone)]
pub(crate) struct LaplaceRequest {
    /// Kernel whose parameters are all numbers.
    pub kernel: Kernel,
    /// Centres, [M, D].
    pub centres: Array2<f64>,
    /// True if the first column of Phi, [N, P], is constant.
    pub bias: bool,
    /// Number that is added to the functions of counts: the log rate of one count per mean exposure.
    pub log_rate: f64,
    /// Each has a function of its own.
    pub trials: Vec<Trial>,
}

/// Targets of one function, and weights to try, [S, P], S >= 1.
#[derive(Debug, Clone)]
pub(crate) struct Trial {
    /// The class that is separated from the others; `None` for counts.
    pub class: Option<usize>,
    pub weights: Array2<f64>,
}

/// Sums over rows for the function of one trial, which can be added.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LaplaceSums {
    /// Log-likelihood at each of the weights, sum c log p, `[S]`.
    pub log_likelihood: Array1<f64>,
    /// Gradient of the log-likelihood at the first weights, Phi'c r, `[P]`.
    pub gradient: Array1<f64>,
    /// Lower triangle of the Hessian of the negative log-likelihood at the first weights, Phi'c B Phi, [P, P].
    pub hessian: Array2<f64>,
}

impl LaplaceRequest {
    /// Returns sums over no rows, one for each trial.
    pub fn nothing(&self) -> Vec<LaplaceSums> {
        let nothing = |trial: &Trial| {
            let (s, p) = trial.weights.dim();
            LaplaceSums { log_likelihood: Array1::zeros(s), gradient: Array1::zeros(p), hessian: Array2::zeros((p, p)) }
        };
        self.trials.iter().map(nothing).collect()
    }

    /// Adds rows `x`, [N, D], to the sums. The work runs on the current thread pool.
    ///
    /// # Errors
    /// Returns an error for targets that are no counts, for another number of features, [`Error::Interrupted`] if the fit must stop or its deadline has
    /// passed, and [`Error::Overflow`] if a sum is not finite.
    pub fn add_rows(&self, x: ArrayView2<f64>, rows: &Checked, sums: &mut [LaplaceSums], interrupt: &Interrupt) -> Result<()> {
        let (targets, weights, further) = rows;
        if x.ncols() != self.centres.ncols() {
            let expected = format!("{} columns", self.centres.ncols());
            return Err(Error::Shape { what: "rows to train on", expected, found: x.ncols().to_string() });
        }
        if self.trials.iter().any(|trial| trial.class.is_none()) {
            check_counts(targets.column(0))?;
        }
        let exposure = further.as_ref().filter(|(kind, _)| *kind == Further::Exposure).map(|(_, exposure)| exposure);
        let log_exposure = |n: usize| exposure.map_or(0.0, |exposure| exposure[n].ln());
        let used: Vec<usize> = (0..x.nrows()).filter(|n| weights[*n] > 0.0).collect();
        for rows in used.chunks(BLOCK_ROWS) {
            if interrupt.is_raised_by_hand() || interrupt.is_late() {
                return Err(Error::Interrupted);
            }
            let phi = self.phi(x.select(Axis(0), rows).view());
            let c: Array1<f64> = rows.iter().map(|n| weights[*n]).collect();
            for (trial, sums) in self.trials.iter().zip(sums.iter_mut()) {
                let target = |n: &usize| match trial.class {
                    Some(class) => f64::from(u8::from(targets[[*n, 0]] == class as f64)),
                    None => targets[[*n, 0]],
                };
                let offset = |n: &usize| if trial.class.is_some() { 0.0 } else { self.log_rate + log_exposure(*n) };
                // The sums of rates that are far too large are finite.
                let (likelihood, largest): (&dyn LikelihoodFunction, f64) = match trial.class {
                    Some(_) => (&Bernoulli {}, f64::INFINITY),
                    None => (&Poisson {}, LARGEST),
                };
                let own = FunctionRows {
                    likelihood,
                    largest,
                    t: rows.iter().map(target).collect(),
                    offset: rows.iter().map(offset).collect(),
                    c: c.view(),
                };
                sums.add(phi.view(), &own, trial.weights.view());
            }
        }
        let finite = |sums: &LaplaceSums| sums.log_likelihood[0].is_finite() && sums.hessian.diag().iter().all(|v| v.is_finite());
        if !sums.iter().all(finite) {
            let what = format!("a sum over the values of the kernel {} for rows and centres", self.kernel.name());
            return Err(Error::Overflow { what });
        }
        Ok(())
    }

    /// Returns Phi, [n, P], for rows `x`, [n, D].
    fn phi(&self, x: ArrayView2<f64>) -> Array2<f64> {
        let (first, fill) = (usize::from(self.bias), self.kernel.at(self.centres.view()));
        let mut phi = Array2::ones((x.nrows(), first + self.centres.nrows()));
        phi.axis_chunks_iter_mut(Axis(0), TILE_ROWS)
            .into_par_iter()
            .zip(x.axis_chunks_iter(Axis(0), TILE_ROWS).into_par_iter())
            .for_each(|(mut phi, x)| fill(x, phi.slice_mut(s![.., first..])));
        phi
    }

    pub(super) fn write(&self, out: &mut Writer) {
        let (m, d) = self.centres.dim();
        out.counts([m, d, self.trials.len()].map(|count| count as u64));
        out.number(self.log_rate);
        out.numbers(&self.centres);
        for trial in &self.trials {
            // 0 stands for counts.
            out.counts([trial.class.map_or(0, |class| class + 1), trial.weights.nrows()].map(|count| count as u64));
            out.numbers(&trial.weights);
        }
    }

    pub(super) fn read(kernel: Kernel, bias: bool, from: &mut Reader) -> Result<LaplaceRequest> {
        let (m, d, count) = (from.size()?, from.size()?, from.size()?);
        let log_rate = from.finite(1)?[0];
        let centres = from.matrix(m, d)?;
        let mut trials = vec![];
        for _ in 0..count {
            let (class, tried) = ((from.count()? as usize).checked_sub(1), from.size()?);
            trials.push(Trial { class, weights: from.matrix(tried, m + usize::from(bias))? });
        }
        Ok(LaplaceRequest { kernel, centres, bias, log_rate, trials })
    }
}

/// Targets of rows for one function.
struct FunctionRows<'a> {
    likelihood: &'a dyn LikelihoodFunction,
    /// Targets 0 or 1, or counts, `[n]`.
    t: Vec<f64>,
    /// Numbers that are added to the function, `[n]`, and the largest sum of both.
    offset: Vec<f64>,
    largest: f64,
    /// Sample weights, `[n]`.
    c: ArrayView1<'a, f64>,
}

impl LaplaceSums {
    /// Adds rows with the columns `phi`, [n, P], at weights `w`, [S, P].
    fn add(&mut self, phi: ArrayView2<f64>, rows: &FunctionRows, w: ArrayView2<f64>) {
        for (tried, f) in linalg::times(w, phi.t()).outer_iter().enumerate() {
            let f: Vec<f64> = f.iter().zip(&rows.offset).map(|(f, offset)| (f + offset).min(rows.largest)).collect();
            let working = rows.likelihood.working(&rows.t, &f);
            self.log_likelihood[tried] += rows.c.dot(&Array1::from_vec(working.log_likelihood));
            if tried == 0 {
                self.gradient += &phi.t().dot(&(&rows.c * &Array1::from_vec(working.residual)));
                let root = (&rows.c * &Array1::from_vec(working.curvature)).mapv(f64::sqrt).insert_axis(Axis(1));
                linalg::add_gram((&phi * &root).view(), self.hessian.view_mut());
            }
        }
    }

    /// Adds the sums over other rows, at the same weights.
    ///
    /// # Errors
    /// Returns [`Error::Rows`] if the shapes differ.
    pub fn add_all(own: &mut [LaplaceSums], other: &[LaplaceSums]) -> Result<()> {
        let shapes = |sums: &[LaplaceSums]| sums.iter().map(|s| (s.log_likelihood.len(), s.gradient.len())).collect::<Vec<_>>();
        let (a, b) = (shapes(own), shapes(other));
        if a != b {
            return Err(Error::Rows(format!("sums of shapes {b:?} cannot be added to sums of shapes {a:?}")));
        }
        for (own, other) in own.iter_mut().zip(other) {
            own.log_likelihood += &other.log_likelihood;
            own.gradient += &other.gradient;
            own.hessian += &other.hessian;
        }
        Ok(())
    }

    pub(super) fn write(&self, out: &mut Writer) {
        out.counts([self.log_likelihood.len(), self.gradient.len()].map(|count| count as u64));
        out.numbers(&self.log_likelihood);
        out.numbers(&self.gradient);
        out.triangle(self.hessian.view());
    }

    pub(super) fn read(from: &mut Reader) -> Result<LaplaceSums> {
        let (tried, p) = (from.size()?, from.size()?);
        // The log-likelihood of weights that are far too large may be infinite.
        let log_likelihood = Array1::from_vec(from.numbers(tried)?);
        let gradient = Array1::from_vec(from.finite(p)?);
        Ok(LaplaceSums { log_likelihood, gradient, hessian: from.triangle(p)? })
    }
}
