//! Fit to a table that need not fit into memory. A first pass surveys the rows and chooses landmarks. A second pass
//! computes sums over the rows at the landmarks, which are all that a regression needs. Classification needs the rows
//! again, see `classes`.

mod checkpoint;
mod classes;
mod kernel;
mod memory;
mod process;
mod source;
mod spill;
mod survey;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use ndarray::{Array2, ArrayView2, s};
use relvec::{
    Centres, Dictionary, DictionaryRule, Encoding, Error, Interrupt, Kernel, Landmarks, Likelihood, Model, Progress, Report, Rvm,
    Scaling, Statistics, Status, Targets,
};
use serde_json::json;

use self::checkpoint::{CONTENTS, Checkpoint, Head, Marks, Plan};
use self::memory::Sizes;
use self::source::{Source, check_rows};
use self::survey::{Found, Survey};
use crate::args::Task;
use crate::live::Live;
use crate::progress::{Pass, Reporter};
use crate::settings;
use crate::target::tell_task;
use crate::text::count;
use crate::training::{Block, Roles, TrainingRows};

/// Rows among which landmarks are chosen, or twice the number of landmarks if that is more.
const SAMPLE: usize = 20_000;
/// Rows from which a kernel is learned if no landmarks are chosen, the number that [`Rvm::learn_kernel`] uses.
const KERNEL_SAMPLE: usize = 1000;
/// Share of time_limit for the passes over the table. The rest is for the search, without which there is no model. The
/// search for classes reads all rows several times, so it gets a larger share.
const PASSES: f64 = 0.9;
const PASSES_OF_CLASSES: f64 = 0.5;
/// Share of time_limit for learning the kernel. A few seconds suffice for most tables; half the share would not
/// noticeably help the passes.
const KERNEL: f64 = 0.1;

/// Parameters and file of a fit in blocks.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub path: &'a Path,
    pub roles: Roles<'a>,
    pub rvm: &'a Rvm,
    /// Returns the parameters for features of these names, `[D]`, which the kernel may contain.
    pub named: &'a (dyn Fn(&[String]) -> Result<Rvm> + Sync),
    /// The task if the arguments decide it; otherwise the target does.
    pub task: Option<Task>,
    pub standardize: bool,
    /// Given landmarks, [L, D], in the units of the table.
    pub centres: Option<&'a Array2<f64>>,
    pub checkpoint: Option<&'a Path>,
}

/// The time limit of a fit, from its start. Passes end between blocks.
struct Clock {
    start: Instant,
    /// Limit in seconds.
    limit: Option<f64>,
    /// Share of the limit for the passes.
    share: f64,
}

impl Clock {
    fn start(limit: Option<f64>) -> Clock {
        Clock { start: Instant::now(), limit, share: PASSES }
    }

    fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Returns a clock for classes.
    fn of_classes(self) -> Clock {
        Clock { share: PASSES_OF_CLASSES, ..self }
    }

    /// True if the passes have used their share.
    fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.seconds() > self.share * limit)
    }

    /// Returns the seconds for learning the kernel.
    fn for_kernel(&self) -> Option<f64> {
        self.limit.map(|limit| KERNEL * limit)
    }

    /// Returns the seconds for the search, at least its share even if the passes took too long.
    fn left(&self) -> Option<f64> {
        self.limit.map(|limit| (limit - self.seconds()).max((1.0 - self.share) * limit))
    }
}

/// Result of a fit in blocks.
pub(crate) enum Outcome {
    Fitted(Box<(Model, Report)>),
    /// The target is classes, for this reason, and the parameters need rows in memory.
    Classes(&'static str),
}

/// True if a table of about `rows` rows is too large for a fit in memory, which would take more than half of the memory
/// limit.
pub(crate) fn is_large(rows: Option<f64>, columns: usize, rvm: &Rvm) -> bool {
    rows.is_some_and(|rows| memory::in_memory(rows, columns) > 0.5 * rvm.memory_allowed() as f64)
}

/// Returns an error if a table of `rows` rows is too large for a fit in memory.
pub(crate) fn afford_in_memory(rows: f64, columns: usize, rvm: &Rvm) -> Result<(), Error> {
    let (needed, limit) = (memory::in_memory(rows, columns) as u64, rvm.memory_allowed());
    if needed > limit { Err(Error::Memory { what: "the table in memory".into(), needed, limit }) } else { Ok(()) }
}

impl Job<'_> {
    /// Returns the sizes known before the first pass, or an error if even the least possible sizes exceed the limit.
    fn sizes(&self, rows: &TrainingRows) -> Result<Sizes> {
        let sample = sample_size(self, rows)?;
        let columns = rows.features().len() + 2;
        let sizes = Sizes { columns, sample, learns: self.rvm.learns_kernel(), limit: self.rvm.memory_allowed() };
        let (least, likely) = landmarks(self, sample);
        sizes.afford(least, likely)?;
        Ok(sizes)
    }
}

