//! Weighted means and variances of columns, which can be merged over blocks of rows.

use ndarray::{ArrayView1, ArrayView2};

use super::bytes::{Reader, Writer};
use crate::error::Result;
use crate::kernel::DataScale;
use crate::model::Scaling;

/// Weighted moments of each column.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Moments {
    columns: Vec<Column>,
    weight: f64,
}

/// Moments of a column, divided by `unit`, its largest magnitude so far, so that squares stay in the range of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Column {
    unit: f64,
    mean: f64,
    /// Weighted sum of squared deviations from the mean.
    squares: f64,
    first: f64,
    constant: bool,
}

impl Column {
    /// Returns the moments of entries, `[N]`, of positive weight; N is at least 1.
    fn of(entries: ArrayView1<f64>, weights: &[f64], total: f64) -> Column {
        let largest = entries.iter().fold(0.0f64, |largest, v| largest.max(v.abs()));
        let unit = if largest > 0.0 { largest } else { 1.0 };
        let mean = entries.iter().zip(weights).map(|(v, c)| c / total * (v / unit)).sum::<f64>();
        let squares = entries.iter().zip(weights).map(|(v, c)| c * (v / unit - mean).powi(2)).sum();
        let first = entries[0];
        Column { unit: largest, mean, squares, first, constant: entries.iter().all(|v| *v == first) }
    }

    /// Returns the moments of the entries of both columns, whose total weights are `weight` and `others`. The sum of
    /// squares is taken about the common mean (Chan, Golub and LeVeque 1983).
    fn with(&self, other: &Column, weight: f64, others: f64) -> Column {
        let largest = self.unit.max(other.unit);
        let unit = if largest > 0.0 { largest } else { 1.0 };
        let [own, by] = [self, other].map(|column| column.unit / unit);
        let apart = other.mean * by - self.mean * own;
        let total = weight + others;
        Column {
            unit: largest,
            mean: self.mean * own + apart * (others / total),
            squares: self.squares * own * own + other.squares * by * by + apart * apart * (weight * (others / total)),
            first: self.first,
            constant: self.constant && other.constant && self.first == other.first,
        }
    }
}

impl Moments {
    /// Returns the moments of rows, [N, D], with positive weights, `[N]`.
    pub fn of(rows: ArrayView2<f64>, weights: &[f64]) -> Moments {
        if rows.nrows() == 0 {
            return Moments::default();
        }
        let weight = weights.iter().sum();
        Moments { columns: rows.columns().into_iter().map(|column| Column::of(column, weights, weight)).collect(), weight }
    }

    /// Adds the moments of other rows, which have the same number of columns.
    pub fn add(&mut self, other: &Moments) {
        if self.weight == 0.0 {
            *self = other.clone();
        } else if other.weight > 0.0 {
            let (own, others) = (self.weight, other.weight);
            self.columns.iter_mut().zip(&other.columns).for_each(|(column, other)| *column = column.with(other, own, others));
            self.weight += others;
        }
    }

    /// Returns the sum of the weights.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Returns the columns that are the same on every row.
    pub fn constant(&self) -> Vec<usize> {
        (0..self.columns.len()).filter(|k| self.columns[*k].constant).collect()
    }

    /// Returns the mean and standard deviation of each column.
    fn moments(&self) -> Vec<(f64, f64)> {
        let of = |column: &Column| match column.constant {
            true => (column.first, 0.0),
            false => (column.mean * column.unit, (column.squares / self.weight).sqrt() * column.unit),
        };
        self.columns.iter().map(of).collect()
    }

    /// Returns the scaling that standardises the columns.
    pub fn scaling(&self) -> Scaling {
        let (mean, deviation): (_, Vec<f64>) = self.moments().into_iter().unzip();
        Scaling { mean, scale: deviation.into_iter().map(|v| if v > 0.0 { v } else { 1.0 }).collect() }
    }

    /// Returns the scale for `gamma = "scale"`: the variance of all entries taken together.
    pub fn data_scale(&self) -> DataScale {
        let (d, moments) = (self.columns.len(), self.moments());
        let middle = moments.iter().map(|m| m.0).sum::<f64>() / d as f64;
        let variance = moments.iter().map(|(m, s)| s * s + (m - middle).powi(2)).sum::<f64>() / d as f64;
        DataScale { features: d, variance }
    }

    pub fn write(&self, out: &mut Writer) {
        out.count(self.columns.len() as u64);
        out.number(self.weight);
        for column in &self.columns {
            out.numbers(&[column.unit, column.mean, column.squares, column.first, f64::from(u8::from(column.constant))]);
        }
    }

    pub fn read(from: &mut Reader) -> Result<Moments> {
        let count = from.size()?;
        let weight = from.number()?;
        let mut columns = vec![];
        for _ in 0..count {
            let own = from.finite(5)?;
            columns.push(Column { unit: own[0], mean: own[1], squares: own[2], first: own[3], constant: own[4] == 1.0 });
        }
        Ok(Moments { columns, weight })
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, Axis};

    use super::*;

    #[test]
    fn moments_of_blocks_add_to_those_of_all_rows() {
        for unit in [1e-200, 1.0, 1e200] {
            let value = |i: usize, k: usize| match k {
                0 => unit * (i as f64).sin(),
                1 => unit * (1e6 + (i as f64).cos()),
                _ => 7.0,
            };
            let x = Array2::from_shape_fn((101, 3), |(i, k)| value(i, k));
            let weights: Vec<f64> = (0..101).map(|i| 0.5 + f64::from(i as u32 % 3)).collect();
            let mut moments = Moments::default();
            for (rows, weights) in x.axis_chunks_iter(Axis(0), 7).zip(weights.chunks(7)) {
                moments.add(&Moments::of(rows, weights));
            }
            let (found, expected) = (moments.scaling(), Scaling::of(x.view(), Some(&weights)));
            for k in 0..3 {
                assert!((found.mean[k] - expected.mean[k]).abs() <= 1e-13 * expected.mean[k].abs(), "mean {k}");
                // The spread of feature 1 is a millionth of its values, so that six digits are lost in any computation.
                assert!((found.scale[k] / expected.scale[k] - 1.0).abs() < [1e-13, 1e-8, 1e-13][k], "scale {k}");
            }
            assert_eq!(moments.constant(), [2]);
        }
    }
}
