//! Fits to rows that somebody else holds: in files, in parts, on other machines.

use std::time::Instant;

use ndarray::ArrayView2;

use crate::blocks::Blocks;
use crate::error::{Error, Result, require};
use crate::likelihood::Likelihood;
use crate::model::Model;
use crate::report::{Interrupt, Observer, Report, silent};
use crate::rvm::compose::interpolation::judged;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::fit::for_learning;
use crate::rvm::learn::all_rows::AllRows;
use crate::rvm::learn::kernel_choice::{self, Choice};
use crate::rvm::learn::query::pass::Pass;
use crate::rvm::learn::query::{InPasses, RowSource, RowUnits, Surveyed};
use crate::rvm::learn::scaled_features;
use crate::rvm::search::driver::FitDriver;
use crate::rvm::settings::dictionary::{Centres, Landmarks};
use crate::rvm::settings::rules::WeightPrior;
use crate::rvm::settings::rvm::Rvm;
use crate::targets::{MultiClass, Targets, Values};

/// Rows of the sample that kernel, centres, amplitude and noise are learned from: the kernel is learned from 4,000 of them at most, and
/// centres are 1,500 at most. They fit into any memory.
const SAMPLE: usize = 20_000;

/// What a fit to rows that it does not hold has to be told about them.
#[derive(Debug, Clone, PartialEq)]
pub struct RowPlan {
    /// How many classes there are; `None` for real targets.
    pub classes: Option<usize>,
    /// Whether features are standardised, by moments of all rows. The model does the same to new rows.
    pub standardize: bool,
    /// Different rows in the sample from which everything but the weights is learned, >= 2. A table of no more rows is fitted in memory.
    pub sample: usize,
}

impl Default for RowPlan {
    fn default() -> RowPlan {
        RowPlan { classes: None, standardize: false, sample: SAMPLE }
    }
}

impl Rvm {
    /// Fits rows that answer queries, under a process prior. A first pass draws a sample of different rows that does not depend
    /// on how they are parted; the sample tells kernel, centres, amplitude and noise. Sums over all rows give the weights, (M72),
    /// (M87): at most three more passes in regression, and up to nine for classes. A fit to equal parts repeats bit for bit. The
    /// relevance of the model counts the rows part after part, or given landmarks. Equal rows are not merged.
    ///
    /// Regression with a precision for each weight ([`WeightPrior::Ard`], or settings of the search) takes two passes: the sample tells
    /// kernel and landmarks, and [`Statistics`](crate::Statistics) of all rows the rest. If the sample holds all rows, the fit is that of
    /// [`Rvm::fit`] to them.
    ///
    /// # Errors
    /// As [`Rvm::fit`]; if the sample does not hold all rows, whatever has no process prior or needs the rows themselves; errors of the
    /// source; parts that are missing, are there twice, or change between passes.
    pub fn fit_rows(&self, rows: &dyn RowSource, plan: &RowPlan) -> Result<(Model, Report)> {
        self.fit_rows_with(rows, plan, &mut silent, &Interrupt::default())
    }

