//! Likelihoods, which relate a target to the function value f = phi'w: their parameters, and the links from f to
//! probabilities.

mod bernoulli;
mod contrasts;
mod gaussian;
mod poisson;
mod softmax;
mod student_t;

use crate::error::Result;
use crate::registry::registry;

pub use bernoulli::{Bernoulli, sigmoid};
pub use contrasts::Contrasts;
pub use gaussian::Gaussian;
pub use poisson::{Poisson, check_counts};
pub use softmax::{Softmax, difference_variance, moderate, normalise};
pub use student_t::StudentT;

registry! {
    /// A likelihood with its parameters; [`Likelihood::NAMES`] lists the names.
    pub enum Likelihood, "likelihood" {
        /// Real targets with Gaussian noise: regression.
        Gaussian = "gaussian",
        /// Two classes with the logistic link: classification.
        Bernoulli = "bernoulli",
        /// Any number of classes with one joint model: classification.
        Softmax = "softmax",
        /// Counts with the logarithmic link: regression.
        Poisson = "poisson",
        /// Real targets with Student-t noise: regression that is robust to outliers.
        StudentT = "student_t",
    }
}

/// The view of a value that another crate implements. The crate that fits models adds methods to a likelihood. A type
/// has one view, so that the compiler finds it without a `use`.
pub trait View<T: ?Sized> {
    /// Returns the value as `T`.
    fn view(&self) -> &T;
}

impl Likelihood {
    /// Checks the parameters alone, without data.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) names the first parameter out of its range.
    pub fn check(&self) -> Result<()> {
        match self {
            Likelihood::Gaussian(own) => own.check(),
            Likelihood::StudentT(own) => own.check(),
            Likelihood::Bernoulli(_) | Likelihood::Softmax(_) | Likelihood::Poisson(_) => Ok(()),
        }
    }

    /// Returns true if targets are classes, and false if they are real values or counts.
    pub fn is_for_classes(&self) -> bool {
        matches!(self, Likelihood::Bernoulli(_) | Likelihood::Softmax(_))
    }

    /// Returns the likelihood as the type that another crate needs for fits.
    #[doc(hidden)]
    pub fn as_dyn<T: ?Sized>(&self) -> &T
    where
        Self: View<T>,
    {
        self.view()
    }
}
