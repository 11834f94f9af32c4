//! The weights that a model has. Each function has weights of all basis functions, unless each class has its own
//! precisions, (M63).

use super::Model;
use crate::likelihood::Contrasts;
use crate::prelude::*;

impl Model {
    /// Returns the relation between the functions of the posterior and the classes.
    #[doc(hidden)]
    pub fn contrasts(&self) -> Contrasts {
        match self.class_alpha.is_empty() {
            true => Contrasts::new(self.outputs()),
            false => Contrasts::each(self.outputs()),
        }
    }

    /// Returns, for each function of the posterior, the basis functions that it has a weight of, in the order of the
    /// posterior's factor. The bias comes first if it is in the model.
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
