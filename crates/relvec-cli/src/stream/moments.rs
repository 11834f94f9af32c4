//! Means and variances of the features from one pass over the rows, block by block.

use relvec::{DataScale, Scaling};

/// Moments of every feature by weight; those of blocks add.
#[derive(Debug, Default)]
pub(super) struct Moments {
    features: Vec<Feature>,
    weight: f64,
}

/// In units of `unit`, the largest entry so far, so that no square leaves the range.
#[derive(Debug, Clone, Copy)]
struct Feature {
    unit: f64,
    mean: f64,
    /// Sum of squares about the mean.
    squares: f64,
    first: f64,
    constant: bool,
}

impl Moments {
    /// Adds rows `x`, [B, D] row after row, and their weights, `[B]` (1 if there are none).
    pub fn add(&mut self, x: &[f64], d: usize, weights: Option<&[f64]>) {
        let rows = x.len() / d;
        if rows == 0 {
            return;
        }
        let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
        let total: f64 = (0..rows).map(weight).sum();
        if self.features.is_empty() {
            let start = |v: &f64| Feature { unit: v.abs(), mean: 0.0, squares: 0.0, first: *v, constant: true };
            self.features = x[..d].iter().map(start).collect();
        }
        for (k, feature) in self.features.iter_mut().enumerate() {
            let column = || x[k..].iter().step_by(d);
            let largest = column().fold(feature.unit, |l, v| l.max(v.abs()));
            feature.constant = feature.constant && column().all(|v| *v == feature.first);
            if total == 0.0 {
                continue;
            }
            let unit = if largest > 0.0 { largest } else { 1.0 };
            let mean = column().enumerate().map(|(i, v)| weight(i) * (v / unit)).sum::<f64>() / total;
            let squares = column().enumerate().map(|(i, v)| weight(i) * (v / unit - mean).powi(2)).sum::<f64>();
            // The sum of the squares about a common mean (Chan, Golub and LeVeque 1983).
            let change = feature.unit / unit;
            let (old, apart) = (self.weight, mean - feature.mean * change);
            feature.squares = feature.squares * change * change + squares + apart * apart * (old * total / (old + total));
            feature.mean = feature.mean * change + apart * (total / (old + total));
            feature.unit = unit;
        }
        self.weight += total;
    }

    /// Features that are the same on every row.
    pub fn constant(&self) -> Vec<usize> {
        (0..self.features.len()).filter(|k| self.features[*k].constant).collect()
    }

    /// What standardises the features.
    pub fn scaling(&self) -> Scaling {
        let mean = self.features.iter().map(|f| if f.constant { f.first } else { f.mean * f.unit }).collect();
        let scale = self
            .features
            .iter()
            .map(|f| match (f.squares / self.weight).sqrt() * f.unit {
                sd if sd > 0.0 && !f.constant => sd,
                _ => 1.0,
            })
            .collect();
        Scaling { mean, scale }
    }

    /// What `gamma = "scale"` asks for: the variance of all entries taken together, after `scaling`.
    pub fn data_scale(&self, scaling: Option<&Scaling>) -> DataScale {
        let d = self.features.len();
        let of = |k: usize| {
            let f = &self.features[k];
            let (mean, deviation) =
                if f.constant { (f.first, 0.0) } else { (f.mean * f.unit, (f.squares / self.weight).sqrt() * f.unit) };
            match scaling {
                Some(s) => ((mean - s.mean[k]) / s.scale[k], deviation / s.scale[k]),
                None => (mean, deviation),
            }
        };
        let moments: Vec<(f64, f64)> = (0..d).map(of).collect();
        let middle = moments.iter().map(|m| m.0).sum::<f64>() / d as f64;
        let variance = moments.iter().map(|(m, s)| s * s + (m - middle).powi(2)).sum::<f64>() / d as f64;
        DataScale { features: d, variance }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;

    fn close(a: &[f64], b: &[f64]) {
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() <= 1e-13 * b.abs(), "{a} for {b}");
        }
    }

    #[test]
    fn blocks_add_up_to_the_moments_of_all_rows() {
        for unit in [1e-200, 1.0, 1e200] {
            let value = |i: usize, k: usize| match k {
                0 => unit * (i as f64).sin(),
                1 => unit * (1e6 + (i as f64).cos()),
                _ => 7.0,
            };
            let x = Array2::from_shape_fn((101, 3), |(i, k)| value(i, k));
            let weights: Vec<f64> = (0..101).map(|i| f64::from(i as u32 % 3)).collect();
            for weights in [None, Some(&weights[..])] {
                let mut moments = Moments::default();
                for (rows, start) in x.axis_chunks_iter(ndarray::Axis(0), 7).zip((0..).step_by(7)) {
                    moments.add(rows.as_slice().unwrap(), 3, weights.map(|w| &w[start..start + rows.nrows()]));
                }
                let (found, expected) = (moments.scaling(), Scaling::of(x.view(), weights));
                close(&found.mean, &expected.mean);
                close(&[found.scale[0], found.scale[2]], &[expected.scale[0], expected.scale[2]]);
                // A millionth of the values: six digits are lost whoever computes it.
                assert!((found.scale[1] / expected.scale[1] - 1.0).abs() < 1e-8);
                assert_eq!(moments.constant(), [2]);
                assert!((moments.data_scale(Some(&found)).variance - 2.0 / 3.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn the_variance_of_all_entries() {
        let x = [1.0, 10.0, 2.0, 20.0, 6.0, 30.0];
        let mut moments = Moments::default();
        moments.add(&x, 2, None);
        let mean = x.iter().sum::<f64>() / 6.0;
        let variance = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 6.0;
        assert!((moments.data_scale(None).variance - variance).abs() < 1e-12 * variance);
    }
}
