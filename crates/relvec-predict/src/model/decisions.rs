//! Decisions from class probabilities: other priors than those of the training rows, costs and rejection.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

use super::margins::largest;
use super::{Model, Moderation};
use crate::error::{Error, Result, require};
use crate::likelihood::normalise;
use crate::prelude::*;

/// Largest deviation of the sum of priors from 1. It covers the rounding of computed priors and of ones written with
/// ten digits.
const PRIOR_SUM: f64 = 1e-9;

/// Rules that turn class probabilities into decisions. By default the most probable class is chosen, and nothing is
/// rejected.
///
/// No other fit is needed, because the model predicts probabilities (Tipping 1999, section 5).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// Class probabilities of the population that decisions are made for, `[K]`, zero or positive and summing to 1
    /// (within 1e-9), (M44). `None` uses those of the training rows.
    pub prior: Option<Vec<f64>>,
    /// Costs, zero or positive, of each decision (columns) for each true class (rows), [K, K], (M45). Correct
    /// decisions, on the diagonal, usually cost 0. With `None`, each error costs 1.
    pub costs: Option<Array2<f64>>,
    /// Probability in (0, 1) below which a decision is rejected, (M46). It cannot be combined with `costs`.
    pub reject: Option<f64>,
    /// Cost of rejecting a row, zero or positive, (M46). A row is rejected if its smallest expected cost is higher. It
    /// requires `costs`.
    pub reject_cost: Option<f64>,
}

/// Decisions, one per row.
#[derive(Debug, Clone, PartialEq)]
pub struct Decisions {
    /// Numbers of the chosen classes, `[N]`. For a rejected row it is the class that would have been chosen.
    pub label: Vec<usize>,
    /// Probabilities of the chosen classes, `[N]`.
    pub probability: Array1<f64>,
    /// Probabilities of all classes, [N, K], with the priors of the decision.
    pub probabilities: Array2<f64>,
    /// True for each rejected row, `[N]`.
    pub rejected: Vec<bool>,
    /// Expected cost of each row, `[N]`; `reject_cost` if the row is rejected. `None` without costs.
    pub expected_cost: Option<Array1<f64>>,
}

impl Decision {
    /// Checks the rules for this number of classes.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::Parameter`] names what is wrong.
    pub fn check(&self, classes: usize) -> Result<()> {
        self.prior.as_deref().map_or(Ok(()), |prior| check_prior(prior, classes))?;
        if let Some(costs) = &self.costs {
            check_costs(costs, classes)?;
        }
        if let Some(p) = self.reject {
            let expected = "no value, since reject cannot be combined with costs; set reject_cost";
            require(self.costs.is_none(), || "reject".into(), p, expected)?;
            require(p > 0.0 && p < 1.0, || "reject".into(), p, "a least probability in (0, 1)")?;
        }
        if let Some(cost) = self.reject_cost {
            let expected = "no value, since reject_cost requires costs; set reject, a least probability";
            require(self.costs.is_some(), || "reject_cost".into(), cost, expected)?;
            require(cost.is_finite() && cost >= 0.0, || "reject_cost".into(), cost, "a finite cost, zero or positive")?;
        }
        Ok(())
    }

    /// Returns true if rows may be rejected.
    pub fn rejects(&self) -> bool {
        self.reject.is_some() || self.reject_cost.is_some()
    }

    /// Decides from log probabilities, [N, K], that include the prior, (M45), (M46).
    fn decide(&self, log_probability: &Array2<f64>) -> Decisions {
        let probabilities = log_probability.mapv(f64::exp);
        let Some(costs) = &self.costs else {
            // The logarithms distinguish probabilities that round to 1.
            let label: Vec<usize> = log_probability.outer_iter().map(largest).collect();
            let probability = chosen(&probabilities, &label);
            let rejected = probability.iter().map(|p| self.reject.is_some_and(|least| *p < least)).collect();
            return Decisions { label, probability, probabilities, rejected, expected_cost: None };
        };
        let expected = probabilities.dot(costs);
        let label: Vec<usize> = expected.outer_iter().map(smallest).collect();
        let mut cost = chosen(&expected, &label);
        let rejected = cost.iter_mut().map(|cost| reject_dearer(cost, self.reject_cost)).collect();
        Decisions { probability: chosen(&probabilities, &label), label, probabilities, rejected, expected_cost: Some(cost) }
    }
}

impl Model {
    /// Decides on the rows of `x`, [N, D], from moderated probabilities. A support vector machine uses Platt's
    /// probabilities, which may disagree with its votes.
    ///
    /// # Errors
    /// Returns an error if the decision does not suit the classes, or if it has a prior and the model has no
    /// [`Model::class_frequencies`]. Returns the errors of [`Model::predict_probability`] as well.
    pub fn decide(&self, x: ArrayView2<f64>, decision: &Decision) -> Result<Decisions> {
        self.check_decision(decision)?;
        self.decide_by(self.predict_log_probability(x, Moderation::Posterior)?, decision)
    }

