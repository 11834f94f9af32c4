//! Questions about rows that somebody else holds: a query is asked of each part of the rows, and answers merge.
//!
//! Queries and answers are values with bytes, and answering is a pure function, so any engine that maps and reduces can hold the
//! rows, and may answer a part twice. Whoever merges keeps sums in a binary tree by part number, so the same parts give the same bits
//! in whatever order their answers arrive.

mod answer;
mod bytes;
mod moments;
pub(in crate::rvm) mod pass;
mod sample;
mod source;
pub(super) mod sums;
mod survey;
mod survey_pass;

use ndarray::{Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

pub use self::answer::Answer;
use self::answer::Content;
use self::bytes::{Words, unpack};
pub(in crate::rvm) use self::source::InPasses;
pub use self::source::RowSource;
use self::sums::{At, PartSums};
use self::survey::{Checked, checksum, columns_of};
pub use self::survey::{SampledRows, Survey};
pub(in crate::rvm) use self::survey_pass::Surveyed;
use crate::error::{Error, Result};
use crate::kernel::{DataScale, Kernel};
use crate::model::Scaling;
use crate::report::Interrupt;
use crate::rvm::learn::merged_rows::DistinctRows;
use crate::statistics::Statistics;
use crate::targets::Targets;

/// First bytes, the version included.
const MAGIC: &[u8] = b"relvec query 2\n";

/// What a fit asks of rows that it does not hold, see [`RowSource`].
#[derive(Debug, Clone)]
pub struct Query {
    want: Want,
    bytes: Vec<u8>,
}

/// What is asked for.
#[derive(Debug, Clone)]
enum Want {
    Survey { classes: Option<usize>, most: usize, seed: u64 },
    Sums { at: Box<At>, units: RowUnits },
    Statistics { kernel: Kernel, centres: Array2<f64>, scaling: Option<Scaling> },
}

/// What rows are in the units of a fit.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::rvm) struct RowUnits {
    /// Of the features, if they are standardised.
    pub scaling: Option<Scaling>,
    /// K; shares of the classes are the targets then, and have no units.
    pub classes: Option<usize>,
    /// What divides each target, and is subtracted from it then, `[R]`.
    pub scale: Vec<f64>,
    pub mean: Vec<f64>,
    /// The noise variance that those of the rows are relative to, where they are known.
    pub typical_noise: Option<f64>,
}

/// What bytes begin with.
#[derive(Serialize, Deserialize)]
enum Header {
    Survey { classes: Option<usize>, most: usize, seed: u64 },
    Sums { kernel: Kernel, bias: bool, units: RowUnits },
    Statistics { kernel: Kernel, centres: (usize, usize), scaling: Option<Scaling> },
}

impl Query {
    fn new(want: Want) -> Query {
        let mut words = Words::default();
        let header = match &want {
            Want::Survey { classes, most, seed } => Header::Survey { classes: *classes, most: *most, seed: *seed },
            Want::Sums { at, units } => {
                at.write(&mut words);
                Header::Sums { kernel: at.kernel.clone(), bias: at.bias, units: units.clone() }
            }
            Want::Statistics { kernel, centres, scaling } => {
                words.numbers(centres);
                Header::Statistics { kernel: kernel.clone(), centres: centres.dim(), scaling: scaling.clone() }
            }
        };
        let bytes = words.pack(MAGIC, &header);
        Query { want, bytes }
    }

