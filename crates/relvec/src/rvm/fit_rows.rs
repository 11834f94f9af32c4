//! Fits to rows that are not in memory: in files, in parts, or on other machines.
//!
//! Classes and counts with a precision for each weight are fitted by Laplace's approximation at landmarks of a sample, by
//! sums over all rows. More than two classes have a model each against the others, and share the passes.

use std::time::Instant;

use ndarray::{Array2, ArrayView2, Axis};

use crate::blocks::Blocks;
use crate::design::Columns;
use crate::error::{Error, Result, require};
use crate::kernel::Kernel;
use crate::likelihood::{Gaussian, Likelihood};
use crate::linalg;
use crate::model::{Model, PosteriorRule, Variance};
use crate::query::pass::{AllRows, InPasses, Pass, Surveyed};
use crate::query::sums::{LaplaceRequest, LaplaceSums, Trial};
use crate::query::{RowSource, RowUnits};
use crate::report::{Adjustments, Certificate, Interrupt, Observer, Report, Status, silent};
use crate::rvm::compose::single_fit::judged;
use crate::rvm::compose::{binary_models, single_fit, student_t};
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::fit::{choose_kernel, for_learning};
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::rvm::learn::kernel_choice::Choice;
use crate::rvm::learn::laplace_ascent::{AscentStart, LaplaceAscent};
use crate::rvm::search::driver::FitDriver;
use crate::rvm::search::outer_loop;
use crate::rvm::settings::dictionary::{Centres, Dictionary, DictionaryRule, Landmarks};
use crate::rvm::settings::rvm::{CentreRule, Rvm, WeightPrior};
use crate::rvm::settings::scheme::Inference;
use crate::sums::Sums;
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
                None if own.likelihood.as_dyn().counts() => own.fit_counts(&training, Some(&mut pass), driver)?,
                None if own.likelihood.is_for_classes() => own.fit_labels(&training, Some(&AllRows::Asked(&pass)), driver)?,
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
    fn with_precisions(&self, kernel: Kernel, centres: Array2<f64>) -> Rvm {
        let landmarks = Landmarks::Given(Centres(centres));
        Rvm { kernel, landmarks, weight_prior: WeightPrior::Ard, ..self.without_dictionary() }
    }

    /// Fits the sample alone, since the time limit passed before there was a model of all rows.
    fn fit_sample(
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
    fn centres_of(&self, surveyed: &Surveyed, interrupt: &Interrupt) -> Result<(Kernel, Array2<f64>, Vec<usize>)> {
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

/// The models of the functions, one for counts or two classes, with the precisions and weights at which the searches ended.
struct Ascended {
    ends: Vec<AscentStart>,
    model: Model,
    report: Report,
}

impl Rvm {
    /// Fits the classes or counts of all rows. Kernel and landmarks are those of the sample, or the landmarks are given. The
    /// relevance vectors of the model are indices of the sample or of the given landmarks.
    fn fit_by_laplace(
        &self,
        surveyed: &Surveyed,
        pass: &Pass,
        observer: &mut Observer,
        interrupt: &Interrupt,
        start: Instant,
    ) -> Result<(Model, Report)> {
        let several = surveyed.class_frequencies().len() > 2;
        self.check_for_laplace(several)?;
        let (kernel, centres, candidates) = self.centres_of(surveyed, interrupt)?;
        let multi_class = if several { MultiClass::OneVsRest } else { MultiClass::Auto };
        let own = Rvm { multi_class, ..self.with_precisions(kernel, centres) };
        let in_time = interrupt.for_one_fit(self.deadline(start));
        let fitted = self.pool()?.install(|| {
            // The searches in the sample are the start of those in all rows, which then take fewer passes.
            let (mut quiet, sample) = (silent, vec![(surveyed.x.view(), surveyed.targets())]);
            let of_sample = Pass::new(&sample, RowUnits::default(), None);
            let mut driver = FitDriver::of(&own, &mut quiet, &in_time, start);
            let first = own.ascend(surveyed, &of_sample, None, &mut driver, &in_time)?;
            let Some(first) = first else { return Ok(None) };
            let mut driver = FitDriver::of(&own, observer, &in_time, start);
            own.ascend(surveyed, pass, Some(&first.ends), &mut driver, &in_time)
        })?;
        let Some(Ascended { mut model, report, .. }) = fitted else {
            return self.fit_sample(surveyed, observer, interrupt, start);
        };
        let members = model.committee.iter_mut().flat_map(|committee| &mut committee.members);
        let relevance = members.flat_map(|member| &mut member.relevance).chain(&mut model.relevance);
        relevance.for_each(|k| *k = candidates[*k]);
        Ok(judged((model, report), surveyed.rows().1))
    }

    /// Checks that the parameters do not need the rows themselves.
    fn check_for_laplace(&self, several: bool) -> Result<()> {
        let check = |good: bool, name: &str, found: &str, expected: &str| {
            require(good, || name.into(), found, &format!("{expected}, for rows that are not held"))
        };
        let softmax = matches!(self.likelihood, Likelihood::Softmax(_));
        check(!softmax, "likelihood", self.likelihood.name(), "bernoulli")?;
        let other = !matches!(self.inference, Inference::Variational(_));
        check(other, "inference", self.inference.name(), "another scheme than variational")?;
        let laplace = self.posterior != PosteriorRule::Averaged;
        check(laplace, "posterior", self.posterior.name(), "auto or laplace")?;
        let rest = matches!(self.multi_class, MultiClass::Auto | MultiClass::OneVsRest);
        let expected = "auto or one_vs_rest, or weight_prior = process";
        check(rest || !several, "multi_class", self.multi_class.name(), expected)
    }

    /// Returns the landmarks as candidates for all rows, or for the sample. Only sums over the rows are known.
    ///
    /// # Errors
    /// Returns [`Error::Memory`] if the sums of the `models` models do not fit into memory.
    fn training_of<'a>(
        &'a self,
        surveyed: &Surveyed,
        of_sample: bool,
        models: usize,
        interrupt: &Interrupt,
    ) -> Result<TrainingSet<'a>> {
        let second: Vec<usize>;
        let targets = match surveyed.targets().values {
            Values::Classes { labels, .. } => {
                second = labels.iter().map(|label| usize::from(*label == 1)).collect();
                Targets::classes(&second, 2)
            }
            _ => surveyed.targets(),
        };
        let sample = TrainingSet::new(self, surveyed.x.view(), &targets, interrupt)?;
        let candidates = sample.dictionary();
        let (n_rows, weight) = match of_sample {
            true => (surveyed.x.nrows(), surveyed.sample_weight()),
            false => (surveyed.rows().0, surveyed.weight()),
        };
        sample.afford_sums(candidates.len(), models)?;
        Ok(TrainingSet { n_rows, adjustments: Adjustments::default(), ..sample.of_sums(self, &candidates, weight) })
    }

    /// Searches for the models of the classes in the rows of `pass`: the sample, or all rows if the `starts` of the
    /// searches are given. Returns `None` if the time limit passes before there is a model of each class.
    fn ascend(
        &self,
        surveyed: &Surveyed,
        pass: &Pass,
        starts: Option<&[AscentStart]>,
        driver: &mut FitDriver,
        interrupt: &Interrupt,
    ) -> Result<Option<Ascended>> {
        let frequencies = surveyed.class_frequencies();
        let count = frequencies.len();
        // The model of two classes is that of the second one.
        let classes: Vec<Option<usize>> = match count {
            0 => vec![None],
            2 => vec![Some(1)],
            _ => (0..count).map(Some).collect(),
        };
        let training = self.training_of(surveyed, starts.is_none(), classes.len(), interrupt)?;
        let candidates = training.dictionary();
        let Columns::Kernel { kernel, centres } = training.columns(&candidates).1 else {
            unreachable!("the candidates are centres")
        };
        let p = candidates.len() + usize::from(self.bias);
        // Sums over the rows; `None` after the time limit.
        let ask = |trials: Vec<Trial>| {
            if interrupt.is_late() && !interrupt.is_raised_by_hand() {
                return Ok(None);
            }
            let (kernel, centres, log_rate) = (kernel.clone(), centres.clone(), training.log_rate);
            let at = LaplaceRequest { kernel, centres, bias: self.bias, log_rate, trials };
            match pass.laplace_sums(at, (count > 0).then_some(count)) {
                _ if interrupt.is_raised_by_hand() => Err(Error::Interrupted),
                Err(Error::Interrupted) => Ok(None),
                sums => sums.map(Some),
            }
        };
        // At the constant alone the curvature of all rows is that of the share of the class, or the mean count, so that the
        // Hessian gives the norms of the columns.
        let (share, rate) = (|class: usize| if self.bias { frequencies[class] } else { 0.5 }, surveyed.mean_count());
        let bias = |class: &Option<usize>| match class {
            Some(class) => (share(*class) / (1.0 - share(*class))).ln(),
            None if self.bias => rate.ln(),
            None => 0.0,
        };
        let curvature = match classes[0] {
            Some(class) => share(class) * (1.0 - share(class)),
            None => bias(&None).exp(),
        };
        let constant = |class: &Option<usize>| {
            let weights = Array2::from_shape_fn((1, p), |(_, j)| if j == 0 { bias(class) } else { 0.0 });
            Trial { class: *class, weights }
        };
        let Some(first) = ask(classes.iter().map(constant).collect())? else { return Ok(None) };
        let mut gram = &first[0].hessian / curvature;
        linalg::mirror(&mut gram);
        let plain = Sums { gram, f: vec![vec![0.0; p]], tt: vec![0.0], count: training.count };
        let (problem, _) = ScaledProblem::of_sums(&training, candidates, plain);

        let search = Rvm { likelihood: Gaussian { noise_variance: Some(1.0) }.into(), ..self.without_dictionary() };
        let new = |(k, class)| LaplaceAscent::new(&problem, &search, class, bias(&class), starts.map(|starts| &starts[k]));
        let mut ascents: Vec<LaplaceAscent> = classes.into_iter().enumerate().map(new).collect();
        let status = run(&mut ascents, starts.is_none().then_some(first), ask, driver, interrupt)?;
        interrupt.disarm();
        let (iterations, seconds) = (driver.trace.len(), driver.elapsed().as_secs_f64());
        let Some(ends) = ascents.iter().map(LaplaceAscent::end).collect() else { return Ok(None) };
        let fitted = ascents.into_iter().flat_map(|ascent| ascent.into_model(status, iterations, seconds).transpose());
        let mut fitted: Vec<(Model, Report)> = fitted.collect::<Result<_>>()?;
        let (model, report) = match count {
            0 | 2 => fitted.remove(0),
            _ => binary_models::united(self, surveyed.x.view(), fitted, iterations, driver.elapsed()),
        };
        let report = Report { trace: std::mem::take(&mut driver.trace), ..report };
        Ok(Some(Ascended { ends, model, report }))
    }
}

