//! Periodic kernel: the Gaussian kernel of points on circles.

use core::f64::consts::TAU;

use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};
use serde::{Deserialize, Serialize};

use super::distance::Distances;
use super::form::Form;
use super::vector::Decay;
use super::{DataScale, Fill, Gamma, KernelFunction, positive};
use crate::error::{Result, require};
use crate::prelude::*;

/// exp(-4 sum_d gamma_d sin^2(pi (x_d - x'_d) / period)). It is the Gaussian kernel of the points (cos, sin)(2 pi x_d /
/// period), one on a circle for each feature (MacKay 1998). gamma is 1 / (2 l^2) for the length scale l of
/// scikit-learn's `ExpSineSquared`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Periodic {
    /// Inverse squared width on the circle, > 0. The rules `scale` and `auto` give 1 / D.
    pub gamma: Gamma,
    /// Period of every feature, > 0, in the unit of the feature. If gamma is learned, this is the initial value of the
    /// period. If it is `None`, the period is found if gamma is learned, and is 1 otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<f64>,
    /// True if the period, which is then given, is not learned.
    pub fixed: bool,
}

impl Periodic {
    /// Returns the period of a resolved kernel.
    #[doc(hidden)]
    pub fn number(&self) -> f64 {
        self.period.expect("the kernel is resolved")
    }

    /// Returns points on circles, [n, 2D], for rows `x`, [n, D].
    fn circles(&self, x: ArrayView2<f64>) -> Array2<f64> {
        let period = self.number();
        let mut points = Array2::zeros((x.nrows(), 2 * x.ncols()));
        for (mut pair, x) in points.axis_chunks_iter_mut(Axis(1), 2).zip(x.columns()) {
            for (mut point, x) in pair.outer_iter_mut().zip(x) {
                // The remainder is exact, while a large multiple of 2 pi is rounded.
                let (sin, cos) = (TAU * ((x % period) / period)).sin_cos();
                (point[0], point[1]) = (cos, sin);
            }
        }
        points
    }
}

impl KernelFunction for Periodic {
    fn check(&self) -> Result<()> {
        self.gamma.check("periodic")?;
        let given = self.period.is_some() || !self.fixed;
        require(given, || "kernel.periodic.period".into(), "none", "a number, because it is fixed")?;
        positive("kernel.periodic.period", self.period.unwrap_or(1.0))
    }

    fn resolve(&mut self, data: &DataScale) -> Result<()> {
        self.period = self.period.or(Some(1.0));
        // A circle has the same extent for any data.
        self.gamma.resolve("periodic", &DataScale { variance: 1.0, ..*data })
    }

    fn block(&self, a: ArrayView2<f64>, b: ArrayView2<f64>, out: ArrayViewMut2<f64>) {
        self.at(b)(a, out);
    }

    fn at<'a>(&'a self, b: ArrayView2<f64>) -> Fill<'a> {
        let gamma = match &self.gamma {
            Gamma::PerFeature(v) => v.iter().flat_map(|v| [*v, *v]).collect::<Vec<_>>().into(),
            gamma => gamma.clone(),
        };
        let distances = Distances::new(self.circles(b).view(), &gamma);
        Box::new(move |a, out| distances.squared(self.circles(a).view(), out, Decay))
    }

    fn parameters(&self) -> Vec<(String, f64)> {
        let mut all = self.gamma.parameters();
        all.extend(self.period.map(|period| ("period".into(), period)));
        all
    }

    fn set_parameters(&mut self, values: &[f64]) {
        self.period = self.gamma.set(values).first().copied();
    }

    fn form(&self) -> Form<'_> {
        Form::Other
    }

    fn gamma(&self) -> Option<&Gamma> {
        Some(&self.gamma)
    }

    fn gamma_mut(&mut self) -> Option<&mut Gamma> {
        Some(&mut self.gamma)
    }
}
