//! Fits to rows of classes that come in blocks: each sum over the rows is a pass over the blocks, and nothing that is held
//! grows with their number.
//!
//! A block is a table in memory, and a problem of its own; sums over its rows are made as in any other.

use std::fmt;
use std::sync::Arc;

use ndarray::{ArcArray2, ArrayView2, Axis};

use crate::blocks::Blocks;
use crate::design::Design;
use crate::error::{Error, Result};
use crate::kernel::DataScale;
use crate::memory::{self, afford};
use crate::model::check_features;
use crate::report::{Interrupt, Repairs, SmallWeights};
use crate::rvm::data::budget::DENSE;
use crate::rvm::data::noise::Noise;
use crate::rvm::data::table::{Source, Table, Units};
use crate::rvm::gram::problem::Problem;
use crate::rvm::settings::dictionary::Landmarks;
use crate::rvm::settings::rvm::Rvm;
use crate::targets::{Targets, Values, absent, check_labels};

/// Copies of a block that are alive at a time, and numbers per row beside.
const COPIES: usize = 3;
const VECTORS: usize = 12;

/// Where the rows of a table come from, and how many they are.
#[derive(Clone, Copy)]
pub(crate) struct InBlocks<'a> {
    blocks: &'a dyn Blocks,
    pub n_rows: usize,
    classes: usize,
    /// The one class that is told from all others.
    class: Option<usize>,
}

impl InBlocks<'_> {
    /// The same rows for a machine of two classes: one of several, and all others.
    pub fn against_others(self, class: usize) -> Self {
        InBlocks { class: Some(class), ..self }
    }

    /// The labels of a block of a later pass that begins at row `from`, which is to be such as those of the first pass.
    fn same<'t>(&self, x: ArrayView2<f64>, targets: &Targets<'t>, features: usize, from: usize) -> Result<&'t [usize]> {
        let changed = |what: &str, found: usize, before: usize| {
            Err(Error::Rows(format!("a block of rows has {found} {what}; there were {before} in the pass before")))
        };
        targets.check_rows(x)?;
        let Values::Classes { labels, count } = targets.values else {
            return Err(Error::Rows("a block of rows has real targets; there were classes in the pass before".into()));
        };
        if x.ncols() != features {
            return changed("columns", x.ncols(), features);
        }
        if count != self.classes {
            return changed("classes", count, self.classes);
        }
        check_features("rows to train on", x)?;
        check_labels(labels, count, from)?;
        Ok(labels)
    }
}

impl fmt::Debug for InBlocks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} rows in blocks", self.n_rows)
    }
}

/// What has to be known of the rows before anything is learnt of them.
#[derive(Default)]
pub(crate) struct Survey {
    pub n_rows: usize,
    /// Rows of positive weight.
    pub used: usize,
    /// Sum of the weights of each class, `[K]`.
    weights: Vec<f64>,
    /// Rows of the largest block.
    largest: usize,
    /// The first row, `[D]`, and the features that were the same ever since.
    first: Vec<f64>,
    constant: Vec<usize>,
}

impl Survey {
    pub fn take(blocks: &dyn Blocks, interrupt: &Interrupt) -> Result<Survey> {
        let mut survey = Survey::default();
        blocks.pass(&mut |x, targets| {
            interrupt.check()?;
            let before = survey.n_rows;
            survey.see(x, targets).map_err(|error| from_row(error, before))
        })?;
        if survey.used < 2 {
            return Err(Error::TooFewRows { found: survey.used, least: 2 });
        }
        Ok(survey)
    }