/// Fits the table. Rows are read twice in blocks. If a column holds categories or there is a rule for missing cells,
/// they are read once before that, since all features must be known before the first sum.
pub(crate) fn fit(job: &Job) -> Result<Outcome> {
    let clock = Clock::start(job.rvm.time_limit);
    let source = Source::of(job.path)?;
    let reading = Live::new("reading the table");
    let rows = TrainingRows::open(job.path, job.roles)?;
    let columns = rows.features().to_vec();
    let encoding = rows.survey(|| clock.is_over())?;
    drop(reading);
    if job.centres.is_some() {
        settings::check_landmarks(encoding.as_ref())?;
    }
    let roles = Roles { encoding: job.roles.encoding.or(encoding.as_ref()), ..job.roles };
    let rvm = (job.named)(&roles.encoding.map_or(columns, Encoding::features))?;
    match fit_features(&Job { roles, rvm: &rvm, ..*job }, source, clock)? {
        Outcome::Fitted(mut fitted) => {
            fitted.0.encoding = encoding;
            Ok(Outcome::Fitted(fitted))
        }
        classes => Ok(classes),
    }
}

/// Fits the columns with a known encoding.
fn fit_features(job: &Job, source: Source, clock: Clock) -> Result<Outcome> {
    if job.task == Some(Task::Classify) {
        return classes::fit(job, &source, &clock.of_classes(), None).map(|fitted| Outcome::Fitted(Box::new(fitted)));
    }
    let rows = TrainingRows::open(job.path, job.roles)?;
    let features = rows.features().to_vec();
    let sizes = job.sizes(&rows)?;
    let block_rows = sizes.block_rows();

    let data = job.checkpoint.map(|_| data_marks(job, &source, &rows)).transpose()?.unwrap_or_default();
    let parameters = parameter_marks(job, &rows, block_rows)?;
    let saved = match job.checkpoint {
        Some(path) => Checkpoint::read(path, &data, &parameters)?,
        None => None,
    };
    let mut whole = true;
    let (head, mut statistics) = match saved {
        Some((head, statistics)) => {
            sizes.afford(statistics.centres().nrows(), 0)?;
            let name = || format!("checkpoint `{}`", job.checkpoint.unwrap_or(Path::new("")).display());
            head.check(&statistics, job.rvm, features.len(), job.standardize, has_given(job)).with_context(name)?;
            check_landmarks(job, &head.plan, &statistics, block_rows).with_context(name)?;
            say!("note: resuming after row {} of {}", head.done, head.plan.rows);
            (head, statistics)
        }
        None => match Survey::take(job, rows, job.task, &sizes, &clock, None)? {
            Found::Classes(reason) if job.checkpoint.is_some() || !settings::suits_classes(job.rvm) => {
                return Ok(Outcome::Classes(reason));
            }
            Found::Classes(reason) => {
                let fitted = classes::fit(job, &source, &clock.of_classes(), Some(reason))?;
                return Ok(Outcome::Fitted(Box::new(fitted)));
            }
            Found::Rows(survey) => {
                source.check(job.path)?;
                whole = survey.whole;
                if let Some(reason) = survey.reason {
                    tell_task(Task::Regress, job.roles.target, reason);
                }
                if !by_statistics(job.rvm) {
                    match job.checkpoint {
                        None => {
                            let fitted = process::fit(job, &survey, &sizes, &clock, features)?;
                            source.check(job.path)?;
                            return Ok(Outcome::Fitted(Box::new(fitted)));
                        }
                        Some(_) => say!(
                            "note: the sums in a checkpoint fit a precision of each weight (--weight-prior ard); without --checkpoint \
                             the weights have the prior of a process"
                        ),
                    }
                }
                let (plan, kernel, centres) = prepare(job, &survey, &sizes, &clock, None)?;
                let statistics = Statistics::new(&kernel, centres.view())?;
                (Head { data, parameters, plan, done: 0 }, statistics)
            }
        },
    };
    let plan = head.plan.clone();
    // A plan from a part of the rows cannot be resumed, so no checkpoint is written.
    let checkpoint = job.checkpoint.filter(|_| whole).map(|path| Checkpoint::new(path, head.clone()));
    let second = Second { job, plan: &plan, whole, block_rows, clock: &clock };
    let passed = sum(&second, head.done, checkpoint, &mut statistics);
    // If the file has changed, this is the cause of any other error.
    source.check(job.path)?;
    let done = passed?;

    let mut reporter = Reporter::of(&job.rvm.inference);
    let observer = &mut |progress: &Progress| reporter.observe(progress);
    let rvm = Rvm { time_limit: clock.left(), ..job.rvm.clone() };
    let (mut model, mut report) = rvm.fit_statistics_with(&statistics, observer, &Interrupt::default())?;
    if !whole || done < plan.rows {
        (model.status, report.status) = (Status::TimeLimit, Status::TimeLimit);
        report.certificate.reason = cut_short(job, done, whole.then_some(plan.rows));
    }
    report.seconds = clock.seconds();
    report.adjustments.constant_features.clone_from(&plan.constant);
    (model.n_rows, model.features) = (done, features);
    Ok(Outcome::Fitted(Box::new((in_terms_of_the_table(model, plan, job.rvm.keep_statistics.then_some(&statistics)), report))))
}