/// Runs searches, which share the passes, until they end. `first` are the sums at their first weights, if they are
/// known. Returns the reason for the end.
fn run(
    ascents: &mut [LaplaceAscent],
    first: Option<Vec<LaplaceSums>>,
    ask: impl Fn(Vec<Trial>) -> Result<Option<Vec<LaplaceSums>>>,
    driver: &mut FitDriver,
    interrupt: &Interrupt,
) -> Result<Status> {
    let (mut known, mut told) = (first, None);
    loop {
        let trials: Vec<Trial> = ascents.iter().filter_map(LaplaceAscent::trial).collect();
        if trials.is_empty() {
            return Ok(Status::Converged);
        }
        let sums = match known.take() {
            Some(sums) => sums,
            None => match ask(trials)? {
                Some(sums) => sums,
                None => return Ok(Status::TimeLimit),
            },
        };
        let searching = ascents.iter_mut().filter(|ascent| ascent.trial().is_some());
        match searching.zip(&sums).try_for_each(|(ascent, sums)| ascent.advance(sums, driver.left())) {
            Err(Error::Interrupted) if !interrupt.is_raised_by_hand() => return Ok(Status::TimeLimit),
            advanced => advanced?,
        }
        let best: Option<Vec<(f64, usize)>> = ascents.iter().map(LaplaceAscent::best).collect();
        if let Some(best) = best.filter(|best| told.as_ref() != Some(best)) {
            let active = best.iter().map(|(_, active)| active).sum();
            driver.tell_model(best.iter().map(|(log_evidence, _)| log_evidence).sum(), None, active);
            told = Some(best);
            if let Some(spent) = driver.spent() {
                return Ok(spent);
            }
        }
    }
}
