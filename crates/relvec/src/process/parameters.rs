//! Logarithms that are learned: for a single kernel its parameters; for a sum the parameters of all factors, the
//! amplitudes of the terms, and the periods.
//!
//! A single kernel sees features in units of their spread, [`Frame`], so that the result does not depend on their units.
//! A sum sees features as they are, and its parameters contain the units: gamma of column c is g / s_c^2, where g is
//! learned and s_c is the standard deviation.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};

use crate::design::name_largest;
use crate::error::{Error, Result};
use crate::kernel::{Form, Gamma, GammaRule, Kernel, Sum};
use crate::query::merged_rows::DistinctRows;

/// Largest effect of a deviation of a constant feature, relative to its magnitude.
const CONSTANT_EFFECT: f64 = 1e-14;

/// Weighted moments of each feature over all rows: mean, standard deviation and root mean square, `[D]`.
pub(crate) struct Moments {
    pub mean: Vec<f64>,
    /// Standard deviation; 0 for a feature that is the same on every row.
    pub deviation: Vec<f64>,
    pub size: Vec<f64>,
}

/// Units in which a kernel sees the features.
pub(crate) struct Frame<'a> {
    pub moments: &'a Moments,
    /// Features with an effect, ascending.
    pub live: Vec<usize>,
    /// Value that is subtracted from each feature, `[D]`, and the divisor, `[D]`.
    origin: Vec<f64>,
    unit: Vec<f64>,
    /// Power of the unit in gamma. It is 0 if the kernel sees features as they are, because it has no gamma to learn or
    /// is a sum.
    power: i32,
    /// True if all features have one unit.
    isotropic: bool,
}

impl Moments {
    /// Returns the moments of rows `x`, [N, D], with positive weights, `[N]`.
    pub fn new(x: ArrayView2<f64>, weights: &[f64]) -> Moments {
        let total: f64 = weights.iter().sum();
        let (mut mean, mut deviation, mut size) = (vec![], vec![], vec![]);
        for column in x.columns() {
            // Entries are divided by the largest one, so that squares stay in range.
            let largest = column.iter().fold(0.0f64, |m, v| m.max(v.abs()));
            let unit = if largest > 0.0 { largest } else { 1.0 };
            let sum = |f: &dyn Fn(f64) -> f64| column.iter().zip(weights).map(|(v, c)| c / total * f(v / unit)).sum::<f64>();
            let m = sum(&|v| v);
            let constant = column.iter().all(|v| *v == column[0]);
            mean.push(m * unit);
            deviation.push(if constant { 0.0 } else { unit * sum(&|v| (v - m).powi(2)).sqrt() });
            size.push(unit * sum(&|v| v * v).sqrt());
        }
        Moments { mean, deviation, size }
    }
}

