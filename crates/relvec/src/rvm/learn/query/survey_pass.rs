//! The first pass over the rows of a source.

use ndarray::Array2;

use super::answer::{Content, PartRecord};
use super::survey::{SampledRows, Survey};
use super::{Query, Request, RowSource};
use crate::error::{Error, Result};
use crate::kernel::DataScale;
use crate::model::Scaling;
use crate::targets::{Targets, absent};

/// The result of the first pass.
pub(in crate::rvm) struct Surveyed {
    survey: Survey,
    pub parts: Vec<PartRecord>,
    drawn: SampledRows,
    /// Features of the sample, standardised if requested, [S, D].
    pub x: Array2<f64>,
    pub scaling: Option<Scaling>,
}

impl Surveyed {
    /// Surveys the rows of `source` with a sample of up to `most` rows. `classes` is the number K of classes, `None`
    /// for real targets.
    ///
    /// # Errors
    /// Returns the errors of the source, and an error if a partition is missing, if fewer than two rows have a positive
    /// weight, or if a class has none.
    pub fn take(source: &dyn RowSource, classes: Option<usize>, most: usize, seed: u64, standardize: bool) -> Result<Surveyed> {
        let query = Query::new(Request::Survey { classes, most, seed });
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

    /// Returns the sum of the sample weights of the sample.
    pub fn sample_weight(&self) -> f64 {
        self.drawn.weights.iter().sum()
    }

    /// Returns the shares of the classes by sample weight, `[K]`; empty for real targets.
    pub fn class_frequencies(&self) -> Vec<f64> {
        let weights = self.survey.class_weights();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|weight| (weight / total).max(f64::MIN_POSITIVE)).collect()
    }
}
