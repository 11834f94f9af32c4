//! Synthetic problems of the papers on relevance vector machines, drawn from a seed.

use std::f64::consts::PI;

use ndarray::{Array1, Array2};
use rand::{Rng, SeedableRng};
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
        let mut random = Pcg64::seed_from_u64(seed);
        let x = Sinc::grid(n);
        let t = x.column(0).mapv(|x| Sinc::truth(x) + Sinc::NOISE * normal(&mut random));
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

    #[test]
    fn a_seed_is_a_sample() {
        let a = Sinc::draw(100, 3);
        assert_eq!(a.t, Sinc::draw(100, 3).t);
        let noise = a.x.column(0).iter().zip(&a.t).map(|(x, t)| (t - Sinc::truth(*x)).powi(2)).sum::<f64>() / 100.0;
        assert!((0.15..0.25).contains(&noise.sqrt()), "{noise}");
    }
}