impl<'a> Frame<'a> {
    /// Returns the units for a kernel. Errors name the largest entry of `rows`, [N, D].
    ///
    /// # Errors
    /// Returns [`Error::Overflow`] if the spread of a feature requires a gamma that is out of the range of numbers.
    pub fn new(kernel: &Kernel, moments: &'a Moments, rows: ArrayView2<f64>) -> Result<Frame<'a>> {
        let products = matches!(kernel.form(), Form::Products(_));
        let spread = if products { &moments.size } else { &moments.deviation };
        let live: Vec<usize> = (0..spread.len()).filter(|d| spread[*d] > 0.0).collect();
        let is_sum = kernel.as_sum().is_some();
        let power = match kernel.form() {
            _ if kernel.learned_rule().is_none() || is_sum => 0,
            Form::Absolutes(_) => 1,
            _ => 2,
        };
        let (origin, unit) = match power {
            0 => (vec![0.0; spread.len()], vec![1.0; spread.len()]),
            _ => (if products { vec![0.0; spread.len()] } else { moments.mean.clone() }, spread.clone()),
        };
        let isotropic = kernel.learned_rule() == Some(GammaRule::EvidenceIsotropic);
        let unit = if isotropic { vec![root_mean_square(live.iter().map(|d| unit[*d])); unit.len()] } else { unit };
        let (units, most) = if is_sum { (spread, 2) } else { (&unit, power) };
        if !live.iter().all(|d| units[*d].is_normal() && units[*d].powi(most).is_normal()) {
            let error = Error::Overflow { what: "gamma for features of this spread, or its inverse,".into() };
            return Err(name_largest(error, rows));
        }
        Ok(Frame { moments, live, origin, unit, power, isotropic })
    }

    /// Returns rows `x`, [n, D], in internal units, [n, features with an effect]. If no gamma is to be learned, all
    /// features are returned as they are.
    pub fn to_internal(&self, x: ArrayView2<f64>) -> Array2<f64> {
        if self.power == 0 {
            return x.to_owned();
        }
        let mut out = x.select(Axis(1), &self.live);
        for (mut column, d) in out.columns_mut().into_iter().zip(&self.live) {
            column.mapv_inplace(|v| (v - self.origin[*d]) / self.unit[*d]);
        }
        out
    }

    /// Returns the kernel in original units. Its gamma is one number, or one for each feature with an effect.
    ///
    /// # Errors
    /// Returns an error if a gamma is out of the range of numbers in original units.
    pub fn to_original(&self, kernel: &Kernel) -> Result<Kernel> {
        let features = self.unit.len();
        let Some(gamma) = kernel.gamma().filter(|_| self.power > 0) else { return Ok(kernel.clone()) };
        if self.isotropic {
            let kernel = kernel.with_gamma((gamma.at(0) / self.unit[0].powi(self.power)).into());
            return kernel.check().map(|()| kernel);
        }
        // The only known unit of a feature without effect is its own magnitude.
        let least = |d: usize| CONSTANT_EFFECT / self.moments.size[d].powi(self.power).max(1.0);
        let mut gammas: Vec<f64> = (0..features).map(least).collect();
        for (k, d) in self.live.iter().enumerate() {
            gammas[*d] = gamma.at(k) / self.unit[*d].powi(self.power);
        }
        let gamma: Gamma = if features == 1 { gammas[0].into() } else { gammas.into() };
        let kernel = kernel.with_gamma(gamma);
        kernel.check()?;
        Ok(kernel)
    }

    /// Returns the kernel to be learned, with the given gamma for each feature with an effect, or one for all.
    pub fn kernel(&self, kernel: &Kernel, gamma: f64, per_feature: bool) -> Kernel {
        match (self.power, per_feature) {
            (0, _) => kernel.clone(),
            (_, true) => kernel.with_gamma(vec![gamma; self.live.len()].into()),
            (_, false) => kernel.with_gamma(gamma.into()),
        }
    }
}

/// Returns the root mean square of positive numbers, whose squares may be out of range; 1 for no numbers.
fn root_mean_square(values: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let (count, most) = (values.len(), values.clone().fold(0.0, f64::max));
    if count == 0 { 1.0 } else { most * (values.map(|v| (v / most).powi(2)).sum::<f64>() / count as f64).sqrt() }
}

/// Bounds of the log amplitude.
const AMPLITUDE: (f64, f64) = (-6.0, 8.0);
/// Largest amplitude of log rates of unit variance. A nearly linear function has a wide kernel of large amplitude, which
/// continues its trend far beyond the rows, where counts grow with its exponential. On 32 tables with two features that
/// nearly agree, 29 then expected more than twice the largest count, up to 10^298 times; with this bound 3 do, at most 2.5
/// times, and with 9 it is 19, at most 23 times. `cargo xtask bench counts`, 100 and 400 rows: the mean deviance is 0.51 of
/// that of a constant, 0.56 with 9, and above 1,000 without a bound. On 96 generated tables of 100 rows the bound costs 0.010
/// nats for each row, and 9 costs 0.004.
const MOST_OF_LOG_RATES: f64 = 4.0;
/// Bounds of log gamma, for features of unit variance.
pub(super) const GAMMA: (f64, f64) = (-18.0, 6.0);
/// Bounds of the log noise variance, for targets of unit variance.
pub(crate) const NOISE: (f64, f64) = (-14.0, 2.0);
/// Largest change of the log of any other parameter from its initial value.
pub(super) const OTHERS: f64 = 4.0;
/// Prior standard deviation of the logs of parameters other than gamma, about their initial values.
pub(super) const OTHERS_SD: f64 = 2.0;
/// Divisor of a column without spread, relative to its magnitude, so that differences of rows by rounding have no
/// effect.
const CONSTANT_SPREAD: f64 = 1e7;
/// Largest change of a period, and its prior standard deviation, in turns of the phase at the end of the rows. The
/// evidence has its next maxima one turn away.
const TURNS: (f64, f64) = (1.0, 0.5);

/// A learned logarithm x, which sets some parameters of the kernel to exp(rate x + offset).
#[derive(Clone)]
pub(super) struct Parameter {
    pub start: f64,
    pub bounds: (f64, f64),
    /// Mean and standard deviation of the normal prior of x.
    pub prior: Option<(f64, f64)>,
    pub is_gamma: bool,
    rate: f64,
    /// Index and offset of each parameter that x sets.
    slots: Vec<(usize, f64)>,
}

/// The initial kernel, whose parameters are all numbers, and its learned logarithms, gammas first.
#[derive(Clone)]
pub(super) struct Parameters {
    pub kernel: Kernel,
    pub list: Vec<Parameter>,
    /// True if each term has a learned amplitude, which then includes the amplitude of the process.
    pub with_amplitude: bool,
}

/// Prior of the log amplitude, for targets of unit variance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AmplitudePrior {
    /// Mean and standard deviation, if it is not flat.
    pub normal: Option<(f64, f64)>,
    /// Variance of the log rates, if the targets are those of counts.
    pub log_rates: Option<f64>,
}

