//! Rows that are read in blocks, as often as a fit needs them.

use ndarray::ArrayView2;

use crate::error::Result;
use crate::targets::Targets;

/// Rows that need not fit into memory, for [`Rvm::fit_blocks`](crate::Rvm::fit_blocks) and
/// [`Rvm::fit_blocks_with_sample`](crate::Rvm::fit_blocks_with_sample).
///
/// ```
/// use ndarray::{Array2, ArrayView2, s};
/// use relvec::{Bernoulli, Blocks, Centres, Landmarks, Moderation, Rbf, Result, Rvm, Targets};
///
/// /// Two classes, separated by a wave; never all of them at once.
/// struct Simulated;
///
/// impl Blocks for Simulated {
///     fn pass(&self, each: &mut dyn FnMut(ArrayView2<f64>, &Targets) -> Result<()>) -> Result<()> {
///         for block in 0..10 {
///             let x = Array2::from_shape_fn((1000, 1), |(i, _)| (0.618 * (1000 * block + i) as f64).fract());
///             let labels: Vec<usize> = x.iter().map(|x| usize::from((9.0 * x).sin() > 0.0)).collect();
///             each(x.view(), &Targets::classes(&labels, 2))?;
///         }
///         Ok(())
///     }
/// }
///
/// let centres = Array2::from_shape_fn((20, 1), |(k, _)| 0.05 * k as f64);
/// let rvm = Rvm {
///     kernel: Rbf { gamma: 50.0.into() }.into(),
///     likelihood: Bernoulli::default().into(),
///     landmarks: Landmarks::Given(Centres(centres)),
///     ..Rvm::default()
/// };
/// let (model, _) = rvm.fit_blocks(&Simulated)?;
/// assert_eq!(model.n_rows, 10_000);
/// let probability = model.predict_probability(Array2::from_elem((1, 1), 0.5).view(), Moderation::default())?;
/// assert!(probability[[0, 0]] > 0.9);
/// # Ok::<(), relvec::Error>(())
/// ```
pub trait Blocks: Sync {
    /// Calls `each` with all rows in blocks of consecutive rows, [B, D], and with their targets and optional sample
    /// weights. Every pass must give the same rows in the same blocks.
    ///
    /// # Errors
    /// Returns the first error of `each`, or [`Error::Rows`](crate::Error::Rows) if the rows are not available.
    fn pass(&self, each: &mut dyn FnMut(ArrayView2<f64>, &Targets) -> Result<()>) -> Result<()>;
}
