//! Gradients of weighted sums of kernel values, in the parameters and in the centres.

use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis, s};

use relvec_predict::internal::kernel::feature_major;

use super::slope::{per_parameter, slope};
use super::weighted::weighted_absolutes;
use super::{Form, Kernel, vector};
use crate::linalg;

/// Gradients in the parameters, summed over blocks of rows a at fixed centres b, and in the centres, (M35). They are
/// computed by matrix products. These lose digits if kernels are far narrower than the spread of the rows, but not
/// enough to affect an optimiser.
pub(crate) struct GradientSums<'a> {
    kernel: &'a Kernel,
    /// Centres b minus `middle`, [m, D].
    centres: Array2<f64>,
    /// Origin that is subtracted from rows and centres, `[D]`.
    middle: Array1<f64>,
    /// S'X, [m, D], where S_ij = w_ij dk/dp. For absolute differences it is sum_i S_ij sign(b_jd - a_id).
    cross: Array2<f64>,
    /// Column sums S'1, `[m]`.
    columns: Array1<f64>,
    /// sum_i x_id^2 (S1)_i, `[D]`. For absolute differences it is sum_ij S_ij |a_id - b_jd|.
    rows: Array1<f64>,
    /// Sums for the parameters other than gamma.
    rest: Vec<f64>,
}

impl<'a> GradientSums<'a> {
    /// Returns sums that are zero, at centres `b`, `[M, D]`.
    pub fn new(kernel: &'a Kernel, b: ArrayView2<f64>) -> GradientSums<'a> {
        let (m, features) = b.dim();
        // The origin of inner products is fixed at 0.
        let middle = match kernel.form() {
            Form::Squares(_) => b.mean_axis(Axis(0)).unwrap_or_else(|| Array1::zeros(features)),
            _ => Array1::zeros(features),
        };
        GradientSums {
            kernel,
            centres: &b - &middle,
            middle,
            cross: Array2::zeros((m, features)),
            columns: Array1::zeros(m),
            rows: Array1::zeros(features),
            rest: vec![],
        }
    }

    /// Adds rows `a`, [n, D], with `w` = d./dk, [n, m], which is overwritten, in the calling thread alone.
    pub fn add(&mut self, a: ArrayView2<f64>, mut w: ArrayViewMut2<f64>) {
        let x = &a - &self.middle;
        // Squared distances do not depend on the origin.
        let rest = match self.kernel.form() {
            Form::Squares(_) => slope(self.kernel, x.view(), self.centres.view(), w.view_mut()),
            _ => slope(self.kernel, a, self.centres.view(), w.view_mut()),
        };
        self.rest.resize(rest.len(), 0.0);
        self.rest.iter_mut().zip(rest).for_each(|(sum, v)| *sum += v);
        match self.kernel.form() {
            Form::Squares(_) => {
                let ones = Array2::from_elem((1, a.nrows()), 1.0);
                linalg::product_alone(true, ones.view(), w.view(), self.columns.view_mut().insert_axis(Axis(0)));
                linalg::product_alone(true, w.t(), x.view(), self.cross.view_mut());
                for (x, s) in x.outer_iter().zip(w.outer_iter()) {
                    let total = s.sum();
                    self.rows.iter_mut().zip(x).for_each(|(sum, x)| *sum += total * x * x);
                }
            }
            Form::Products(_) => linalg::product_alone(true, w.t(), x.view(), self.cross.view_mut()),
            Form::Absolutes(_) => self.add_absolutes(x.view(), w.view()),
            Form::Other => {}
        }
    }

    fn add_absolutes(&mut self, x: ArrayView2<f64>, s: ArrayView2<f64>) {
        let centres = feature_major(self.centres.view());
        for (d, z) in centres.outer_iter().enumerate() {
            let mut signs = vec![0.0; z.len()];
            for (x, s) in x.column(d).iter().zip(s.outer_iter()) {
                for ((sign, z), s) in signs.iter_mut().zip(z).zip(s) {
                    let gap = z - x;
                    *sign += if gap == 0.0 { 0.0 } else { s * gap.signum() };
                    self.rows[d] += s * gap.abs();
                }
            }
            self.cross.column_mut(d).iter_mut().zip(signs).for_each(|(sum, v)| *sum += v);
        }
    }

    /// Adds the sums over other rows.
    pub fn merge(&mut self, other: &GradientSums) {
        self.cross += &other.cross;
        self.columns += &other.columns;
        self.rows += &other.rows;
        self.rest.resize(self.rest.len().max(other.rest.len()), 0.0);
        self.rest.iter_mut().zip(&other.rest).for_each(|(sum, v)| *sum += v);
    }

    /// Returns d./dlog theta for each parameter of the kernel, and d./db, [m, D].
    pub fn finish(self) -> (Vec<f64>, Array2<f64>) {
        let features = self.rows.len();
        let (z, columns) = (&self.centres, self.columns.view().insert_axis(Axis(1)));
        let zs = |v: &Array2<f64>| (z * v).sum_axis(Axis(0));
        let (scales, per_feature, centres) = match self.kernel.form() {
            Form::Squares(gamma) => {
                let per_feature = &self.rows + &(&zs(&(z * &columns)) - &(zs(&self.cross) * 2.0));
                (gamma.values(features), per_feature, (z * &columns - &self.cross) * 2.0)
            }
            Form::Absolutes(gamma) => (gamma.values(features), self.rows.clone(), self.cross),
            Form::Products(gamma) => {
                let scales = gamma.map_or(Array1::ones(features), |gamma| gamma.values(features));
                (scales, zs(&self.cross), self.cross)
            }
            Form::Other => (Array1::ones(features), Array1::zeros(features), self.cross),
        };
        let mut all = self.kernel.form().gamma().map_or(vec![], |gamma| per_parameter(gamma, (per_feature * &scales).to_vec()));
        all.extend(self.rest);
        (all, centres * &scales)
    }
}

/// The gradient in the parameters alone, summed over pairs of rows of one table, by the same products as
/// [`GradientSums`].
pub(crate) struct SymmetricSums<'a> {
    kernel: &'a Kernel,
    /// Rows, [n, D].
    x: ArrayView2<'a, f64>,
    /// Rows minus their mean, with a column of ones, [n, D + 1]; used for squared differences.
    centred: Array2<f64>,
}