impl AmplitudePrior {
    pub const FLAT: AmplitudePrior = AmplitudePrior { normal: None, log_rates: None };

    /// Returns the least and the largest log amplitude.
    pub fn bounds(&self) -> (f64, f64) {
        let of_log_rates = |variance: f64| (MOST_OF_LOG_RATES * variance).ln().clamp(AMPLITUDE.0, AMPLITUDE.1);
        (AMPLITUDE.0, self.log_rates.map_or(AMPLITUDE.1, of_log_rates))
    }
}

impl Parameters {
    /// Returns the learned logarithms of a kernel for `rows` in the units of the frame.
    pub fn of(
        kernel: &Kernel,
        frame: &Frame,
        rows: &DistinctRows,
        length_sd: f64,
        per_feature: bool,
        amplitude: AmplitudePrior,
    ) -> Parameters {
        let learns = kernel.learned_rule().is_some();
        if let Some(sum) = kernel.as_sum().filter(|_| learns) {
            return Parameters::of_sum(sum, frame, rows, length_sd, per_feature, amplitude);
        }
        let (gamma, prior) = gamma_prior(kernel, frame.live.len().max(1), length_sd);
        let kernel = frame.kernel(kernel, gamma, per_feature);
        let own = if learns { kernel.parameters() } else { vec![] };
        let gammas = kernel.gamma().map_or(0, |gamma| gamma.parameters().len());
        let parameter =
            |(k, (_, v)): (usize, (String, f64))| Parameter::new(v.ln(), (k < gammas).then_some(prior), vec![(k, 0.0)]);
        let list = own.into_iter().enumerate().map(parameter).collect();
        Parameters { kernel, list, with_amplitude: false }
    }

