//! Sums of products of kernels on chosen columns.

use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};
use serde::{Deserialize, Serialize};

use super::form::Form;
use super::{DataScale, Fill, Gamma, GammaRule, Kernel, KernelFunction, Rbf, finite, positive};
use crate::error::{Result, require};
use crate::prelude::*;

/// sum_t amplitude_t prod_f k_tf(x, x'), where every factor has columns of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sum {
    /// Terms of the sum, at least one.
    pub terms: Vec<Term>,
}

/// A product of kernels with an amplitude.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// Weight of the term, > 0. The amplitude of a process multiplies all terms in addition. If it is `None`, the
    /// evidence learns it; it is 1 if nothing is learned.
    #[serde(default)]
    pub amplitude: Option<f64>,
    /// Factors of the product, at least one.
    pub factors: Vec<Factor>,
}

/// A kernel of z_c = (x_c - o_c) / s_c for some columns c.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// The kernel of the factor. It is not a sum, and is a covariance at all rows: neither sigmoid nor linear_spline,
    /// nor poly with coef0 < 0.
    pub kernel: Kernel,
    /// The columns, `[C]`; `None` for all columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<usize>>,
    /// Origin o_c and scale s_c > 0 of each column, `[C]`; empty for 0 and 1. If a sum is learned, linear and poly use
    /// the mean and the standard deviation of the rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<(f64, f64)>,
}

impl Default for Sum {
    fn default() -> Self {
        Sum::of(Rbf { gamma: 1.0.into() }.into())
    }
}

impl Factor {
    /// Returns a factor with `kernel` on all columns without scaling.
    pub fn new(kernel: impl Into<Kernel>) -> Factor {
        Factor { kernel: kernel.into(), columns: None, units: vec![] }
    }

    /// Returns the scaled columns of rows `x`, [n, D], that the kernel is computed from: [n, C].
    #[doc(hidden)]
    pub fn inputs(&self, x: ArrayView2<f64>) -> Array2<f64> {
        let mut z = self.columns.as_ref().map_or_else(|| x.to_owned(), |columns| x.select(Axis(1), columns));
        for (mut z, (origin, scale)) in z.columns_mut().into_iter().zip(&self.units) {
            z.mapv_inplace(|x| (x - origin) / scale);
        }
        z
    }

    fn check(&self, place: &str) -> Result<()> {
        let (own, columns) = (&self.kernel, self.columns.as_deref().unwrap_or(&[0]));
        let suits = !matches!(own, Kernel::Sum(_) | Kernel::LinearSpline(_)) && own.is_covariance();
        let expected = "no sum, and a covariance at all rows: neither sigmoid nor linear_spline, nor poly with coef0 < 0";
        require(suits, || format!("{place}.kernel"), own.name(), expected)?;
        let each_once = !columns.is_empty() && (1..columns.len()).all(|k| !columns[..k].contains(&columns[k]));
        require(each_once, || format!("{place}.columns"), format!("{columns:?}"), "at least one column, each one once")?;
        self.units
            .iter()
            .try_for_each(|(o, s)| finite(&format!("{place}.units"), *o).and(positive(&format!("{place}.units"), *s)))?;
        own.check()
    }

    /// Checks columns and units against D features. Replaces the rules of gamma that need no targets by numbers, or
    /// every rule if `all`.
    fn resolve(&mut self, place: &str, data: &DataScale, all: bool) -> Result<()> {
        let features = self.columns.as_ref().map_or(data.features, Vec::len);
        let largest = self.columns.iter().flatten().max().copied().unwrap_or(0);
        let expected = format!("columns from 0 to {}", data.features.saturating_sub(1));
        require(largest < data.features.max(1), || format!("{place}.columns"), largest, &expected)?;
        let (found, expected) = (format!("{} pairs", self.units.len()), format!("one for each of {features} columns"));
        require(self.units.is_empty() || self.units.len() == features, || format!("{place}.units"), found, &expected)?;
        match self.kernel.gamma() {
            Some(Gamma::Rule(rule)) if rule.is_learned() && !all => Ok(()),
            _ => self.kernel.as_dyn_mut().resolve(&DataScale { features, ..*data }),
        }
    }
}

impl Sum {
    /// Returns a sum with `kernel` as its only term.
    pub(super) fn of(kernel: Kernel) -> Sum {
        Sum { terms: vec![Term { amplitude: Some(1.0), factors: vec![Factor::new(kernel)] }] }
    }

    /// Returns true if the sum has anything to learn.
    pub(super) fn learns(&self) -> bool {
        let gammas = self.terms.iter().flat_map(|term| &term.factors).map(|factor| factor.kernel.gamma());
        let learns = |gamma: Option<&Gamma>| matches!(gamma, Some(Gamma::Rule(rule)) if rule.is_learned());
        self.terms.iter().any(|term| term.amplitude.is_none()) || gammas.into_iter().any(learns)
    }

