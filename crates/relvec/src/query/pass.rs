//! Sources of the rows of a fit (memory, files, or other machines), and the passes over them: the first, which surveys
//! the rows, and those for sums.

use std::sync::{Mutex, PoisonError};

use ndarray::{Array2, ArrayView2};

use crate::blocks::Blocks;
use crate::error::{Error, Result};
use crate::kernel::{DataScale, Kernel};
use crate::model::{Model, Scaling};
use crate::query::answer::{Content, PartRecord};
use crate::query::merged_rows::DistinctRows;
use crate::query::sums::{LaplaceRequest, LaplaceSums, PartSums, SumsRequest};
use crate::query::survey::{SampledRows, Survey};
use crate::query::{Answer, Part, Query, Request, RowUnits};
use crate::report::Interrupt;
use crate::statistics::Statistics;
use crate::targets::{Targets, absent};

/// Rows in partitions that answer queries, for [`Rvm::fit_rows`](crate::Rvm::fit_rows): in memory, in files, or on
/// other machines.
///
/// Partitions in memory are a `Vec` of views and targets:
///
/// ```
/// use ndarray::{Array1, Array2, s};
/// use relvec::{RowPlan, Rvm, Targets};
///
/// let x = Array2::from_shape_fn((5000, 1), |(i, _)| 0.004 * i as f64 - 10.0);
/// let t: Array1<f64> = x.column(0).mapv(f64::sin);
/// let parts: Vec<_> = (0..5)
///     .map(|p| 1000 * p..1000 * (p + 1))
///     .map(|rows| (x.slice(s![rows.clone(), ..]), Targets::real(t.slice(s![rows]))))
///     .collect();
/// let plan = RowPlan { sample: 1000, ..RowPlan::default() };
/// let (model, _) = Rvm::default().fit_rows(&parts, &plan)?;
/// assert_eq!(model.n_rows, 5000);
/// # Ok::<(), relvec::Error>(())
/// ```
pub trait RowSource: Sync {
    /// Returns the answers of all partitions ([`Query::answer`]), merged in any order ([`Answer::merge`]).
    ///
    /// # Errors
    /// Returns the first error of either method, or [`Error::Rows`] if rows are not available.
    fn map_reduce(&self, query: &Query) -> Result<Answer>;
}

impl RowSource for Vec<(ArrayView2<'_, f64>, Targets<'_>)> {
    fn map_reduce(&self, query: &Query) -> Result<Answer> {
        let mut answers = self.iter().enumerate().map(|(part, (x, targets))| query.answer(part, *x, targets));
        let first = answers.next().unwrap_or_else(|| Err(Error::TooFewRows { found: 0, least: 2 }))?;
        answers.try_fold(first, |sum, answer| sum.merge(answer?))
    }
}

/// Rows that are read in blocks and form one partition.
pub(crate) struct InPasses<'a> {
    pub blocks: &'a dyn Blocks,
    pub interrupt: Interrupt,
}

impl RowSource for InPasses<'_> {
    fn map_reduce(&self, query: &Query) -> Result<Answer> {
        let mut part = Part::new(query, 0);
        self.blocks.pass(&mut |x, targets| {
            let before = part.rows as usize;
            part.add(x, targets, &self.interrupt).map_err(|error| from_row(error, before))
        })?;
        Ok(part.finish())
    }
}

/// Converts the row number in an error of a block that begins at row `before` into a row number among all rows.
fn from_row(error: Error, before: usize) -> Error {
    match error {
        Error::NotFinite { what, row, column, value } => Error::NotFinite { what, row: row + before, column, value },
        Error::Weight { row, value } => Error::Weight { row: row + before, value },
        Error::Count { row, value } => Error::Count { row: row + before, value },
        other => other,
    }
}

/// Passes over the rows of a source, which must not change between passes.
pub(crate) struct Pass<'a> {
    source: &'a dyn RowSource,
    units: RowUnits,
    /// The partitions of the first pass.
    before: Mutex<Option<Vec<PartRecord>>>,
}

