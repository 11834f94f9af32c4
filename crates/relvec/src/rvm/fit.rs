//! Fits to rows in memory, dense or sparse, to sufficient statistics, and incremental fits: rows are added to the statistics
//! of a model, and the search continues from its precisions.

use std::time::Instant;

use ndarray::{Array2, ArrayView2, Axis};

use crate::canonical::{Canonical, random_subset};
use crate::design::Basis;
use crate::error::{Error, Result, require};
use crate::isometry::{self, Coordinates};
use crate::kernel::Kernel;
use crate::memory::allowed;
use crate::model::{FittedBasis, Model, StoredRows, Variance, check_sparse};
use crate::report::{CentreSearch, Interrupt, Observer, Report, Status, silent};
use crate::rvm::compose::binary_models::{self, Classes};
use crate::rvm::compose::single_fit::{self, judged};
use crate::rvm::compose::{cross_validation, student_t};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::learn::kernel_choice::{self, Choice};
use crate::rvm::learn::learned_centres;
use crate::rvm::search::driver::FitDriver;
use crate::rvm::settings::dictionary::{Centres, Landmarks};
use crate::rvm::settings::rvm::{CentreRule, Rvm, WeightPrior};
use crate::rvm::settings::scheme::{Hyperparameters, Inference, Search, Start};
use crate::sparse::SparseRows;
use crate::statistics::Statistics;
use crate::targets::{MultiClass, Targets, check_present};

impl Rvm {
    /// Fits a model to rows `x`, [N, D], and `targets`. With [`Basis::Given`], `x` is a design matrix, [N, P].
    ///
    /// # Errors
    /// Returns an error for parameters out of range, shapes that do not match, values that are not finite, too few
    /// rows, targets that do not suit the likelihood, and too little memory. A fit that does not converge is no error,
    /// see [`Report::status`].
    pub fn fit(&self, x: ArrayView2<f64>, targets: &Targets) -> Result<(Model, Report)> {
        self.fit_with(x, targets, &mut silent, &Interrupt::default())
    }

    /// Fits a model to rows `x`, `[N, D]`, as [`Rvm::fit`] does, with an observer and an interrupt.
    ///
    /// `observer` is called after each iteration, on a thread of the fit's own pool. It may stop the fit, which then
    /// returns a valid model. Another thread may stop the fit by `interrupt`, which returns an error.
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::fit`], and [`Error::Interrupted`].
    pub fn fit_with(
        &self,
        x: ArrayView2<f64>,
        targets: &Targets,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        self.check()?;
        let Some((labels, count)) = self.several(targets)? else {
            let (model, report) = self.pool()?.install(|| run(self, x, targets, observer, interrupt))?;
            return Ok(judged((Model { class_frequencies: targets.class_frequencies(), ..model }, report), targets.unused()));
        };
        let rule = self.multi_class_rule();
        if rule == MultiClass::Joint {
            return self.joint().fit_with(x, targets, observer, interrupt);
        }
        if self.validates() {
            let reason = "cross-validation requires multi_class = joint";
            return Err(self.no_validation(reason));
        }
        targets.check_rows(x)?;
        targets.refuse_given("a classifier")?;
        let weights = targets.checked_weights()?;
        check_present(labels, count, weights.as_deref())?;
        let expected = "fixed, or multi_class = joint: separate models of two classes cannot share learned centres";
        require(self.centres == CentreRule::Fixed, || "centres".into(), "learned", expected)?;
        let start = Instant::now();
        self.refuse_process(&format!("multi_class = {}: regression on labels is one model of all classes", rule.name()))?;
        let mut own = Rvm { multi_class: rule, weight_prior: WeightPrior::Ard, ..self.clone() };
        let mut kernel_search = None;
        if self.basis == Basis::Kernel {
            // All binary models share one kernel, which is learned from the rows of all classes.
            let interrupt = interrupt.for_one_fit(self.deadline(start));
            let settled = self.pool()?.install(|| {
                let (joint, plain) = (own.joint(), own.joint().with_stand_in());
                kernel_choice::choose(&joint, &TrainingSet::new(&plain, x, targets, &interrupt)?)
            })?;
            (own.kernel, kernel_search) = (settled.kernel, settled.search);
            own.kernels = vec![];
        }
        let classes = Classes { x, labels, count, weights };
        let (model, report) = binary_models::fit(&own, &classes, start, observer, interrupt)?;
        let class_frequencies = targets.class_frequencies();
        Ok(judged((Model { class_frequencies, ..model }, Report { kernel_search, ..report }), targets.unused()))
    }
}

impl Rvm {
    /// Fits a model to sparse rows `x`, [N, D], and `targets`, without filling in zeros.
    ///
    /// The inner products of all rows with L landmarks are computed once, so that the time grows with N L^2 and the memory
    /// with N L. Up to 10,000 different rows are all landmarks, and the fit is that to dense rows. Of more, 1,000 are drawn
    /// at random, or as many as the dictionary is asked to have if that is more, or fewer if memory is short. Only
    /// landmarks are candidates for relevance vectors, and the kernel is learned from them.
    ///
    /// The kernel must be a function of distances or inner products of rows, with one gamma for all features. A gamma that
    /// is to be learned is that of [`GammaRule::EvidenceIsotropic`](crate::GammaRule::EvidenceIsotropic). The model has sparse
    /// centres, and [`Model::basis_values`] computes its basis functions at sparse rows.
    ///
    /// ```
    /// use relvec::{Rvm, SparseRows, Targets, ndarray::array};
    ///
    /// let x = SparseRows::from_dense(array![[0.0, 2.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0], [3.0, 0.0, 0.0, 2.0]].view());
    /// let (model, _) = Rvm::default().fit_sparse(&x, &Targets::real(array![0.1, 0.4, -1.0].view()))?;
    /// assert_eq!(model.predict(x.to_dense().view())?.mean.len(), 3);
    /// # Ok::<(), relvec::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::fit`], and [`Error::Parameter`] for other kernels and rules of gamma, and for settings
    /// that need all features: given basis functions and landmarks, learned centres, and kept statistics.
    pub fn fit_sparse(&self, x: &SparseRows, targets: &Targets) -> Result<(Model, Report)> {
        self.fit_sparse_with(x, targets, &mut silent, &Interrupt::default())
    }

