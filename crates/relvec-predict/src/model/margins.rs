//! Margins of a support vector machine, which has no posterior: votes, and probabilities by Platt's sigmoid.

use ndarray::{Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};

use super::classes::{couple, log_sigmoid};
use super::{Model, Moderation};
use crate::error::{Error, Result};
use crate::multi_class::MultiClass;
use crate::prelude::*;

/// Data of a support vector machine beside its expansion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Margins {
    /// Name of the formulation.
    pub formulation: String,
    /// The number of classes; `None` for regression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<usize>,
    /// How more than two classes are modelled. There is one function for each class, or one for each pair k < l in the
    /// order (0, 1), (0, 2), (1, 2), (0, 3) and so on, positive for l.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multi_class: Option<MultiClass>,
    /// The class of each support vector, `[M]`; empty in regression.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vector_classes: Vec<usize>,
    /// Minimum of the dual problem of each function, (M39), `[C]`.
    pub objective: Vec<f64>,
    /// Number of support vectors inside the margin or on its wrong side. Their multiplier is at its upper bound for one
    /// of the functions.
    pub bounded: usize,
    /// Parameters A and B of p = 1 / (1 + exp(A f + B)), (M43), for each function f, `[C]`; empty without
    /// probabilities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sigmoids: Vec<[f64; 2]>,
}

impl Margins {
    /// Returns log probabilities of the classes, [N, K], from the values of the functions, [N, C].
    pub(super) fn log_probability(&self, f: &Array2<f64>) -> Result<Array2<f64>> {
        if self.sigmoids.is_empty() {
            return Err(Error::NoProbability);
        }
        let odds = Array2::from_shape_fn(f.dim(), |(n, c)| -(self.sigmoids[c][0] * f[[n, c]] + self.sigmoids[c][1]));
        let Some(rule) = self.multi_class else {
            return Ok(Array2::from_shape_fn((f.nrows(), 2), |(n, k)| {
                log_sigmoid(if k == 0 { -odds[[n, 0]] } else { odds[[n, 0]] })
            }));
        };
        Ok(couple(rule, self.classes.unwrap_or(2), &odds.mapv(log_sigmoid)))
    }

    /// Returns the class that the functions of a row, `[F]`, vote for; the first of equal ones.
    fn class(&self, f: ArrayView1<f64>) -> usize {
        let classes = self.classes.unwrap_or(2);
        match self.multi_class {
            None => usize::from(f[0] > 0.0),
            Some(MultiClass::OneVsOne) => {
                let mut votes = vec![0.0; classes];
                for l in 1..classes {
                    for k in 0..l {
                        votes[if f[l * (l - 1) / 2 + k] > 0.0 { l } else { k }] += 1.0;
                    }
                }
                largest(ArrayView1::from(&votes))
            }
            Some(_) => largest(f),
        }
    }
}

impl Model {
    /// Returns the values of the functions at the rows of `x`, [N, D], as [N, C]. For an RVM they are the posterior
    /// means, for a support vector machine the distances from the boundary (in the norm of the weights). Positive
    /// values mean the second of two classes.
    ///
    /// # Errors
    /// Returns an error for another number of columns than the model's, a value that is not finite, or an external
    /// kernel.
    pub fn decision_function(&self, x: ArrayView2<f64>) -> Result<Array2<f64>> {
        self.check_rows(x)?;
        self.finite_means(x)
    }

    /// Returns the decision function, [N, C], from the values of the basis functions in the model, `[N, M]`. It serves
    /// kernels that the caller computes.
    ///
    /// # Errors
    /// Returns an error for another number of columns than there are weights, or a value that is not finite.
    pub fn decision_from_basis(&self, phi: ArrayView2<f64>) -> Result<Array2<f64>> {
        self.check_basis(phi)?;
        self.as_external().finite_means(phi)
    }

    /// Returns the number of the most probable class of each row of `x`, [N, D], as `[N]`. For a support vector machine
    /// it is the class that its functions vote for, the first of those with equally many votes.
    ///
    /// # Errors
    /// Returns an error for a model that is not a classifier, and the errors of [`Model::decision_function`].
    pub fn predict_class(&self, x: ArrayView2<f64>) -> Result<Vec<usize>> {
        match &self.margins {
            Some(_) => self.vote(&self.decision_function(x)?),
            None => {
                let probability = self.predict_log_probability(x, Moderation::Posterior)?;
                Ok(probability.outer_iter().map(largest).collect())
            }
        }
    }

    /// Returns the classes that the values of the functions of a support vector machine, [N, C], vote for.
    ///
    /// # Errors
    /// Returns an error for a model that is not a support vector classifier, or another number of columns.
    pub fn vote(&self, f: &Array2<f64>) -> Result<Vec<usize>> {
        let margins = self.margins.as_ref().filter(|m| m.classes.is_some());
        let expected = "votes: found another model, expected a support vector classifier";
        let margins = margins.ok_or_else(|| Error::Targets(expected.into()))?;
        if f.ncols() != self.outputs() {
            let (expected, found) = (format!("{} columns", self.outputs()), format!("{} columns", f.ncols()));
            return Err(Error::Shape { what: "values of the functions", expected, found });
        }
        Ok(f.outer_iter().map(|row| margins.class(row)).collect())
    }

    /// Returns the function values, `[N, F]`, at rows `x`, `[N, D]`; a value that overflows is an error.
    pub(super) fn finite_means(&self, x: ArrayView2<f64>) -> Result<Array2<f64>> {
        let f = self.means(x);
        match f.outer_iter().position(|row| row.iter().any(|v| !v.is_finite())) {
            Some(row) => Err(super::beyond(row)),
            None => Ok(f),
        }
    }
}

/// Returns the index of the largest entry of `v`, `[K]`, the first of equal ones.
pub(super) fn largest(v: ArrayView1<f64>) -> usize {
    (1..v.len()).fold(0, |best, k| if v[k] > v[best] { k } else { best })
}
