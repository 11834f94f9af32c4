//! The first pass over rows that somebody else holds.

use ndarray::Array2;

use super::answer::{Content, Seen};
use super::survey::{SampledRows, Survey};
use super::{Query, RowSource, Want};
use crate::error::{Error, Result};
use crate::kernel::DataScale;
use crate::model::Scaling;
use crate::targets::{Targets, absent};

/// What a first pass has found.
pub(in crate::rvm) struct Surveyed {
    survey: Survey,
    pub parts: Vec<Seen>,
    drawn: SampledRows,
    /// Features of the sample, standardised if that was asked for, [S, D].
    pub x: Array2<f64>,
    pub scaling: Option<Scaling>,
}

impl Surveyed {
    /// Asks for a sample of up to `most` rows; `classes`: K, of classes.
    ///
    /// # Errors
    /// Errors of the source; parts that are missing; too few rows, or a class without any.
    pub fn take(source: &dyn RowSource, classes: Option<usize>, most: usize, seed: u64, standardize: bool) -> Result<Surveyed> {
        let query = Query::new(Want::Survey { classes, most, seed });
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

    /// Targets of the sample.
    pub fn targets(&self) -> Targets<'_> {
        self.drawn.targets()
    }

    /// Whether the sample holds all rows.
    pub fn is_whole(&self) -> bool {
        self.drawn.whole
    }

    /// Rows, and how many of them have weight 0.
    pub fn rows(&self) -> (usize, usize) {
        (self.survey.n_rows(), self.survey.n_rows() - self.survey.n_used())
    }

    /// Number of each row of the sample among all rows, part after part, `[S]`.
    pub fn numbers(&self) -> Vec<usize> {
        let before = self.parts.iter().scan(0, |sum, seen| Some(std::mem::replace(sum, *sum + seen.rows)));
        let before: Vec<u64> = before.collect();
        self.drawn.positions.iter().map(|(part, row)| (before[*part as usize] + row) as usize).collect()
    }

    /// Features that are the same on every row.
    pub fn constant(&self) -> Vec<usize> {
        self.survey.constant_features()
    }

    /// What `gamma = "scale"` asks for, of features as the fit sees them.
    pub fn data_scale(&self) -> DataScale {
        self.survey.data_scale(self.scaling.is_some())
    }

    /// Shares of the classes by sample weight, `[K]`; empty for real values.
    pub fn class_frequencies(&self) -> Vec<f64> {
        let weights = self.survey.class_weights();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|weight| (weight / total).max(f64::MIN_POSITIVE)).collect()
    }
}
