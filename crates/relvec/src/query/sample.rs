//! A random sample of rows that depends neither on their order nor on how they are divided into partitions.
//!
//! This is bottom-k sampling (Cohen and Kaplan 2007): the sample has the k different rows with the smallest hashes,
//! each with the total weight of its copies. In each partition that contains it, such a row is among the k smallest, so
//! that no copy is lost.

use std::collections::BTreeMap;

use super::bytes::{Reader, Writer};
use crate::canonical::plain;
use crate::error::Result;

/// Increment of a seed or hash before mixing: the odd constant of SplitMix64 (Steele, Lea and Flood 2014).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the finaliser of SplitMix64, which is a bijection.
fn mixed(mut v: u64) -> u64 {
    v = (v ^ (v >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    v = (v ^ (v >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    v ^ (v >> 31)
}

/// Returns the hash of the values of a row, which continues the hash `before` of earlier values.
pub(super) fn hash(before: u64, values: impl IntoIterator<Item = f64>) -> u64 {
    values.into_iter().fold(before, |hash, v| mixed(hash.wrapping_add(STEP) ^ plain(v).to_bits()))
}

/// Position of a row: number of its partition, and row within the partition.
pub(super) type RowPosition = (u64, u64);

/// The copies of one row of the sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Copies {
    /// Sum of the sample weights of the copies.
    pub weight: f64,
    /// Number of copies.
    pub rows: u64,
    /// Position of the first copy.
    pub first: RowPosition,
}

/// A sample of up to `most` different rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    most: usize,
    /// Copies by hash and values. The values distinguish rows with equal hashes.
    rows: BTreeMap<(u64, Vec<u64>), Copies>,
    /// True if no row was dropped.
    whole: bool,
}

impl Sample {
    pub fn new(most: usize) -> Sample {
        Sample { most, rows: BTreeMap::new(), whole: true }
    }

    /// Adds a row of positive weight, whose values have the hash `hash`, if it belongs to the sample.
    pub fn see(&mut self, hash: u64, seed: u64, values: &[f64], weight: f64, first: RowPosition) {
        let own = mixed(hash ^ mixed(seed.wrapping_add(STEP)));
        let full = self.rows.len() >= self.most;
        if full && self.rows.last_key_value().is_none_or(|((last, _), _)| own > *last) {
            self.whole = false;
            return;
        }
        let key = (own, values.iter().map(|v| plain(*v).to_bits()).collect());
        self.insert(key, Copies { weight, rows: 1, first });
    }

    fn insert(&mut self, key: (u64, Vec<u64>), copies: Copies) {
        let insert = |own: &mut Copies| {
            *own =
                Copies { weight: own.weight + copies.weight, rows: own.rows + copies.rows, first: own.first.min(copies.first) };
        };
        self.rows.entry(key).and_modify(insert).or_insert(copies);
        if self.rows.len() > self.most {
            self.rows.pop_last();
            self.whole = false;
        }
    }

    /// Merges the sample of other rows into this one.
    pub fn merge(&mut self, other: &Sample) {
        self.whole &= other.whole;
        other.rows.iter().for_each(|(key, copies)| self.insert(key.clone(), *copies));
    }

    /// Returns true if the sample has all different rows that were added.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns values and copies of the rows by hash, which is a random order.
    pub fn rows(&self) -> impl Iterator<Item = (Vec<f64>, Copies)> + '_ {
        self.rows.iter().map(|((_, values), copies)| (values.iter().map(|v| f64::from_bits(*v)).collect(), *copies))
    }

    pub fn write(&self, out: &mut Writer) {
        let width = self.rows.keys().next().map_or(0, |(_, values)| values.len());
        out.counts([self.rows.len(), width, self.most, usize::from(self.whole)].map(|count| count as u64));
        for ((hash, values), Copies { weight, rows, first }) in &self.rows {
            out.counts([*hash, *rows, first.0, first.1]);
            out.number(*weight);
            values.iter().for_each(|v| out.count(*v));
        }
    }

    pub fn read(from: &mut Reader) -> Result<Sample> {
        let (count, width) = (from.size()?, from.size()?);
        let (most, whole) = (from.count()? as usize, from.count()? == 1);
        let mut sample = Sample { most, rows: BTreeMap::new(), whole };
        for _ in 0..count {
            let (hash, rows, first) = (from.count()?, from.count()?, (from.count()?, from.count()?));
            let weight = from.number()?;
            let values = from.finite(width)?.into_iter().map(f64::to_bits).collect();
            sample.rows.insert((hash, values), Copies { weight, rows, first });
        }
        Ok(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(rows: impl Iterator<Item = (usize, f64)>, most: usize, seed: u64) -> Sample {
        let mut sample = Sample::new(most);
        rows.for_each(|(i, v)| sample.see(hash(0, [v, 2.0]), seed, &[v, 2.0], 1.0, (0, i as u64)));
        sample
    }

    #[test]
    fn the_sample_depends_neither_on_order_nor_on_parts() {
        // Every fourth row repeats the value of the row before it.
        let rows = || (0..400).map(|i| (i, (i - usize::from(i % 4 == 3)) as f64));
        let whole = draw(rows(), 50, 3);
        assert!(!whole.is_whole() && whole.len() == 50 && whole.rows().any(|(_, copies)| copies.rows == 2));
        let back: Vec<_> = rows().collect();
        assert_eq!(draw(back.into_iter().rev(), 50, 3), whole);
        for parts in [2, 7, 400] {
            let mut merged = Sample::new(50);
            (0..parts).for_each(|p| merged.merge(&draw(rows().filter(|(i, _)| i % parts == p), 50, 3)));
            assert_eq!(merged, whole, "{parts} parts");
        }
    }

    #[test]
    fn sample_of_few_rows_is_whole_and_ignores_the_sign_of_zero() {
        let sample = draw([(0, 0.0), (1, -0.0), (2, 1.0)].into_iter(), 2, 0);
        assert!(sample.is_whole() && sample.len() == 2);
        assert!(!draw([(0, 0.0), (1, 1.0), (2, 2.0)].into_iter(), 2, 0).is_whole());
    }

    #[test]
    fn every_row_has_the_same_chance() {
        let mut counts = [0; 100];
        for seed in 0..2000 {
            draw((0..100).map(|i| (i, i as f64)), 10, seed).rows().for_each(|(values, _)| counts[values[0] as usize] += 1);
        }
        // The expected count is 200, with a standard deviation of 13.4.
        assert!(counts.iter().all(|n| (140..260).contains(n)), "{counts:?}");
    }
}
