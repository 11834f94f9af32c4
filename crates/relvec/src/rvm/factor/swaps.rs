//! Exchanging a column of the model for another, where neither step alone would pay.

use ndarray::{ArrayView2, s};
use rayon::prelude::*;

use super::super::gain::{Candidate, LEAST_PRECISION, Seen, by_noise};
use super::{Action, Factor, OUT, SPAN_FLOOR};
use crate::linalg;

impl Factor<'_> {
    /// For each active column the best column to replace it and the gain, if above `least`; best first.
    pub fn swaps(&self, least: f64, barred: &[bool]) -> Vec<(Action, f64)> {
        const CHUNK: usize = 16;
        let m = self.active.len();
        let p = self.position.len();
        let profile = self.profiles();
        let (mean, variance) = self.moments();
        let dense = self.dense_inverse();
        let v = ArrayView2::from_shape((m, p), &self.v).expect("V is [M, P]");
        // Plain borrows: the closure runs on all threads, the source of G does not.
        let (active, a, position, s_all, q_all) = (&self.active, &self.a, &self.position, &self.s, &self.q);
        let (diag, has_mean, prior) = (&self.quadratic.diag, self.quadratic.has_mean(), self.prior);
        let noises = self.noise.len();
        let now: Vec<f64> = (0..noises).map(|k| self.energy(k)).collect();
        let chunk = |start: usize| {
            let end = (start + CHUNK).min(m);
            // e_ij = phi_j'Phi Sigma'_:i, as rows.
            let e = linalg::times(dense.slice(s![.., start..end]).t(), v);
            (start..end)
                .filter_map(|i| {
                    let d = variance[i];
                    let seen = |k: usize, size: f64| Seen { q: size / d, energy: now[k] + size * size / d };
                    let seen = by_noise(noises, mean.len(), |k| mean[k][i], seen);
                    let without = Candidate { s: (1.0 - a[i] * d) / d, seen };
                    let loss = without.contribution(a[i], &profile) - prior.cost(active[i]);
                    let row = e.row(i - start);
                    let mut best: Option<(usize, f64)> = None;
                    for j in 0..p {
                        if position[j] != OUT || barred[j] || !(s_all[j] > SPAN_FLOOR * diag[j]) {
                            continue;
                        }
                        let s = s_all[j] + row[j] * row[j] / d;
                        let q = |k: usize| q_all[k][j] + row[j] * mean[k][i] / d;
                        let seen = |k: usize, q: f64| Seen { q, energy: without.seen[k].energy };
                        let candidate = Candidate { s, seen: by_noise(noises, mean.len(), q, seen) };
                        let needed = loss + prior.cost(j) + best.map_or(least, |(_, top)| top);
                        if candidate.most(&profile) < needed {
                            continue;
                        }
                        let least_precision = if j == 0 && has_mean { 0.0 } else { LEAST_PRECISION };
                        let Some(a) = candidate.best(&profile, least_precision) else { continue };
                        let gain = candidate.contribution(a, &profile) - prior.cost(j) - loss;
                        if gain > least && best.is_none_or(|(_, top)| gain > top) {
                            best = Some((j, gain));
                        }
                    }
                    best.map(|(column, gain)| (Action::Swap { out: active[i], column }, gain))
                })
                .collect::<Vec<_>>()
        };
        let starts: Vec<usize> = (0..m).step_by(CHUNK).collect();
        let mut out: Vec<(Action, f64)> = starts.into_par_iter().map(chunk).collect::<Vec<_>>().concat();
        out.sort_by(|x, y| y.1.total_cmp(&x.1));
        out
    }

    /// Replaces `out` by `column` at its best precision if that gains more than `least`, else leaves
    /// the model as it was (up to the order of the active set); returns whether it did.
    pub fn try_swap(&mut self, out: usize, column: usize, least: f64) -> bool {
        if self.position[out] == OUT || self.position[column] != OUT {
            return false;
        }
        let before = self.log_evidence();
        let a_out = self.a[self.position[out]];
        self.move_last(self.position[out]);
        self.pop();
        let profile = self.profiles();
        let candidate = self.outside(column);
        let outside = candidate.s > SPAN_FLOOR * self.quadratic.diag[column] && !self.is_twin(column);
        if let Some(a) = candidate.best(&profile, self.least(column)).filter(|_| outside)
            && self.log_evidence() + candidate.contribution(a, &profile) + self.prior.cost(out)
                > before + self.prior.cost(column) + least
        {
            self.push(column, a);
            return true;
        }
        self.push(out, a_out);
        false
    }
}