    fn see(&mut self, x: ArrayView2<f64>, targets: &Targets) -> Result<()> {
        targets.check_rows(x)?;
        targets.refuse_given("a classifier")?;
        let Values::Classes { labels, count } = targets.values else {
            return Err(Error::Targets("rows in blocks are of classes, found real targets".into()));
        };
        if self.n_rows == 0 {
            self.weights = vec![0.0; count];
            self.constant = (0..x.ncols()).collect();
        }
        if count != self.weights.len() {
            let before = self.weights.len();
            return Err(Error::Targets(format!("{count} classes in a block, and {before} in those before it")));
        }
        check_features("rows to train on", x)?;
        if self.first.is_empty() {
            self.first = x.outer_iter().next().map_or(vec![], |row| row.to_vec());
        }
        if x.ncols() != self.first.len() && x.nrows() > 0 {
            let expected = format!("{} columns, as the rows before have", self.first.len());
            return Err(Error::Shape { what: "rows to train on", expected, found: x.ncols().to_string() });
        }
        check_labels(labels, count, self.n_rows)?;
        let weights = targets.checked_weights()?;
        for (row, label) in labels.iter().enumerate() {
            let weight = weights.as_ref().map_or(1.0, |w| w[row]);
            self.weights[*label] += weight;
            self.used += usize::from(weight > 0.0);
        }
        let first = &self.first;
        self.constant.retain(|k| x.column(*k).iter().all(|v| *v == first[*k]));
        self.n_rows += x.nrows();
        self.largest = self.largest.max(x.nrows());
        Ok(())
    }

    /// Shares of the classes by sample weight, `[K]`.
    pub fn class_frequencies(&self) -> Result<Vec<f64>> {
        if let Some(k) = self.weights.iter().position(|w| *w == 0.0) {
            return Err(absent(k, self.weights.len()));
        }
        if self.weights.len() < 2 {
            return Err(Error::Targets("every row is of the one class there is; rows of two classes are needed".into()));
        }
        let total: f64 = self.weights.iter().sum();
        Ok(self.weights.iter().map(|w| (w / total).max(f64::MIN_POSITIVE)).collect())
    }
}

/// An error in a block that begins at row `before` of all: rows are counted from the first of them.
fn from_row(error: Error, before: usize) -> Error {
    match error {
        Error::NotFinite { what, row, column, value } => Error::NotFinite { what, row: row + before, column, value },
        Error::Weight { row, value } => Error::Weight { row: row + before, value },
        other => other,
    }
}

