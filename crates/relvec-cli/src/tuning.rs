//! Folds of a table, and a choice among settings by cross-validation.

use anyhow::{Result, anyhow};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

/// A held-out part of a table: ascending indices of the training rows and of the held-out rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fold {
    pub train: Vec<usize>,
    pub test: Vec<usize>,
}

/// Draws `count` folds of `rows` rows at random. With `labels` each class is spread evenly over the folds. Equal rows
/// may be in different folds.
pub(crate) fn folds(rows: usize, labels: Option<&[usize]>, count: usize, seed: u64) -> Vec<Fold> {
    let mut order: Vec<usize> = (0..rows).collect();
    order.shuffle(&mut Pcg64::seed_from_u64(seed));
    if let Some(labels) = labels {
        order.sort_by_key(|row| labels[*row]);
    }
    let fold = |k: usize| {
        let mut held = vec![false; rows];
        order.iter().skip(k).step_by(count).for_each(|row| held[*row] = true);
        let of = |which: bool| (0..rows).filter(|row| held[*row] == which).collect();
        Fold { train: of(false), test: of(true) }
    };
    (0..count).map(fold).collect()
}

/// Returns the index of the candidate with the least mean loss over the folds, the first one if losses are equal, and
/// that loss. `loss` is a sum over the held-out rows. A candidate that cannot be fitted to a fold is excluded.
///
/// # Errors
/// No candidate could be fitted; the error is that of the first one.
pub(crate) fn choose<C>(candidates: &[C], folds: &[Fold], loss: impl Fn(&C, &Fold) -> Result<f64>) -> Result<(usize, f64)> {
    let rows: usize = folds.iter().map(|fold| fold.test.len()).sum();
    let (mut best, mut reason): (Option<(usize, f64)>, _) = (None, None);
    for (place, candidate) in candidates.iter().enumerate() {
        match folds.iter().map(|fold| loss(candidate, fold)).sum::<Result<f64>>() {
            Ok(sum) if best.is_none_or(|(_, least)| sum / (rows as f64) < least) => best = Some((place, sum / rows as f64)),
            Ok(_) => {}
            Err(e) => reason = reason.or(Some(e)),
        }
    }
    best.ok_or_else(|| reason.unwrap_or_else(|| anyhow!("there is nothing to choose among")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_held_out_once_and_classes_are_spread() {
        let labels: Vec<usize> = (0..53).map(|i| usize::from(i % 5 == 0)).collect();
        let all = folds(53, Some(&labels), 5, 3);
        let mut held: Vec<usize> = all.iter().flat_map(|fold| fold.test.clone()).collect();
        held.sort_unstable();
        assert_eq!(held, (0..53).collect::<Vec<_>>());
        for fold in &all {
            assert_eq!(fold.train.len() + fold.test.len(), 53);
            assert!((2..=3).contains(&fold.test.iter().filter(|row| labels[**row] == 1).count()));
        }
        assert_ne!(folds(53, None, 5, 3), folds(53, None, 5, 4));
    }

    #[test]
    fn the_least_loss_wins_and_failures_are_out() {
        let all = folds(10, None, 2, 0);
        let loss = |c: &f64, fold: &Fold| if *c < 0.0 { Err(anyhow!("negative")) } else { Ok(c * fold.test.len() as f64) };
        assert_eq!(choose(&[3.0, -1.0, 2.0, 2.0], &all, loss).unwrap(), (2, 2.0));
        assert_eq!(choose(&[-1.0], &all, loss).unwrap_err().to_string(), "negative");
        assert!(choose(&[], &all, loss).is_err());
    }
}
