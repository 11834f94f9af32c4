//! Fits to rows that another program holds: each partition of the rows answers a query, and the answers are merged.
//!
//! Queries and answers are values that can be sent as bytes, and answering is a pure function. Any engine that maps and
//! reduces can therefore hold the rows, and may answer for a partition twice. Answers are merged in a binary tree over
//! the partition numbers, so that the bits of the result do not depend on the order of arrival.

mod answer;
mod bytes;
pub(crate) mod gaussian_targets;
pub(crate) mod merged_rows;
mod moments;
pub(crate) mod pass;
mod sample;
pub(crate) mod sums;
mod survey;

use ndarray::{Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

pub use self::answer::Answer;
use self::answer::Content;
use self::bytes::{Writer, unpack};
use self::gaussian_targets::GaussianTargets;
use self::merged_rows::DistinctRows;
pub use self::pass::RowSource;
use self::sums::{LaplaceRequest, PartSums, SumsRequest};
use self::survey::{Checked, Further, checksum, columns_of};
pub use self::survey::{SampledRows, Survey};
use crate::error::{Error, Result};
use crate::kernel::{DataScale, Kernel};
use crate::likelihood::check_counts;
use crate::model::{Model, Scaling};
use crate::report::Interrupt;
use crate::statistics::Statistics;
use crate::targets::{Targets, Values};

/// First bytes of a query, with the version of the format.
const MAGIC: &[u8] = b"relvec query 4\n";

/// A request for information about the rows of a [`RowSource`].
#[derive(Debug, Clone)]
pub struct Query {
    request: Request,
    bytes: Vec<u8>,
}

/// Kind and settings of a request.
#[derive(Debug, Clone)]
enum Request {
    Survey {
        classes: Option<usize>,
        /// True if the targets must be counts.
        counts: bool,
        most: usize,
        seed: u64,
    },
    Sums {
        at: Box<SumsRequest>,
        units: RowUnits,
    },
    Statistics {
        kernel: Kernel,
        centres: Array2<f64>,
        scaling: Option<Scaling>,
    },
    /// `classes` is the number K of classes, `None` for counts.
    Laplace {
        at: LaplaceRequest,
        scaling: Option<Scaling>,
        classes: Option<usize>,
    },
}

/// Units in which a fit uses the rows.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct RowUnits {
    /// Scaling of the features, if they are standardised.
    pub scaling: Option<Scaling>,
    /// Number K of classes, whose targets are 0 or 1 and have no units; `None` for real targets.
    pub classes: Option<usize>,
    /// Divisor of each target, `[R]`, and the mean that is then subtracted, `[R]`.
    pub scale: Vec<f64>,
    pub mean: Vec<f64>,
    /// Noise variance to which the noise variances of the rows are relative, if they are given.
    pub typical_noise: Option<f64>,
    /// Model by which counts, or targets with Student-t noise, become Gaussian targets with row factors.
    pub model: Option<Box<Model>>,
}

/// Header of the bytes of a query.
#[derive(Serialize, Deserialize)]
enum Header {
    Survey { classes: Option<usize>, counts: bool, most: usize, seed: u64 },
    Sums { kernel: Kernel, bias: bool, units: RowUnits },
    Statistics { kernel: Kernel, centres: (usize, usize), scaling: Option<Scaling> },
    Laplace { kernel: Kernel, bias: bool, scaling: Option<Scaling>, classes: Option<usize> },
}

impl Query {
    fn new(request: Request) -> Query {
        let mut words = Writer::default();
        let header = match &request {
            Request::Survey { classes, counts, most, seed } => {
                Header::Survey { classes: *classes, counts: *counts, most: *most, seed: *seed }
            }
            Request::Sums { at, units } => {
                at.write(&mut words);
                Header::Sums { kernel: at.kernel.clone(), bias: at.bias, units: units.clone() }
            }
            Request::Statistics { kernel, centres, scaling } => {
                words.numbers(centres);
                Header::Statistics { kernel: kernel.clone(), centres: centres.dim(), scaling: scaling.clone() }
            }
            Request::Laplace { at, scaling, classes } => {
                at.write(&mut words);
                Header::Laplace { kernel: at.kernel.clone(), bias: at.bias, scaling: scaling.clone(), classes: *classes }
            }
        };
        let bytes = words.pack(MAGIC, &header);
        Query { request, bytes }
    }