    /// [`Rvm::fit_rows`] under control: `observer` is called after each iteration, on a thread of the fit's own pool,
    /// and may end the fit; a valid model results.
    /// Another thread may end it by `interrupt`, which is an error.
    ///
    /// # Errors
    /// As [`Rvm::fit_rows`]; and [`Error::Interrupted`].
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
        let surveyed = self.pool()?.install(|| Surveyed::take(rows, plan.classes, plan.sample, self.seed, plan.standardize))?;
        interrupt.check()?;
        let (n_rows, unused) = surveyed.rows();
        let numbers = surveyed.numbers();
        let own = match (&self.landmarks, &surveyed.scaling) {
            // Given landmarks are in the units of the rows.
            (Landmarks::Given(Centres(centres)), Some(scaling)) if centres.ncols() == surveyed.x.ncols() => {
                &Rvm { landmarks: Landmarks::Given(Centres(scaling.apply(centres.view()))), ..self.clone() }
            }
            _ => self,
        };
        let (mut model, mut report) = if surveyed.is_whole() {
            own.fit_with(surveyed.x.view(), &surveyed.targets(), observer, interrupt)?
        } else if own.has_precisions_in_parts() {
            let units = RowUnits { scaling: surveyed.scaling.clone(), ..RowUnits::default() };
            let pass = Pass::new(rows, units, Some(surveyed.parts.clone()));
            own.fit_statistics_of(&surveyed, &pass, observer, interrupt)?
        } else {
            let ask = |training: &TrainingSet| {
                let units = RowUnits { scaling: surveyed.scaling.clone(), ..RowUnits::of(training, plan.classes) };
                Pass::new(rows, units, Some(surveyed.parts.clone()))
            };
            own.fit_sampled((surveyed.x.view(), &surveyed.targets()), ask, observer, interrupt, start)?
        };
        if self.picks_rows() {
            renumber(&mut model, &numbers);
        }
        if report.repairs.left_out_rows > 0 {
            report.repairs.left_out_rows = n_rows - unused - (numbers.len() - report.repairs.left_out_rows);
        }
        report.repairs.constant_features = surveyed.constant();
        report.seconds = start.elapsed().as_secs_f64();
        model.n_rows = n_rows;
        model.class_frequencies = surveyed.class_frequencies();
        model.scaling = surveyed.scaling;
        Ok((model, report))
    }

    /// Whether rows in parts are fitted with a precision for each weight, by statistics of them.
    fn has_precisions_in_parts(&self) -> bool {
        let asked = self.weight_prior != WeightPrior::Process && !self.has_process_in_blocks();
        asked && matches!(self.likelihood, Likelihood::Gaussian(_))
    }

    /// [`Rvm::fit_rows`] to all blocks, one part of the rows.
    pub(super) fn fit_blocks_by_queries(
        &self,
        blocks: &dyn Blocks,
        observer: &mut Observer,
        interrupt: &Interrupt,
    ) -> Result<(Model, Report)> {
        let start = Instant::now();
        let (features, classes) = first_block(blocks)?;
        // Bytes of a row of the sample: as it is drawn, sorted, scaled and of the training set, with the vectors of that.
        let bytes = 8 * (4 * features + 28 + 12 * classes.unwrap_or(1)) as u64;
        let room = usize::try_from(self.memory_allowed() / 2 / bytes).unwrap_or(SAMPLE);
        let plan = RowPlan { classes, standardize: false, sample: SAMPLE.min(room).max(2) };
        let interrupt = interrupt.for_one_fit(self.deadline(start));
        self.fit_rows_with(&InPasses { blocks, interrupt: interrupt.clone() }, &plan, observer, &interrupt)
    }

    /// Fits rows that are read in blocks, under a process prior. Kernel, centres, amplitude and noise are those of a sample: rows
    /// `x`, `[S, D]`, and their `targets`, drawn at random from all. A pass over the blocks sums what the weights depend on,
    /// (M72), (M87); others follow if the centres leave much of the prior, where rounding needs it, and for classes. Memory grows
    /// with the sample, a block and the centres. The relevance of the model counts the rows of the sample, or given landmarks.
    /// Equal rows are not merged.
    ///
    /// # Errors
    /// As [`Rvm::fit`]; another likelihood than Gaussian or one of classes, another prior than that of a process, cross-validation;
    /// blocks unlike the sample, or that change between passes.
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
        let ask = |training: &TrainingSet| Pass::new(&source, RowUnits::of(training, classes), None);
        let (model, report) = self.fit_sampled((x, targets), ask, observer, &interrupt, start)?;
        let class_frequencies = targets.class_frequencies();
        Ok((Model { class_frequencies, ..model }, report))
    }

    /// Fits a sample of rows, `[N, D]`, and uses the sums over all of them that `ask` gets.
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
        let why = match self.without_process() {
            _ if self.weight_prior == WeightPrior::Ard => {
                "classes of rows that are not held have the prior of a process".to_string()
            }
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
            let Choice { kernel, search, learned } = kernel_choice::choose(&asked, &training)?;
            training.interrupt = interrupt.clone();
            let own = Rvm { kernel: kernel.clone(), ..plain.clone() };
            let training = training.with(&own, &kernel, None).with_learnt(&own, &kernel, learned.as_ref());
            let pass = ask(&training);
            let (rows, driver) = (AllRows::Asked(&pass), &mut FitDriver::of(&own, observer, &interrupt, start));
            let (model, report) = match own.likelihood.is_for_classes() {
                true => own.fit_labels_of(&training, Some(&rows), driver)?,
                false => own.fit_by_sums(&training, &rows, driver)?,
            };
            let feature_relevance = scaled_features::feature_relevance(&training, &model);
            let n_rows = if pass.rows() > 0 { pass.rows() } else { model.n_rows };
            Ok(judged((Model { feature_relevance, n_rows, ..model }, Report { kernel_search: search, ..report }), 0))
        })
    }
}

/// Features, and the number of classes if there are any, of the first block that has rows.
fn first_block(blocks: &dyn Blocks) -> Result<(usize, Option<usize>)> {
    let mut found = None;
    let passed = blocks.pass(&mut |x, targets| {
        let classes = match targets.values {
            Values::Classes { count, .. } => Some(count),
            _ => None,
        };
        found = Some((x.ncols(), classes));
        // Ends the pass; the blocks report it as it is.
        if x.nrows() > 0 { Err(Error::Interrupted) } else { Ok(()) }
    });
    match (found, passed) {
        (Some(found), Ok(()) | Err(Error::Interrupted)) => Ok(found),
        (None, Ok(())) => Err(Error::TooFewRows { found: 0, least: 2 }),
        (_, Err(error)) => Err(error),
    }
}

/// Calls the rows of a sample by their numbers among all rows.
fn renumber(model: &mut Model, numbers: &[usize]) {
    let kept = model.statistics.iter_mut().flat_map(|kept| &mut kept.landmarks);
    let searched = model.process.iter_mut().flat_map(|process| &mut process.searched);
    model.relevance.iter_mut().chain(searched).chain(kept).for_each(|row| *row = numbers[*row]);
    model.committee.iter_mut().flat_map(|committee| &mut committee.members).for_each(|member| renumber(member, numbers));
}
