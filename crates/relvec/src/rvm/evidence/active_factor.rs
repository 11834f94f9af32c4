//! The Cholesky factor of the active set, with the sparsity and quality factors of all columns. Rotations update it
//! without accumulating errors, (M10) to (M12).
//!
//! Several columns are added at once. They are chosen among those with the largest predicted gains, in a small factor
//! of their own, and then enter the model by matrix products.

use std::rc::Rc;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use smallvec::SmallVec;

use crate::linalg;
use crate::quadratic::Quadratic;
use crate::report::Actions;
use crate::rvm::data::noise::{LEAST_PRECISION, NoisePrecision, NoiseProfile};
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice, bias_position};
use crate::rvm::evidence::column_gain::{ColumnFactors, Quality, SPAN_FLOOR, SparsityPrior, by_noise};
use crate::sums::Sums;

/// Columns of larger |cosine| are duplicates. Kernels whose centres are far from the origin differ by little more.
pub(crate) const SAME_COSINE: f64 = 1.0 - 1e-13;
/// Number of columns to choose from, for each column that may be added.
const LISTED: usize = 2;

/// One change of the active set; `a` is the new relative precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Action {
    Add { column: usize, a: f64 },
    Reestimate { column: usize, a: f64 },
    Delete { column: usize },
}

impl Action {
    /// Returns the same kind of action, with the same precision, on another column.
    fn of(self, column: usize) -> Action {
        match self {
            Action::Add { a, .. } => Action::Add { column, a },
            Action::Reestimate { a, .. } => Action::Reestimate { column, a },
            Action::Delete { .. } => Action::Delete { column },
        }
    }

    /// Returns the column that the action changes.
    pub fn column(&self) -> usize {
        match *self {
            Action::Add { column, .. } | Action::Reestimate { column, .. } | Action::Delete { column } => column,
        }
    }
}

impl Actions {
    /// Counts the actions `taken` by their kind.
    pub(crate) fn count(&mut self, taken: &[Action]) {
        for action in taken {
            match action {
                Action::Add { .. } => self.added += 1,
                Action::Reestimate { .. } => self.reestimated += 1,
                Action::Delete { .. } => self.deleted += 1,
            }
        }
    }
}

/// The factor R R' = diag(a) + G_MM with V = inv(R) G_M:, z = inv(R) f_M for each output, and the factors of every
/// column: S', and Q' for each output.
#[derive(Debug, Clone)]
pub(crate) struct ActiveFactor<'a> {
    quadratic: Rc<Quadratic<'a>>,
    noise: Vec<NoisePrecision>,
    prior: SparsityPrior,
    /// Columns in the model, `[M]`.
    pub active: Vec<usize>,
    /// Relative precisions, `[M]`.
    pub a: Vec<f64>,
    /// Position in `active` of each column, if it is in the model; `[P]`.
    position: Vec<Option<usize>>,
    /// R by rows; row i has i + 1 entries.
    r: Vec<Vec<f64>>,
    /// inv(R) by rows; row i has i + 1 entries.
    inverse: Vec<Vec<f64>>,
    /// V, [M, P].
    v: Vec<f64>,
    /// z for each of R outputs, `[R][M]`.
    z: Vec<Vec<f64>>,
    /// S'_j = G_jj - |V_:j|^2, `[P]`.
    pub s: Vec<f64>,
    /// Q'_j = f_j - V_:j'z, `[R][P]`.
    q: Vec<Vec<f64>>,
    /// E of (M2) for each noise.
    energy: Vec<f64>,
    /// Number to add to the solved weight of the bias for each output, (M9).
    bias_offset: Vec<f64>,
}

