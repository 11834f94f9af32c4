//! Fits to rows that are not in memory: in files, in parts, or on other machines.

use std::time::Instant;

use ndarray::{Array2, ArrayView2, Axis};

use crate::blocks::Blocks;
use crate::error::{Error, Result, require};
use crate::kernel::Kernel;
use crate::model::{Model, PosteriorRule, Variance};
use crate::query::pass::{AllRows, InPasses, Pass, Surveyed};
use crate::query::{RowSource, RowUnits};
use crate::report::{Adjustments, Certificate, Interrupt, Observer, Report, Status, silent};
use crate::rvm::compose::single_fit::{self, judged};
use crate::rvm::compose::student_t;
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::fit::{choose_kernel, for_learning};
use crate::rvm::learn::kernel_choice::Choice;
use crate::rvm::search::driver::FitDriver;
use crate::rvm::search::outer_loop;
use crate::rvm::settings::dictionary::{Centres, Dictionary, DictionaryRule, Landmarks};
use crate::rvm::settings::rvm::{CentreRule, Rvm, WeightPrior};
use crate::targets::{MultiClass, Targets, Values};

/// Number of rows of the sample from which kernel, centres, amplitude and noise are learned. The kernel needs at most
/// 4,000 of them, and there are at most 1,500 centres. The sample fits into any memory.
const SAMPLE: usize = 20_000;

/// Description of rows that are not in memory, for a fit to them.
#[derive(Debug, Clone, PartialEq)]
pub struct RowPlan {
    /// Number of classes; `None` for real targets.
    pub classes: Option<usize>,
    /// True if features are standardised by the moments of all rows. The model standardises new rows in the same way.
    pub standardize: bool,
    /// Number of distinct rows, >= 2, of the sample from which all but the weights is learned. If there are no more
    /// rows, they are fitted in memory.
    pub sample: usize,
}

impl Default for RowPlan {
    fn default() -> RowPlan {
        RowPlan { classes: None, standardize: false, sample: SAMPLE }
    }
}

