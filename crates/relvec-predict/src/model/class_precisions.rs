//! Which weights a model has: of each function those of all basis functions, unless each class has precisions of its
//! own, (M63).

use super::Model;
use crate::likelihood::Contrasts;
use crate::prelude::*;

impl Model {
    /// What the functions of the posterior are to the classes of a model of several.
    #[doc(hidden)]
    pub fn contrasts(&self) -> Contrasts {
        match self.class_alpha.is_empty() {
            true => Contrasts::new(self.outputs()),
            false => Contrasts::each(self.outputs()),
        }
    }

    /// Of each function of the posterior the basis functions (the bias first if it is in the model) that it has a
    /// weight of, in the order of the posterior's factor.
    #[doc(hidden)]
    pub fn present(&self) -> Vec<Vec<usize>> {
        let Some(posterior) = &self.posterior else { return vec![] };
        let active = posterior.scale.len();
        if self.class_alpha.is_empty() {
            let functions = posterior.factor.len().checked_div(active).unwrap_or(1);
            return vec![(0..active).collect(); functions];
        }
        (0..self.outputs()).map(|k| (0..active).filter(|i| self.class_alpha[*i][k].is_some()).collect()).collect()
    }
}