    /// Returns true if the rule of a factor of several columns chooses between one width and one for each column.
    pub(super) fn chooses_widths(&self) -> bool {
        let chooses = |factor: &Factor| {
            let several = factor.columns.as_ref().is_none_or(|columns| columns.len() > 1);
            several && matches!(factor.kernel.gamma(), Some(Gamma::Rule(GammaRule::Evidence)))
        };
        self.terms.iter().flat_map(|term| &term.factors).any(chooses)
    }

    fn resolve_factors(&mut self, data: &DataScale, all: bool) -> Result<()> {
        for (t, term) in self.terms.iter_mut().enumerate() {
            for (f, factor) in term.factors.iter_mut().enumerate() {
                factor.resolve(&format!("kernel.sum.terms[{t}].factors[{f}]"), data, all)?;
            }
        }
        Ok(())
    }
}

impl KernelFunction for Sum {
    fn check(&self) -> Result<()> {
        require(!self.terms.is_empty(), || "kernel.sum.terms".into(), "none", "at least one")?;
        for (t, term) in self.terms.iter().enumerate() {
            let place = format!("kernel.sum.terms[{t}]");
            positive(&format!("{place}.amplitude"), term.amplitude.unwrap_or(1.0))?;
            require(!term.factors.is_empty(), || format!("{place}.factors"), "none", "at least one")?;
            for (f, factor) in term.factors.iter().enumerate() {
                factor.check(&format!("{place}.factors[{f}]"))?;
            }
        }
        Ok(())
    }

    fn resolve(&mut self, data: &DataScale) -> Result<()> {
        self.terms.iter_mut().for_each(|term| term.amplitude = term.amplitude.or(Some(1.0)));
        self.resolve_factors(data, true)
    }

    fn block(&self, a: ArrayView2<f64>, b: ArrayView2<f64>, out: ArrayViewMut2<f64>) {
        self.at(b)(a, out);
    }

    fn at<'a>(&'a self, b: ArrayView2<f64>) -> Fill<'a> {
        let fills = |term: &'a Term| term.factors.iter().map(|one| (one, one.kernel.at(one.inputs(b).view()))).collect();
        let all: Vec<(&Term, Vec<(&Factor, Fill)>)> = self.terms.iter().map(|term| (term, fills(term))).collect();
        Box::new(move |a, mut out| {
            out.fill(0.0);
            let (mut product, mut next) = (Array2::zeros(out.dim()), Array2::zeros(out.dim()));
            for (term, fills) in &all {
                product.fill(term.amplitude.expect("the kernel is resolved"));
                for (factor, fill) in fills {
                    fill(factor.inputs(a).view(), next.view_mut());
                    product *= &next;
                }
                out += &product;
            }
        })
    }

    fn parameters(&self) -> Vec<(String, f64)> {
        let mut all = vec![];
        for (t, term) in self.terms.iter().enumerate() {
            all.extend(term.amplitude.map(|v| (format!("terms[{t}].amplitude"), v)));
            for (f, factor) in term.factors.iter().enumerate() {
                let own = factor.kernel.parameters().into_iter();
                all.extend(own.map(|(name, v)| (format!("terms[{t}].factors[{f}].{name}"), v)));
            }
        }
        all
    }

    fn set_parameters(&mut self, mut values: &[f64]) {
        let mut take = |count: usize| values.split_off(..count).expect("one for each parameter");
        for term in &mut self.terms {
            term.amplitude = term.amplitude.map(|_| take(1)[0]);
            for factor in &mut term.factors {
                let count = factor.kernel.parameters().len();
                factor.kernel.as_dyn_mut().set_parameters(take(count));
            }
        }
    }

    fn form(&self) -> Form<'_> {
        Form::Other
    }
}

impl Kernel {
    /// Returns the kernel as a sum, if it is a sum or periodic. Such kernels are learned in the units of the columns,
    /// and as a sum.
    #[doc(hidden)]
    pub fn as_sum(&self) -> Option<Sum> {
        match self {
            Kernel::Sum(sum) => Some(sum.clone()),
            Kernel::Periodic(_) => Some(Sum::of(self.clone())),
            _ => None,
        }
    }

    /// Returns a copy of a kernel to be learned, with every rule of a sum replaced that does not need the targets.
    ///
    /// # Errors
    /// Returns an error for columns that the data do not have, and for another number of scales than columns.
    #[doc(hidden)]
    pub fn prepared(&self, data: &DataScale) -> Result<Kernel> {
        let mut kernel = self.clone();
        if let Kernel::Sum(sum) = &mut kernel {
            sum.resolve_factors(data, false)?;
        }
        Ok(kernel)
    }
}