impl Rvm {
    /// Fits a model to rows of a source that answers queries.
    ///
    /// A first pass draws a sample of distinct rows, which does not depend on the partition of the rows. Kernel,
    /// centres, amplitude and noise are learned from the sample. Under a process prior, sums over all rows then give
    /// the weights, (M72), (M87). That takes at most three more passes in regression, and up to nine for classes. Counts and
    /// rows with Student-t noise take the passes of regression for each step of Newton's method, (M96), or of EM, (M52):
    /// about 4 and 9 passes. With the same parts the result has the same bits.
    ///
    /// With a precision for each weight ([`WeightPrior::Ard`], or settings of the search), kernel and landmarks are
    /// learned from the sample. Regression takes two passes: precisions are learned from sums over all rows, which are the
    /// [`Statistics`](crate::Statistics) for one output. Student-t noise takes such a pass for each step of EM. Classes and
    /// counts take 7 to 30 passes, most of them for few rows or classes that are well separated. A pass gives the
    /// second-order expansion of the log-likelihood at given weights, in which precisions are searched, or a step of
    /// Newton's method. The searches end when Laplace's evidence, (M14), no longer rises. More than two classes have a model
    /// each against the others, in the same passes.
    ///
    /// If the sample contains all rows, the fit is [`Rvm::fit`]. The relevance vectors of the model are indices of rows,
    /// counted part after part, or of given landmarks. Equal rows are not merged.
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::fit`] and of the source, and an error for parts that are missing, occur twice or
    /// change between passes. If the sample does not contain all rows, also returns an error for settings that exclude
    /// a process prior or need the rows themselves.
    pub fn fit_rows(&self, rows: &dyn RowSource, plan: &RowPlan) -> Result<(Model, Report)> {
        self.fit_rows_with(rows, plan, &mut silent, &Interrupt::default())
    }

    /// Fits as [`Rvm::fit_rows`] does, with an observer and an interrupt.
    ///
    /// `observer` is called after each iteration, on a thread of the fit's own pool. It may stop the fit, which then
    /// returns a valid model. Another thread may stop the fit by `interrupt`, which returns an error.
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::fit_rows`], and [`Error::Interrupted`].
    pub fn fit_rows_with(
        &self,
        rows: &dyn RowSource,
        plan: &RowPlan,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        self.check()?;
        require(plan.sample >= 2, || "sample".into(), plan.sample, "a whole number of at least 2")?;
        let classifies = self.likelihood.is_for_classes();
        if classifies != plan.classes.is_some() {
            let expected = if classifies { "the number of classes" } else { "none, of real targets" };
            let found = plan.classes.map_or("none".into(), |classes| classes.to_string());
            return Err(Error::Parameter { name: "classes".into(), found, expected: expected.into() });
        }
        let start = Instant::now();
        let kind = (plan.classes, self.likelihood.as_dyn().counts());
        let surveyed = self.pool()?.install(|| Surveyed::take(rows, kind, plan.sample, self.seed, plan.standardize))?;
        interrupt.check()?;
        let (n_rows, unused) = surveyed.rows();
        let numbers = surveyed.numbers();
        let own = match (&self.landmarks, &surveyed.scaling) {
            // Given landmarks are in the units of the rows, before standardisation.
            (Landmarks::Given(Centres(centres)), Some(scaling)) if centres.ncols() == surveyed.x.ncols() => {
                &Rvm { landmarks: Landmarks::Given(Centres(scaling.apply(centres.view()))), ..self.clone() }
            }
            _ => self,
        };
        let has_precisions = !surveyed.is_whole() && own.has_precisions_in_parts();
        let own_likelihood = own.likelihood.as_dyn();
        let by_laplace = has_precisions && (classifies || own_likelihood.counts());
        let (mut model, mut report) = if surveyed.is_whole() {
            own.fit_with(surveyed.x.view(), &surveyed.targets(), observer, interrupt)?
        } else if has_precisions {
            let units = RowUnits { scaling: surveyed.scaling.clone(), ..RowUnits::default() };
            let pass = Pass::new(rows, units, Some(surveyed.parts.clone()));
            let several = matches!(surveyed.targets().values, Values::Outputs(_));
            match own_likelihood.scale_mixture() {
                _ if by_laplace => own.fit_by_laplace(&surveyed, &pass, observer, interrupt, start)?,
                None if !several => own.fit_statistics_of(&surveyed, &pass, observer, interrupt)?,
                _ => own.fit_weighted_sums(&surveyed, pass, observer, interrupt, start)?,
            }
        } else {
            let ask = |training: &TrainingSet| {
                let units = RowUnits { scaling: surveyed.scaling.clone(), ..row_units(training, plan.classes) };
                Pass::new(rows, units, Some(surveyed.parts.clone()))
            };
            own.fit_sampled((surveyed.x.view(), &surveyed.targets()), ask, observer, interrupt, start)?
        };
        if has_precisions {
            model.feature_relevance = single_fit::feature_relevance(surveyed.x.view(), surveyed.sample_weights(), &model);
        }
        if self.picks_rows() {
            renumber(&mut model, &numbers);
        }
        // A fit to the sample counts rows of the sample.
        if report.adjustments.left_out_rows > 0 && !has_precisions {
            report.adjustments.left_out_rows = n_rows - unused - (numbers.len() - report.adjustments.left_out_rows);
        }
        report.adjustments.constant_features = surveyed.constant();
        report.seconds = start.elapsed().as_secs_f64();
        model.n_rows = n_rows;
        model.class_frequencies = surveyed.class_frequencies();
        model.scaling = surveyed.scaling;
        Ok((model, report))
    }

    /// Returns true if rows in parts are fitted with a precision for each weight, from sums over them.
    fn has_precisions_in_parts(&self) -> bool {
        self.weight_prior != WeightPrior::Process && !self.has_process_in_blocks()
    }

    /// Fits a model to rows that are read in blocks, as [`Rvm::fit_rows`] does with all blocks as one part. Memory grows
    /// with the sample, a block and the number of landmarks, and not with the number of rows.
    ///
    /// The sample has at most 20,000 rows. It is smaller if it would take more than half of the memory limit.
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::fit_rows`].
    pub fn fit_blocks(&self, blocks: &dyn Blocks) -> Result<(Model, Report)> {
        self.fit_blocks_with(blocks, &mut silent, &Interrupt::default())
    }

    /// Fits as [`Rvm::fit_blocks`] does, with an observer and an interrupt.
    ///
    /// `observer` is called after each iteration, on a thread of the fit's own pool. It may stop the fit, which then
    /// returns a valid model. Another thread may stop the fit by `interrupt`, which returns an error.
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::fit_blocks`], and [`Error::Interrupted`].
    pub fn fit_blocks_with(
        &self,
        blocks: &dyn Blocks,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        self.check()?;
        let start = Instant::now();
        let (features, classes) = first_block(blocks)?;
        // Bytes for each row of the sample: drawn, sorted, scaled, and in the training set with its vectors.
        let bytes = 8 * (4 * features + 28 + 12 * classes.unwrap_or(1)) as u64;
        let room = usize::try_from(self.memory_allowed() / 2 / bytes).unwrap_or(SAMPLE);
        let plan = RowPlan { classes, standardize: false, sample: SAMPLE.min(room).max(2) };
        let interrupt = interrupt.for_one_fit(self.deadline(start));
        self.fit_rows_with(&InPasses { blocks, interrupt: interrupt.clone() }, &plan, observer, &interrupt)
    }

    /// Fits a model with a process prior to rows that are read in blocks, given a sample of them.
    ///
    /// Kernel, centres, amplitude and noise are learned from the sample: rows `x`, `[S, D]`, and their `targets`, drawn
    /// at random from all rows. A pass over the blocks sums what the weights depend on, (M72), (M87). Further passes
    /// follow for classes, counts and Student-t noise, if the centres leave much of the prior, and if rounding requires it.
    /// Memory grows with the sample, a block and the number of centres. The relevance vectors of the model are indices of
    /// rows of the sample, or of given landmarks. Equal rows are not merged.
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::fit`], and an error for the averaged posterior of counts, for other priors, for
    /// cross-validation, and for blocks that differ from the sample or change between passes.
    pub fn fit_blocks_with_sample(
        &self,
        x: ArrayView2<f64>,
        targets: &Targets,
        blocks: &dyn Blocks,
        observer: &mut Observer,
    ) -> Result<(Model, Report)> {
        self.check()?;
        let start = Instant::now();
        let classes = match targets.values {
            Values::Classes { count, .. } => Some(count),
            _ => None,
        };
        let interrupt = Interrupt::default();
        let source = InPasses { blocks, interrupt: interrupt.for_one_fit(self.deadline(start)) };
        let ask = |training: &TrainingSet| Pass::new(&source, row_units(training, classes), None);
        let (model, report) = self.fit_sampled((x, targets), ask, observer, &interrupt, start)?;
        let class_frequencies = targets.class_frequencies();
        Ok((Model { class_frequencies, ..model }, report))
    }

    /// Fits a sample of rows, `[N, D]`, with the sums over all rows that `ask` returns.
    fn fit_sampled<'a>(
        &self,
        (x, targets): (ArrayView2<f64>, &Targets),
        ask: impl FnOnce(&TrainingSet) -> Pass<'a> + Send,
        observer: &mut Observer,
        interrupt: &Interrupt,
        start: Instant,
    ) -> Result<(Model, Report)> {
        if self.validates() {
            return Err(self.no_validation("cross-validation needs the rows, and those in blocks are not at hand"));
        }
        let averaged = self.likelihood.as_dyn().counts() && self.posterior == PosteriorRule::Averaged;
        let expected = "auto or laplace: the averaged curvature of counts needs all rows, and they are not held";
        require(!averaged, || "posterior".into(), self.posterior.name(), expected)?;
        let why = match self.without_process() {
            _ if self.weight_prior == WeightPrior::Ard => "a fit with a given sample has the prior of a process".to_string(),
            Some(reason) => format!("rows that are not held need it, and it cannot be combined with {reason}"),
            None => "rows that are not held need it, and settings of the search or kernel = linear_spline do without it".into(),
        };
        let expected = format!("process, or auto: {why}");
        require(self.has_process_in_blocks(), || "weight_prior".into(), self.weight_prior.name(), &expected)?;
        let joint = self.several(targets)?.is_some();
        if joint && self.multi_class_rule() != MultiClass::Joint {
            let rule = self.multi_class_rule().name();
            let expected = "auto or joint: rows that are not held have one model of all classes";
            return Err(Error::Parameter { name: "multi_class".into(), found: rule.into(), expected: expected.into() });
        }
        let asked = Rvm { weight_prior: WeightPrior::Process, ..if joint { self.joint() } else { self.clone() } };
        asked.check()?;
        let interrupt = interrupt.for_one_fit(self.deadline(start));
        self.pool()?.install(|| {
            let plain = asked.with_stand_in();
            let mut training = TrainingSet::new(&plain, x, targets, &for_learning(&asked, &interrupt, start))?;
            asked.has_process(&training)?;
            let Choice { kernel, search, learned } = choose_kernel(&asked, &plain, &training)?;
            training.interrupt = interrupt.clone();
            let own = Rvm { kernel: kernel.clone(), ..plain.clone() };
            let training = training.with(&own, &kernel, None).with_learned(&own, &kernel, learned.as_ref());
            let (mut pass, driver) = (ask(&training), &mut FitDriver::of(&own, observer, &interrupt, start));
            let (model, report) = match own.likelihood.as_dyn().scale_mixture() {
                Some(mixture) => student_t::fit_rows(&own, &training, mixture, &mut pass, driver)?
                    .expect("a fit with the process prior returns a model"),
                None if own.likelihood.as_dyn().counts() => own.fit_counts_of(&training, Some(&mut pass), driver)?,
                None if own.likelihood.is_for_classes() => own.fit_labels_of(&training, Some(&AllRows::Asked(&pass)), driver)?,
                None => own.fit_by_sums(&training, &AllRows::Asked(&pass), driver)?,
            };
            let feature_relevance = single_fit::feature_relevance(training.rows.view(), &training.sample_weights(), &model);
            let n_rows = if pass.rows() > 0 { pass.rows() } else { model.n_rows };
            Ok(judged((Model { feature_relevance, n_rows, ..model }, Report { kernel_search: search, ..report }), 0))
        })
    }

    /// Fits the sufficient statistics of all rows. Kernel and landmarks are those of the sample, or the landmarks are
    /// given. The relevance vectors of the model are indices of the sample or of the given landmarks.
    fn fit_statistics_of(
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

    /// Fits Student-t noise or several outputs with a precision for each weight, or one for all outputs, to sums over all
    /// rows. The relevance vectors of the model are indices of the sample or of the given landmarks.
    fn fit_weighted_sums(
        &self,
        surveyed: &Surveyed,
        mut pass: Pass,
        observer: &mut Observer,
        interrupt: &Interrupt,
        start: Instant,
    ) -> Result<(Model, Report)> {
        let (kernel, centres, candidates) = self.centres_of(surveyed, interrupt)?;
        let expected = "false: statistics are sums of one output with Gaussian noise";
        require(!self.keep_statistics, || "keep_statistics".into(), "true", expected)?;
        let own = self.with_precisions(kernel, centres);
        let in_time = interrupt.for_one_fit(self.deadline(start));
        let fitted = self.pool()?.install(|| {
            let sample = TrainingSet::new(&own, surveyed.x.view(), &surveyed.targets(), &in_time)?;
            pass.set_units(RowUnits { scaling: surveyed.scaling.clone(), ..row_units(&sample, None) });
            let driver = &mut FitDriver::of(&own, observer, &in_time, start);
            if let Some(mixture) = own.likelihood.as_dyn().scale_mixture() {
                return student_t::fit_rows(&own, &sample, mixture, &mut pass, driver);
            }
            let Some((training, sums)) = sample.with_sums(&own, &pass)? else { return Ok(None) };
            outer_loop::search(&own, &training, Some(sums), None, driver).map(Some)
        })?;
        let Some((mut model, report)) = fitted else {
            return self.fit_sample(surveyed, observer, interrupt, start);
        };
        model.relevance.iter_mut().for_each(|k| *k = candidates[*k]);
        Ok(judged((model, report), surveyed.rows().1))
    }

    /// Returns the settings of a fit to sums over all rows, at candidates with `centres`, [L, D].
    pub(super) fn with_precisions(&self, kernel: Kernel, centres: Array2<f64>) -> Rvm {
        let landmarks = Landmarks::Given(Centres(centres));
        Rvm { kernel, landmarks, weight_prior: WeightPrior::Ard, ..self.without_dictionary() }
    }

    /// Fits the sample alone, since the time limit passed before there was a model of all rows.
    pub(super) fn fit_sample(
        &self,
        surveyed: &Surveyed,
        observer: &mut Observer,
        interrupt: &Interrupt,
        start: Instant,
    ) -> Result<(Model, Report)> {
        let left = self.time_limit.map(|limit| (limit - start.elapsed().as_secs_f64()).max(1e-3));
        let rest = Rvm { time_limit: left, ..self.clone() };
        let (model, report) = rest.fit_with(surveyed.x.view(), &surveyed.targets(), observer, interrupt)?;
        let reason = "time_limit ended the fit before there was a model of all rows, and the model is that of a sample";
        let certificate = Certificate { reason: reason.into(), ..report.certificate };
        let (rows, unused) = surveyed.rows();
        let left_out = rows - unused - (surveyed.x.nrows() - report.adjustments.left_out_rows);
        let adjustments = Adjustments { left_out_rows: left_out, ..report.adjustments };
        let status = Status::TimeLimit;
        Ok((Model { status, ..model }, Report { status, certificate, adjustments, ..report }))
    }

    /// Returns the kernel, the candidates' centres, [L, D], and the number of each in the sample or among the given
    /// landmarks. Kernel and landmarks are those of the sample, or the landmarks are given.
    ///
    /// # Errors
    /// Returns [`Error::Parameter`] for settings that need all rows, and the errors of
    /// [`Rvm::learn_kernel`].
    pub(super) fn centres_of(&self, surveyed: &Surveyed, interrupt: &Interrupt) -> Result<(Kernel, Array2<f64>, Vec<usize>)> {
        if self.validates() {
            return Err(self.no_validation("cross-validation needs the rows, and they are not held"));
        }
        let all = self.dictionary == Dictionary::Rule(DictionaryRule::All) && self.picks_rows();
        let expected = "auto or a number of landmarks: rows that are not held are not all candidates";
        require(!all, || "dictionary".into(), "all", expected)?;
        let expected = "posterior, and no rows to keep: all rows are not held";
        require(!self.keeps_rows(), || "variance".into(), Variance::Healed.name(), expected)?;
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

/// Returns the number of features, and of classes if there are any, of the first block that has rows.
fn first_block(blocks: &dyn Blocks) -> Result<(usize, Option<usize>)> {
    let mut found = None;
    let passed = blocks.pass(&mut |x, targets| {
        let classes = match targets.values {
            Values::Classes { count, .. } => Some(count),
            _ => None,
        };
        found = Some((x.ncols(), classes));
        // The error ends the pass, and the blocks return it unchanged.
        if x.nrows() > 0 { Err(Error::Interrupted) } else { Ok(()) }
    });
    match (found, passed) {
        (Some(found), Ok(()) | Err(Error::Interrupted)) => Ok(found),
        (None, Ok(())) => Err(Error::TooFewRows { found: 0, least: 2 }),
        (_, Err(error)) => Err(error),
    }
}

/// Returns the units of a training set; `classes` is the number K of classes, `None` for real targets.
fn row_units(training: &TrainingSet, classes: Option<usize>) -> RowUnits {
    let units = if classes.is_some() { &[][..] } else { &training.units };
    let typical = match training.noise.first() {
        Some(NoisePrecision::Fixed(beta)) if training.known_noise => Some(training.units[0].scale.powi(2) / beta),
        _ => None,
    };
    RowUnits {
        scaling: None,
        classes,
        scale: units.iter().map(|units| units.scale).collect(),
        mean: units.iter().map(|units| if training.rvm.bias { units.mean } else { 0.0 }).collect(),
        typical_noise: typical,
        model: None,
    }
}

/// Replaces indices of rows of the sample by their indices among all rows.
fn renumber(model: &mut Model, numbers: &[usize]) {
    let kept = model.statistics.iter_mut().flat_map(|kept| &mut kept.landmarks);
    let searched = model.process.iter_mut().flat_map(|process| &mut process.searched);
    model.relevance.iter_mut().chain(searched).chain(kept).for_each(|row| *row = numbers[*row]);
    model.committee.iter_mut().flat_map(|committee| &mut committee.members).for_each(|member| renumber(member, numbers));
}
