//! The sum over features that a kernel is a function of.

use super::Gamma;

/// The sum p over features that a kernel is a function of.
#[derive(Debug, Clone, Copy)]
pub enum Form<'g> {
    /// Squared differences: sum_d gamma_d (a_d - b_d)^2.
    Squares(&'g Gamma),
    /// Absolute differences: sum_d gamma_d |a_d - b_d|.
    Absolutes(&'g Gamma),
    /// Products: sum_d gamma_d a_d b_d, or sum_d a_d b_d without gamma.
    Products(Option<&'g Gamma>),
    /// None of these sums. Such a kernel has no parameters, and no gradient in the centres.
    Other,
}

impl<'g> Form<'g> {
    /// Returns gamma, if there is one.
    pub fn gamma(self) -> Option<&'g Gamma> {
        match self {
            Form::Squares(gamma) | Form::Absolutes(gamma) => Some(gamma),
            Form::Products(gamma) => gamma,
            Form::Other => None,
        }
    }
}