/// Returns the model with row numbers and features of the table, and with the sums that it keeps.
fn in_terms_of_the_table(model: Model, plan: Plan, kept: Option<&Statistics>) -> Model {
    Model {
        relevance: model.relevance.iter().map(|k| plan.landmarks[*k]).collect(),
        statistics: kept.map(|statistics| statistics.kept(plan.landmarks)),
        scaling: plan.scaling,
        ..model
    }
}

/// Returns the reason why a fit has only the first `done` rows. `all`: the number of rows, if it is known.
fn cut_short(job: &Job, done: usize, all: Option<usize>) -> String {
    let limit = job.rvm.time_limit.unwrap_or(0.0);
    let rows = match all {
        Some(all) => format!("{done} of {}", count(all, "row")),
        None => format!("the first {}", count(done, "row")),
    };
    let more = match (all, job.checkpoint) {
        (Some(_), Some(_)) => "; the checkpoint contains the sums, and the same command with more time resumes from there",
        (None, Some(_)) => "; there is no checkpoint before the first pass has seen all rows",
        _ => "",
    };
    format!("time_limit = {limit} s ended the reading of the table: the model is fitted to {rows} only{more}")
}

/// Returns the number of rows to choose landmarks from. If the length of the table is unknown, its rows are counted up to
/// this number.
fn sample_size(job: &Job, rows: &TrainingRows) -> Result<usize> {
    let most = match job.rvm.dictionary {
        _ if has_given(job) && !by_statistics(job.rvm) => SAMPLE,
        _ if has_given(job) && !job.rvm.learns_kernel() => return Ok(0),
        _ if has_given(job) => KERNEL_SAMPLE,
        Dictionary::Size(size) => SAMPLE.max(size.saturating_mul(2)),
        Dictionary::Rule(_) => SAMPLE,
    };
    match rows.table().count() {
        Some(rows) => Ok(most.min(rows)),
        None => TrainingRows::open(job.path, job.roles)?.skip(most),
    }
}

/// Returns true if real targets are fitted from their sufficient statistics.
fn by_statistics(rvm: &Rvm) -> bool {
    matches!(rvm.likelihood, Likelihood::Gaussian(_)) && !rvm.has_process_in_blocks()
}

/// Returns the least number of landmarks before the table is read, and their number if no two rows are equal.
fn landmarks(job: &Job, sample: usize) -> (usize, usize) {
    match (job.centres, &job.rvm.landmarks, job.rvm.dictionary) {
        (Some(centres), ..) | (None, Landmarks::Given(Centres(centres)), _) => (1, centres.nrows()),
        // Equal rows are one landmark, but a requested number is assumed to exist.
        (None, _, Dictionary::Size(size)) => (size.min(sample), 0),
        (None, _, rule) => (1, rule.size(usize::MAX).min(sample)),
    }
}