    fn of_sum(
        mut sum: Sum,
        frame: &Frame,
        rows: &DistinctRows,
        length_sd: f64,
        per_feature: bool,
        amplitude: AmplitudePrior,
    ) -> Parameters {
        let terms = sum.terms.len() as f64;
        let with_amplitude = sum.terms.iter().all(|term| term.amplitude.is_none());
        let all: Vec<usize> = (0..rows.x.ncols()).collect();
        let (mut list, mut slot) = (vec![], 0);
        let moments = frame.moments;
        let spread =
            |c: usize| if moments.deviation[c] > 0.0 { moments.deviation[c] } else { CONSTANT_SPREAD * moments.size[c].max(1.0) };
        for term in &mut sum.terms {
            let (first, mut size) = (slot, 1.0);
            slot += 1;
            for factor in &mut term.factors {
                let columns = factor.columns.as_ref().unwrap_or(&all);
                let mut units: Vec<(f64, f64)> = columns.iter().map(|c| (moments.mean[*c], spread(*c))).collect();
                let live: Vec<usize> = columns.iter().copied().filter(|c| frame.live.contains(c)).collect();
                if matches!(factor.kernel.gamma(), Some(Gamma::Rule(GammaRule::EvidenceIsotropic))) && !live.is_empty() {
                    let unit = root_mean_square(live.iter().map(|c| spread(*c)));
                    units.iter_mut().for_each(|(_, own)| *own = unit);
                }
                let (gamma, prior) = gamma_prior(&factor.kernel, live.len().max(1), length_sd);
                let power = match factor.kernel.form() {
                    Form::Squares(_) => 2.0,
                    Form::Absolutes(_) => 1.0,
                    _ => 0.0,
                };
                if matches!(factor.kernel.form(), Form::Products(_)) && factor.units.is_empty() {
                    factor.units.clone_from(&units);
                }
                if let Some(Gamma::Rule(rule)) = factor.kernel.gamma().filter(|gamma| matches!(gamma, Gamma::Rule(_))) {
                    let each: Vec<(usize, f64)> = (slot..).zip(units.iter().map(|(_, scale)| -power * scale.ln())).collect();
                    let own_widths = *rule == GammaRule::EvidenceArd || per_feature && *rule == GammaRule::Evidence;
                    let ties = if own_widths { 1 } else { each.len() };
                    list.extend(each.chunks(ties).map(|slots| Parameter::new(gamma.ln(), Some(prior), slots.to_vec())));
                    let gammas: Vec<f64> = each.iter().map(|(_, offset)| gamma * offset.exp()).collect();
                    factor.kernel = factor.kernel.with_gamma(if columns.len() == 1 { gammas[0].into() } else { gammas.into() });
                    let others = factor.kernel.parameters().into_iter().enumerate().skip(each.len());
                    list.extend(others.filter_map(|(k, (_, v))| match &factor.kernel {
                        Kernel::Periodic(own) if own.fixed => None,
                        Kernel::Periodic(own) => Some(Parameter::of_period(own.number(), extent(&rows.x, columns), slot + k)),
                        _ => Some(Parameter::new(v.ln(), None, vec![(slot + k, 0.0)])),
                    }));
                }
                slot += factor.kernel.parameters().len();
                size *= mean_diagonal(&factor.kernel, &factor.inputs(rows.x.view()));
            }
            if term.amplitude.is_none() {
                let (size, share) = (size.max(f64::MIN_POSITIVE).ln(), terms.ln());
                term.amplitude = Some((-size - share).exp());
                let prior = amplitude.normal.map(|(mean, sd)| (mean - size - share, sd));
                let bounds = (NOISE.0 - size, amplitude.bounds().1 - size);
                list.push(Parameter { bounds, prior, ..Parameter::new(-size - share, None, vec![(first, 0.0)]) });
            }
        }
        list.sort_by_key(|parameter| !parameter.is_gamma);
        Parameters { kernel: sum.into(), list, with_amplitude }
    }

    /// Returns the number of gammas.
    pub fn gammas(&self) -> usize {
        self.list.iter().filter(|parameter| parameter.is_gamma).count()
    }

    /// Returns the logarithms of a kernel with one width for each feature, from those of the same kernel with fewer
    /// widths, `x`.
    pub fn widened(&self, fewer: &Parameters, x: &[f64]) -> Vec<f64> {
        let sets = |other: &Parameter, slot: usize| other.slots.iter().any(|(own, _)| *own == slot);
        let is_sum = self.kernel.as_sum().is_some();
        let of = |(k, parameter): (usize, &Parameter)| {
            let place = match () {
                () if is_sum => fewer.list.iter().position(|other| sets(other, parameter.slots[0].0)),
                () if parameter.is_gamma => Some(0),
                () => Some(k + fewer.list.len() - self.list.len()),
            };
            x[place.expect("each parameter has a value with fewer widths")]
        };
        self.list.iter().enumerate().map(of).collect()
    }