    /// Returns the query as bytes, with a checksum.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    /// Reads a query from the bytes of [`Query::to_bytes`].
    ///
    /// # Errors
    /// Returns [`Error::Rows`] if the bytes are not a query, are of another version, cut short or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Query> {
        let (header, mut from) = unpack(MAGIC, "query", bytes)?;
        let request = match header {
            Header::Survey { classes, counts, most, seed } => Request::Survey { classes, counts, most, seed },
            Header::Sums { kernel, bias, units } => {
                let at = SumsRequest::read(kernel, bias, &mut from)?;
                let known = at.kernel.resolve(&DataScale { features: at.centres.ncols(), variance: 1.0 })?;
                let outputs = units.classes.unwrap_or(units.scale.len());
                let good = known == at.kernel
                    && units.mean.len() == units.scale.len()
                    && !at.ratios.is_empty()
                    && at.mean.as_ref().is_none_or(|mean| mean.ncols() == outputs)
                    && units
                        .model
                        .as_ref()
                        .is_none_or(|model| units.scale.len() == 1 && gaussian_targets::fits(model, &at.centres));
                if !good {
                    return Err(Error::Rows("damaged relvec query: its kernel, ratios, means and units do not match".into()));
                }
                Request::Sums { at: Box::new(at), units }
            }
            Header::Statistics { kernel, centres: (l, d), scaling } => {
                let centres = from.matrix(l, d)?;
                Request::Statistics { kernel, centres, scaling }
            }
            Header::Laplace { kernel, bias, scaling, classes } => {
                Request::Laplace { at: LaplaceRequest::read(kernel, bias, &mut from)?, scaling, classes }
            }
        };
        from.end()?;
        Ok(Query { request, bytes: bytes.to_vec() })
    }

    /// Returns the answer of rows `x`, [N, D], which are partition number `part`. The partition may be empty.
    ///
    /// Partitions are numbered from 0 without gaps, and have the same rows in all queries of a fit. The work runs on
    /// the current thread pool; the answer does not depend on the number of threads.
    ///
    /// # Errors
    /// Returns an error that names the partition if shapes do not match, a value is not finite, or a weight is out of
    /// range.
    pub fn answer(&self, part: usize, x: ArrayView2<f64>, targets: &Targets) -> Result<Answer> {
        let mut own = Part::new(self, part as u64);
        own.add(x, targets, &Interrupt::default()).map_err(|error| in_part(error, part))?;
        Ok(own.finish())
    }
}

/// A partition that is read in blocks, with its answer so far.
struct Part<'q> {
    query: &'q Query,
    number: u64,
    rows: u64,
    checksum: u64,
    content: Content,
}

impl Part<'_> {
    fn new(query: &Query, number: u64) -> Part<'_> {
        Part { query, number, rows: 0, checksum: 0, content: Content::Nothing }
    }

    fn add(&mut self, x: ArrayView2<f64>, targets: &Targets, interrupt: &Interrupt) -> Result<()> {
        if x.nrows() == 0 && targets.is_empty() {
            return Ok(());
        }
        let sum = match &self.query.request {
            Request::Survey { classes, counts, most, seed } => {
                if interrupt.is_raised_by_hand() {
                    return Err(Error::Interrupted);
                }
                if matches!(self.content, Content::Nothing) {
                    self.content = Content::Survey(Survey::of(*classes, *most, *seed));
                }
                let Content::Survey(survey) = &mut self.content else { unreachable!("a survey was begun") };
                if let (true, Values::Real(t)) = (*counts, targets.values) {
                    check_counts(t)?;
                }
                survey.see(self.number, self.rows, x, targets)?
            }
            Request::Sums { at, units } => {
                let own = columns_of(x, targets, units.classes, self.rows)?;
                let sum = checksum(x, &own);
                let rows = units.rows(at, x, own)?;
                if matches!(self.content, Content::Nothing) {
                    self.content = Content::Sums(PartSums::new(at, rows.t.ncols()));
                }
                let Content::Sums(sums) = &mut self.content else { unreachable!("sums were begun") };
                sums.add_rows(at, &rows, interrupt)?;
                sum
            }
            Request::Statistics { kernel, centres, scaling } => {
                let sum = checksum(x, &columns_of(x, targets, None, self.rows)?);
                if matches!(self.content, Content::Nothing) {
                    self.content = Content::Statistics(Statistics::new(kernel, centres.view())?);
                }
                let Content::Statistics(statistics) = &mut self.content else { unreachable!("statistics were begun") };
                let scaled = scaling.as_ref().map(|scaling| scaling.apply(x));
                statistics.update_with(scaled.as_ref().map_or(x, |x| x.view()), targets, interrupt)?;
                sum
            }
            Request::Laplace { at, scaling, classes } => {
                let own = columns_of(x, targets, *classes, self.rows)?;
                if matches!(self.content, Content::Nothing) {
                    self.content = Content::Laplace(at.nothing());
                }
                let Content::Laplace(sums) = &mut self.content else { unreachable!("sums were begun") };
                let scaled = scaling.as_ref().map(|scaling| scaling.apply(x));
                at.add_rows(scaled.as_ref().map_or(x, |x| x.view()), &own, sums, interrupt)?;
                checksum(x, &own)
            }
        };
        self.rows += x.nrows() as u64;
        self.checksum = self.checksum.wrapping_add(sum);
        Ok(())
    }

    fn finish(self) -> Answer {
        Answer::of_part(&self.query.bytes, (self.number, self.rows, self.checksum), self.content)
    }
}

