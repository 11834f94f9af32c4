//! Fits to sufficient statistics, and incremental fits: rows are added to the statistics of a model, and the search
//! continues from its precisions.
//!
//! Regression with a precision for each weight on rows that are not in memory: from their sufficient statistics at
//! landmarks of a sample.

use std::time::Instant;

use ndarray::{Array2, ArrayView2, Axis};

use crate::design::Basis;
use crate::error::{Error, Result, require};
use crate::kernel::Kernel;
use crate::model::{FittedBasis, Model, Variance};
use crate::query::pass::{Pass, Surveyed};
use crate::report::{Interrupt, Observer, Report, silent};
use crate::rvm::compose::completion::judged;
use crate::rvm::compose::single_fit;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::search::driver::FitDriver;
use crate::rvm::settings::dictionary::{Dictionary, DictionaryRule, Landmarks};
use crate::rvm::settings::rvm::{CentreRule, Rvm};
use crate::rvm::settings::scheme::{Hyperparameters, Inference, Search, Start};
use crate::statistics::Statistics;
use crate::targets::Targets;

impl Rvm {
    /// Fits a model to sufficient statistics. Kernel and candidates are those of the statistics. The relevance vectors
    /// of the model are indices of their centres.
    ///
    /// # Errors
    /// Returns an error for parameters out of range, likelihoods other than Gaussian, fewer than 2 rows, and too little
    /// memory.
    pub fn fit_statistics(&self, statistics: &Statistics) -> Result<(Model, Report)> {
        self.fit_statistics_with(statistics, &mut silent, &Interrupt::default())
    }