impl<'a> Pass<'a> {
    /// Returns passes over the rows of `source`. `before` lists the partitions of an earlier pass.
    pub fn new(source: &'a dyn RowSource, units: RowUnits, before: Option<Vec<PartRecord>>) -> Pass<'a> {
        Pass { source, units, before: Mutex::new(before) }
    }

    /// Sets the units of the rows.
    pub fn set_units(&mut self, units: RowUnits) {
        self.units = units;
    }

    /// Lets the rows have the Gaussian targets that stand for theirs under a model, divided by `scale` minus `mean`.
    pub fn set_model(&mut self, model: Model, scale: f64, mean: f64) {
        self.units = RowUnits { model: Some(Box::new(model)), scale: vec![scale], mean: vec![mean], ..self.units.clone() };
    }

    /// Returns sums over all rows.
    ///
    /// # Errors
    /// Returns the errors of the source, and [`Error::Rows`] if a partition is missing or has changed since the first
    /// pass.
    pub fn sums(&self, at: &SumsRequest) -> Result<PartSums> {
        match self.ask(Request::Sums { at: Box::new(at.clone()), units: self.units.clone() })? {
            Content::Sums(sums) => Ok(sums),
            _ => Err(Error::TooFewRows { found: 0, least: 2 }),
        }
    }

    /// Returns the sufficient statistics of all rows for a kernel at centres, [L, D].
    ///
    /// # Errors
    /// Returns the errors of [`Pass::sums`].
    pub fn statistics(&self, kernel: &Kernel, centres: Array2<f64>) -> Result<Statistics> {
        match self.ask(Request::Statistics { kernel: kernel.clone(), centres, scaling: self.units.scaling.clone() })? {
            Content::Statistics(statistics) => Ok(statistics),
            _ => Err(Error::TooFewRows { found: 0, least: 2 }),
        }
    }

    /// Returns the sums over all rows for each trial: classes that are separated from the others, or counts. `classes` is
    /// the number K of classes, `None` for counts.
    ///
    /// # Errors
    /// Returns the errors of [`Pass::sums`].
    pub fn laplace_sums(&self, at: LaplaceRequest, classes: Option<usize>) -> Result<Vec<LaplaceSums>> {
        match self.ask(Request::Laplace { at, scaling: self.units.scaling.clone(), classes })? {
            Content::Laplace(sums) => Ok(sums),
            _ => Err(Error::TooFewRows { found: 0, least: 2 }),
        }
    }

    fn ask(&self, request: Request) -> Result<Content> {
        let query = Query::new(request);
        let answer = self.source.map_reduce(&query)?;
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let (content, parts) = answer.finish(&query.bytes, before.as_deref())?;
        *before = Some(parts);
        Ok(content)
    }

    /// Returns the number of rows of the latest pass; 0 before the first.
    pub fn rows(&self) -> usize {
        self.before.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().map(|record| record.rows).sum::<u64>()
            as usize
    }
}

/// The result of the first pass.
pub(crate) struct Surveyed {
    survey: Survey,
    pub parts: Vec<PartRecord>,
    drawn: SampledRows,
    /// Features of the sample, standardised if requested, [S, D].
    pub x: Array2<f64>,
    pub scaling: Option<Scaling>,
}

impl Surveyed {
    /// Surveys the rows of `source` with a sample of up to `most` rows. `classes` is the number K of classes, `None`
    /// for real targets, or for counts if `counts` is true.
    ///
    /// # Errors
    /// Returns the errors of the source, and an error if a partition is missing, if fewer than two rows have a positive
    /// weight, if a class has none, or if a target is no count.
    pub fn take(
        source: &dyn RowSource,
        (classes, counts): (Option<usize>, bool),
        most: usize,
        seed: u64,
        standardize: bool,
    ) -> Result<Surveyed> {
        let query = Query::new(Request::Survey { classes, counts, most, seed });
        let (content, parts) = source.map_reduce(&query)?.finish(&query.bytes, None)?;
        let Content::Survey(survey) = content else { return Err(Error::TooFewRows { found: 0, least: 2 }) };
        if survey.n_used() < 2 {
            return Err(Error::TooFewRows { found: survey.n_used(), least: 2 });
        }
        if let Some(class) = survey.class_weights().iter().position(|weight| *weight == 0.0) {
            return Err(absent(class, survey.class_weights().len()));
        }
        let drawn = survey.sampled_rows();
        let scaling = standardize.then(|| survey.scaling());
        let x = scaling.as_ref().map_or_else(|| drawn.x.clone(), |scaling| scaling.apply(drawn.x.view()));
        Ok(Surveyed { survey, parts, drawn, x, scaling })
    }

