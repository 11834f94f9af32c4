//! A fit to a table that need not fit into memory: a first pass surveys the rows and chooses landmarks, a
//! second one sums what the landmarks see of each row, and the sums say all that the fit has to know.

mod checkpoint;
mod memory;
mod moments;
mod sample;
mod source;
mod survey;

use std::path::Path;

use anyhow::{Context, Result};
use ndarray::{Array2, ArrayView1, ArrayView2};
use relvec::{
    Centres, Dictionary, DictionaryRule, Error, Kernel, Landmarks, Model, Progress, Report, Rvm, Scaling, Statistics, Targets,
};
use serde_json::json;

use self::checkpoint::{Checkpoint, Head, Marks, Plan};
use self::source::{Source, check_rows};
use self::survey::{Found, Survey};
use crate::args::Task;
use crate::progress::{Pass, Reporter};
use crate::training::{Block, Roles, TrainingRows};

/// Landmarks are sought among so many rows, or twice their number if that is more.
const SAMPLE: usize = 20_000;
/// Rows of positive weight that a fit needs.
const LEAST_ROWS: usize = 2;

/// What is to be learnt from which file.
pub(crate) struct Job<'a> {
    pub path: &'a Path,
    pub roles: Roles<'a>,
    pub rvm: &'a Rvm,
    /// Settled by the arguments, or to be seen by the target.
    pub task: Option<Task>,
    pub standardize: bool,
    /// Given landmarks, [L, D], in the units of the table.
    pub centres: Option<&'a Array2<f64>>,
    pub checkpoint: Option<&'a Path>,
}