    /// Decides from log probabilities, `[N, K]`, of this model, from [`Model::predict_log_probability`] or
    /// [`Model::log_probability_from_basis`].
    ///
    /// # Errors
    /// Returns an error if the decision does not suit the classes, if it has a prior and the model has no
    /// [`Model::class_frequencies`], or if the number of columns differs from the number of classes.
    pub fn decide_by(&self, log_probability: Array2<f64>, decision: &Decision) -> Result<Decisions> {
        self.check_decision(decision)?;
        self.check_log(&log_probability)?;
        let log_probability = match &decision.prior {
            Some(prior) => self.shift_prior(log_probability, prior)?,
            None => log_probability,
        };
        Ok(decision.decide(&log_probability))
    }

    /// Returns log probabilities, [N, K], of this model for classes with the probabilities `prior`, `[K]`, instead of
    /// those of the training rows, (M44).
    ///
    /// # Errors
    /// Returns an error if the prior does not suit the classes, if the model has no [`Model::class_frequencies`], or if
    /// the number of columns differs from the number of classes.
    pub fn shift_prior(&self, log_probability: Array2<f64>, prior: &[f64]) -> Result<Array2<f64>> {
        self.check_log(&log_probability)?;
        check_prior(prior, self.n_classes().unwrap_or(0))?;
        if self.class_frequencies.is_empty() {
            return Err(Error::NoClassFrequencies);
        }
        let log_prior: Vec<f64> = prior.iter().map(|p| p.ln()).collect();
        let shift: Vec<f64> = log_prior.iter().zip(&self.class_frequencies).map(|(l, f)| l - f.ln()).collect();
        let mut out = match log_probability.is_standard_layout() {
            true => log_probability,
            false => log_probability.as_standard_layout().into_owned(),
        };
        for mut row in out.outer_iter_mut() {
            row += &ArrayView1::from(&shift);
            // If the model gives every possible class the probability 0, the prior is all that is known.
            if row.iter().all(|v| *v == f64::NEG_INFINITY) {
                row.assign(&ArrayView1::from(&log_prior));
            }
            normalise(row.as_slice_mut().expect("rows are contiguous"));
        }
        Ok(out)
    }

    fn check_decision(&self, decision: &Decision) -> Result<()> {
        self.check_classifier()?;
        decision.check(self.n_classes().unwrap_or(0))?;
        match decision.prior.is_some() && self.class_frequencies.is_empty() {
            true => Err(Error::NoClassFrequencies),
            false => Ok(()),
        }
    }

    /// Checks log probabilities, `[N, K]`: there is a column for each class, and none is NaN or plus infinity.
    fn check_log(&self, log_probability: &Array2<f64>) -> Result<()> {
        self.check_classifier()?;
        let (what, classes, found) = ("log probabilities", self.n_classes().unwrap_or(0), log_probability.ncols());
        if found != classes {
            let expected = format!("{classes} columns, one for each class");
            return Err(Error::Shape { what, expected, found: format!("{found} columns") });
        }
        match log_probability.indexed_iter().find(|(_, v)| !(**v < f64::INFINITY)) {
            Some(((row, column), value)) => Err(Error::NotFinite { what, row, column, value: *value }),
            None => Ok(()),
        }
    }
}

fn check_prior(prior: &[f64], classes: usize) -> Result<()> {
    let expected = format!("a probability for each of the {classes} classes");
    require(prior.len() == classes, || "prior".into(), format!("{} numbers", prior.len()), &expected)?;
    if let Some((k, p)) = prior.iter().enumerate().find(|(_, p)| !(p.is_finite() && **p >= 0.0)) {
        return require(false, || format!("prior[{k}]"), p, "a probability, zero or positive");
    }
    let found = format!("probabilities that sum to {}", prior.iter().sum::<f64>());
    require(sums_to_one(prior), || "prior".into(), found, "a sum of 1 (within 1e-9)")
}

pub(super) fn sums_to_one(shares: &[f64]) -> bool {
    (shares.iter().sum::<f64>() - 1.0).abs() <= PRIOR_SUM
}

fn check_costs(costs: &Array2<f64>, classes: usize) -> Result<()> {
    if costs.dim() != (classes, classes) {
        let expected = format!("[{classes}, {classes}], a row for each true class and a column for each decision");
        return Err(Error::Shape { what: "costs", expected, found: format!("[{}, {}]", costs.nrows(), costs.ncols()) });
    }
    match costs.indexed_iter().find(|(_, cost)| !(cost.is_finite() && **cost >= 0.0)) {
        Some(((k, j), cost)) => require(false, || format!("costs[{k}, {j}]"), cost, "a finite cost, zero or positive"),
        None => Ok(()),
    }
}

/// Returns the entry of each row of `values`, `[N, K]`, at its label: `[N]`.
fn chosen(values: &Array2<f64>, label: &[usize]) -> Array1<f64> {
    label.iter().enumerate().map(|(n, k)| values[[n, *k]]).collect()
}

/// Returns true if rejecting costs less, and sets `cost` to the cost of rejecting.
fn reject_dearer(cost: &mut f64, reject_cost: Option<f64>) -> bool {
    match reject_cost {
        Some(limit) if *cost > limit => {
            *cost = limit;
            true
        }
        _ => false,
    }
}

/// Returns the index of the smallest entry of `v`, `[K]`, the first of equal ones.
fn smallest(v: ArrayView1<f64>) -> usize {
    (1..v.len()).fold(0, |best, k| if v[k] < v[best] { k } else { best })
}