impl RowUnits {
    /// Returns rows `x`, `[N, D]`, in these units, without those of weight 0.
    fn rows(&self, at: &SumsRequest, x: ArrayView2<f64>, (t, weights, further): Checked) -> Result<DistinctRows> {
        let d = at.centres.ncols();
        if x.ncols() != d {
            let expected = format!("{d} columns");
            return Err(Error::Shape { what: "rows to train on", expected, found: x.ncols().to_string() });
        }
        if self.classes.is_none() && t.ncols() != self.scale.len() {
            let expected = format!("{} columns", self.scale.len());
            return Err(Error::Shape { what: "targets", expected, found: t.ncols().to_string() });
        }
        let used: Vec<usize> = (0..x.nrows()).filter(|n| weights[*n] > 0.0).collect();
        let of_used = |values: &[f64]| -> Vec<f64> { used.iter().map(|n| values[*n]).collect() };
        let further = further.map(|(kind, values)| (kind, of_used(&values)));
        let weights = of_used(&weights);
        let own = x.select(Axis(0), &used);
        let own = self.scaling.as_ref().map_or(own.clone(), |scaling| scaling.apply(own.view()));
        let t = t.select(Axis(0), &used);
        if let Some(model) = &self.model {
            let exposure = further.as_ref().filter(|(kind, _)| *kind == Further::Exposure).map(|(_, values)| values.as_slice());
            let GaussianTargets { t, factor, more } = GaussianTargets::of(model, own.view(), t.column(0), exposure, &weights)?;
            let inner = Array2::from_shape_fn((t.len(), 1), |(n, _)| t[n] / self.scale[0] - self.mean[0]);
            return Ok(DistinctRows::new(own.view(), inner.view(), &weights, &factor).with_log_likelihood(more));
        }
        let noise = further.filter(|(kind, _)| *kind == Further::NoiseVariance).map(|(_, values)| values);
        if noise.is_some() != self.typical_noise.is_some() {
            return Err(Error::Targets(
                "noise variances are given for some rows only: give them for all rows or for none".into(),
            ));
        }
        let inner = match self.classes {
            Some(classes) => Array2::from_shape_fn((used.len(), classes), |(n, k)| f64::from(u8::from(t[[n, 0]] == k as f64))),
            None => Array2::from_shape_fn(t.dim(), |(n, k)| t[[n, k]] / self.scale[k] - self.mean[k]),
        };
        let factors = match noise.zip(self.typical_noise) {
            Some((noise, typical)) => noise.iter().map(|noise| typical / noise).collect(),
            None => vec![1.0; used.len()],
        };
        Ok(DistinctRows::new(own.view(), inner.view(), &weights, &factors))
    }
}

/// Returns the error with the number of the partition, and positions in the names of the Python interface.
fn in_part(error: Error, part: usize) -> Error {
    let text = match error {
        Error::Interrupted => return Error::Interrupted,
        Error::NotFinite { what, row, column, value } => {
            let name = if what == "targets" { "y" } else { "X" };
            format!("{name}[{row}, {column}] = {}: every value must be a finite number", value.to_string().to_lowercase())
        }
        error => error.to_string(),
    };
    Error::Rows(format!("partition {part}: {text}"))
}
