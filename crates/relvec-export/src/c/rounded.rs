//! Tables of 16-bit whole numbers: the model that they represent, and its difference from the fitted model.

use ndarray::{Array2, ArrayView1, Axis};
use relvec_predict::{FittedBasis, Model};

use crate::error::Result;
use crate::examples::{Expected, between_vectors, expected};

/// The largest whole number in a table.
const LARGEST: f64 = 32767.0;
/// Most rows at which the models are compared, on the lines between neighbouring centres.
const ROWS: usize = 1000;
/// Most numbers of these rows (80 MB). With many features there are fewer rows.
const MOST_NUMBERS: usize = 10_000_000;

/// Rounding to whole multiples of a step about a middle: values are `middle + step q`.
pub(super) struct Steps {
    pub middle: f64,
    pub step: f64,
}

impl Steps {
    /// Returns the steps for values on both sides of 0.
    pub fn about_zero(values: impl Iterator<Item = f64>) -> Steps {
        Steps::within(0.0, values.fold(0.0, |most, v| most.max(v.abs())))
    }

    /// Returns the steps for values about the middle of their range.
    pub fn about_middle(values: ArrayView1<f64>) -> Steps {
        let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)));
        Steps::within(low + (high - low) / 2.0, (high - low) / 2.0)
    }

    fn within(middle: f64, reach: f64) -> Steps {
        // Step and middle are in single precision in the header, so the measured model uses the same values.
        let single = |v: f64| f64::from(v as f32);
        Steps { middle: single(middle), step: if reach > 0.0 { single(reach / LARGEST * (1.0 + 1e-6)) } else { 1.0 } }
    }

    /// Returns q.
    pub fn whole(&self, v: f64) -> f64 {
        ((v - self.middle) / self.step).round().clamp(-LARGEST, LARGEST)
    }

    fn rounded(&self, v: f64) -> f64 {
        self.middle + self.step * self.whole(v)
    }
}

/// Tables of whole numbers: centres by feature, and optionally triangular factors by row. Weights are few and cancel,
/// so they are not rounded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounded {
    /// True if triangular factors are rounded.
    pub triangles: bool,
}

/// Returns the model that the tables represent.
pub(super) fn rounded(model: &Model, which: Rounded) -> Model {
    let mut out = model.clone();
    if let FittedBasis::Kernel { centres, .. } = &mut out.expansion.basis {
        round_columns(centres);
    }
    let of_posterior = out.posterior.iter_mut().flat_map(|posterior| &mut posterior.factor);
    let of_prior = out.process.iter_mut().flat_map(|process| &mut process.factor);
    of_posterior.chain(of_prior).filter(|_| which.triangles).for_each(|row| round_row(row));
    let own_centres = out.expansion.basis.clone();
    if let Some(committee) = &mut out.committee {
        committee.members.iter_mut().for_each(|member| {
            let shared = shared_centres(model, &own_centres, member);
            *member = rounded(member, which);
            // The tables contain shared centres once.
            if let (Some(shared), FittedBasis::Kernel { centres, .. }) = (shared, &mut member.expansion.basis) {
                *centres = shared;
            }
        });
    }
    out
}

/// Returns the rounded centres of a binary model with the kernel of the whole model.
fn shared_centres(model: &Model, rounded: &FittedBasis, member: &Model) -> Option<Array2<f64>> {
    let FittedBasis::Kernel { centres, kernel } = rounded else { return None };
    let place = |row: &usize| model.relevance.iter().position(|r| r == row);
    let places: Vec<usize> = member.relevance.iter().map(place).collect::<Option<_>>()?;
    (member.kernel() == Some(kernel)).then(|| centres.select(Axis(0), &places))
}

fn round_columns(a: &mut Array2<f64>) {
    for mut column in a.columns_mut().into_iter().filter(|column| !column.is_empty()) {
        let steps = Steps::about_middle(column.view());
        column.mapv_inplace(|v| steps.rounded(v));
    }
}

/// Rounds the entries to the left of the diagonal.
fn round_row(row: &mut [f64]) {
    if let Some((_, lower)) = row.split_last_mut() {
        let steps = Steps::about_zero(lower.iter().copied());
        lower.iter_mut().for_each(|v| *v = steps.rounded(*v));
    }
}

/// Returns the largest changes of predictions between two models, each with its unit.
pub(super) fn changes(model: &Model, rounded: &Model) -> Result<Vec<(&'static str, f64, &'static str)>> {
    let rows = between_vectors(model, ROWS.min(MOST_NUMBERS / model.n_features.max(1)));
    let largest = |pairs: &mut dyn Iterator<Item = f64>| pairs.fold(0.0f64, |most, v| if v <= most { most } else { v });
    let apart = |a: &Array2<f64>, b: &Array2<f64>| largest(&mut a.iter().zip(b).map(|(a, b)| (a - b).abs()));
    Ok(match (expected(model, &rows)?, expected(rounded, &rows)?) {
        (Expected::Values { mean, std: Some(std) }, Expected::Values { mean: other, std: Some(other_std) }) => {
            let of_mean = mean.iter().zip(&other).zip(&std).map(|((a, b), s)| (a - b).abs() / s);
            // Equal infinite standard deviations count as no change.
            let of_std = std.iter().zip(&other_std).map(|(a, b)| if a == b { 0.0 } else { (b / a - 1.0).abs() });
            vec![
                ("a mean", largest(&mut of_mean.into_iter()), "its standard deviation"),
                ("a standard deviation", largest(&mut of_std.into_iter()), "itself"),
            ]
        }
        (Expected::Values { mean, .. }, Expected::Values { mean: other, .. }) => {
            let size = largest(&mut mean.iter().map(|v| v.abs())).max(f64::MIN_POSITIVE);
            vec![("a mean", apart(&mean, &other) / size, "the largest")]
        }
        (
            Expected::Classes { probabilities: Some(p), decision: None, .. },
            Expected::Classes { probabilities: Some(other), decision: None, .. },
        ) => vec![("a probability", apart(&p, &other), "1")],
        (Expected::Classes { decision: Some(f), .. }, Expected::Classes { decision: Some(other), .. }) => {
            vec![("a decision", apart(&f, &other), "the margin")]
        }
        _ => unreachable!("both models are of one kind"),
    })
}