/// Returns the results of the first pass: the plan, and kernel and landmarks in scaled units. `class_of`: the class of
/// each number of the sample's targets, for classification.
fn prepare(
    job: &Job,
    survey: &Survey,
    sizes: &Sizes,
    clock: &Clock,
    class_of: Option<&[usize]>,
) -> Result<(Plan, Kernel, Array2<f64>)> {
    survey.check()?;
    let kernel = kernel::settle(job, survey, sizes, clock, class_of)?;
    let (centres, landmarks) = match given(job, survey.scaling.as_ref()) {
        Some(centres) => {
            let (different, places) = centres.distinct(survey.sample.x.ncols())?;
            let first = |k: usize| places.iter().position(|place| *place == k).expect("each is there once");
            let firsts = (0..different.nrows()).map(first).collect();
            (different, firsts)
        }
        None => choose(job.rvm, survey, &kernel, sizes),
    };
    sizes.afford(centres.nrows(), 0)?;
    let Survey { rows, scaling, constant, .. } = survey;
    Ok((Plan { rows: *rows, scaling: scaling.clone(), constant: constant.clone(), landmarks }, kernel, centres))
}

/// Returns given landmarks in scaled units.
fn given(job: &Job, scaling: Option<&Scaling>) -> Option<Centres> {
    match (job.centres, &job.rvm.landmarks) {
        (Some(centres), _) => Some(Centres(scaling.map_or_else(|| centres.clone(), |s| s.apply(centres.view())))),
        (None, Landmarks::Given(centres)) => Some(centres.clone()),
        (None, _) => None,
    }
}

fn has_given(job: &Job) -> bool {
    job.centres.is_some() || matches!(job.rvm.landmarks, Landmarks::Given(_))
}

/// Returns an error unless the sums of a checkpoint are at its landmarks: given ones, or rows of the table.
fn check_landmarks(job: &Job, plan: &Plan, statistics: &Statistics, block_rows: usize) -> Result<()> {
    let centres = statistics.centres();
    let others = |what: String| anyhow!("its sums are at other landmarks than {what}; delete the file to start again");
    if let Some(given) = given(job, plan.scaling.as_ref()) {
        let same = given.distinct(centres.ncols())?.0 == centres;
        return if same { Ok(()) } else { Err(others("those given".into())) };
    }
    let wanted: BTreeMap<usize, usize> = plan.landmarks.iter().enumerate().map(|(k, row)| (*row, k)).collect();
    let last = wanted.last_key_value().map_or(0, |(row, _)| *row);
    let mut rows = TrainingRows::open(job.path, job.roles)?;
    let mut block = rows.block();
    let mut first = 0;
    while first <= last && rows.read(&mut block, block_rows)? {
        let count = block.target.len();
        let x = ArrayView2::from_shape((count, centres.ncols()), &block.x)?;
        for (row, k) in wanted.range(first..first + count) {
            let own = x.slice(s![row - first..=row - first, ..]);
            let scaled = plan.scaling.as_ref().map_or(own.to_owned(), |scaling| scaling.apply(own));
            if scaled.row(0) != centres.row(*k) {
                return Err(others(format!("row {row} of the table")));
            }
        }
        first += count;
    }
    Ok(())
}

/// Chooses landmarks from the sample. Returns them with their row numbers in the table.
fn choose(rvm: &Rvm, survey: &Survey, kernel: &Kernel, sizes: &Sizes) -> (Array2<f64>, Vec<usize>) {
    let sample = survey.scaled();
    let pick = |dictionary| rvm.landmarks.pick(sample.view(), dictionary, kernel, rvm.seed);
    let mut chosen = pick(rvm.dictionary);
    if rvm.dictionary == Dictionary::Rule(DictionaryRule::Auto) && sizes.afford(chosen.len(), 0).is_err() {
        // In memory all rows would be candidates, since a working-set search stores no sums over all candidates.
        let fewer = rvm.dictionary.size(usize::MAX);
        say!("note: sums over {} need more than the memory limit, and {fewer} are taken", count(chosen.len(), "candidate"));
        chosen = pick(Dictionary::Size(fewer));
    }
    let rows = chosen.iter().map(|k| survey.number(*k)).collect();
    (sample.select(ndarray::Axis(0), &chosen), rows)
}

/// Inputs of the second pass.
struct Second<'a> {
    job: &'a Job<'a>,
    plan: &'a Plan,
    /// True if the first pass has read all rows.
    whole: bool,
    block_rows: usize,
    clock: &'a Clock,
}

