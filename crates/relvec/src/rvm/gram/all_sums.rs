//! The sums of all candidates, where those are few: then neither the sums of a part nor passes over them need a row.

use ndarray::{Array2, Axis, s};

use crate::design::Design;
use crate::error::Result;
use crate::linalg;
use crate::rvm::data::budget::KEPT_SHARE;
use crate::rvm::data::table::Table;
use crate::rvm::gram::problem::Problem;
use crate::sums::Sums;

/// Up to so many candidates their sums, made once, cost less than those of the half dozen parts of a search, and the
/// passes between them.
const MOST: usize = 3000;

/// G, f and t't of all candidates, the columns as they are.
#[derive(Debug)]
pub(crate) struct AllSums {
    /// Ascending places.
    candidates: Vec<usize>,
    has_bias: bool,
    sums: Sums,
}

/// What a pass over candidates needs to know of P of them.
pub(crate) struct Products {
    /// Their squared norms, `[P]`.
    pub square: Vec<f64>,
    /// With the columns of the model, [M, P].
    pub with_model: Array2<f64>,
    /// With the slopes of the log-likelihoods, [K, P].
    pub with_residual: Array2<f64>,
}

impl AllSums {
    /// Whether they pay (with few rows a pass costs almost nothing), and fit into memory.
    pub fn pay(table: &Table, candidates: usize) -> bool {
        let p = (candidates + 1) as u64;
        let fits = 8 * p * p <= table.memory_limit / KEPT_SHARE;
        candidates <= table.rows.nrows().min(MOST) && fits && table.rvm.likelihood.as_dyn().constant_curvature()
    }

    /// By one pass over the rows; `None` if a column is zero or at the ends of the numbers, and needs closer looks.
    pub fn of(table: &Table, candidates: &[usize]) -> Result<Option<AllSums>> {
        let has_bias = table.rvm.bias;
        let (rows, columns) = table.columns(candidates);
        let design = Design::unscaled(rows, columns, has_bias, table.memory_limit, table.interrupt.clone());
        let sums = table.sums(&design);
        table.interrupt.check()?;
        let fine = sums.norms().is_some();
        Ok(fine.then(|| AllSums { candidates: candidates.to_vec(), has_bias, sums }))
    }

    /// The sums of some candidates, the bias before them if there is one; `None` if one of them is not known.
    pub fn sums_of(&self, places: &[usize]) -> Option<Sums> {
        let bias = self.has_bias.then_some(None);
        let names = bias.into_iter().chain(places.iter().map(|p| Some(*p)));
        let columns = names.map(|name| self.column(name)).collect::<Option<Vec<usize>>>()?;
        let mut gram = Array2::zeros((columns.len(), columns.len()));
        for (mut row, i) in gram.outer_iter_mut().zip(&columns) {
            let all = self.sums.gram.row(*i);
            row.iter_mut().zip(&columns).for_each(|(g, j)| *g = all[*j]);
        }
        let f = self.sums.f.iter().map(|f| columns.iter().map(|j| f[*j]).collect()).collect();
        Some(Sums { gram, f, tt: self.sums.tt.clone(), count: self.sums.count })
    }

    /// Products of all candidates at the means of the weights of `outputs`, `[K M]`, of the columns `active`, which are `names` (`None`: the bias) in the problem;
    /// `None` if one of them is not known.
    pub fn products(
        &self,
        problem: &Problem,
        active: &[usize],
        (outputs, mean): (usize, &[f64]),
        names: &[Option<usize>],
    ) -> Option<Products> {
        let columns = names.iter().map(|name| self.column(*name)).collect::<Option<Vec<usize>>>()?;
        let first = usize::from(self.has_bias);
        let mut with_model = self.sums.gram.select(Axis(0), &columns).slice_move(s![.., first..]);
        let norms = problem.design.norms();
        for (mut row, j) in with_model.outer_iter_mut().zip(active) {
            row /= norms[*j];
        }
        // The targets are counted from their means, which are large beside them where they are offset.
        let columns = names.len();
        let mut w = Array2::from_shape_vec((outputs, columns), mean.to_vec()).expect("K times M numbers");
        let means = problem.mean_bias(active);
        if let Some((bias, means)) = &means {
            w.column_mut(*bias).iter_mut().zip(means).for_each(|(w, mean)| *w -= mean);
        }
        let mut with_residual = linalg::times(w.view(), with_model.view());
        for ((mut row, f), units) in with_residual.outer_iter_mut().zip(&self.sums.f).zip(&problem.table.units) {
            row.iter_mut().zip(&f[first..]).for_each(|(v, f)| *v = f - *v);
            if self.has_bias && means.is_none() {
                row.scaled_add(units.mean, &self.sums.gram.slice(s![0, first..]));
            }
        }
        let square = self.sums.gram.diag().iter().skip(first).copied().collect();
        Some(Products { square, with_model, with_residual })
    }

    fn column(&self, name: Option<usize>) -> Option<usize> {
        match name {
            None => self.has_bias.then_some(0),
            Some(place) => self.candidates.binary_search(&place).ok().map(|k| k + usize::from(self.has_bias)),
        }
    }
}