impl<'a> ActiveFactor<'a> {
    /// Returns the factor of a posterior, with all columns of the quadratic form as candidates.
    pub fn new(
        quadratic: Rc<Quadratic<'a>>,
        solution: &ActivePosterior,
        noise: &[NoisePrecision],
        prior: SparsityPrior,
    ) -> ActiveFactor<'a> {
        let m = solution.active.len();
        let p = quadratic.columns();
        let mut v = quadratic.rows(&solution.active);
        linalg::solve_lower(solution.lower.view(), v.view_mut());
        let mut s = quadratic.diag.clone();
        for row in v.outer_iter() {
            s.iter_mut().zip(row).for_each(|(s, v)| *s -= v * v);
        }
        let mut position = vec![None; p];
        for (i, j) in solution.active.iter().enumerate() {
            position[*j] = Some(i);
        }
        let packed = |a: &Array2<f64>| (0..m).map(|i| a.row(i).iter().take(i + 1).copied().collect()).collect();
        let mut factor = ActiveFactor {
            noise: noise.to_vec(),
            prior,
            active: solution.active.clone(),
            a: solution.a.clone(),
            position,
            r: packed(&solution.lower),
            inverse: packed(&solution.inverse),
            v: v.into_raw_vec_and_offset().0,
            z: Vec::new(),
            s,
            q: Vec::new(),
            energy: vec![],
            bias_offset: vec![],
            quadratic,
        };
        factor.refresh_target();
        factor
    }

    /// Q' of a column for the first noise.
    pub fn q(&self, column: usize) -> f64 {
        by_noise(self.noise.len(), self.q.len(), |k| self.q[k][column], |_, q| q)[0]
    }

    /// Returns the factors s and q of a column that is not in the model.
    fn outside(&self, column: usize) -> ColumnFactors {
        let seen = |k: usize, q: f64| Quality { q, energy: self.energy(k) };
        ColumnFactors { s: self.s[column], seen: by_noise(self.noise.len(), self.q.len(), |k| self.q[k][column], seen) }
    }

    /// Returns the factors s and q of the column in slot `i` for the model without it. `mean` is the posterior mean for
    /// each output, `[R][M]`, and `d` the relative variance of its weight.
    fn inside(&self, i: usize, mean: &[Vec<f64>], d: f64) -> ColumnFactors {
        let seen = |k: usize, mean: f64| Quality { q: mean / d, energy: self.energy(k) + mean * mean / d };
        ColumnFactors { s: (1.0 - self.a[i] * d) / d, seen: by_noise(self.noise.len(), mean.len(), |k| mean[k][i], seen) }
    }

    /// Returns the log evidence of the quadratic form with the noise at its optimum, up to a constant if the Hessian is
    /// not constant.
    #[cfg(test)]
    fn log_evidence(&self) -> f64 {
        let (count, copies) = (self.quadratic.count, self.copies());
        let log_det = 2.0 * self.r.iter().enumerate().map(|(i, r)| r[i].ln()).sum::<f64>();
        let sum_log_a = self.a.iter().map(|a| a.ln()).sum::<f64>();
        let of = |(k, noise): (usize, &NoisePrecision)| {
            let energy = self.energy(k);
            noise.log_evidence(noise.precision(energy, count), energy, count, copies * log_det, copies * sum_log_a)
        };
        self.noise.iter().enumerate().map(of).sum()
    }

    /// Returns the profile of each noise at the present model, with which contributions of basis functions are
    /// computed.
    pub fn profiles(&self) -> SmallVec<[NoiseProfile; 1]> {
        let of = |(k, noise): (usize, &NoisePrecision)| noise.profile(self.energy(k), self.quadratic.count, self.copies());
        self.noise.iter().enumerate().map(of).collect()
    }

    /// Returns the number of outputs that share a noise.
    fn copies(&self) -> f64 {
        (self.quadratic.outputs() / self.noise.len()) as f64
    }

    /// Returns the lower limit of the relative precision of a column.
    fn least(&self, column: usize) -> f64 {
        if column == 0 && self.quadratic.has_mean() { 0.0 } else { LEAST_PRECISION }
    }

    /// Returns E of a noise, at least 1e-13 N. The cap of the noise precision keeps E so large that the difference in
    /// it does not cancel.
    fn energy(&self, noise: usize) -> f64 {
        self.energy[noise].max(1e-13 * self.quadratic.count)
    }

    /// Returns the factors s and q of every column for the model without it, `[P]`. Outside the model they are S' and
    /// Q'.
    pub fn candidates(&self) -> Vec<ColumnFactors> {
        let (mean, variance) = self.moments();
        let one = |j: usize| match self.position[j] {
            None => self.outside(j),
            Some(i) => self.inside(i, &mean, variance[i]),
        };
        (0..self.position.len()).map(one).collect()
    }

    /// Returns the best single action on every column, `[P]`, and its gain in log evidence plus log prior, in nats.
    /// Columns outside the model that are not worth adding have `None`.
    pub fn actions(&self) -> Vec<Option<(Action, f64)>> {
        let profile = self.profiles();
        let candidates = self.candidates();
        let one = |column: usize| {
            let candidate = &candidates[column];
            let best = candidate.best(&profile, self.least(column));
            let cost = self.prior.cost(column);
            let Some(slot) = self.position[column] else {
                let independent = self.s[column] > SPAN_FLOOR * self.quadratic.diag[column];
                let added = |a| (Action::Add { column, a }, candidate.contribution(a, &profile) - cost);
                return best.filter(|_| independent).map(added);
            };
            let now = candidate.contribution(self.a[slot], &profile);
            let kept = best.map(|a| (a, candidate.contribution(a, &profile)));
            Some(match kept.filter(|(_, best)| *best >= cost) {
                Some((a, best)) => (Action::Reestimate { column, a }, best - now),
                None => (Action::Delete { column }, cost - now),
            })
        };
        (0..candidates.len()).map(one).collect()
    }

    /// Returns the action of largest gain, if it is above `least` nats, and its gain. The columns `excluded` do not
    /// change. If `reestimate` is false, re-estimations are excluded too.
    pub fn best_action(&self, least: f64, excluded: &[usize], reestimate: bool) -> Option<(Action, f64)> {
        let allowed = |(action, gain): &(Action, f64)| {
            *gain > least && !excluded.contains(&action.column()) && (reestimate || !matches!(action, Action::Reestimate { .. }))
        };
        let mut best: Vec<(Action, f64)> = self.actions().into_iter().flatten().filter(allowed).collect();
        best.sort_by(|x, y| y.1.total_cmp(&x.1));
        best.into_iter().find(|(action, _)| !matches!(action, Action::Add { column, .. } if self.is_duplicate(*column)))
    }

    /// Returns the gain of the action of largest gain, or 0 if there is none. The columns `excluded` do not change.
    pub fn largest_gain(&self, excluded: &[usize]) -> f64 {
        self.best_action(0.0, excluded, true).map_or(0.0, |(_, gain)| gain)
    }

    /// Returns up to `count` columns with the largest predicted gains of an addition, best first. Each gain is above
    /// `least` nats and at least `share` of the first one.
    fn best_additions(&self, count: usize, least: f64, share: f64) -> Vec<usize> {
        let of = |action| match action {
            (Action::Add { column, .. }, gain) if gain > least => Some((column, gain)),
            _ => None,
        };
        let mut best: Vec<(usize, f64)> = self.actions().into_iter().flatten().filter_map(of).collect();
        best.sort_by(|x, y| y.1.total_cmp(&x.1));
        let worthwhile = best.first().map_or(0.0, |(_, gain)| share * gain);
        best.iter().take(count).take_while(|(_, gain)| *gain >= worthwhile).map(|(column, _)| *column).collect()
    }

    /// Returns true if a column equals a column of the model up to rounding and scale.
    fn is_duplicate(&self, column: usize) -> bool {
        // A column far outside the span of the model cannot be a duplicate.
        let diag = &self.quadratic.diag;
        if self.s[column] > 1e-3 * diag[column] {
            return false;
        }
        // G is symmetric, and its rows of the active columns are already computed.
        let product = |j: usize| self.quadratic.row(j)[column];
        self.active.iter().any(|j| product(*j).abs() > SAME_COSINE * (diag[*j] * diag[column]).sqrt())
    }

    /// Applies an action to the factor.
    pub fn apply(&mut self, action: Action) {
        match action {
            Action::Add { column, a } => self.push(column, a),
            Action::Delete { column } => {
                self.move_last(column);
                self.pop();
            }
            Action::Reestimate { column, a } => {
                self.move_last(column);
                self.rescale_last(a);
            }
        }
    }

    /// Returns the posterior means, `[R][M]`, and relative variances, `[M]`, of the active weights.
    fn moments(&self) -> (Vec<Vec<f64>>, Vec<f64>) {
        let m = self.active.len();
        let mut variance = vec![0.0; m];
        for row in &self.inverse {
            variance.iter_mut().zip(row).for_each(|(v, w)| *v += w * w);
        }
        let mean = |z: &Vec<f64>| {
            let mut mean = vec![0.0; m];
            for (row, z) in self.inverse.iter().zip(z) {
                mean.iter_mut().zip(row).for_each(|(m, w)| *m += w * z);
            }
            mean
        };
        let mut mean: Vec<Vec<f64>> = self.z.iter().map(mean).collect();
        if let Some(p) = bias_position(&self.quadratic, &self.active) {
            mean.iter_mut().zip(&self.bias_offset).for_each(|(mean, offset)| mean[p] += offset);
        }
        (mean, variance)
    }

    fn dense_inverse(&self) -> Array2<f64> {
        let m = self.active.len();
        Array2::from_shape_fn((m, m), |(i, j)| if j <= i { self.inverse[i][j] } else { 0.0 })
    }

    /// Adds a column at the end, (M10).
    fn push(&mut self, column: usize, a: f64) {
        let (m, p) = (self.active.len(), self.position.len());
        let r: Vec<f64> = (0..m).map(|k| self.v[k * p + column]).collect();
        let rho = (a + self.s[column].max(0.0)).sqrt();
        let mut row: Array1<f64> = ArrayView1::from(&*self.quadratic.row(column)).to_owned();
        let v = ArrayView2::from_shape((m, p), &self.v).expect("V is [M, P]");
        let left = ArrayView2::from_shape((1, m), &r).expect("r has M entries");
        if m > 0 {
            linalg::product(true, -1.0, left, v, row.view_mut().insert_axis(ndarray::Axis(0)));
        }
        row /= rho;
        let mut inverse = vec![0.0; m + 1];
        for (k, r) in r.iter().enumerate() {
            inverse.iter_mut().zip(&self.inverse[k]).for_each(|(o, w)| *o -= r * w / rho);
        }
        inverse[m] = 1.0 / rho;
        let mut r = r;
        r.push(rho);
        self.r.push(r);
        self.inverse.push(inverse);
        self.append(column, a, rho, row.as_slice().expect("a row is contiguous"));
    }

    /// Appends a column with its row of V, `[P]`, and updates S', Q' and E, (M10).
    fn append(&mut self, column: usize, a: f64, rho: f64, row: &[f64]) {
        self.position[column] = Some(self.active.len());
        self.active.push(column);
        self.a.push(a);
        self.v.extend_from_slice(row);
        self.s.iter_mut().zip(row).for_each(|(s, v)| *s -= v * v);
        let last = self.energy.len() - 1;
        for (k, (z, q)) in self.z.iter_mut().zip(&mut self.q).enumerate() {
            let zeta = q[column] / rho;
            z.push(zeta);
            q.iter_mut().zip(row).for_each(|(q, v)| *q -= zeta * v);
            self.energy[k.min(last)] -= zeta * zeta;
        }
        if column == 0 && self.quadratic.has_mean() {
            self.refresh_target();
        }
    }

    /// Removes the last column, (M11); returns its row of V.
    fn pop(&mut self) -> Vec<f64> {
        let p = self.position.len();
        let m = self.active.len() - 1;
        let column = self.active[m];
        let row = self.v.split_off(m * p);
        self.s.iter_mut().zip(&row).for_each(|(s, v)| *s += v * v);
        let last = self.energy.len() - 1;
        for (k, (z, q)) in self.z.iter_mut().zip(&mut self.q).enumerate() {
            let zeta = z[m];
            z.truncate(m);
            q.iter_mut().zip(&row).for_each(|(q, v)| *q += zeta * v);
            self.energy[k.min(last)] += zeta * zeta;
        }
        self.active.truncate(m);
        self.a.truncate(m);
        self.r.truncate(m);
        self.inverse.truncate(m);
        self.position[column] = None;
        if column == 0 && self.quadratic.has_mean() {
            self.refresh_target();
        }
        row
    }

    /// Gives the last column another precision, (M12): no product with V.
    fn rescale_last(&mut self, a: f64) {
        let m = self.active.len() - 1;
        let (column, old, rho_old) = (self.active[m], self.a[m], self.r[m][m]);
        let (mut r, mut inverse) = (self.r[m].clone(), self.inverse[m].clone());
        let mut row = self.pop();
        // s of the model without the column, from the difference that cancels less.
        let s = if old < self.quadratic.diag[column] { rho_old * rho_old - old } else { self.s[column] };
        let rho = (a + s.max(0.0)).sqrt();
        let ratio = rho_old / rho;
        row.iter_mut().for_each(|v| *v *= ratio);
        inverse.iter_mut().for_each(|v| *v *= ratio);
        r[m] = rho;
        self.r.push(r);
        self.inverse.push(inverse);
        self.append(column, a, rho, &row);
    }

    /// Moves an active column to the end of the factor by Givens rotations of neighbours.
    fn move_last(&mut self, column: usize) {
        let from = self.position[column].expect("the column is in the model");
        let (m, p) = (self.active.len(), self.position.len());
        let mut moved = self.r.remove(from);
        moved.resize(m, 0.0);
        for row in &mut self.inverse[from..] {
            row.resize(m, 0.0);
        }
        for c in from..m - 1 {
            // Rotate columns c, c + 1 of R so that the entry right of the diagonal vanishes.
            let (x, y) = (self.r[c][c], self.r[c][c + 1]);
            let h = x.hypot(y);
            let (cos, sin) = (x / h, y / h);
            for row in self.r[c..].iter_mut().chain(std::iter::once(&mut moved)) {
                let (x, y) = (row[c], row[c + 1]);
                row[c] = cos * x + sin * y;
                row[c + 1] = cos * y - sin * x;
            }
            self.r[c].truncate(c + 1);
            let (top, bottom) = self.v[c * p..(c + 2) * p].split_at_mut(p);
            rotate(top, bottom, cos, sin);
            let (top, bottom) = self.inverse.split_at_mut(c + 1);
            rotate(&mut top[c], &mut bottom[0], cos, sin);
            for z in &mut self.z {
                (z[c], z[c + 1]) = (cos * z[c] + sin * z[c + 1], cos * z[c + 1] - sin * z[c]);
            }
        }
        if moved[m - 1] < 0.0 {
            moved[m - 1] = -moved[m - 1];
            self.v[(m - 1) * p..].iter_mut().for_each(|v| *v = -*v);
            self.inverse[m - 1].iter_mut().for_each(|v| *v = -*v);
            self.z.iter_mut().for_each(|z| z[m - 1] = -z[m - 1]);
        }
        self.r.push(moved);
        for (k, row) in self.inverse.iter_mut().enumerate().skip(from) {
            row[from..].rotate_left(1);
            row.truncate(k + 1);
        }
        let (column, a) = (self.active.remove(from), self.a.remove(from));
        self.active.push(column);
        self.a.push(a);
        for (i, j) in self.active.iter().enumerate().skip(from) {
            self.position[*j] = Some(i);
        }
    }

    /// Computes z, Q' and E from f. This is needed after each change of the bias, whose precision enters f, (M9).
    fn refresh_target(&mut self) {
        let p = self.position.len();
        let bias = bias_position(&self.quadratic, &self.active).map(|i| self.a[i]);
        let target = self.quadratic.target(bias);
        let half = |f: &Vec<f64>| -> Vec<f64> {
            self.inverse.iter().map(|row| row.iter().zip(&self.active).map(|(w, j)| w * f[*j]).sum()).collect()
        };
        self.z = target.f.iter().map(half).collect();
        self.q = target.f;
        for (z, q) in self.z.iter().zip(&mut self.q) {
            for (k, z) in z.iter().enumerate() {
                q.iter_mut().zip(&self.v[k * p..]).for_each(|(q, v)| *q -= z * v);
            }
        }
        // For a bias in the model f_0 contains -a_0 m, which is not part of its Q'.
        if let Some(a) = bias {
            self.q.iter_mut().zip(&target.bias_offset).for_each(|(q, offset)| q[0] += a * offset);
        }
        self.energy = target.tt;
        let last = self.energy.len() - 1;
        for (k, z) in self.z.iter().enumerate() {
            self.energy[k.min(last)] -= z.iter().map(|z| z * z).sum::<f64>();
        }
        self.bias_offset = target.bias_offset;
    }
}

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
            if rest.position[k].is_none() && !(rest.s[k] > SPAN_FLOOR * self.quadratic.diag[listed[k]]) {
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

fn rotate(top: &mut [f64], bottom: &mut [f64], cos: f64, sin: f64) {
    for (x, y) in top.iter_mut().zip(bottom) {
        (*x, *y) = (cos * *x + sin * *y, cos * *y - sin * *x);
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Returns the quadratic form of a Gaussian kernel on a line, with the bias first and columns of unit norm. The
    /// means of the outputs, which are subtracted from the targets, are `mean`, 0, -`mean`, and so on.
    fn quadratic(mean: f64, outputs: usize) -> Rc<Quadratic<'static>> {
        let (n, mut random) = (300, rand_pcg::Pcg64::seed_from_u64(1));
        let x: Vec<f64> = (0..n).map(|_| random.random_range(-10.0..10.0)).collect();
        let mut phi = Array2::from_shape_fn((n, n + 1), |(i, j)| match j {
            0 => 1.0,
            _ => (-0.1 * (x[i] - x[j - 1]).powi(2)).exp(),
        });
        let norms: Vec<f64> = phi.columns().into_iter().map(|c| c.dot(&c).sqrt()).collect();
        phi.columns_mut().into_iter().zip(&norms).for_each(|(mut c, n)| c /= *n);
        let of = |x: f64, k: usize| (x * (1.0 + 0.3 * k as f64)).sin() + k as f64 * 0.02 * x;
        let mut noise = |k: usize| random.random_range(-0.3..0.3) * (1.0 + k as f64);
        let t: Vec<f64> = x.iter().flat_map(|x| (0..outputs).map(|k| of(*x, k) + noise(k)).collect::<Vec<f64>>()).collect();
        let mut sums = Sums::new(n + 1, outputs);
        sums.accumulate(phi.view(), &t, &vec![1.0; n]);
        let means = (0..outputs).map(|k| mean * norms[0] * (1.0 - k as f64)).collect();
        Rc::new(Quadratic::stored(sums.finish(), Some(means)))
    }

    /// Returns three noises, of which the second is fixed at its cap and the others are profiled out.
    fn noises() -> [NoisePrecision; 3] {
        let learned = NoisePrecision::Learned { cap: 1e6, c: 0.5, d: 0.1 };
        [learned, NoisePrecision::Learned { cap: 0.5, c: 0.0, d: 0.0 }, learned]
    }

    fn empty(quadratic: &Rc<Quadratic<'static>>, noise: &[NoisePrecision]) -> ActiveFactor<'static> {
        let solution = ActivePosterior::of(quadratic, &[], &[], noise, NoiseChoice::Best, None).unwrap();
        ActiveFactor::new(quadratic.clone(), &solution, noise, SparsityPrior::default())
    }

    fn fresh(factor: &ActiveFactor<'static>) -> (ActivePosterior, ActiveFactor<'static>) {
        let solution =
            ActivePosterior::of(&factor.quadratic, &factor.active, &factor.a, &factor.noise, NoiseChoice::Best, None).unwrap();
        let again = ActiveFactor::new(factor.quadratic.clone(), &solution, &factor.noise, SparsityPrior::default());
        (solution, again)
    }

    /// After 3,000 actions, the best or random ones, S' is not negative and within 1e-5 of that of a new factor. The
    /// log evidence agrees to 1e-6.
    #[test]
    fn rotations_do_not_drift() {
        let quadratic = quadratic(0.0, 1);
        let mut factor = empty(&quadratic, &[NoisePrecision::Fixed(100.0)]);
        let mut random = rand_pcg::Pcg64::seed_from_u64(2);
        let mut kinds = [0; 3];
        for step in 0..3000 {
            let actions: Vec<(Action, f64)> = factor.actions().into_iter().flatten().collect();
            let (action, _) = if step % 3 == 0 {
                *actions.iter().max_by(|x, y| x.1.total_cmp(&y.1)).unwrap()
            } else {
                actions[random.random_range(0..actions.len())]
            };
            // A random factor of the precision keeps the model from converging.
            let scale = 10f64.powf(random.random_range(-2.0..2.0));
            let action = match action {
                Action::Reestimate { column, .. } if step % 3 == 1 => Action::Delete { column },
                Action::Reestimate { column, a } => Action::Reestimate { column, a: a * scale },
                Action::Add { column, a } => Action::Add { column, a: a * scale },
                other => other,
            };
            kinds[match action {
                Action::Add { .. } => 0,
                Action::Reestimate { .. } => 1,
                _ => 2,
            }] += 1;
            factor.apply(action);
        }
        assert!(kinds.iter().all(|k| *k > 300), "{kinds:?}");
        let (solution, again) = fresh(&factor);
        for j in 0..factor.position.len() {
            let error = (factor.s[j] - again.s[j]).abs();
            assert!(error <= 1e-5 * again.s[j].abs().max(1e-6), "S'[{j}] {} {}", factor.s[j], again.s[j]);
            assert!(factor.s[j] > -1e-12, "S'[{j}] {}", factor.s[j]);
            assert!((factor.q(j) - again.q(j)).abs() < 1e-6, "Q'[{j}] {} {}", factor.q(j), again.q(j));
        }
        assert!((factor.log_evidence() - solution.log_evidence).abs() < 1e-6 * solution.log_evidence.abs());
    }

    /// With profiled noise, hyperpriors and targets about a mean, the predicted gain of the action on every column is
    /// the change of the recomputed evidence. The actions add and delete the bias, too.
    #[test]
    fn gains_are_exact_with_profiled_noise() {
        for (mean, outputs) in [(0.0, 1), (3.0, 1), (1e4, 1), (0.0, 3), (3.0, 2)] {
            let quadratic = quadratic(mean, outputs);
            let noise = noises();
            let mut factor = empty(&quadratic, &noise[..outputs]);
            for _ in 0..12 {
                let (action, _) = factor.best_action(0.0, &[], true).unwrap();
                factor.apply(action);
            }
            let (before, _) = fresh(&factor);
            // For the bias of a mean of 1e4, s E - q^2 itself cancels.
            let size = if mean > 1e3 { 1e-6 } else { 1e-9 } * before.log_evidence.abs().max(1.0);
            assert!((factor.log_evidence() - before.log_evidence).abs() < size);
            let mut tried = 0;
            for (action, gain) in factor.actions().into_iter().flatten() {
                let mut moved = factor.clone();
                moved.apply(action);
                let (after, _) = fresh(&moved);
                let change = after.log_evidence - before.log_evidence;
                assert!((change - gain).abs() < size, "mean {mean} {action:?}: {change} {gain}");
                assert!((moved.log_evidence() - after.log_evidence).abs() < size, "mean {mean} {action:?}");
                tried += 1;
            }
            assert!(tried > 12);
        }
    }

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
            let columns = single.position.len();
            let listed = single.best_additions(columns, 1e-3, 0.01);
            let taken = block.add_best(columns, 1e-3, 0.01);
            let closed: Vec<usize> = (0..columns).filter(|j| *j == 0 || !listed.contains(j)).collect();
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
            for j in 0..columns {
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