    /// Returns the kernel at the logarithms `x`, one for each entry of the list.
    pub fn at(&self, x: &[f64]) -> Kernel {
        if self.list.is_empty() {
            return self.kernel.clone();
        }
        let mut values: Vec<f64> = self.kernel.parameters().into_iter().map(|(_, v)| v).collect();
        for (parameter, x) in self.list.iter().zip(x) {
            parameter.slots.iter().for_each(|(slot, offset)| values[*slot] = (parameter.rate * x + offset).exp());
        }
        self.kernel.with_parameters(&values)
    }

    /// Returns the kernel and the log amplitude of the process, which was `log_amplitude`. If all amplitudes of terms
    /// are learned, they are divided by their sum, by which the amplitude is multiplied.
    pub fn shares(&self, mut kernel: Kernel, log_amplitude: f64) -> (Kernel, f64) {
        let Some(Kernel::Sum(sum)) = self.with_amplitude.then_some(&mut kernel) else { return (kernel, log_amplitude) };
        let total: f64 = sum.terms.iter().filter_map(|term| term.amplitude).sum();
        sum.terms.iter_mut().for_each(|term| term.amplitude = term.amplitude.map(|own| own / total));
        (kernel, log_amplitude + total.ln())
    }

    /// Returns the derivatives in the learned logarithms, from those in the logs of the kernel's parameters.
    pub fn gradient(&self, by_parameters: &[f64]) -> Vec<f64> {
        let of =
            |parameter: &Parameter| parameter.rate * parameter.slots.iter().map(|(slot, _)| by_parameters[*slot]).sum::<f64>();
        self.list.iter().map(of).collect()
    }
}

impl Parameter {
    fn new(start: f64, gamma: Option<(f64, f64)>, slots: Vec<(usize, f64)>) -> Parameter {
        let bounds = if gamma.is_some() { GAMMA } else { (start - OTHERS, start + OTHERS) };
        let prior = Some(gamma.unwrap_or((start, OTHERS_SD)));
        Parameter { start, bounds, prior, is_gamma: gamma.is_some(), rate: 1.0, slots }
    }

    /// Returns a parameter x that counts the turns by which a period changes the phase at the end of `extent`.
    fn of_period(period: f64, extent: f64, slot: usize) -> Parameter {
        let own = Parameter::new(0.0, None, vec![(slot, period.ln())]);
        Parameter { bounds: (-TURNS.0, TURNS.0), prior: Some((0.0, TURNS.1)), rate: period / extent.max(period), ..own }
    }
}

/// Returns the initial gamma, in units of the features' spread, and the prior mean and standard deviation of its log.
///
/// gamma = 1 / (2 l^2) for squared differences and 1 / l for absolute differences. Products grow with the number of
/// features.
pub(super) fn gamma_prior(kernel: &Kernel, features: usize, length_sd: f64) -> (f64, (f64, f64)) {
    let d = features as f64;
    let root2 = 2f64.sqrt();
    match kernel.form() {
        Form::Absolutes(_) => (1.0 / d, (-root2 - d.ln(), length_sd)),
        Form::Products(_) => (1.0 / d, (-d.ln(), 2.0 * length_sd)),
        Form::Squares(_) | Form::Other => (0.5 / d, (-2.0 * root2 - d.ln() - 2f64.ln(), 2.0 * length_sd)),
    }
}

/// Returns the mean of k(x, x) over rows `x`, [n, D].
pub(super) fn mean_diagonal(kernel: &Kernel, x: &Array2<f64>) -> f64 {
    if kernel.is_local() {
        return 1.0;
    }
    let mut own = Array2::zeros((1, 1));
    let of_row = |row: ArrayView1<f64>| {
        let row = row.insert_axis(Axis(0));
        kernel.block(row, row, own.view_mut());
        own[[0, 0]].abs()
    };
    x.outer_iter().map(of_row).sum::<f64>() / x.nrows().max(1) as f64
}

/// Returns the largest range of the values in some columns of `x`, [n, D].
fn extent(x: &Array2<f64>, columns: &[usize]) -> f64 {
    let of = |c: &usize| x.column(*c).iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (v.min(low), v.max(high)));
    columns.iter().map(of).map(|(low, high)| high - low).fold(0.0, f64::max)
}
