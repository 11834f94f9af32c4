//! What a kernel is a function of.

use super::Gamma;

/// The sum p over features that a kernel is a function of.
#[derive(Debug, Clone, Copy)]
pub enum Form<'g> {
    /// sum_d gamma_d (a_d - b_d)^2.
    Squares(&'g Gamma),
    /// sum_d gamma_d |a_d - b_d|.
    Absolutes(&'g Gamma),
    /// sum_d gamma_d a_d b_d; without gamma a_d b_d.
    Products(Option<&'g Gamma>),
    /// None of these: no parameters, and no gradient in the centres.
    Other,
}

impl<'g> Form<'g> {
    /// gamma, if there is one.
    pub fn gamma(self) -> Option<&'g Gamma> {
        match self {
            Form::Squares(gamma) | Form::Absolutes(gamma) => Some(gamma),
            Form::Products(gamma) => gamma,
            Form::Other => None,
        }
    }
}
