//! Models in the form that the writers expect: centres are dense rows, and periodic kernels and sums of kernels are
//! computed about an origin near their centres.

use std::borrow::Cow;

use ndarray::{Array1, ArrayView1};
use relvec_predict::{Factor, FittedBasis, Kernel, Model, Scaling};

use crate::error::{Error, Result, vectors};

/// Most numbers of centres that are sparse rows, zeros included (800 MB), as many as a fit fills in.
const MOST_NUMBERS: usize = 100_000_000;

/// Returns a model with the same predictions, for the writers. `format` is for messages.
///
/// # Errors
/// The centres are sparse rows with more than [`MOST_NUMBERS`] numbers, zeros included.
pub(crate) fn normal_form<'m>(model: &'m Model, format: &'static str) -> Result<Cow<'m, Model>> {
    match &model.expansion.basis {
        FittedBasis::Sparse { .. } => dense(model, format).map(Cow::Owned),
        FittedBasis::Kernel { kernel: Kernel::Sum(_) | Kernel::Periodic(_), centres } if model.scaling.is_none() => {
            let origin: Array1<f64> = centres.columns().into_iter().map(origin).collect();
            Ok(if origin.iter().all(|o| *o == 0.0) { Cow::Borrowed(model) } else { Cow::Owned(about(model, &origin)) })
        }
        _ => Ok(Cow::Borrowed(model)),
    }
}

fn dense(model: &Model, format: &'static str) -> Result<Model> {
    let members = model.committee.iter().flat_map(|committee| &committee.members);
    let rows: usize = members.chain([model]).map(|member| member.relevance.len()).sum();
    if rows.saturating_mul(model.n_features) > MOST_NUMBERS {
        let found = format!("a model with {rows} {} of {} features, as sparse rows,", vectors(model), model.n_features);
        let instead = "fit to fewer features: with zeros, at most 100,000,000 numbers can be";
        return Err(Error::Unsupported { format, found, instead });
    }
    Ok(with_basis(model, &|basis| match basis {
        FittedBasis::Sparse { kernel, centres } => FittedBasis::Kernel { kernel: kernel.clone(), centres: centres.to_dense() },
        other => other.clone(),
    }))
}

/// Returns a copy of a model and of its binary models, with other basis functions.
fn with_basis(model: &Model, change: &dyn Fn(&FittedBasis) -> FittedBasis) -> Model {
    let mut out = model.clone();
    out.expansion.basis = change(&model.expansion.basis);
    out.committee.iter_mut().flat_map(|committee| &mut committee.members).for_each(|member| *member = with_basis(member, change));
    out
}

/// Returns the mean of `centres`, `[M]`, in single precision, if every centre is nearer to it than it is to 0. Else it
/// is 0, since the difference has no more digits then.
fn origin(centres: ArrayView1<f64>) -> f64 {
    let mean = f64::from(centres.mean().unwrap_or(0.0) as f32);
    if mean.is_finite() && centres.iter().all(|c| (c - mean).abs() < mean.abs()) { mean } else { 0.0 }
}

/// Returns the model as a function of x - origin, for `origin`, `[D]`. In single precision this difference is exact,
/// while a year has four digits after the point.
fn about(model: &Model, origin: &Array1<f64>) -> Model {
    let mut out = with_basis(model, &|basis| match basis {
        FittedBasis::Kernel { kernel, centres } => {
            let mut kernel = kernel.clone();
            if let Kernel::Sum(sum) = &mut kernel {
                sum.terms.iter_mut().flat_map(|term| &mut term.factors).for_each(|factor| shift(factor, origin));
            }
            FittedBasis::Kernel { kernel, centres: centres - origin }
        }
        other => other.clone(),
    });
    out.scaling = Some(Scaling { mean: origin.to_vec(), scale: vec![1.0; origin.len()] });
    out
}

/// Changes the units of a factor to those of x - origin. A function of differences without units has no origin.
fn shift(factor: &mut Factor, origin: &Array1<f64>) {
    let columns = factor.columns.clone().unwrap_or_else(|| (0..origin.len()).collect());
    if factor.units.is_empty() && !depends_on_differences(&factor.kernel) && columns.iter().any(|d| origin[*d] != 0.0) {
        factor.units = vec![(0.0, 1.0); columns.len()];
    }
    factor.units.iter_mut().zip(columns).for_each(|((o, _), d)| *o -= origin[d]);
}

/// Returns true if the kernel depends on x - x' alone and is 1 at 0.
pub(crate) fn depends_on_differences(kernel: &Kernel) -> bool {
    kernel.is_local() || matches!(kernel, Kernel::Periodic(_))
}