/// How a fit in blocks ends.
pub(crate) enum Outcome {
    Fitted(Box<(Model, Report)>),
    /// Sums say nothing of classes. The reason why these are some.
    Classes(&'static str),
}

/// Whether a table of about `rows` rows is too large for a fit in memory: it would take more than half of
/// the memory limit.
pub(crate) fn is_large(rows: Option<f64>, columns: usize, rvm: &Rvm) -> bool {
    rows.is_some_and(|rows| memory::in_memory(rows, columns) > 0.5 * rvm.memory_allowed() as f64)
}

/// An error if a table of `rows` rows leaves no room for a fit in memory.
pub(crate) fn afford_in_memory(rows: f64, columns: usize, rvm: &Rvm) -> Result<(), Error> {
    let (needed, limit) = (memory::in_memory(rows, columns) as u64, rvm.memory_allowed());
    if needed > limit { Err(Error::Memory { what: "the table in memory".into(), needed, limit }) } else { Ok(()) }
}

/// The fit. Rows are read in blocks, twice.
pub(crate) fn fit(job: &Job) -> Result<Outcome> {
    let source = Source::of(job.path)?;
    let rows = TrainingRows::open(job.path, job.roles)?;
    let (limit, columns) = (job.rvm.memory_allowed(), rows.features().len() + 2);
    let block_rows = memory::block_rows(columns, limit);
    let features = rows.features().to_vec();
    let sample = sample_size(job, rows.table().count());
    memory::afford(columns, sample, least_landmarks(job, rows.table().count()), limit)?;

    let data = job.checkpoint.map(|_| data_marks(job, &source, &rows)).transpose()?.unwrap_or_default();
    let parameters = parameter_marks(job, &rows, block_rows)?;
    let saved = match job.checkpoint {
        Some(path) => Checkpoint::read(path, &data, &parameters)?,
        None => None,
    };
    let (head, mut statistics) = match saved {
        Some((head, statistics)) => {
            eprintln!("note: going on after row {} of {}", head.done, head.plan.rows);
            (head, statistics)
        }
        None => match Survey::take(rows, job.task, sample, job.rvm, block_rows)? {
            Found::Classes(reason) => return Ok(Outcome::Classes(reason)),
            Found::Values(survey) => {
                source.check(job.path)?;
                let (plan, statistics) = settle(job, &survey)?;
                (Head { data, parameters, plan, done: 0 }, statistics)
            }
        },
    };
    memory::afford(columns, sample, statistics.centres().nrows(), limit)?;
    let plan = head.plan.clone();
    let passed = sum(job, &plan, head, &mut statistics, block_rows);
    // Whatever went wrong: if the file is another one by now, that is why.
    source.check(job.path)?;
    passed?;

    let mut reporter = Reporter::of(&job.rvm.inference);
    let observer = &mut |progress: &Progress| reporter.observe(progress);
    let (mut model, mut report) = job.rvm.fit_statistics(&statistics, observer)?;
    model.relevance = model.relevance.iter().map(|k| plan.landmarks[*k]).collect();
    report.repairs.constant_features = plan.constant;
    if job.rvm.keep_statistics {
        model.statistics = Some(statistics.kept(plan.landmarks));
    }
    model.n_rows = plan.rows;
    model.scaling = plan.scaling;
    model.features = features;
    Ok(Outcome::Fitted(Box::new((model, report))))
}

/// Rows to choose landmarks from.
fn sample_size(job: &Job, rows: Option<usize>) -> usize {
    let most = match job.rvm.dictionary {
        _ if job.centres.is_some() || matches!(job.rvm.landmarks, Landmarks::Given(_)) => 0,
        Dictionary::Size(size) => SAMPLE.max(size.saturating_mul(2)),
        Dictionary::Rule(_) => SAMPLE,
    };
    rows.map_or(most, |rows| most.min(rows))
}

/// Landmarks that there are for sure, before the table has been read.
fn least_landmarks(job: &Job, rows: Option<usize>) -> usize {
    match (job.centres, job.rvm.dictionary) {
        (Some(_), _) => 1,
        // Equal rows are one landmark, but who asks for so many has them.
        (None, Dictionary::Size(size)) => size.min(rows.unwrap_or(size)),
        (None, Dictionary::Rule(_)) => 1,
    }
}

/// What the second pass sums, and the plan that goes with it.
fn settle(job: &Job, survey: &Survey) -> Result<(Plan, Statistics)> {
    let rvm = job.rvm;
    if survey.used < LEAST_ROWS {
        return Err(Error::TooFewRows { found: survey.used, least: LEAST_ROWS }.into());
    }
    if let Some(reason) = survey.reason {
        eprintln!("note: task regress, since the target `{}` {reason} (--task decides otherwise)", job.roles.target);
    }
    let scaling = job.standardize.then(|| survey.moments.scaling());
    let kernel = rvm.kernel.resolve(&survey.moments.data_scale(scaling.as_ref()))?;
    let (centres, landmarks) = match given(job, scaling.as_ref()) {
        Some(centres) => {
            let (different, places) = centres.distinct(survey.sample.1.ncols())?;
            let first = |k: usize| places.iter().position(|place| *place == k).expect("each is there once");
            let firsts = (0..different.nrows()).map(first).collect();
            (different, firsts)
        }
        None => choose(rvm, survey, scaling.as_ref(), &kernel),
    };
    let constant = survey.moments.constant();
    let statistics = Statistics::new(&kernel, centres.view())?;
    Ok((Plan { rows: survey.rows, scaling, constant, landmarks }, statistics))
}

/// Given landmarks in the units of the kernel.
fn given(job: &Job, scaling: Option<&Scaling>) -> Option<Centres> {
    match (job.centres, &job.rvm.landmarks) {
        (Some(centres), _) => Some(Centres(scaling.map_or_else(|| centres.clone(), |s| s.apply(centres.view())))),
        (None, Landmarks::Given(centres)) => Some(centres.clone()),
        (None, _) => None,
    }
}

/// Landmarks from the sample, and their rows in the table.
fn choose(rvm: &Rvm, survey: &Survey, scaling: Option<&Scaling>, kernel: &Kernel) -> (Array2<f64>, Vec<usize>) {
    let sample = survey.scaled(scaling);
    let chosen = rvm.landmarks.pick(sample.view(), rvm.dictionary, kernel, rvm.seed);
    let rows = chosen.iter().map(|k| survey.sample.0[*k]).collect();
    (sample.select(ndarray::Axis(0), &chosen), rows)
}

/// The second pass: adds the rows that `statistics` do not hold yet.
fn sum(job: &Job, plan: &Plan, head: Head, statistics: &mut Statistics, block_rows: usize) -> Result<()> {
    let mut done = head.done;
    let mut checkpoint = job.checkpoint.map(|path| Checkpoint::new(path, head));
    if done == plan.rows {
        return Ok(());
    }
    // 0 threads means one per processor.
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(job.rvm.threads.unwrap_or(0)).build().context("cannot start threads")?;
    let mut rows = TrainingRows::open(job.path, job.roles)?;
    let d = rows.features().len();
    let pass = Pass::new("second pass");
    if !rows.skip(done)? {
        return check_rows(job.path, plan.rows, rows.table().row());
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
        if let Some(checkpoint) = &mut checkpoint {
            checkpoint.update(done, statistics)?;
        }
        pass.at(done, rows.table().share());
    }
    check_rows(job.path, plan.rows, done)
}

/// Adds one block.
fn add(pool: &rayon::ThreadPool, statistics: &mut Statistics, x: ArrayView2<f64>, block: &Block) -> Result<()> {
    let t: ndarray::Array1<f64> = block.target.numbers().collect();
    let targets = Targets::real(t.view());
    let targets = block.weights.as_ref().map_or(targets, |w| targets.with_weights(ArrayView1::from(w)));
    let targets = block.known.as_ref().map_or(targets, |(known, values)| known.with(targets, ArrayView1::from(values)));
    pool.install(|| statistics.update(x, &targets))?;
    Ok(())
}

/// What tells this table from others, wherever it lies.
fn data_marks(job: &Job, source: &Source, rows: &TrainingRows) -> Result<Marks> {
    let pairs = [
        ("bytes", json!(source.bytes)),
        ("rows", json!(rows.table().count())),
        ("columns", json!(rows.table().columns())),
        ("checksum of its ends", json!(source.ends(job.path)?)),
    ];
    Ok(pairs.map(|(name, value)| (name.to_string(), value)).to_vec())
}

/// Everything that the sums depend on beside the table.
fn parameter_marks(job: &Job, rows: &TrainingRows, block_rows: usize) -> Result<Marks> {
    let rvm = job.rvm;
    let mut pairs = vec![
        ("target", json!(rows.target())),
        ("weights", json!(job.roles.weights)),
        ("features", json!(rows.features())),
        ("standardize", json!(job.standardize)),
        ("kernel", serde_json::to_value(&rvm.kernel)?),
    ];
    if let Some((known, name)) = job.roles.known {
        pairs.push((known.name(), json!(name)));
    }
    match job.centres {
        Some(centres) => {
            let bytes: Vec<u8> = centres.iter().flat_map(|v| v.to_le_bytes()).collect();
            pairs.push(("landmarks", json!(format!("{} given, checksum {}", centres.nrows(), crc32fast::hash(&bytes)))));
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

/// Whether the dictionary is one that sums can serve: landmarks, of however many rows.
pub(crate) fn has_landmarks(dictionary: Dictionary, given: bool) -> bool {
    given || !matches!(dictionary, Dictionary::Rule(DictionaryRule::All))
}
