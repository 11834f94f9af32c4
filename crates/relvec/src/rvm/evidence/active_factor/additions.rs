//! Additions side by side: which columns come is settled among the most promising, in a small factor of their own, and then
//! all of them enter the model by products of matrices.

use std::rc::Rc;

use ndarray::{Array2, ArrayView2, Axis, s};

use crate::linalg;
use crate::quadratic::Quadratic;
use crate::rvm::evidence::active_factor::{Action, ActiveFactor, OUT, SPAN_FLOOR};
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::column_gain::SparsityPrior;
use crate::sums::Sums;

/// Columns to choose from for each that may come.
const LISTED: usize = 2;

impl ActiveFactor<'_> {
    /// Adds up to `most` columns, each the best after those before it, as long as one gains more than `least` and `share` of
    /// what the first did; of those that are most promising now. The actions and their gains.
    pub fn add_best(&mut self, most: usize, least: f64, share: f64, tabu: &[bool]) -> Vec<(Action, f64)> {
        let mut listed = self.most_promising(LISTED * most, least, share, tabu);
        // The bias may change f.
        listed.retain(|j| !(*j == 0 && self.quadratic.has_mean() || self.is_twin(*j)));
        if listed.is_empty() {
            return vec![];
        }
        let mut rest = self.beside_model(&listed);
        let mut left_out = vec![false; listed.len()];
        let (mut threshold, mut taken) = (least, vec![]);
        while taken.len() < most
            && let Some((action, gain)) = rest.best_action(threshold, &left_out, false)
        {
            let k = action.column();
            if rest.position[k] == OUT && !(rest.s[k] > SPAN_FLOOR * self.quadratic.diag[listed[k]]) {
                left_out[k] = true;
                continue;
            }
            if taken.is_empty() {
                threshold = least.max(share * gain);
            }
            rest.apply(action);
            taken.push((action.of(listed[k]), gain));
        }
        if !rest.active.is_empty() {
            self.take_in(&rest, &listed);
        }
        taken
    }

    /// The factor, of no columns yet, of the problem that is left for `columns` beside the model: with G - G_:M inv(G_MM +
    /// diag(a)) G_M: for G it is one of the same kind, in which all gains are what they are in the whole.
    fn beside_model(&self, columns: &[usize]) -> ActiveFactor<'static> {
        let (m, p) = (self.active.len(), self.position.len());
        let v = ArrayView2::from_shape((m, p), &self.v).expect("V is [M, P]").select(Axis(1), columns);
        let mut gram = self.quadratic.dense(columns);
        gram -= &linalg::gram(v.view());
        // The squares are kept without cancellation.
        gram.diag_mut().iter_mut().zip(columns).for_each(|(g, j)| *g = self.s[*j].max(0.0));
        let f = self.q.iter().map(|q| columns.iter().map(|j| q[*j]).collect()).collect();
        let tt = (0..self.energy.len()).map(|k| self.energy(k)).collect();
        let quadratic = Rc::new(Quadratic::stored(Sums { gram, f, tt, count: self.quadratic.count }, None));
        let empty =
            ActivePosterior::of(&quadratic, &[], &[], &self.noise, NoiseChoice::Best, None).expect("no pivot, none that fails");
        ActiveFactor::new(quadratic, &empty, &self.noise, SparsityPrior { free: 0, ..self.prior })
    }

    /// Takes the columns of `rest`, a factor of the problem beside this model, into the model: (M10) for all of them at once.
    fn take_in(&mut self, rest: &ActiveFactor, names: &[usize]) {
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

    /// The promised gains are what the evidence rises by, one by one and in all; each column is the best of those on the list,
    /// by single actions; and the factor is that of the larger model.
    #[test]
    fn additions_side_by_side_are_additions_one_by_one() {
        for (mean, outputs) in [(0.0, 1), (3.0, 1), (0.0, 3)] {
            let mut single = empty(&quadratic(mean, outputs), &noises()[..outputs]);
            let mut open = [false; ROWS + 1];
            // The bias comes alone.
            open[0] = true;
            for _ in 0..6 {
                let (action, _) = single.best_action(0.0, &open, true).unwrap();
                single.apply(action);
            }
            let (mut block, before) = (single.clone(), single.log_evidence());
            let listed = single.most_promising(ROWS, 1e-3, 0.01, &open);
            let taken = block.add_best(ROWS, 1e-3, 0.01, &open);
            let closed: [bool; ROWS + 1] = std::array::from_fn(|j| !listed.contains(&j));
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
                // Weights of columns that are much alike are large and balance each other.
                let close = |x: &Vec<f64>, y: &Vec<f64>| (x[k] - y[k]).abs() < 1e-6 * variance.sqrt();
                assert!(means.iter().zip(&means_again).all(|(x, y)| close(x, y)), "mean {k}");
            }
        }
    }
}