    /// Fits a model to sparse rows `x`, `[N, D]`, as [`Rvm::fit_sparse`] does, with an observer and an interrupt, as
    /// [`Rvm::fit_with`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::fit_sparse`], and [`Error::Interrupted`].
    pub fn fit_sparse_with(
        &self,
        x: &SparseRows,
        targets: &Targets,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        self.check()?;
        self.check_for_sparse()?;
        targets.check_shape((x.nrows(), x.ncols()))?;
        check_sparse("rows to train on", x)?;
        let weights = targets.checked_weights()?.unwrap_or_else(|| vec![1.0; x.nrows()]);
        let different = Canonical::sparse(x, &vec![0.0; x.nrows()], &weights);
        let isotropic = |kernel: &Kernel| isometry::isotropic(kernel, &different.rows, &different.weights);
        let own = Rvm {
            kernel: isotropic(&self.kernel)?,
            kernels: self.kernels.iter().map(isotropic).collect::<Result<_>>()?,
            ..self.clone()
        };
        let size = self.dictionary.size(different.origin.len());
        let (most, limit) = (size.max(kernel_choice::ROWS), allowed(self.memory_limit));
        let Coordinates { rows, landmarks } =
            self.pool()?.install(|| isometry::coordinates(&different, most, self.seed, limit))?;
        let candidates: Option<Vec<usize>> =
            landmarks.map(|all| random_subset(all.len(), size, self.seed).into_iter().map(|k| all[k]).collect());
        let own = match &candidates {
            Some(candidates) => own.with_landmarks(candidates, &rows)?,
            None => own,
        };
        let (mut model, mut report) = own.fit_with(rows.view(), targets, observer, interrupt)?;
        if candidates.is_some() {
            // They are numbers of coordinates.
            report.adjustments.constant_features.clear();
            // The landmarks' process does not know how much of the other rows the landmarks leave to the noise.
            if model.process.is_some() {
                report.adjustments.noise_over_process = None;
            }
        }
        let row_of = |k: &usize| candidates.as_ref().map_or(*k, |rows| rows[*k]);
        model.process.iter_mut().flat_map(|process| &mut process.searched).for_each(|k| *k = row_of(k));
        let relevance: Vec<usize> = model.relevance.iter().map(row_of).collect();
        let Some(kernel) = model.kernel().cloned() else { return Ok((model, report)) };
        if let Some(kept) = &mut model.kept_rows
            && let StoredRows::Dense(some) = &kept.rows
        {
            kept.rows = StoredRows::Sparse(x.select(&isometry::places(some, &rows, &different)));
        }
        let model = model.with_external_kernel(&relevance, x.ncols(), None);
        Ok((model.with_sparse_kernel(&kernel, &x.select(&relevance))?, report))
    }