    /// Everything as bytes, with a checksum.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    /// Reads what [`Query::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`Error::Rows`]: bytes of something else, of another version, cut short or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Query> {
        let (header, mut from) = unpack(MAGIC, "query", bytes)?;
        let want = match header {
            Header::Survey { classes, most, seed } => Want::Survey { classes, most, seed },
            Header::Sums { kernel, bias, units } => {
                let at = At::read(kernel, bias, &mut from)?;
                let known = at.kernel.resolve(&DataScale { features: at.centres.ncols(), variance: 1.0 })?;
                let outputs = units.classes.unwrap_or(units.scale.len());
                let good = known == at.kernel
                    && units.mean.len() == units.scale.len()
                    && !at.ratios.is_empty()
                    && at.mean.as_ref().is_none_or(|mean| mean.ncols() == outputs);
                if !good {
                    return Err(Error::Rows("this query of relvec contradicts itself".into()));
                }
                Want::Sums { at: Box::new(at), units }
            }
            Header::Statistics { kernel, centres: (l, d), scaling } => {
                let centres = from.matrix(l, d)?;
                Want::Statistics { kernel, centres, scaling }
            }
        };
        from.end()?;
        Ok(Query { want, bytes: bytes.to_vec() })
    }

    /// What rows `x`, [N, D], answer, which are part number `part` of all; there may be none. Parts are numbered from 0 without gaps,
    /// and have the same rows in all queries of a fit. On the threads of the pool that it is called in; the answer does not depend
    /// on their number.
    ///
    /// # Errors
    /// Shapes that do not fit, values that are not finite, weights out of range; all name the part.
    pub fn answer(&self, part: usize, x: ArrayView2<f64>, targets: &Targets) -> Result<Answer> {
        let mut own = Part::new(self, part as u64);
        own.add(x, targets, &Interrupt::default()).map_err(|error| in_part(error, part))?;
        Ok(own.finish())
    }
}

/// A part of the rows that is read in blocks.
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
        let sum = match &self.query.want {
            Want::Survey { classes, most, seed } => {
                if interrupt.is_raised_by_hand() {
                    return Err(Error::Interrupted);
                }
                if matches!(self.content, Content::Nothing) {
                    self.content = Content::Survey(Survey::of(*classes, *most, *seed));
                }
                let Content::Survey(survey) = &mut self.content else { unreachable!("a survey was begun") };
                survey.see(self.number, self.rows, x, targets)?
            }
            Want::Sums { at, units } => {
                let own = columns_of(x, targets, units.classes)?;
                let sum = checksum(x, &own);
                let rows = units.rows(at, x, own)?;
                if matches!(self.content, Content::Nothing) {
                    self.content = Content::Sums(PartSums::new(at, rows.t.ncols()));
                }
                let Content::Sums(sums) = &mut self.content else { unreachable!("sums were begun") };
                sums.add_rows(at, &rows, interrupt)?;
                sum
            }
            Want::Statistics { kernel, centres, scaling } => {
                let sum = checksum(x, &columns_of(x, targets, None)?);
                if matches!(self.content, Content::Nothing) {
                    self.content = Content::Statistics(Statistics::new(kernel, centres.view())?);
                }
                let Content::Statistics(statistics) = &mut self.content else { unreachable!("statistics were begun") };
                let scaled = scaling.as_ref().map(|scaling| scaling.apply(x));
                statistics.update_with(scaled.as_ref().map_or(x, |x| x.view()), targets, interrupt)?;
                sum
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
    fn rows(&self, at: &At, x: ArrayView2<f64>, (t, weights, noise): Checked) -> Result<DistinctRows> {
        let d = at.centres.ncols();
        if x.ncols() != d {
            let expected = format!("{d} columns");
            return Err(Error::Shape { what: "rows to train on", expected, found: x.ncols().to_string() });
        }
        if self.classes.is_none() && t.ncols() != self.scale.len() {
            let expected = format!("{} columns", self.scale.len());
            return Err(Error::Shape { what: "targets", expected, found: t.ncols().to_string() });
        }
        if noise.is_some() != self.typical_noise.is_some() {
            return Err(Error::Targets("the noise variances of some rows are given, and not those of others".into()));
        }
        let used: Vec<usize> = (0..x.nrows()).filter(|n| weights[*n] > 0.0).collect();
        let inner = match self.classes {
            Some(classes) => {
                Array2::from_shape_fn((used.len(), classes), |(n, k)| f64::from(u8::from(t[[used[n], 0]] == k as f64)))
            }
            None => Array2::from_shape_fn((used.len(), t.ncols()), |(n, k)| t[[used[n], k]] / self.scale[k] - self.mean[k]),
        };
        let factor = |n: &usize| noise.as_ref().zip(self.typical_noise).map_or(1.0, |(noise, typical)| typical / noise[*n]);
        let factors: Vec<f64> = used.iter().map(factor).collect();
        let weights: Vec<f64> = used.iter().map(|n| weights[*n]).collect();
        let own = x.select(Axis(0), &used);
        let own = self.scaling.as_ref().map_or(own.clone(), |scaling| scaling.apply(own.view()));
        Ok(DistinctRows::new(own.view(), inner.view(), &weights, &factors))
    }
}

/// An error in a part of the rows.
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