impl<'a> SymmetricSums<'a> {
    /// Returns sums over pairs of rows of `x`, `[N, D]`.
    pub fn new(kernel: &'a Kernel, x: ArrayView2<'a, f64>) -> SymmetricSums<'a> {
        let (n, features) = x.dim();
        let mut centred = Array2::ones((n, features + 1));
        if let Some(mean) = x.mean_axis(Axis(0)) {
            centred.slice_mut(s![.., ..features]).assign(&(&x - &mean));
        }
        SymmetricSums { kernel, x, centred }
    }

    /// Returns sum_ij w_ij dk(x_i, x_j)/dlog theta for each parameter of the kernel, over the rows i from `first` on
    /// and the rows j < m. `w`, [rows, m], is overwritten, `width` columns at a time. It runs in the calling thread
    /// alone.
    pub fn of_rows(&self, first: usize, mut w: ArrayViewMut2<f64>, width: usize) -> Vec<f64> {
        let (until, features) = (first + w.nrows(), self.x.ncols());
        let (rows, own) = (self.x.slice(s![first..until, ..]), self.centred.slice(s![first..until, ..]));
        let kernel = self.kernel;
        let mut rest = vec![];
        let mut per_feature = vec![0.0; features];
        // S [X 1], where S is that of the pairs.
        let mut cross = Array2::zeros(own.dim());
        let mut columns = vec![0.0; width];
        for (k, mut s) in w.axis_chunks_iter_mut(Axis(1), width).enumerate() {
            let others = k * width..k * width + s.ncols();
            let x = self.x.slice(s![others.clone(), ..]);
            let more = slope(kernel, rows, x, s.view_mut());
            rest.resize(more.len(), 0.0);
            rest.iter_mut().zip(more).for_each(|(sum, v)| *sum += v);
            match kernel.form() {
                Form::Squares(_) => {
                    let x = self.centred.slice(s![others, ..]);
                    linalg::product_alone(true, s.view(), x, cross.view_mut());
                    columns.fill(0.0);
                    vector::rows(s, |_, row| columns.iter_mut().zip(row).for_each(|(sum, v)| *sum += *v));
                    for (x, total) in x.outer_iter().zip(&columns) {
                        per_feature.iter_mut().zip(x).for_each(|(sum, x)| *sum += total * x * x);
                    }
                }
                Form::Products(_) => linalg::product_alone(true, s.view(), x, cross.slice_mut(s![.., ..features])),
                Form::Absolutes(gamma) => {
                    let sums = weighted_absolutes(rows, x, s.view(), gamma);
                    per_feature.iter_mut().zip(sums).for_each(|(sum, v)| *sum += v);
                }
                Form::Other => {}
            }
        }
        let scales = match kernel.form() {
            Form::Squares(gamma) => {
                for (x, cross) in own.outer_iter().zip(cross.outer_iter()) {
                    let total = cross[features];
                    let pairs = x.iter().zip(&cross);
                    per_feature.iter_mut().zip(pairs).for_each(|(sum, (x, cross))| *sum += x * (total * x - 2.0 * cross));
                }
                Some(gamma.values(features))
            }
            Form::Products(gamma) => {
                for (x, cross) in rows.outer_iter().zip(cross.outer_iter()) {
                    per_feature.iter_mut().zip(x.iter().zip(&cross)).for_each(|(sum, (x, cross))| *sum += x * cross);
                }
                gamma.map(|gamma| gamma.values(features))
            }
            // weighted_absolutes has multiplied by gamma already.
            Form::Absolutes(_) | Form::Other => None,
        };
        if let Some(scales) = scales {
            per_feature.iter_mut().zip(scales).for_each(|(sum, scale)| *sum *= scale);
        }
        let mut all = self.kernel.form().gamma().map_or(vec![], |gamma| per_parameter(gamma, per_feature));
        all.extend(rest);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::KernelGradient as _;

    fn rows(n: usize, features: usize, seed: u64) -> Array2<f64> {
        let mut state = seed;
        Array2::from_shape_simple_fn((n, features), || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
    }

    /// Returns each registered kernel, with one gamma and with one per feature.
    fn kernels(features: usize) -> Vec<Kernel> {
        let per_feature: Vec<f64> = (0..features).map(|d| 0.2 + 0.3 * d as f64).collect();
        let scale = crate::kernel::DataScale { features, variance: 1.0 };
        let all = Kernel::NAMES.iter().map(|name| Kernel::from_name(name).expect("a name").resolve(&scale).unwrap());
        all.flat_map(|k| [k.with_gamma(0.4.into()), k.with_gamma(per_feature.clone().into())]).collect()
    }

    fn value(kernel: &Kernel, a: &Array2<f64>, b: &Array2<f64>, w: &Array2<f64>) -> f64 {
        let mut k = Array2::zeros(w.dim());
        kernel.block(a.view(), b.view(), k.view_mut());
        (&k * w).sum()
    }

    /// Sums over two blocks, far from the origin, agree with the exact sums, and with finite differences of the
    /// centres.
    #[test]
    fn sums_are_the_gradient_in_parameters_and_centres() {
        for (features, offset) in [(1, 0.0), (3, 0.0), (7, 2.0)] {
            for kernel in kernels(features) {
                let (a, b, w) = (rows(20, features, 1) + offset, rows(6, features, 2) + offset, rows(20, 6, 3));
                let mut sums = GradientSums::new(&kernel, b.view());
                let mut second = GradientSums::new(&kernel, b.view());
                for (sums, range) in [(&mut sums, 0..13), (&mut second, 13..20)] {
                    let mut w = w.select(Axis(0), &range.clone().collect::<Vec<_>>());
                    sums.add(a.select(Axis(0), &range.collect::<Vec<_>>()).view(), w.view_mut());
                }
                sums.merge(&second);
                let (parameters, centres) = sums.finish();
                let exact = kernel.gradient(a.view(), b.view(), w.view());
                assert_eq!(parameters.len(), exact.len(), "{kernel:?}");
                let size = exact.iter().fold(1e-3f64, |m, v| m.max(v.abs()));
                for (got, exact) in parameters.iter().zip(&exact) {
                    assert!((got - exact).abs() < 1e-11 * size, "{kernel:?}: {got} instead of {exact}");
                }
                if matches!(kernel.form(), Form::Other) {
                    continue;
                }
                let size = centres.iter().fold(1e-3f64, |m, v| m.max(v.abs()));
                for ((j, d), got) in centres.indexed_iter() {
                    let at = |h: f64| {
                        let mut b = b.clone();
                        b[[j, d]] += h;
                        value(&kernel, &a, &b, &w)
                    };
                    let expected = (at(1e-5) - at(-1e-5)) / 2e-5;
                    assert!((got - expected).abs() < 1e-6 * size, "{kernel:?}: centre {got} instead of {expected}");
                }
            }
        }
    }

    /// Sums over pairs of rows of one table, far from the origin, in two parts of several widths, agree with the exact
    /// sums.
    #[test]
    fn symmetric_sums_are_the_gradient_in_the_parameters() {
        for (features, offset) in [(1, 0.0), (3, 0.0), (7, 2.0)] {
            for kernel in kernels(features) {
                let (x, w) = (rows(20, features, 1) + offset, rows(20, 20, 3));
                let exact = kernel.gradient(x.view(), x.view(), w.view());
                let sums = SymmetricSums::new(&kernel, x.view());
                let size = exact.iter().fold(1e-3f64, |m, v| m.max(v.abs()));
                for width in [7, 64] {
                    let mut found = vec![0.0; exact.len()];
                    for part in [0..13, 13..20] {
                        let mut w = w.slice(s![part.clone(), ..]).to_owned();
                        let own = sums.of_rows(part.start, w.view_mut(), width);
                        assert_eq!(own.len(), exact.len(), "{kernel:?}");
                        found.iter_mut().zip(own).for_each(|(sum, v)| *sum += v);
                    }
                    for (got, exact) in found.iter().zip(&exact) {
                        assert!((got - exact).abs() < 1e-11 * size, "{kernel:?}: {got} instead of {exact}");
                    }
                }
            }
        }
    }
}