impl<'a> Table<'a> {
    pub fn of_blocks(rvm: &'a Rvm, blocks: &'a dyn Blocks, survey: &Survey, interrupt: &Interrupt) -> Result<Table<'a>> {
        let Landmarks::Given(centres) = &rvm.landmarks else { unreachable!("checked before any row was read") };
        let d = survey.first.len();
        let (centres, kept) = centres.distinct(d)?;
        let (l, classes) = (centres.nrows(), survey.weights.len());
        let p = l + usize::from(rvm.bias);
        let memory_limit = memory::allowed(rvm.memory_limit);
        let taken = |limit: u64| {
            let rows = survey.largest * (COPIES * d + VECTORS * classes);
            8 * (rows + 2 * l * d + 2 * Design::block_rows(p, limit).min(survey.largest) * p) as u64
        };
        let least = memory::least(|limit| taken(limit) + 8 * (p * p) as u64 * (DENSE + 2));
        let what = format!("a block of {} rows, and the sums over the rows for {l} landmarks", survey.largest);
        afford(&what, least, memory_limit)?;
        let kernel = rvm.kernel.resolve(&DataScale { features: d, variance: 1.0 })?;
        Ok(Table {
            rvm,
            rows: ArcArray2::zeros((0, d)),
            blocks: Some(InBlocks { blocks, n_rows: survey.n_rows, classes, class: None }),
            targets: vec![],
            outputs: rvm.likelihood.as_dyn().outputs(Values::Classes { labels: &[], count: classes }),
            weights: vec![],
            copies: Arc::default(),
            factors: None,
            least_factor: 1.0,
            log_rate: 0.0,
            count: survey.weights.iter().sum(),
            known_noise: false,
            units: vec![Units { scale: 1.0, mean: 0.0 }],
            noise: vec![Noise::Fixed(1.0)],
            repairs: Repairs {
                constant_features: survey.constant.clone(),
                small_weights: SmallWeights::of(survey.weights.iter().sum(), survey.used),
                ..Repairs::default()
            },
            bias_only: false,
            n_rows: survey.n_rows,
            origin: (0..l).map(|k| kept.iter().position(|c| *c == k).expect("each is kept once")).collect(),
            candidate_of: kept.iter().map(|k| Some(*k)).collect(),
            source: Source::Centres { kernel, centres },
            learnt: None,
            memory_limit,
            taken: taken(memory_limit),
            least,
            interrupt: interrupt.clone(),
        })
    }

    /// Calls `each` with tables of consecutive rows, all of them in the end; one in memory is one such table.
    ///
    /// # Errors
    /// The first one of `each`, or of the blocks; other rows than in the pass before.
    pub fn for_each_part(&self, mut each: impl FnMut(&Table) -> Result<()>) -> Result<()> {
        let Some(source) = self.blocks else { return each(self) };
        let mut n_rows = 0;
        source.blocks.pass(&mut |x, targets| {
            self.interrupt.check()?;
            let labels = source.same(x, targets, self.rows.ncols(), n_rows).map_err(|error| from_row(error, n_rows))?;
            n_rows += x.nrows();
            let own: Vec<usize>;
            let values = match source.class {
                Some(class) => {
                    own = labels.iter().map(|label| usize::from(*label == class)).collect();
                    Values::Classes { labels: &own, count: 2 }
                }
                None => Values::Classes { labels, count: source.classes },
            };
            each(&self.part(x, values, targets.checked_weights()?)?)
        })?;
        if n_rows != source.n_rows {
            return Err(Error::Rows(format!("a pass over the rows found {n_rows}; there were {} before", source.n_rows)));
        }
        Ok(())
    }

    /// One block of rows as a table.
    fn part(&self, x: ArrayView2<f64>, values: Values, weights: Option<Vec<f64>>) -> Result<Table<'_>> {
        let weights = weights.unwrap_or_else(|| vec![1.0; x.nrows()]);
        Ok(Table {
            rows: x.to_owned().into_shared(),
            targets: self.rvm.likelihood.as_dyn().targets(values)?,
            count: weights.iter().sum(),
            n_rows: x.nrows(),
            weights,
            ..self.with(self.rvm, &self.kernel(), None)
        })
    }

    /// Some of the rows, ascending, as a table in memory; of one in memory itself `None`.
    pub fn gathered(&self, some: &[usize]) -> Result<Option<Table<'_>>> {
        if self.blocks.is_none() {
            return Ok(None);
        }
        let mut rows = ndarray::Array2::zeros((some.len(), self.rows.ncols()));
        let (mut targets, mut weights, mut before) = (vec![], vec![], 0);
        self.for_each_part(|part| {
            let n = part.rows.nrows();
            let (from, to) = (some.partition_point(|i| *i < before), some.partition_point(|i| *i < before + n));
            for (i, row) in some[from..to].iter().zip(rows.axis_iter_mut(Axis(0)).skip(from)) {
                { row }.assign(&part.rows.row(i - before));
                targets.push(part.targets[i - before]);
                weights.push(part.weights[i - before]);
            }
            before += n;
            Ok(())
        })?;
        let count = weights.iter().sum();
        let part = self.with(self.rvm, &self.kernel(), None);
        Ok(Some(Table { rows: rows.into_shared(), targets, weights, count, n_rows: some.len(), ..part }))
    }
}

impl Problem<'_> {
    /// Calls `each` with the problems of consecutive rows, all of them in the end; one in memory is one such problem.
    ///
    /// # Errors
    /// As [`Table::for_each_part`].
    pub fn for_each_part(&self, mut each: impl FnMut(&Problem) -> Result<()>) -> Result<()> {
        if self.table.blocks.is_none() {
            return each(self);
        }
        self.table.for_each_part(|table| each(&self.of_rows(table)))
    }

    /// What `of` makes of each of them, added up in their order.
    ///
    /// # Errors
    /// As [`Table::for_each_part`]; and that there is none.
    pub fn sum_of_parts<T>(&self, of: impl Fn(&Problem) -> Result<T>, add: impl Fn(&mut T, T)) -> Result<T> {
        let mut total = None;
        self.for_each_part(|part| {
            let own = of(part)?;
            match &mut total {
                Some(total) => add(total, own),
                None => total = Some(own),
            }
            Ok(())
        })?;
        total.ok_or_else(|| Error::Rows("a pass over the rows found none".into()))
    }

    /// The same columns on the rows of a part.
    fn of_rows<'t>(&self, table: &'t Table<'t>) -> Problem<'t> {
        let design = self.design.on_rows(table.rows.clone());
        Problem { table, design, places: self.places.clone(), has_bias: self.has_bias, taken: self.taken }
    }
}
