//! Models that grow: rows are added to the sums that a model keeps, and the search goes on from it.

use ndarray::ArrayView2;

use crate::design::{Basis, Columns};
use crate::error::{Error, Result, require};
use crate::likelihood::Likelihood;
use crate::memory::{self, afford};
use crate::model::{FittedBasis, Model};
use crate::report::{Interrupt, Observer, Report};
use crate::rvm::CentreRule;
use crate::rvm::Inference;
use crate::rvm::Rvm;
use crate::rvm::data::landmarks::{Dictionary, Landmarks};
use crate::rvm::data::table::Table;
use crate::rvm::evaluate::Hyperparameters;
use crate::rvm::search::scheme::Start;
use crate::statistics::Statistics;
use crate::targets::Targets;

impl Rvm {
    /// Checks the parameters where statistics are to be kept.
    pub(crate) fn check_statistics(&self) -> Result<()> {
        if !self.keep_statistics {
            return Ok(());
        }
        let named = || "keep_statistics".to_string();
        let gaussian = matches!(self.likelihood, Likelihood::Gaussian(_));
        let expected = "false: sums over rows say all of them in regression with Gaussian noise";
        require(gaussian, named, true, expected)?;
        let sized = matches!(self.dictionary, Dictionary::Size(_)) || matches!(self.landmarks, Landmarks::Given(_));
        let expected = "false, or a kernel and a dictionary of a given size, or given landmarks: sums are kept at these";
        require(sized && self.basis == Basis::Kernel, named, true, expected)?;
        let expected = "false, or landmarks that stay: neither refresh nor centres = learned";
        require(self.refresh == 0 && self.centres == CentreRule::Fixed, named, true, expected)
    }

    /// The model with sums over its rows at the landmarks of its table, if it is to keep them: one more pass.
    pub(crate) fn with_kept_statistics(
        &self,
        table: &Table,
        x: ArrayView2<f64>,
        targets: &Targets,
        model: Model,
    ) -> Result<Model> {
        if !self.keep_statistics {
            return Ok(model);
        }
        let places = table.dictionary();
        let (_, Columns::Kernel { kernel, centres }) = table.columns(&places) else { return Ok(model) };
        let l = centres.nrows() as u64;
        afford(&format!("the statistics of {l} landmarks"), 8 * 4 * (l + 1) * (l + 1), memory::allowed(self.memory_limit))?;
        let mut sums = Statistics::new(&kernel, centres.view())?;
        sums.update_interruptible(x, targets, &table.interrupt)?;
        let landmarks = places.iter().map(|place| table.origin[*place]).collect();
        Ok(Model { statistics: Some(sums.kept(landmarks)), ..model })
    }

    /// Adds rows to those that a model was learnt from, without the old ones: `x`, [N, D], as they are (the model
    /// scales them if it does), and `targets` go into the sums that it keeps ([`Rvm::keep_statistics`]), and the
    /// scheme `search` goes on from its precisions. The relevance of the new model counts as that of the old one does.
    ///
    /// # Errors
    /// A model without statistics, or with another kernel; rows of other features; as [`Rvm::fit_statistics`].
    pub fn fit_more(
        &self,
        model: &Model,
        x: ArrayView2<f64>,
        targets: &Targets,
        observer: &mut Observer,
    ) -> Result<(Model, Report)> {
        self.fit_more_interruptible(model, x, targets, observer, &Interrupt::default())
    }

    /// As [`Rvm::fit_more`]; another thread may end it by `interrupt`.
    ///
    /// # Errors
    /// As [`Rvm::fit_more`]; and [`Error::Interrupted`].
    pub fn fit_more_interruptible(
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
        self.pool()?.install(|| sums.update_interruptible(rows, targets, interrupt))?;
        let place = |row: &usize| landmarks.iter().position(|own| own == row).ok_or_else(missing);
        let relevance = model.relevance.iter().map(place).collect::<Result<_>>()?;
        let start = Hyperparameters { relevance, ..Hyperparameters::of(model) };
        // The other schemes begin with all columns: what has left the model would not come back.
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

    /// The same machine, whose search begins at the precisions of a model; the rows that this was learnt from have to
    /// come first in the table that is learnt from next.
    ///
    /// # Errors
    /// Another scheme than `search`; a model with another kernel, with a process prior, or whose centres are no training rows.
    pub fn starting_from(&self, model: &Model) -> Result<Rvm> {
        let Inference::Search(scheme) = &self.inference else {
            let expected = "search: the other schemes do not begin at a model".into();
            return Err(Error::Parameter { name: "inference".into(), found: self.inference.name().into(), expected });
        };
        self.check_same_kernel(model)?;
        if model.learned_centres {
            let expected = "fixed in the fit to go on from: learnt centres are no training rows".into();
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
        Ok(Rvm { inference: Inference::Search(crate::rvm::Search { start, ..scheme.clone() }), ..self.clone() })
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