    /// Fits as [`Rvm::fit_statistics`] does, with an observer and an interrupt.
    ///
    /// `observer` is called after each iteration, on a thread of the fit's own pool. It may stop the fit, which then
    /// returns a valid model. Another thread may stop the fit by `interrupt`, which returns an error.
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::fit_statistics`], and [`Error::Interrupted`].
    pub fn fit_statistics_with(
        &self,
        statistics: &Statistics,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        self.fit_sums(statistics, None, observer, interrupt)
    }

    /// Fits a model to sums over rows. `from` is a model of such sums at which the search starts, if there is one.
    fn fit_sums(
        &self,
        statistics: &Statistics,
        from: Option<&Hyperparameters>,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        // The settings of the candidates do not apply.
        let own = Rvm { kernel: statistics.kernel().clone(), ..self.without_dictionary() };
        own.check()?;
        if own.validates() {
            return Err(own.no_validation("cross-validation needs the rows, and only sums over them are known"));
        }
        let expected = "posterior, and no rows to keep: of the rows only sums are known";
        require(!own.keeps_rows(), || "variance".into(), Variance::Healed.name(), expected)?;
        own.refuse_process("sums over rows: they do not give the posterior under a process prior")?;
        let plain = own.likelihood.as_dyn().scale_mixture().is_none();
        let expected = "gaussian: what rows count for under Student-t noise needs the rows themselves";
        require(plain, || "likelihood".into(), own.likelihood.name(), expected)?;
        own.pool()?.install(|| {
            let (start, interrupt) = (Instant::now(), interrupt.for_one_fit(own.deadline(Instant::now())));
            let (training, sums) = TrainingSet::of_statistics(&own, statistics, &interrupt)?;
            single_fit::learn(&own, &training, Some(sums), from, &mut FitDriver::of(&own, observer, &interrupt, start))
                .map(|fitted| judged(fitted, 0))
        })
    }

    /// Adds rows to a fitted model without the old rows.
    ///
    /// Rows `x`, [N, D], in the user's units, and `targets` are added to the sufficient statistics that the model
    /// stores ([`Rvm::keep_statistics`]). The scheme `search` then continues from the precisions of the model. The
    /// relevance vectors of the new model have the indices of the old one.
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::fit_statistics`], and an error for a model without statistics or with another
    /// kernel, and for rows with other features.
    pub fn fit_more(&self, model: &Model, x: ArrayView2<f64>, targets: &Targets) -> Result<(Model, Report)> {
        self.fit_more_with(model, x, targets, &mut silent, &Interrupt::default())
    }

    /// Adds rows `x`, `[N, D]`, to a model as [`Rvm::fit_more`] does, with an observer and an interrupt.
    ///
    /// `observer` is called after each iteration, on a thread of the fit's own pool. It may stop the fit, which then
    /// returns a valid model. Another thread may stop the fit by `interrupt`, which returns an error.
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::fit_more`], and [`Error::Interrupted`].
    pub fn fit_more_with(
        &self,
        model: &Model,
        x: ArrayView2<f64>,
        targets: &Targets,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        let missing = || Error::Statistics("the model keeps none: fit it with keep_statistics".into());
        let landmarks = &model.statistics.as_ref().ok_or_else(missing)?.landmarks;
        self.check_same_kernel(model)?;
        let mut sums = Statistics::of(model).ok_or_else(missing)?;
        if x.ncols() != model.n_features {
            let (expected, found) = (format!("{} columns, as the model has", model.n_features), x.ncols().to_string());
            return Err(Error::Shape { what: "rows to add", expected, found });
        }
        let scaled = model.scaling.as_ref().map(|scaling| scaling.apply(x));
        let rows = scaled.as_ref().map_or(x, |scaled| scaled.view());
        self.pool()?.install(|| sums.update_with(rows, targets, interrupt))?;
        let place = |row: &usize| landmarks.iter().position(|own| own == row).ok_or_else(missing);
        let relevance = model.relevance.iter().map(place).collect::<Result<_>>()?;
        let start = Hyperparameters { relevance, ..Hyperparameters::of(model) };
        // The other schemes start with all columns, and do not return a pruned column to the model.
        let start = matches!(self.inference, Inference::Search(_)).then_some(&start);
        let (grown, report) = self.fit_sums(&sums, start, observer, interrupt)?;
        let grown = Model {
            relevance: grown.relevance.iter().map(|k| landmarks[*k]).collect(),
            features: model.features.clone(),
            target: model.target.clone(),
            scaling: model.scaling.clone(),
            statistics: Some(sums.kept(landmarks.clone())),
            ..grown
        };
        Ok((grown, report))
    }

    /// Returns these parameters with a search that starts at the precisions of `model`. The training rows of `model`
    /// must be the first rows of the next training set.
    ///
    /// # Errors
    /// Returns an error for schemes other than `search`, and for a model with another kernel, with a process prior, or
    /// whose centres are no training rows.
    pub fn starting_from(&self, model: &Model) -> Result<Rvm> {
        let Inference::Search(scheme) = &self.inference else {
            let expected = "search: the other schemes do not begin at a model".into();
            return Err(Error::Parameter { name: "inference".into(), found: self.inference.name().into(), expected });
        };
        self.check_same_kernel(model)?;
        if model.learned_centres {
            let expected = "fixed in the earlier fit: learned centres are no training rows".into();
            return Err(Error::Parameter { name: "centres".into(), found: CentreRule::Learned.name().into(), expected });
        }
        if model.process.is_some() || model.labels.is_some() {
            let expected = "ard in the fit to go on from: under a process prior there are no precisions to begin at";
            return Err(Error::Parameter { name: "weight_prior".into(), found: "process".into(), expected: expected.into() });
        }
        let rows = !matches!(self.landmarks, Landmarks::Given(_)) && model.posterior.is_some();
        if !rows {
            return Err(Error::Targets("a start from a model needs one model whose centres are training rows".into()));
        }
        let start = Start::Given(Hyperparameters::of(model));
        Ok(Rvm { inference: Inference::Search(Search { start, ..scheme.clone() }), ..self.clone() })
    }

    fn check_same_kernel(&self, model: &Model) -> Result<()> {
        let found = match &model.expansion.basis {
            FittedBasis::Kernel { kernel, .. } if self.basis == Basis::Kernel => {
                if self.kernels.is_empty() && kernel.name() != self.kernel.name() {
                    format!("{}, and that of the model is {}", self.kernel.name(), kernel.name())
                } else {
                    return Ok(());
                }
            }
            FittedBasis::Given {} if self.basis == Basis::Given => return Ok(()),
            _ => "one, and the model has other basis functions".into(),
        };
        Err(Error::Parameter { name: "kernel".into(), found, expected: "that of the model to go on from".into() })
    }
}

impl Rvm {
    /// Fits the sufficient statistics of all rows. Kernel and landmarks are those of the sample, or the landmarks are
    /// given. The relevance vectors of the model are indices of the sample or of the given landmarks.
    pub(super) fn fit_statistics_of(
        &self,
        surveyed: &Surveyed,
        pass: &Pass,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        let (kernel, centres, candidates) = self.centres_of(surveyed, interrupt)?;
        let statistics = self.pool()?.install(|| pass.statistics(&kernel, centres))?;
        let (mut model, report) = self.fit_statistics_with(&statistics, observer, interrupt)?;
        model.relevance.iter_mut().for_each(|k| *k = candidates[*k]);
        model.statistics = self.keep_statistics.then(|| statistics.kept(candidates));
        Ok((model, report))
    }

    /// Returns the kernel, the candidates' centres, [L, D], and the number of each in the sample or among the given
    /// landmarks. Kernel and landmarks are those of the sample, or the landmarks are given.
    ///
    /// # Errors
    /// Returns [`Error::Parameter`](crate::Error::Parameter) for settings that need all rows, and the errors of
    /// [`Rvm::learn_kernel`].
    pub(super) fn centres_of(&self, surveyed: &Surveyed, interrupt: &Interrupt) -> Result<(Kernel, Array2<f64>, Vec<usize>)> {
        if self.validates() {
            return Err(self.no_validation("cross-validation needs the rows, and they are not held"));
        }
        let all = self.dictionary == Dictionary::Rule(DictionaryRule::All) && self.picks_rows();
        let expected = "auto or a number of landmarks: rows that are not held are not all candidates";
        require(!all, || "dictionary".into(), "all", expected)?;
        let fixed = self.centres == CentreRule::Fixed;
        require(fixed, || "centres".into(), "learned", "fixed: rows that are not held have no gradient by centres")?;
        let kernel = match self.learns_kernel() {
            true => self.learn_kernel_with(surveyed.x.view(), &surveyed.targets(), interrupt)?.kernel,
            false => self.kernel.resolve(&surveyed.data_scale())?,
        };
        let (centres, candidates) = match &self.landmarks {
            Landmarks::Given(centres) => {
                let (different, candidates) = centres.distinct(surveyed.x.ncols())?;
                let first = |k: usize| candidates.iter().position(|candidate| *candidate == k).expect("each is there once");
                let firsts: Vec<usize> = (0..different.nrows()).map(first).collect();
                (different, firsts)
            }
            chosen => {
                // The sample has more than 10,000 rows, so that the rule `all` does not apply.
                let size = Dictionary::Size(self.dictionary.size(usize::MAX));
                let candidates = self.pool()?.install(|| chosen.pick(surveyed.x.view(), size, &kernel, self.seed));
                (surveyed.x.select(Axis(0), &candidates), candidates)
            }
        };
        Ok((kernel, centres, candidates))
    }
}
