//! Likelihoods: how a target depends on the function value f = phi'w. Their parameters, and the links from f to probabilities.

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
    /// A likelihood with its own parameters; [`Likelihood::NAMES`] lists them.
    pub enum Likelihood, "likelihood" {
        /// Real targets with Gaussian noise: regression.
        Gaussian = "gaussian",
        /// Two classes, logistic link: classification.
        Bernoulli = "bernoulli",
        /// Any number of classes, one model of all: classification.
        Softmax = "softmax",
        /// Counts, logarithmic link: regression.
        Poisson = "poisson",
        /// Real targets with Student-t noise: regression that outliers do not bend.
        StudentT = "student_t",
    }
}

/// What another crate sees of a value: the crate that fits models knows more of a likelihood than its parameters. A type has
/// one view, so that the compiler finds it without a `use`.
pub trait View<T: ?Sized> {
    /// The value as `T`.
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

    /// Whether targets are classes; real values or counts otherwise.
    pub fn is_for_classes(&self) -> bool {
        matches!(self, Likelihood::Bernoulli(_) | Likelihood::Softmax(_))
    }

    /// The likelihood as another crate sees it: for fits.
    #[doc(hidden)]
    pub fn as_dyn<T: ?Sized>(&self) -> &T
    where
        Self: View<T>,
    {
        self.view()
    }
}
