//! Models that can grow: sums over their rows are kept.

use ndarray::ArrayView2;

use crate::design::Columns;
use crate::error::Result;
use crate::memory::{self, afford};
use crate::model::Model;
use crate::rvm::data::table::Table;
use crate::rvm::settings::rvm::Rvm;
use crate::statistics::Statistics;
use crate::targets::Targets;

/// The model with sums over its rows at the landmarks of its table, if it is to keep them: one more pass.
pub(crate) fn with_kept_statistics(
    rvm: &Rvm,
    table: &Table,
    x: ArrayView2<f64>,
    targets: &Targets,
    model: Model,
) -> Result<Model> {
    if !rvm.keep_statistics {
        return Ok(model);
    }
    let places = table.dictionary();
    let (_, Columns::Kernel { kernel, centres }) = table.columns(&places) else { return Ok(model) };
    let l = centres.nrows() as u64;
    afford(&format!("the statistics of {l} landmarks"), 8 * 4 * (l + 1) * (l + 1), memory::allowed(rvm.memory_limit))?;
    let mut sums = Statistics::new(&kernel, centres.view())?;
    sums.update_interruptible(x, targets, &table.interrupt)?;
    let landmarks = places.iter().map(|place| table.origin[*place]).collect();
    Ok(Model { statistics: Some(sums.kept(landmarks)), ..model })
}
