//! Addition of several columns. They are chosen among those with the largest predicted gains, in a small factor of
//! their own, and then enter the model by matrix products.

use std::rc::Rc;

use ndarray::{Array2, ArrayView2, Axis, s};

use crate::linalg;
use crate::quadratic::Quadratic;
use crate::rvm::evidence::active_factor::{Action, ActiveFactor, OUT, SPAN_FLOOR};
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::column_gain::SparsityPrior;
use crate::sums::Sums;

/// Number of columns to choose from, for each column that may be added.
const LISTED: usize = 2;

impl ActiveFactor<'_> {
    /// Adds up to `most` columns, each of largest gain conditional on those before it.
    ///
    /// It chooses among the columns with the largest predicted gains, and stops if none gains more than `least` nats
    /// and `share` of the gain of the first. Returns the actions and their gains.
    pub fn add_best(&mut self, most: usize, least: f64, share: f64) -> Vec<(Action, f64)> {
        let mut listed = self.best_additions(LISTED * most, least, share);
        // The bias may change f, so that it is not added together with others.
        listed.retain(|j| !(*j == 0 && self.quadratic.has_mean() || self.is_duplicate(*j)));
        if listed.is_empty() {
            return vec![];
        }
        let mut rest = self.outside_model(&listed);
        let (mut threshold, mut excluded, mut taken) = (least, vec![], vec![]);
        while taken.len() < most
            && let Some((action, gain)) = rest.best_action(threshold, &excluded, false)
        {
            let k = action.column();
            if rest.position[k] == OUT && !(rest.s[k] > SPAN_FLOOR * self.quadratic.diag[listed[k]]) {
                excluded.push(k);
                continue;
            }
            if taken.is_empty() {
                threshold = least.max(share * gain);
            }
            rest.apply(action);
            taken.push((action.of(listed[k]), gain));
        }
        if !rest.active.is_empty() {
            self.append_all(&rest, &listed);
        }
        taken
    }

    /// Returns the factor, without active columns, of the quadratic form of `columns` outside the model.
    ///
    /// Its matrix is C = G - G_:M inv(G_MM + diag(a)) G_M:, and its f and t't are Q' and E. All gains in it equal those
    /// in the quadratic form of all columns.
    fn outside_model(&self, columns: &[usize]) -> ActiveFactor<'static> {
        let (m, p) = (self.active.len(), self.position.len());
        let v = ArrayView2::from_shape((m, p), &self.v).expect("V is [M, P]").select(Axis(1), columns);
        let mut gram = self.quadratic.dense(columns);
        gram -= &linalg::gram(v.view());
        // S' is the diagonal, updated without cancellation.
        gram.diag_mut().iter_mut().zip(columns).for_each(|(g, j)| *g = self.s[*j].max(0.0));
        let f = self.q.iter().map(|q| columns.iter().map(|j| q[*j]).collect()).collect();
        let tt = (0..self.energy.len()).map(|k| self.energy(k)).collect();
        let quadratic = Rc::new(Quadratic::stored(Sums { gram, f, tt, count: self.quadratic.count }, None));
        let empty =
            ActivePosterior::of(&quadratic, &[], &[], &self.noise, NoiseChoice::Best, None).expect("no pivot, none that fails");
        ActiveFactor::new(quadratic, &empty, &self.noise, SparsityPrior { free: 0, ..self.prior })
    }

    /// Adds all active columns of `rest`, a factor of [`ActiveFactor::outside_model`], to the model: (M10) for several
    /// columns at once. `names` are the columns of `rest` in this factor.
    fn append_all(&mut self, rest: &ActiveFactor, names: &[usize]) {
        let (m, p, k) = (self.active.len(), self.position.len(), rest.active.len());
        let columns: Vec<usize> = rest.active.iter().map(|j| names[*j]).collect();
        let v = ArrayView2::from_shape((m, p), &self.v).expect("V is [M, P]");
        let across = v.select(Axis(1), &columns);
        let own = Array2::from_shape_fn((k, k), |(i, j)| if j <= i { rest.r[i][j] } else { 0.0 });
        let mut rows = self.quadratic.rows(&columns);
        linalg::product(true, -1.0, across.t(), v, rows.view_mut());
        linalg::solve_lower(own.view(), rows.view_mut());
        let mut inverse = Array2::zeros((k, m + k));
        linalg::product(false, -1.0, across.t(), self.dense_inverse().view(), inverse.slice_mut(s![.., ..m]));
        inverse.slice_mut(s![.., m..]).diag_mut().fill(1.0);
        linalg::solve_lower(own.view(), inverse.view_mut());
        for (i, column) in columns.iter().enumerate() {
            self.r.push(across.column(i).iter().copied().chain(own.row(i).iter().take(i + 1).copied()).collect());
            self.inverse.push(inverse.row(i).iter().take(m + i + 1).copied().collect());
            let rho = own[[i, i]];
            self.append(*column, rest.a[i], rho, rows.row(i).as_slice().expect("rows are contiguous"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::rvm::evidence::active_factor::tests::{ROWS, empty, fresh, noises, quadratic};

    /// The evidence rises by the predicted gains, one by one and in total. Each column is the best single addition
    /// among the listed ones. The factor equals that of the larger model.
    #[test]
    fn block_additions_equal_single_additions() {
        for (mean, outputs) in [(0.0, 1), (3.0, 1), (0.0, 3)] {
            let mut single = empty(&quadratic(mean, outputs), &noises()[..outputs]);
            for _ in 0..6 {
                // The bias is only added alone.
                let (action, _) = single.best_action(0.0, &[0], true).unwrap();
                single.apply(action);
            }
            let (mut block, before) = (single.clone(), single.log_evidence());
            let listed = single.best_additions(ROWS, 1e-3, 0.01);
            let taken = block.add_best(ROWS, 1e-3, 0.01);
            let closed: Vec<usize> = (0..=ROWS).filter(|j| *j == 0 || !listed.contains(j)).collect();
            let size = 1e-8 * before.abs().max(1.0);
            assert!(taken.len() > 3, "{} additions were no test", taken.len());
            let mut risen = before;
            for (action, gain) in &taken {
                let (best, top) = single.best_action(0.0, &closed, false).unwrap();
                assert!(top - gain < size, "{action:?} {gain}, {best:?} {top}");
                single.apply(*action);
                risen += gain;
                assert!((single.log_evidence() - risen).abs() < size, "{action:?}");
            }
            let (solution, again) = fresh(&block);
            assert_eq!(block.active.len(), single.active.len());
            assert!((block.log_evidence() - risen).abs() < size);
            assert!((solution.log_evidence - risen).abs() < size);
            for j in 0..=ROWS {
                assert!((block.s[j] - again.s[j]).abs() < 1e-9 && (block.q(j) - again.q(j)).abs() < 1e-8, "column {j}");
            }
            let (means, variances) = block.moments();
            let (means_again, variances_again) = again.moments();
            for (k, variance) in variances_again.iter().enumerate() {
                assert!((variances[k] - variance).abs() < 1e-7 * variance, "variance {k}");
                // Weights of similar columns are large and of opposite signs, so that their means are less accurate.
                let close = |x: &Vec<f64>, y: &Vec<f64>| (x[k] - y[k]).abs() < 1e-6 * variance.sqrt();
                assert!(means.iter().zip(&means_again).all(|(x, y)| close(x, y)), "mean {k}");
            }
        }
    }
}
