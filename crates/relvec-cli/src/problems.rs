//! Synthetic problems of the papers on relevance vector machines, drawn from a seed.

use std::f64::consts::PI;

use ndarray::{Array1, Array2};
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;

/// sin(x) / x on [-10, 10] with Gaussian noise (Tipping 2001, section 4.1).
pub(crate) struct Sinc {
    /// Equally spaced inputs, [N, 1].
    pub x: Array2<f64>,
    /// `[N]`.
    pub t: Array1<f64>,
}

impl Sinc {
    pub const NOISE: f64 = 0.2;
    pub const RANGE: (f64, f64) = (-10.0, 10.0);

    pub fn truth(x: f64) -> f64 {
        if x == 0.0 { 1.0 } else { x.sin() / x }
    }

    /// Returns `n` equally spaced inputs, [n, 1].
    pub fn grid(n: usize) -> Array2<f64> {
        Array1::linspace(Sinc::RANGE.0, Sinc::RANGE.1, n).insert_axis(ndarray::Axis(1))
    }

    pub fn draw(n: usize, seed: u64) -> Sinc {
        Sinc::with_noise(n, Sinc::NOISE, seed)
    }

    pub fn with_noise(n: usize, noise: f64, seed: u64) -> Sinc {
        let mut random = Pcg64::seed_from_u64(seed);
        let x = Sinc::grid(n);
        let t = x.column(0).mapv(|x| Sinc::truth(x) + noise * normal(&mut random));
        Sinc { x, t }
    }
}

/// Two classes in the plane, each an equal mixture of two Gaussians with the same spherical covariance, similar to the
/// data of Ripley (Pattern Recognition and Neural Networks, 1996). The Bayes error is about 8 %.
pub(crate) struct Mixture {
    /// [N, 2].
    pub x: Array2<f64>,
    /// Classes 0 and 1, `[N]`, with equal numbers of rows.
    pub labels: Vec<usize>,
}

impl Mixture {
    const CENTRES: [[[f64; 2]; 2]; 2] = [[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]];
    const VARIANCE: f64 = 0.03;

    pub fn draw(n: usize, seed: u64) -> Mixture {
        let mut random = Pcg64::seed_from_u64(seed);
        let labels: Vec<usize> = (0..n).map(|i| i % 2).collect();
        let mut x = Array2::zeros((n, 2));
        for (mut row, class) in x.outer_iter_mut().zip(&labels) {
            let centre = Mixture::CENTRES[*class][usize::from(random.next_u64() >> 63 == 1)];
            for (value, c) in row.iter_mut().zip(centre) {
                *value = c + Mixture::VARIANCE.sqrt() * normal(&mut random);
            }
        }
        Mixture { x, labels }
    }

    /// Returns the true probability of class 1 at (x, y).
    pub fn probability(point: [f64; 2]) -> f64 {
        let [zero, one] = Mixture::CENTRES.map(|centres| centres.iter().map(|c| density(point, *c)).sum::<f64>());
        one / (zero + one)
    }
}

/// Friedman's three functions (Annals of Statistics 19, 1991), inputs uniform in a box, with Gaussian noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Friedman {
    /// Ten inputs, of which five have an effect; noise standard deviation 1.
    One,
    /// The impedance of a circuit with four inputs; noise standard deviation 125, a third of the function's standard
    /// deviation.
    Two,
    /// The phase of the circuit; noise standard deviation 0.1.
    Three,
}

/// Rows drawn from one of Friedman's functions.
pub(crate) struct FriedmanRows {
    /// [N, D].
    pub x: Array2<f64>,
    /// Values of the function, `[N]`.
    pub truth: Array1<f64>,
    /// Targets with noise, `[N]`.
    pub t: Array1<f64>,
}

impl Friedman {
    pub fn noise(self) -> f64 {
        match self {
            Friedman::One => 1.0,
            Friedman::Two => 125.0,
            Friedman::Three => 0.1,
        }
    }