    /// Returns the targets of the sample.
    pub fn targets(&self) -> Targets<'_> {
        self.drawn.targets()
    }

    /// Returns true if the sample contains all different rows of positive weight.
    pub fn is_whole(&self) -> bool {
        self.drawn.whole
    }

    /// Returns the number of rows, and how many of them have weight 0.
    pub fn rows(&self) -> (usize, usize) {
        (self.survey.n_rows(), self.survey.n_rows() - self.survey.n_used())
    }

    /// Returns the number of each sampled row among all rows, counted from partition to partition, `[S]`.
    pub fn numbers(&self) -> Vec<usize> {
        let before = self.parts.iter().scan(0, |sum, record| Some(std::mem::replace(sum, *sum + record.rows)));
        let before: Vec<u64> = before.collect();
        self.drawn.positions.iter().map(|(part, row)| (before[*part as usize] + row) as usize).collect()
    }

    /// Returns the features that are the same on every row.
    pub fn constant(&self) -> Vec<usize> {
        self.survey.constant_features()
    }

    /// Returns the scale for `gamma = "scale"`, for the features in the units of the fit.
    pub fn data_scale(&self) -> DataScale {
        self.survey.data_scale(self.scaling.is_some())
    }

    /// Returns the sum of the sample weights.
    pub fn weight(&self) -> f64 {
        self.survey.weight()
    }

    /// Returns the mean target of the sample, at least that of half a count in all of its rows.
    pub fn mean_count(&self) -> f64 {
        let counts: f64 = self.drawn.t.iter().zip(&self.drawn.weights).map(|(t, c)| c * t).sum();
        counts.max(0.5) / self.sample_weight()
    }

    /// Returns the sample weights of the sample, `[S]`.
    pub fn sample_weights(&self) -> &[f64] {
        self.drawn.weights.as_slice().expect("an array of one dimension is contiguous")
    }

    /// Returns the sum of the sample weights of the sample.
    pub fn sample_weight(&self) -> f64 {
        self.drawn.weights.sum()
    }

    /// Returns the shares of the classes by sample weight, `[K]`; empty for real targets.
    pub fn class_frequencies(&self) -> Vec<f64> {
        let weights = self.survey.class_weights();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|weight| (weight / total).max(f64::MIN_POSITIVE)).collect()
    }
}

/// Where the rows are.
pub(crate) enum AllRows<'a> {
    Held(&'a DistinctRows),
    /// Rows of a source that answers queries.
    Asked(&'a Pass<'a>),
}

impl AllRows<'_> {
    /// Returns the sums over all rows; `None` if the deadline has passed.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] if the fit was stopped by hand, and the errors of the source.
    pub fn sums(&self, at: &SumsRequest, interrupt: &Interrupt) -> Result<Option<PartSums>> {
        let found = match self {
            AllRows::Held(rows) => {
                let mut sums = PartSums::new(at, rows.t.ncols());
                sums.add_rows(at, rows, interrupt).map(|()| sums)
            }
            AllRows::Asked(_) if interrupt.is_raised_by_hand() || interrupt.is_late() => Err(Error::Interrupted),
            AllRows::Asked(pass) => pass.sums(at),
        };
        match found {
            Err(Error::Interrupted) if !interrupt.is_raised_by_hand() && interrupt.is_late() => Ok(None),
            found => found.map(Some),
        }
    }
}