/// Runs the second pass: adds the rows after the first `done` to `statistics`. Returns the number of rows in the sums:
/// all rows, or those that the time allowed, at least one block.
fn sum(second: &Second, mut done: usize, mut checkpoint: Option<Checkpoint>, statistics: &mut Statistics) -> Result<usize> {
    let Second { job, plan, whole, block_rows, clock } = *second;
    if done == plan.rows {
        return Ok(done);
    }
    let pool = relvec::thread_pool(job.rvm.threads)?;
    let mut rows = TrainingRows::open(job.path, job.roles)?;
    let d = rows.features().len();
    let pass = Pass::new("second pass");
    let passed = rows.skip(done)?;
    if passed < done {
        check_rows(job.path, plan.rows, passed)?;
    }
    pass.begin(done);
    let mut block = rows.block();
    while rows.read(&mut block, block_rows)? {
        let x = ArrayView2::from_shape((block.target.len(), d), &block.x)?;
        let scaled = plan.scaling.as_ref().map(|s| s.apply(x));
        add(&pool, statistics, scaled.as_ref().map_or(x, |s| s.view()), &block)?;
        done += block.target.len();
        if done > plan.rows {
            break;
        }
        let cut = clock.is_over() && (done < plan.rows || !whole);
        if let Some(checkpoint) = &mut checkpoint {
            checkpoint.update(done, statistics, cut)?;
        }
        if cut {
            return Ok(done);
        }
        pass.at(done, rows.table().share());
    }
    check_rows(job.path, plan.rows, done)?;
    Ok(done)
}

/// Adds a block of rows to the sums.
fn add(pool: &rayon::ThreadPool, statistics: &mut Statistics, x: ArrayView2<f64>, block: &Block) -> Result<()> {
    let t: ndarray::Array1<f64> = block.target.numbers().collect();
    pool.install(|| statistics.update(x, &block.with_rest(Targets::real(t.view()))))?;
    Ok(())
}

/// Returns marks that identify the table, whatever its name.
fn data_marks(job: &Job, source: &Source, rows: &TrainingRows) -> Result<Marks> {
    let pairs = [
        ("bytes", json!(source.bytes)),
        ("rows", json!(rows.table().count())),
        ("columns", json!(rows.table().columns())),
        (CONTENTS, json!(source.checksum(job.path)?)),
    ];
    Ok(pairs.map(|(name, value)| (name.to_string(), value)).to_vec())
}

/// Returns marks of all parameters that affect the sums.
fn parameter_marks(job: &Job, rows: &TrainingRows, block_rows: usize) -> Result<Marks> {
    let rvm = job.rvm;
    let mut pairs = vec![
        ("target", json!(rows.target())),
        ("weights", json!(job.roles.weights)),
        ("features", json!(rows.features())),
        ("standardize", json!(job.standardize)),
        ("kernel", serde_json::to_value(&rvm.kernel)?),
    ];
    if !rvm.kernels.is_empty() {
        pairs.push(("kernels", serde_json::to_value(&rvm.kernels)?));
    }
    if let Some((known, name)) = job.roles.known {
        pairs.push((known.name(), json!(name)));
    }
    if let Some(encoding) = job.roles.encoding {
        pairs.push(("encoding", serde_json::to_value(encoding)?));
    }
    match job.centres {
        Some(centres) => {
            let bytes: Vec<u8> = centres.iter().flat_map(|v| v.to_le_bytes()).collect();
            pairs.push(("landmarks", json!(format!("{} given, checksum {}", centres.nrows(), crc32fast::hash(&bytes)))));
            if rvm.learns_kernel() {
                pairs.push(("seed", json!(rvm.seed)));
            }
        }
        None => pairs.extend([
            ("landmarks", serde_json::to_value(&rvm.landmarks)?),
            ("dictionary", serde_json::to_value(rvm.dictionary)?),
            ("seed", json!(rvm.seed)),
        ]),
    }
    pairs.push(("rows of a block", json!(block_rows)));
    Ok(pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
}

/// True if the dictionary is a set of landmarks, which sums need, and not all rows.
pub(crate) fn has_landmarks(dictionary: Dictionary, given: bool) -> bool {
    given || !matches!(dictionary, Dictionary::Rule(DictionaryRule::All))
}