    /// Returns the least and greatest value of each input, `[D]`.
    fn bounds(self) -> &'static [(f64, f64)] {
        match self {
            Friedman::One => &[(0.0, 1.0); 10],
            Friedman::Two | Friedman::Three => &[(0.0, 100.0), (40.0 * PI, 560.0 * PI), (0.0, 1.0), (1.0, 11.0)],
        }
    }

    fn truth(self, x: &[f64]) -> f64 {
        if self == Friedman::One {
            return 10.0 * (PI * x[0] * x[1]).sin() + 20.0 * (x[2] - 0.5).powi(2) + 10.0 * x[3] + 5.0 * x[4];
        }
        let reactance = x[1] * x[2] - 1.0 / (x[1] * x[3]);
        if self == Friedman::Two { x[0].hypot(reactance) } else { (reactance / x[0]).atan() }
    }

    pub fn draw(self, n: usize, seed: u64) -> FriedmanRows {
        let mut random = Pcg64::seed_from_u64(seed);
        let bounds = self.bounds();
        let x = Array2::from_shape_fn((n, bounds.len()), |(_, d)| {
            let (low, high) = bounds[d];
            random.random_range(low..high)
        });
        let truth = Array1::from_iter(x.outer_iter().map(|row| self.truth(&row.to_vec())));
        let t = truth.mapv(|y| y + self.noise() * normal(&mut random));
        FriedmanRows { x, truth, t }
    }
}

/// Draws two classes in the plane that no line separates well: points above and below a wave, with noise of half a unit
/// across it.
pub(crate) fn wave(n: usize, seed: u64) -> (Array2<f64>, Vec<usize>) {
    let mut random = Pcg64::seed_from_u64(seed);
    let x = Array2::from_shape_simple_fn((n, 2), || random.random_range(-2.0..2.0));
    let labels = x.outer_iter().map(|r| usize::from(r[1] + 0.5 * normal(&mut random) > (2.0 * r[0]).sin())).collect();
    (x, labels)
}

/// Draws three overlapping Gaussian classes in the plane, centred at the corners of a triangle.
pub(crate) fn three_classes(n: usize, seed: u64) -> (Array2<f64>, Vec<usize>) {
    const CENTRES: [[f64; 2]; 3] = [[-1.0, -0.6], [1.0, -0.6], [0.0, 1.1]];
    let mut random = Pcg64::seed_from_u64(seed);
    let labels: Vec<usize> = (0..n).map(|i| i % 3).collect();
    let x = Array2::from_shape_fn((n, 2), |(i, d)| CENTRES[labels[i]][d] + 0.6 * normal(&mut random));
    (x, labels)
}

/// Draws sin(pi x) with noise at equally spaced x in [-1, 1]: rows [N, 1] and targets `[N]`.
pub(crate) fn sine(n: usize, noise: f64, seed: u64) -> (Array2<f64>, Array1<f64>) {
    let mut random = Pcg64::seed_from_u64(seed);
    let x = Array1::linspace(-1.0, 1.0, n).insert_axis(ndarray::Axis(1));
    let t = x.column(0).mapv(|x| (PI * x).sin() + noise * normal(&mut random));
    (x, t)
}

fn density(point: [f64; 2], centre: [f64; 2]) -> f64 {
    let squared = (point[0] - centre[0]).powi(2) + (point[1] - centre[1]).powi(2);
    (-0.5 * squared / Mixture::VARIANCE).exp() / (2.0 * PI * Mixture::VARIANCE)
}

fn normal(random: &mut impl Rng) -> f64 {
    StandardNormal.sample(random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bayes_error_of_the_mixture_is_eight_percent() {
        let sample = Mixture::draw(20_000, 1);
        let wrong = sample
            .x
            .outer_iter()
            .zip(&sample.labels)
            .filter(|(row, class)| usize::from(Mixture::probability([row[0], row[1]]) > 0.5) != **class)
            .count();
        let error = wrong as f64 / 20_000.0;
        assert!((0.07..0.09).contains(&error), "{error}");
    }

    /// The functions have the standard deviations for which the noise is a third of the signal where Friedman says so.
    #[test]
    fn friedmans_functions_have_their_spread() {
        for (problem, spread) in [(Friedman::One, 4.9), (Friedman::Two, 375.0), (Friedman::Three, 0.3)] {
            let rows = problem.draw(20_000, 1);
            let sd = rows.truth.std(0.0);
            assert!((sd / spread - 1.0).abs() < 0.1, "{problem:?}: {sd}");
            assert!(((&rows.t - &rows.truth).std(0.0) / problem.noise() - 1.0).abs() < 0.03);
        }
    }

    #[test]
    fn a_seed_is_a_sample() {
        let a = Sinc::draw(100, 3);
        assert_eq!(a.t, Sinc::draw(100, 3).t);
        let noise = a.x.column(0).iter().zip(&a.t).map(|(x, t)| (t - Sinc::truth(*x)).powi(2)).sum::<f64>() / 100.0;
        assert!((0.15..0.25).contains(&noise.sqrt()), "{noise}");
    }
}
