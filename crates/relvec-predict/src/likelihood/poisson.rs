//! Counts with the logarithmic link.

use ndarray::ArrayView1;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::prelude::*;

/// t ~ Poisson(exp(f)): f is the log of the rate. With exposures e the rate is e exp(f), see
/// `Targets::with_exposure` of the crate `relvec`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Poisson {}

/// Checks that finite counts, `[N]`, are integers that are not negative. Infinity and NaN pass here, because other
/// checks of the targets refuse them.
pub fn check_counts(counts: ArrayView1<f64>) -> Result<()> {
    let bad = |t: &f64| t.is_finite() && !(*t >= 0.0 && t.fract() == 0.0);
    match counts.iter().enumerate().find(|(_, t)| bad(t)) {
        Some((row, value)) => Err(Error::Count { row, value: *value }),
        None => Ok(()),
    }
}