    /// Returns these settings for `rows`, [N, K], of which the listed ones (ascending) alone may be centres. The relevance
    /// vectors of a model, and of one to start from, are then indices of the list.
    ///
    /// # Errors
    /// Returns [`Error::Parameter`] for a model to start from with a relevance vector that is not in the list.
    fn with_landmarks(mut self, candidates: &[usize], rows: &Array2<f64>) -> Result<Rvm> {
        if let Inference::Search(Search { start: Start::Given(from), .. }) = &mut self.inference {
            for row in &mut from.relevance {
                let place = candidates.binary_search(row);
                let expected = "landmarks of these sparse rows: a start needs the rows, seed and dictionary of the earlier fit";
                require(place.is_ok(), || "relevance".into(), *row, expected)?;
                *row = place.unwrap_or_default();
            }
        }
        Ok(Rvm { landmarks: Landmarks::OfCoordinates(Centres(rows.select(Axis(0), candidates))), ..self })
    }

    /// Returns true if these settings suit [`Rvm::fit_sparse`].
    pub fn fits_sparse(&self) -> bool {
        self.check_for_sparse().is_ok() && self.to_try().iter().all(|kernel| isometry::check(kernel).is_ok())
    }

    /// Checks that no setting needs the rows of the fit in the user's features.
    fn check_for_sparse(&self) -> Result<()> {
        let name = |name: &'static str| move || name.to_string();
        require(self.basis == Basis::Kernel, name("basis"), "given", "kernel: values of basis functions are not sparse")?;
        let chosen = self.landmarks.given().is_none();
        require(chosen, name("landmarks"), "given", "all rows, or rows that a rule chooses, for sparse rows")?;
        let fixed = self.centres == CentreRule::Fixed;
        require(fixed, name("centres"), CentreRule::Learned.name(), "fixed: learned centres are not sparse")?;
        require(!self.keep_statistics, name("keep_statistics"), true, "false for sparse rows")
    }
}

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
        let rows = self.landmarks.given().is_none() && model.posterior.is_some();
        if !rows {
            return Err(Error::Targets("a start from a model needs one model whose centres are training rows".into()));
        }
        let start = Start::Given(Hyperparameters::of(model));
        Ok(Rvm { inference: Inference::Search(Search { start, ..scheme.clone() }), ..self.clone() })
    }

    fn check_same_kernel(&self, model: &Model) -> Result<()> {
        let found = match &model.expansion.basis {
            FittedBasis::Kernel { kernel, .. } | FittedBasis::Sparse { kernel, .. } if self.basis == Basis::Kernel => {
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

fn run(
    rvm: &Rvm,
    x: ArrayView2<f64>,
    targets: &Targets,
    observer: &mut Observer,
    interrupt: &Interrupt,
) -> Result<(Model, Report)> {
    let start = Instant::now();
    let interrupt = interrupt.for_one_fit(rvm.deadline(start));
    if !rvm.learns_basis() {
        return cross_validation::complete_fit(rvm, x, targets, observer, &interrupt, start);
    }
    let plain = rvm.with_stand_in();
    let mut training = TrainingSet::new(&plain, x, targets, &for_learning(rvm, &interrupt, start))?;
    let Choice { kernel, search: kernel_search, learned } = choose_kernel(rvm, &plain, &training)?;
    training.interrupt = interrupt.clone();
    let own = Rvm { kernel: kernel.clone(), ..plain.clone() };
    let training = training.with(&own, &kernel, None).with_learned(&own, &kernel, learned.as_ref());
    let (model, report) = cross_validation::fit(&own, &training, observer, &interrupt, start)?;
    let nothing_found = report.nothing_found || !rvm.keep_statistics && learned.is_some_and(|learned| !learned.has_structure);
    let report = Report { nothing_found, ..report };
    let (model, report) = match rvm.centres {
        _ if nothing_found => (model, report),
        CentreRule::Learned if report.status != Status::Stopped => {
            let with_kernel = kernel_search.as_ref().is_some_and(|search| search.tried[search.chosen].evaluations > 0);
            with_moved_centres(&own, &training, (model, report), with_kernel, observer, &interrupt, start)?
        }
        _ => (model, report),
    };
    let (model, mut report) = single_fit::complete(rvm, &training, x, targets, (model, report))?;
    if let Some(search) = kernel_search.as_ref().filter(|_| !nothing_found && rvm.likelihood.as_dyn().scale_mixture().is_none()) {
        report.adjustments.noise_over_process = noise_over_process(&model, &search.tried[search.chosen].process.noise_variance);
    }
    Ok((model, Report { kernel_search, ..report }))
}

/// Chooses the kernel for a training set. `plain` are the settings with a fixed kernel.
pub(super) fn choose_kernel(rvm: &Rvm, plain: &Rvm, training: &TrainingSet) -> Result<Choice> {
    let likelihood = rvm.likelihood.as_dyn();
    let mut choice = match likelihood.scale_mixture() {
        // The process of a kernel that is learned from equal weights of the rows tells by which weights outliers count
        // less.
        Some(mixture) if rvm.learns_kernel() && !training.adjustments.constant_target => {
            let Choice { kernel, learned, .. } = kernel_choice::choose(rvm, &student_t::with_spread(plain, training, mixture))?;
            let own = Rvm { kernel: kernel.clone(), ..plain.clone() };
            let first = training.with(&own, &kernel, None).with_learned(&own, &kernel, learned.as_ref());
            kernel_choice::choose(rvm, &student_t::with_factors(plain, &first, mixture)?)?
        }
        _ => kernel_choice::choose(rvm, training)?,
    };
    // Under the process prior, the evidence of the counts tells whether they depend on the features.
    if likelihood.counts() && rvm.has_process(training)? {
        choice.learned.iter_mut().for_each(|learned| learned.has_structure = true);
    }
    Ok(choice)
}

/// Ratio of noise standard deviations from which a model is said to miss structure. On 81 random tables of 60 to 400 rows,
/// models above it lose 0.2 to 1.9 nats for each new row against the default settings on average, and others 0.1.
const MUCH_NOISE: f64 = 2.0;

/// Returns the largest ratio of the noise standard deviation of an output of `model` to that of the dense process,
/// whose noise variances are `process`, `[R]`. Returns `None` if it is at most [`MUCH_NOISE`].
fn noise_over_process(model: &Model, process: &[f64]) -> Option<f64> {
    let ratios = model.output_noise_variances().into_iter().zip(process).map(|(own, process)| (own / process).sqrt());
    ratios.filter(|ratio| *ratio > MUCH_NOISE).reduce(f64::max)
}

/// Share of the time limit for learning the kernel. The rest is for centres and weights, without which there is no
/// model.
const LEARNING: f64 = 0.5;

/// Returns the interrupt that is in force while the kernel is learned.
pub(super) fn for_learning(rvm: &Rvm, interrupt: &Interrupt, start: Instant) -> Interrupt {
    let share = Rvm { time_limit: rvm.time_limit.map(|limit| LEARNING * limit), ..rvm.clone() };
    interrupt.for_one_fit(share.deadline(start))
}

/// Returns the objective by which models are compared, in nats: log evidence plus log prior of the kernels.
fn objective(rvm: &Rvm, model: &Model) -> f64 {
    model.log_evidence.unwrap_or(f64::NEG_INFINITY) - rvm.nats() * model.relevance.len() as f64
}

/// Returns the better of the model `fixed` and of a model with learned centres.
fn with_moved_centres(
    rvm: &Rvm,
    training: &TrainingSet,
    fixed: (Model, Report),
    with_kernel: bool,
    observer: &mut Observer,
    interrupt: &Interrupt,
    start: Instant,
) -> Result<(Model, Report)> {
    let begin = Instant::now();
    let Some(moved) = learned_centres::learn(rvm, training, &fixed.0, with_kernel, start)? else { return Ok(fixed) };
    let seconds = begin.elapsed().as_secs_f64();
    let search = |learned: f64, kept: bool| {
        Some(CentreSearch {
            moved: moved.centres.nrows(),
            rows: moved.rows,
            evaluations: moved.evaluations,
            fixed_log_evidence: objective(rvm, &fixed.0),
            learned_log_evidence: learned,
            kept,
            seconds,
        })
    };
    // The weights of learned centres have their own precisions.
    let own = Rvm { kernel: moved.kernel.clone(), weight_prior: WeightPrior::Ard, ..rvm.without_dictionary() };
    let training = training.with_centres(&own, &moved.kernel, moved.centres.clone());
    let (model, report) = single_fit::learn(&own, &training, None, None, &mut FitDriver::of(&own, observer, interrupt, start))?;
    let learned = objective(rvm, &model);
    if learned > objective(rvm, &fixed.0) {
        let model = Model { learned_centres: true, ..model };
        return Ok((model, Report { centre_search: search(learned, true), ..report }));
    }
    let centre_search = search(learned, false);
    Ok((fixed.0, Report { centre_search, ..fixed.1 }))
}

#[cfg(test)]
mod tests {
    use ndarray::Array1;

    use super::*;
    use crate::kernel::{Gamma, GammaRule, Rbf};
    use crate::likelihood::Likelihood;

    /// The kernel that is learned is that of the landmarks alone, though other rows are nearer to the origin of the
    /// coordinates.
    #[test]
    fn the_kernel_is_learned_from_landmarks() {
        // Each row has 2 frequent words of 10 and 8 rare ones, so that few landmarks are near to it.
        let word = |i: usize, k: usize| match k {
            0..2 => (7 * i + 3 * k * i * i) % 10,
            _ => 10 + (7919 * i + 104_729 * k * (i + 1)) % 2990,
        };
        let mut x = Array2::zeros((400, 3000));
        (0..400).for_each(|i| (0..10).for_each(|k| x[[i, word(i, k)]] = 1.0));
        let t = Array1::from_shape_fn(400, |i| x.row(i).iter().take(5).sum::<f64>() + 0.3 * (i as f64 * i as f64).sin());
        let different = Canonical::sparse(&SparseRows::from_dense(x.view()), &[0.0; 400], &[1.0; 400]);
        for count in [60, 150] {
            let Coordinates { rows, landmarks } = isometry::coordinates(&different, count, 0, u64::MAX).unwrap();
            let landmarks = landmarks.unwrap();
            let kernel: Kernel = Rbf { gamma: Gamma::Rule(GammaRule::EvidenceIsotropic) }.into();
            let rvm = Rvm { kernel, weight_prior: WeightPrior::Ard, ..Rvm::default() };
            let some = t.select(Axis(0), &landmarks);
            let (alone, _) = rvm.fit(x.select(Axis(0), &landmarks).view(), &Targets::real(some.view())).unwrap();
            let (own, _) = rvm.with_landmarks(&landmarks, &rows).unwrap().fit(rows.view(), &Targets::real(t.view())).unwrap();
            let gamma = |model: &Model| match model.kernel().unwrap().gamma() {
                Some(Gamma::Value(gamma)) => *gamma,
                other => panic!("{other:?}"),
            };
            let apart = (gamma(&own) / gamma(&alone)).ln();
            assert!(apart.abs() < 0.014, "{apart}");
        }
    }

    /// With the kernel given, a fit by landmarks is that of dense rows with these landmarks. Under a process prior noise
    /// and amplitude are learned from landmarks alone, and rounding decides where Student-t noise ends.
    #[test]
    fn a_fit_by_landmarks_is_that_of_dense_rows_with_these_landmarks() {
        let value = |i: usize, d: usize| (0.618_033_988_75 * (i * 900 + 3 * d + 1) as f64).fract();
        let x = Array2::from_shape_fn((400, 900), |(i, d)| if (i + 7 * d) % 11 < 2 { value(i, d) } else { 0.0 });
        let t: Array1<f64> = x.outer_iter().enumerate().map(|(i, row)| row.sum().sin() + 0.1 * (i as f64).cos()).collect();
        let different = Canonical::sparse(&SparseRows::from_dense(x.view()), &[0.0; 400], &[1.0; 400]);
        let Coordinates { rows, landmarks } = isometry::coordinates(&different, 150, 0, u64::MAX).unwrap();
        let landmarks = landmarks.unwrap();
        let kernel: Kernel = Rbf { gamma: 0.02.into() }.into();
        let given = Landmarks::Given(Centres(x.select(Axis(0), &landmarks)));
        let (counts, labels) = (t.mapv(|t| (2.0 * t.abs()).round()), t.iter().map(|t| usize::from(*t > 0.0)).collect::<Vec<_>>());
        for name in ["gaussian", "poisson", "bernoulli"] {
            let likelihood = Likelihood::from_name(name).unwrap();
            let targets = match name {
                "poisson" => Targets::real(counts.view()),
                "bernoulli" => Targets::classes(&labels, 2),
                _ => Targets::real(t.view()),
            };
            let variance = (!likelihood.is_for_classes()).then_some(Variance::Posterior);
            let rvm = Rvm { kernel: kernel.clone(), variance, weight_prior: WeightPrior::Ard, likelihood, ..Rvm::default() };
            let (expected, _) = Rvm { landmarks: given.clone(), ..rvm.clone() }.fit(x.view(), &targets).unwrap();
            let (own, _) = rvm.with_landmarks(&landmarks, &rows).unwrap().fit(rows.view(), &targets).unwrap();
            assert_eq!(own.relevance, expected.relevance, "{name}");
            let apart = own.log_evidence.unwrap() - expected.log_evidence.unwrap();
            assert!(apart.abs() < 1e-6 && own.relevance.len() > 3, "{name}: {apart}");
            let (own, expected) = (own.predict(rows.view()).unwrap(), expected.predict(x.view()).unwrap());
            for apart in [own.mean - expected.mean, own.model_variance - expected.model_variance] {
                assert!(apart.iter().all(|v| v.abs() < 1e-6), "{name}: {apart}");
            }
        }
    }
}
