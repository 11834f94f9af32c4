//! Tables of 16-bit whole numbers: the model that they hold, and how far it is from the one that was fitted.

use ndarray::{Array2, ArrayView1, Axis};
use relvec_predict::{FittedBasis, Model};

use crate::error::Result;
use crate::examples::{Expected, between_vectors, expected};

/// The largest whole number in a table.
const LARGEST: f64 = 32767.0;
/// Rows at which the models are compared: on the lines between all neighbouring vectors, up to so many.
const ROWS: usize = 1000;
/// Numbers that these rows may take (80 MB): fewer of them where there are many features.
const MOST_NUMBERS: usize = 10_000_000;

/// Whole multiples of a step about a middle: values are `middle + step q`.
pub(super) struct Steps {
    pub middle: f64,
    pub step: f64,
}

impl Steps {
    /// For values on both sides of 0.
    pub fn about_zero(values: impl Iterator<Item = f64>) -> Steps {
        Steps::within(0.0, values.fold(0.0, |most, v| most.max(v.abs())))
    }

    /// For values about the middle of their range.
    pub fn about_middle(values: ArrayView1<f64>) -> Steps {
        let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)));
        Steps::within(low + (high - low) / 2.0, (high - low) / 2.0)
    }

    fn within(middle: f64, reach: f64) -> Steps {
        // Single precision holds step and middle; the model that is measured has them as the header does.
        let single = |v: f64| f64::from(v as f32);
        Steps { middle: single(middle), step: if reach > 0.0 { single(reach / LARGEST * (1.0 + 1e-6)) } else { 1.0 } }
    }

    /// q.
    pub fn whole(&self, v: f64) -> f64 {
        ((v - self.middle) / self.step).round().clamp(-LARGEST, LARGEST)
    }

    fn rounded(&self, v: f64) -> f64 {
        self.middle + self.step * self.whole(v)
    }
}

/// Which tables are of whole numbers: centres by feature, and triangles by row. Weights are few, and cancel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounded {
    /// Whether triangles are, too.
    pub triangles: bool,
}

/// The model that the tables hold.
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
            // The tables have the centres once.
            if let (Some(shared), FittedBasis::Kernel { centres, .. }) = (shared, &mut member.expansion.basis) {
                *centres = shared;
            }
        });
    }
    out
}

/// The rounded centres of a member that has the kernel of the whole model.
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

/// Rounds what is left of the diagonal.
fn round_row(row: &mut [f64]) {
    if let Some((_, lower)) = row.split_last_mut() {
        let steps = Steps::about_zero(lower.iter().copied());
        lower.iter_mut().for_each(|v| *v = steps.rounded(*v));
    }
}

/// The largest changes of predictions between two models, each with its unit.
pub(super) fn changes(model: &Model, rounded: &Model) -> Result<Vec<(&'static str, f64, &'static str)>> {
    let rows = between_vectors(model, ROWS.min(MOST_NUMBERS / model.n_features.max(1)));
    let largest = |pairs: &mut dyn Iterator<Item = f64>| pairs.fold(0.0f64, |most, v| if v <= most { most } else { v });
    let apart = |a: &Array2<f64>, b: &Array2<f64>| largest(&mut a.iter().zip(b).map(|(a, b)| (a - b).abs()));
    Ok(match (expected(model, &rows)?, expected(rounded, &rows)?) {
        (Expected::Values { mean, std: Some(std) }, Expected::Values { mean: other, std: Some(other_std) }) => {
            let of_mean = mean.iter().zip(&other).zip(&std).map(|((a, b), s)| (a - b).abs() / s);
            // Infinite standard deviations do not change.
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
