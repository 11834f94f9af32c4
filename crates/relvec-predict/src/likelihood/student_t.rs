//! Real targets with Student-t noise.

use serde::{Deserialize, Serialize};

use crate::error::{Result, require};

/// t = f + noise, where noise / sqrt(`noise_variance`) ~ Student-t with `noise_degrees` degrees of freedom. Outliers
/// are likely under this noise and hardly change the function, (M51).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StudentT {
    /// Degrees of freedom, > 0; `None` (JSON: null) if they are learned, between 0.1 and 10,000.
    pub noise_degrees: Option<f64>,
    /// Squared scale of the noise in squared units of the target, > 0. It is the variance times (degrees - 2) /
    /// degrees. `None` (JSON: null) if it is learned.
    pub noise_variance: Option<f64>,
}

impl StudentT {
    pub(super) fn check(&self) -> Result<()> {
        for (name, value) in [("noise_degrees", self.noise_degrees), ("noise_variance", self.noise_variance)] {
            let good = value.is_none_or(|v| v.is_finite() && v > 0.0);
            let expected = "a positive, finite number, or null to learn it";
            require(good, || format!("likelihood.student_t.{name}"), value.unwrap_or(0.0), expected)?;
        }
        Ok(())
    }
}
