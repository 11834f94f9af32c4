//! `relvec fit`: trains a model on a table and writes a model file.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use ndarray::{Array1, Array2, ArrayView1, Axis};
use relvec::{
    Adjustments, Centres, Dictionary, Encoding, Error, Inference, Interrupt, KernelTrial, Landmarks, Likelihood, Missing, Model,
    Probabilities, Progress, Report, Rvm, Scaling, SmallWeights, Status, SvmProgress, SvmReport, Targets, Validation, Variance,
};

use crate::args::{FitArgs, MachineKind, Task};
use crate::failure::{quoted, usage};
use crate::interpolation;
use crate::layout::Lines;
use crate::live::Live;
use crate::model_file;
use crate::output;
use crate::progress::Reporter;
use crate::settings::{self, Machine, Settings, SvmSettings};
use crate::stream::{self, Job, Outcome};
use crate::summary::{Seen, Summary};
use crate::target::{self, Learned};
use crate::terminal::{self, Stream};
use crate::text::{count, list, significant};
use crate::training::{self, Known, Roles, TrainingRows};

/// Most names in a warning.
const NAMES_SHOWN: usize = 10;
/// Least rows of positive weight for a fit.
const LEAST_ROWS: usize = 2;

/// Least rows per class on average without a warning. With fewer, the rarest classes have one or two rows.
const LEAST_ROWS_OF_CLASS: usize = 5;

/// Most training rows that are predicted for the report of errors. For more rows, a model with many relevance vectors
/// takes seconds.
const MOST_PREDICTED: usize = 20_000;

/// Reason why several targets exclude classification.
const APART: &str = "a classifier has one target";

/// A model, and what is known only of its fit.
struct Fitted {
    model: Model,
    seconds: f64,
    validation: Option<Validation>,
    seen: Seen,
}

pub(crate) fn run(args: &FitArgs) -> Result<()> {
    terminal::hold();
    if args.output.is_none() && !args.json {
        return Err(usage("--output MODEL.json says where to save the model (or -o); with --json alone the summary is printed"));
    }
    let roles = roles(args)?;
    let machine = settings::resolve(args)?;
    let centres = match &machine {
        Machine::Rvm(settings) => settings.centres.as_deref(),
        Machine::Svm(_) => None,
    };
    let inputs: Vec<&Path> = [args.data.as_path()].into_iter().chain(centres).collect();
    for (flag, path) in [("-o", args.output.as_deref()), ("--checkpoint", args.checkpoint.as_deref())] {
        output::apart(flag, path, &inputs)?;
        path.map_or(Ok(()), output::check)?;
    }
    if let (Some(path), true) = (&args.output, args.output == args.checkpoint) {
        return Err(usage(format!("-o {}: this is the file of --checkpoint; name another", path.display())));
    }

    if let Some(said) = settings::multi_class_said(args)
        && args.task.is_none()
        && args.likelihood.is_none()
    {
        terminal::explain(&format!("task classify, since {said} is for classes"));
    }
    let base = args.add_to.as_deref().or(args.init.as_deref()).map(model_file::read).transpose()?;
    let roles = Roles { encoding: base.as_ref().and_then(|model| model.encoding.as_ref()), ..roles };
    let rows = TrainingRows::open(&args.data, roles)?;
    let (target, single) = (rows.target().to_string(), rows.targets().is_empty());
    let Fitted { mut model, seconds, validation, seen } = match &machine {
        Machine::Rvm(settings) => rvm(args, roles, settings, rows, base.as_ref())?,
        Machine::Svm(settings) => svm(args, settings, rows)?,
    };
    warn_of_classes(&model, &target);
    model.target = single.then_some(target);

    if let Some(path) = &args.output {
        output::write(path, model.to_json()?.as_bytes())?;
    }
    let summary = Summary::of(&model, Some(seconds), validation.as_ref());
    tell(&summary, &model, &seen, args);
    if args.json {
        output::print(&(summary.to_json()? + "\n"))?;
    }
    Ok(())
}

/// Prints the report: the task, the model, the warnings and the file.
fn tell(summary: &Summary, model: &Model, seen: &Seen, args: &FitArgs) {
    let names = model.target.iter().chain(&model.targets).map(|name| terminal::name(name).into_owned()).collect::<Vec<_>>();
    let mut lines = Lines::new(Stream::Stderr);
    summary.describe(seen, &mut lines);
    let headline = terminal::headline(&summary.verdict(model, &names), Stream::Stderr);
    terminal::show(&format!("{headline}\n{}", lines.text));
    if terminal::is_held() {
        say!("");
    }
    terminal::release();
    if let Some(path) = &args.output {
        let path = path.display();
        let scored = match &model.likelihood {
            Some(Likelihood::Gaussian(_) | Likelihood::StudentT(_)) => {
                model.target.is_some() && model.noise_variance() != Some(0.0)
            }
            _ => true,
        };
        let (command, table) = if scored { ("score", "TEST.csv") } else { ("predict", "NEW.csv") };
        let known = [("--noise-variance", &args.noise_variance), ("--exposure", &args.exposure)];
        let known: String =
            known.iter().filter_map(|(option, name)| Some(format!(" {option} {}", quoted(name.as_ref()?)))).collect();
        terminal::show(&terminal::escaped(&format!("\nSaved {path}. Next:\n  relvec {command} {path} {table}{known}\n")));
    }
}

/// Fits a relevance vector machine, in memory or in blocks of the table.
///
/// `base`: the model that rows are added to, or from which the search starts.
fn rvm(args: &FitArgs, roles: Roles, settings: &Settings, rows: TrainingRows, base: Option<&Model>) -> Result<Fitted> {
    if let (Some(path), Some(base)) = (&args.add_to, base) {
        let (model, report) = grown(args, path, base, settings, rows)?;
        warn(&model, &report, settings, true);
        return Ok(Fitted { model, seconds: report.seconds, validation: None, seen: Seen::default() });
    }
    let centres =
        settings.centres.as_deref().map(|path| training::landmarks(path, rows.features(), &args.reading)).transpose()?;
    let forced = args.stream || args.checkpoint.is_some();
    let streamed = forced || large(&rows, settings);
    let fitted = if streamed { in_blocks(args, roles, settings, centres.as_ref(), forced)? } else { None };
    let (model, report, seen) = match fitted {
        Some((model, report)) => (model, report, Seen::default()),
        None if streamed => in_memory(args, settings, TrainingRows::open(&args.data, roles)?, centres, base)?,
        None => in_memory(args, settings, rows, centres, base)?,
    };
    warn(&model, &report, settings, streamed);
    Ok(Fitted { model, seconds: report.seconds, validation: report.validation, seen })
}

/// Adds the rows of the table to a model.
fn grown(args: &FitArgs, path: &Path, model: &Model, settings: &Settings, rows: TrainingRows) -> Result<(Model, Report)> {
    if settings.task == Some(Task::Classify) || model.kernel().is_none() {
        return Err(usage(format!("--add-to {}: rows can be added only to a regression model with a kernel", path.display())));
    }
    let target = rows.target().to_string();
    if model.target.as_ref().is_some_and(|own| *own != target) {
        let own = model.target.as_deref().unwrap_or_default();
        return Err(usage(format!("--target {target}: the target of the model `{}` is `{own}`", path.display())));
    }
    let name = || format!("`{}`", args.data.display());
    let reading = Live::new("reading the table");
    let table = rows.collect(settings.rvm.memory_allowed(), false)?;
    drop(reading);
    let order = places(model, &table.features, path).with_context(name)?;
    check_encoding(table.encoding.as_ref(), "--add-to", path)?;
    let x = table.x.select(Axis(1), &order);
    let Learned::Real(values) = table.target.learn(Task::Regress).with_context(name)? else {
        return Err(usage("--add-to is for regression"));
    };
    let targets = Targets::real(values.view());
    let targets = table.weights.as_ref().map_or(targets, |w| targets.with_weights(w.view()));
    let targets = table.known.as_ref().map_or(targets, |(known, values)| known.with(targets, values.view()));
    let mut rvm = settings.rvm.clone();
    rvm.kernel = model.kernel().cloned().unwrap_or(rvm.kernel);
    let mut reporter = Reporter::of(&rvm.inference);
    let fitted = rvm
        .fit_more_with(model, x.view(), &targets, &mut |p: &Progress| reporter.observe(p), &Interrupt::default())
        .map_err(|e| match e {
            Error::Statistics(why) => anyhow!("model `{}`: {why} (--keep-statistics)", path.display()),
            other => other.into(),
        })?;
    drop(reporter);
    say!("note: {} added to {}", count(x.nrows(), "row"), model.n_rows);
    let (grown, report) = fitted;
    Ok((Model { encoding: model.encoding.clone(), ..grown }, report))
}

/// Returns an error if the columns of the table need an encoding. The model given by `flag` has none.
fn check_encoding(encoding: Option<&Encoding>, flag: &str, path: &Path) -> Result<()> {
    match encoding {
        Some(encoding) if encoding.missing != Some(Missing::Drop) => {
            bail!(
                "{flag} {}: this model has no categories and no means for missing cells; train it again with --missing",
                path.display()
            )
        }
        _ => Ok(()),
    }
}

/// Returns the position of each feature of the model among the features of the table.
fn places(model: &Model, features: &[String], path: &Path) -> Result<Vec<usize>> {
    if model.features.is_empty() && features.len() == model.n_features {
        return Ok((0..features.len()).collect());
    }
    let there: HashMap<&String, usize> = features.iter().zip(0..).collect();
    let known: HashSet<&String> = model.features.iter().collect();
    let missing: Vec<&String> = model.features.iter().filter(|name| !there.contains_key(name)).collect();
    let more: Vec<&String> = features.iter().filter(|name| !known.contains(name)).collect();
    if !missing.is_empty() || !more.is_empty() {
        bail!(
            "the features differ from the features of the model `{}`: missing {}; unknown to it (--drop leaves columns out) {}",
            path.display(),
            if missing.is_empty() { "none".into() } else { list(&missing, NAMES_SHOWN) },
            if more.is_empty() { "none".into() } else { list(&more, NAMES_SHOWN) },
        );
    }
    Ok(model.features.iter().filter_map(|name| there.get(name).copied()).collect())
}

/// Fits a support vector machine.
fn svm(args: &FitArgs, settings: &SvmSettings, rows: TrainingRows) -> Result<Fitted> {
    let prepared = Prepared::new(args, settings.task(), rows, Rvm::default().memory_allowed())?;
    let task = prepared.learned.task();
    let named = settings::resolve_svm(args, Some(&prepared.features))?;
    let Some(svm) = named.machine(task) else {
        // A setting excluded this task before the target was read.
        return Err(usage(format!("--task {}: a setting or --formulation belongs to the other task", task.name())));
    };
    let mut reporter = Reporter::new();
    let (model, report) =
        svm.fit_with(prepared.x.view(), &prepared.targets(), &mut |p: &SvmProgress| reporter.observe(p), &Interrupt::default())?;
    drop(reporter);
    terminal::hold();
    report.small_weights.iter().for_each(warn_of_small_weights);
    warn_of_probabilities(&report);
    let name = svm.kernel.name();
    if name == "sigmoid" || name == "linear_spline" && prepared.x.iter().any(|v| *v < 0.0) {
        say!("warning: the kernel {name} is not positive definite on these rows: this may be a local optimum; try --kernel rbf");
    }
    match report.status {
        Status::Converged => {}
        Status::IterationLimit => {
            let more = report.functions.iter().map(|f| f.iterations).max().unwrap_or(1).saturating_mul(10);
            say!("warning: not converged; --set max_iterations={more} allows more");
        }
        Status::TimeLimit => say!("warning: not converged: time limit; --time-limit allows more"),
        status => {
            let status = status.name().replace('_', " ");
            say!("warning: not converged: {status}; try another --kernel, or features of a similar scale (no --no-standardize)");
        }
    }
    if report.functions.iter().any(|f| f.no_margin) {
        say!(
            "warning: nu is so small that the margin is zero, since the classes overlap: raise --set formulation.nu, or use a \
             kernel that separates more (larger --gamma)"
        );
    }
    if report.merged_rows > 0 {
        say!("note: {} merged; results do not change", count(report.merged_rows, "duplicate row"));
    }
    let seen = prepared.seen(&model)?;
    Ok(Fitted { model: prepared.complete(model), seconds: report.seconds, validation: None, seen })
}

/// True if the table is too large for memory and a fit in blocks is possible.
fn large(rows: &TrainingRows, settings: &Settings) -> bool {
    let Settings { rvm, task, centres } = settings;
    let suits = match task {
        Some(Task::Classify) => settings::suits_classes(rvm),
        // If the target decides the task, the likelihood is Gaussian.
        _ => !rvm.likelihood.is_for_classes(),
    };
    suits
        && rows.targets().is_empty()
        && stream::has_landmarks(rvm.dictionary, centres.is_some())
        && !settings::needs_rows(rvm)
        && stream::is_large(rows.table().about(), rows.features().len(), rvm)
}

/// Fits with the table in blocks. Returns `None` if the classes need a fit in memory and there is room for it.
fn in_blocks(
    args: &FitArgs,
    roles: Roles,
    settings: &Settings,
    centres: Option<&Array2<f64>>,
    forced: bool,
) -> Result<Option<(Model, Report)>> {
    if !forced {
        say!("note: the table is too large for the memory limit and is read in blocks, twice (as with --stream)");
    }
    let job = Job {
        path: &args.data,
        roles,
        rvm: &settings.rvm,
        named: &|features| Ok(settings::resolve_rvm(args, Some(features))?.rvm),
        task: settings.task,
        standardize: args.standardizes(),
        centres,
        checkpoint: args.checkpoint.as_deref(),
    };
    let reason = match stream::fit(&job)? {
        Outcome::Fitted(fitted) => return Ok(Some(*fitted)),
        Outcome::Classes(reason) => reason,
    };
    let problem = || {
        format!(
            "`{}`: the target `{}` {reason}, and classes are learned from a table in blocks without --checkpoint, with another \
             --inference than variational, and with --multi-class auto or joint (auto or one_vs_rest with --weight-prior ard); else the table is held in memory (--set \
             memory_limit=BYTES allows more of it). Or say --task regress if these are values",
            args.data.display(),
            args.targets[0]
        )
    };
    if forced {
        return Err(anyhow!(problem()));
    }
    let rows = TrainingRows::open(&args.data, roles)?;
    let about = rows.table().about().unwrap_or(0.0);
    stream::afford_in_memory(about, rows.features().len(), &settings.rvm).with_context(problem)?;
    say!("note: the target {reason}, so the table is held in memory");
    Ok(None)
}

/// Fits with the table in memory.
fn in_memory(
    args: &FitArgs,
    settings: &Settings,
    rows: TrainingRows,
    centres: Option<Array2<f64>>,
    base: Option<&Model>,
) -> Result<(Model, Report, Seen)> {
    let mut prepared = Prepared::new(args, settings.task, rows, settings.rvm.memory_allowed())?;
    let mut rvm = settings::resolve_rvm(args, Some(&prepared.features))?.rvm;
    if settings.task.is_none() {
        rvm.likelihood = settings::likelihood(prepared.learned.task());
    }
    if let Some(centres) = centres {
        settings::check_landmarks(prepared.encoding.as_ref())?;
        rvm.landmarks = Landmarks::Given(Centres(prepared.scaling.as_ref().map_or(centres.clone(), |s| s.apply(centres.view()))));
    }
    if let (Some(path), Some(model)) = (&args.init, base) {
        check_encoding(prepared.encoding.as_ref(), "--init", path)?;
        prepared.encoding.clone_from(&model.encoding);
        let order = places(model, &prepared.features, path).with_context(|| format!("`{}`", args.data.display()))?;
        if !order.is_sorted() {
            bail!("`{}`: the order of the features differs from that of the model `{}`", args.data.display(), path.display());
        }
        let said = |e| anyhow!("--init {}: {e}", path.display());
        rvm = rvm.starting_from(model).map_err(|e: Error| usage(said(e).to_string()))?;
    }
    let mut reporter = Reporter::of(&rvm.inference);
    let fitted =
        rvm.fit_with(prepared.x.view(), &prepared.targets(), &mut |p: &Progress| reporter.observe(p), &Interrupt::default());
    drop(reporter);
    let (model, report) = fitted.map_err(|e| match e {
        // The library does not know the names of the table and the target.
        Error::Targets(_) | Error::Count { .. } => {
            anyhow!("`{}`, target `{}`: {e} (rows are counted from 0)", args.data.display(), args.targets.join("`, `"))
        }
        other => other.into(),
    })?;
    let seen = prepared.seen(&model)?;
    Ok((prepared.complete(model), report, seen))
}

/// One target, or several.
enum Taught {
    One(Learned),
    /// [N, K].
    Several(Array2<f64>),
}

impl Taught {
    fn task(&self) -> Task {
        match self {
            Taught::One(learned) => learned.task(),
            Taught::Several(_) => Task::Regress,
        }
    }
}

/// A table in memory, prepared for a fit.
struct Prepared {
    /// Features, scaled if requested, [N, D].
    x: Array2<f64>,
    learned: Taught,
    weights: Option<Array1<f64>>,
    known: Option<(Known, Array1<f64>)>,
    scaling: Option<Scaling>,
    features: Vec<String>,
    encoding: Option<Encoding>,
    /// Names of the targets if there are several.
    targets: Vec<String>,
}

impl Prepared {
    /// Reads the rows, which may take at most `limit` bytes. Without a `task` the target decides, and a note says so.
    fn new(args: &FitArgs, task: Option<Task>, rows: TrainingRows, limit: u64) -> Result<Prepared> {
        let targets = rows.targets();
        let reading = Live::new("reading the table");
        let table = rows.collect(limit, false)?;
        drop(reading);
        let name = || format!("`{}`", args.data.display());
        check_rows(table.x.nrows(), table.weights.as_ref().map(|w| w.view())).with_context(name)?;
        let learned = if table.further.is_empty() {
            let task = table.target.settle(task).with_context(name)?;
            Taught::One(table.target.learn(task).with_context(name)?)
        } else {
            Taught::Several(target::outputs([table.target].into_iter().chain(table.further).collect()).with_context(name)?)
        };
        let (weights, known) = (table.weights, table.known);
        let (features, encoding) = (table.features, table.encoding);
        let scaling = args.standardizes().then(|| Scaling::of(table.x.view(), weights.as_ref().and_then(|w| w.as_slice())));
        let x = scaling.as_ref().map(|s| s.apply(table.x.view())).unwrap_or(table.x);
        Ok(Prepared { x, learned, weights, known, scaling, features, encoding, targets })
    }

    fn targets(&self) -> Targets<'_> {
        let targets = match &self.learned {
            Taught::One(Learned::Real(values)) => Targets::real(values.view()),
            Taught::One(Learned::Classes { labels, names }) => Targets::classes(labels, names.len()),
            Taught::Several(values) => Targets::outputs(values.view()),
        };
        let targets = self.weights.as_ref().map_or(targets, |w| targets.with_weights(w.view()));
        self.known.as_ref().map_or(targets, |(known, values)| known.with(targets, values.view()))
    }

    /// Returns measures of the training rows for the report. `model` has no names and no scaling yet.
    fn seen(&self, model: &Model) -> Result<Seen> {
        let Taught::One(learned) = &self.learned else { return Ok(Seen::default()) };
        match learned {
            // With weights the plain standard deviation of the target is not comparable with the noise.
            Learned::Real(values) if self.weights.is_none() => Ok(Seen { spread: Some(values.std(0.0)), errors: None }),
            Learned::Classes { labels, names } if labels.len() <= MOST_PREDICTED => {
                let _live = Live::new("predicting the training rows");
                let predicted = model.predict_class(self.x.view())?;
                let wrong = predicted.iter().zip(labels).filter(|(own, true_class)| own != true_class).count();
                let sizes = (0..names.len()).map(|k| labels.iter().filter(|label| **label == k).count());
                Ok(Seen { spread: None, errors: Some((wrong, labels.len() - sizes.max().unwrap_or(0))) })
            }
            _ => Ok(Seen::default()),
        }
    }

    /// Returns the model with the names and the scaling of the table.
    fn complete(self, model: Model) -> Model {
        let classes = match self.learned {
            Taught::One(Learned::Classes { names, .. }) => names,
            _ => vec![],
        };
        let Prepared { scaling, features, encoding, targets, .. } = self;
        Model { scaling, features, encoding, targets, classes, ..model }
    }
}

/// Returns the roles of the columns. A column has at most one role.
fn roles(args: &FitArgs) -> Result<Roles<'_>> {
    if let Some(target) = args.targets.iter().find(|target| args.drop.contains(target)) {
        return Err(usage(format!("--drop {target}: this is the target")));
    }
    if args.targets.len() > 1 {
        let refused = [
            ("--task classify", args.task == Some(Task::Classify), APART),
            ("--machine svm", args.machine == MachineKind::Svm, "a support vector machine has one"),
            ("--add-to", args.add_to.is_some(), "sums are kept for one"),
            ("--keep-statistics", args.keep_statistics, "sums are kept for one"),
            ("--stream", args.stream, "a table is read in blocks for one"),
            ("--checkpoint", args.checkpoint.is_some(), "a table is read in blocks for one"),
        ];
        if let Some((flag, _, why)) = refused.iter().find(|(_, given, _)| *given) {
            return Err(usage(format!("{flag} with {} targets: {why}", args.targets.len())));
        }
        if let Some(said) = settings::multi_class_said(args) {
            return Err(usage(format!("{said} with {} targets: {APART}", args.targets.len())));
        }
    }
    if let Some(weights) = &args.weights {
        if args.targets.contains(weights) {
            return Err(usage(format!("--weights {weights}: this is the target")));
        }
        if args.drop.contains(weights) {
            return Err(usage(format!("--drop {weights}: this is the column of weights")));
        }
    }
    let known = match (&args.noise_variance, &args.exposure) {
        (Some(name), _) => Some((Known::Noise, "--noise-variance", name)),
        (None, Some(name)) => Some((Known::Exposure, "--exposure", name)),
        (None, None) => None,
    };
    if let Some((_, flag, name)) = known {
        let other = args.targets.contains(name) || args.weights.as_ref() == Some(name) || args.drop.contains(name);
        if other {
            return Err(usage(format!("{flag} {name}: this column has another role")));
        }
    }
    let known = known.map(|(known, _, name)| (known, name.as_str()));
    let (target, further) = args.targets.split_first().ok_or_else(|| usage("--target NAME is needed"))?;
    // These options are for regression only.
    let values = args.calibrate
        || args.keep_rows.is_some()
        || args.keep_statistics
        || args.variance.as_deref() == Some(Variance::Healed.name())
        || args.checkpoint.is_some();
    if let Some(name) = args.categories.iter().find(|name| args.targets.contains(name)) {
        return Err(usage(format!(
            "--categories {name}: this is the target; --task classify reads its values as names of classes"
        )));
    }
    Ok(Roles {
        target,
        further,
        weights: args.weights.as_deref(),
        known,
        drop: &args.drop,
        values,
        reading: &args.reading,
        missing: args.missing,
        categories: &args.categories,
        encoding: None,
    })
}

/// Checks that enough rows have a positive weight, before any mean is computed.
fn check_rows(rows: usize, weights: Option<ArrayView1<f64>>) -> Result<()> {
    let found = weights.map_or(rows, |w| w.iter().filter(|w| **w > 0.0).count());
    if found < LEAST_ROWS {
        bail!("the table has {} of positive weight; a fit needs at least {LEAST_ROWS}", count(found, "row"));
    }
    Ok(())
}

/// Warns of weights that are too small to learn from.
fn warn_of_small_weights(small: &SmallWeights) {
    let SmallWeights { total, rows, .. } = small;
    let factor = significant(*rows as f64 / total, 4);
    say!(
        "warning: the weights of {} sum to {}. A weight of 1 counts as one row, so that this fit learns almost nothing; \
         multiply the weights by {factor}",
        count(*rows, "row"),
        significant(*total, 4)
    );
}

/// Warns of probabilities of a support vector classifier that are not based on held-out rows.
fn warn_of_probabilities(report: &SvmReport) {
    let of = |source| {
        let all = report.functions.len();
        let found = report.functions.iter().filter(|f| f.probabilities == Some(source)).count();
        let text = if all > 1 { format!("the probabilities of {found} of {all} functions") } else { "the probabilities".into() };
        (found > 0).then_some(text)
    };
    if let Some(which) = of(Probabilities::TrainingRows) {
        say!(
            "warning: too few rows to cross-validate {which}: this needs 5 rows of each class. They are computed from the \
             training rows and are rough; add rows of the small classes"
        );
    }
    if let Some(which) = of(Probabilities::ClassFrequencies) {
        say!(
            "warning: cross-validation does not separate the classes: {which} are class frequencies, which can contradict \
             the predicted class; try another --kernel, --gamma or --formulation"
        );
    }
}

/// Warns if there are too few rows per class.
fn warn_of_classes(model: &Model, target: &str) {
    let (classes, rows) = (model.classes.len(), model.n_rows);
    if LEAST_ROWS_OF_CLASS * classes > rows {
        say!(
            "warning: `{target}` has {classes} classes in {}: with fewer than {LEAST_ROWS_OF_CLASS} rows a class, predictions of new rows are little \
             more than guesses. If the target is a quantity, write it in numbers and say --task regress",
            count(rows, "row")
        );
    }
}

/// Returns the warning for a model that explains no more than a constant, with advice. `learned`: true if the kernel was
/// learned.
fn nothing_found(model: &Model, learned: bool) -> String {
    let found = match model.relevance.len() {
        0 => {
            let vector = if model.process.is_some() || model.labels.is_some() { "centre" } else { "relevance vector" };
            format!("no {vector} was selected; the model predicts a constant")
        }
        1 => "1 relevance vector explains no more than a constant does".to_string(),
        vectors => format!("{vectors} relevance vectors explain no more than a constant does"),
    };
    let outliers = match model.likelihood {
        Some(Likelihood::Gaussian(_)) => " If some targets may be outliers, try --likelihood student_t.",
        _ => "",
    };
    if learned {
        return format!(
            "{found}. The kernel was learned from the data: check that the features carry information, or add rows.{outliers}"
        );
    }
    let width = match model.kernel().is_some_and(|kernel| kernel.gamma().is_some()) {
        true => "use another kernel width (--gamma evidence learns it)",
        false => "use another kernel",
    };
    format!("{found}. Standardise the features, {width}, or check that the features carry information.{outliers}")
}

/// Prints warnings and notes on the data and on the end of the fit. They are held back until the first line of the
/// result.
fn warn(model: &Model, report: &Report, settings: &Settings, streamed: bool) {
    terminal::hold();
    warn_of_data(model, &report.adjustments, settings.rvm.time_limit);
    warn_of_end(model, report, &settings.rvm, streamed);
    note_candidates(model, report, settings, streamed);
    note_kernels(report, &settings.rvm);
    note_adjustments(&report.adjustments);
}

/// Warns of rows, features and targets that the fit could not use fully.
fn warn_of_data(model: &Model, adjustments: &Adjustments, time_limit: Option<f64>) {
    if !adjustments.constant_features.is_empty() {
        let names: Vec<&str> =
            adjustments.constant_features.iter().filter_map(|i| model.features.get(*i)).map(String::as_str).collect();
        let all = list(&names, NAMES_SHOWN);
        say!("warning: constant features have no effect: {all}. --drop leaves them out");
    }
    adjustments.small_weights.iter().for_each(warn_of_small_weights);
    if adjustments.constant_target {
        say!("warning: the target is constant, so the model predicts this constant; check --target");
    }
    if let Some(limit) = time_limit
        && adjustments.left_out_rows > 0
    {
        say!(
            "warning: time_limit = {limit} s is not enough for all rows: {} left out, at random. --time-limit allows more",
            count(adjustments.left_out_rows, "row")
        );
    }
    if !adjustments.constant_outputs.is_empty() && !adjustments.constant_target {
        let names: Vec<&str> =
            adjustments.constant_outputs.iter().filter_map(|k| model.targets.get(*k)).map(String::as_str).collect();
        say!("warning: constant targets: {}. The model predicts their constants; leave them out", list(&names, NAMES_SHOWN));
    }
}

/// Returns the warning for a model whose noise standard deviation is `times` that of the process, with advice.
fn missing_structure(times: f64, rvm: &Rvm) -> String {
    let advice = match &rvm.inference {
        _ if rvm.dictionary != Dictionary::default() => "Raise --dictionary.",
        Inference::Search(_) => "Use --weight-prior process, or --sparsity 0.",
        _ => "Use --inference search.",
    };
    format!(
        "the noise of the model is {} times that of the Gaussian process that learned the kernel: the model misses structure. \
         {advice}",
        significant(times, 3)
    )
}

/// Warns of a fit that ended early, or whose model may be useless.
fn warn_of_end(model: &Model, report: &Report, rvm: &Rvm, streamed: bool) {
    let adjustments = &report.adjustments;
    if let Some(times) = adjustments.residual_over_noise {
        say!(
            "warning: the given noise is too small to be reached: residuals are {} times it, and predicted standard deviations \
             are too small by about this factor; give a larger noise variance, or let the fit learn it",
            significant(times, 3)
        );
    }
    if let Some(times) = adjustments.noise_over_process {
        say!("warning: {}", missing_structure(times, rvm));
    }
    if report.nothing_found && !adjustments.constant_target {
        say!("warning: {}", nothing_found(model, report.kernel_search.is_some()));
    }
    if let Some(found) = &report.interpolation {
        say!("warning: {}", interpolation::warning(found, model, report, rvm, !streamed));
    } else if let Some(note) = interpolation::note(model, report).filter(|_| !streamed) {
        say!("note: {note}");
    }
    if adjustments.jitter > 0.0 {
        say!(
            "warning: nearly collinear basis functions: a jitter of {} was added, and single weights are not reliable; try a larger \
             --gamma, which makes the basis functions narrower",
            significant(adjustments.jitter, 2)
        );
    }
    match report.status {
        Status::Converged => {}
        Status::IterationLimit => say!(
            "warning: not converged after {}; the model is the best so far: --set max_iterations={} allows more",
            count(report.iterations, "iteration"),
            rvm.max_iterations.saturating_mul(10)
        ),
        Status::MemoryLimit => {
            let why = &report.certificate.reason;
            say!("warning: not converged: {why}; the model is the best so far. --memory-limit allows more");
        }
        Status::Singular => {
            let why = &report.certificate.reason;
            say!("warning: not converged: {why}; the model is the best so far. Another --kernel or a larger --gamma may help");
        }
        _ => {
            let why = &report.certificate.reason;
            say!("warning: not converged: {why}; the model is the best so far. --time-limit allows more");
        }
    }
}

/// Prints the numbers of centres and candidates if other numbers are possible.
fn note_candidates(model: &Model, report: &Report, settings: &Settings, streamed: bool) {
    let (rvm, adjustments) = (&settings.rvm, &report.adjustments);
    if let (Some(process), Some(prior)) = (&report.process, &model.process)
        && !process.reached
        && process.centres > 0
    {
        say!(
            "note: {} leave {} of the noise variance unexplained; more of them (--dictionary {}) leave less, in about four times the \
             time",
            count(process.centres, "centre"),
            significant(prior.residual, 2),
            2 * process.centres
        );
    }
    let given = settings.centres.is_some() || matches!(rvm.landmarks, Landmarks::Given(_));
    match rvm.dictionary {
        _ if given || adjustments.left_out_rows > 0 => {}
        Dictionary::Size(size) if size > model.n_rows => {
            say!("warning: --dictionary {size} is more than the number of rows; all {} rows are candidates", model.n_rows);
        }
        // The fit ended before candidates were chosen.
        _ if report.candidates == 0 => {}
        _ if report.candidates < model.n_rows - adjustments.merged_rows - adjustments.shared_columns => {
            let hint = if streamed { "" } else { " (--dictionary all takes every row)" };
            let (candidates, rows) = (report.candidates, model.n_rows);
            say!("note: {candidates} of {} are candidates for relevance vectors{hint}", count(rows, "row"));
        }
        _ => {}
    }
}

/// Prints notes on learned kernels and centres.
fn note_kernels(report: &Report, rvm: &Rvm) {
    if rvm.kernel.cannot_learn() {
        say!(
            "note: the kernel {} is not a covariance function, so its gamma is not learned but 1 / (features x variance) \
             (--gamma sets another value)",
            rvm.kernel.name()
        );
    }
    if let Some(search) = &report.kernel_search
        && search.tried.len() > 1
    {
        let degree = |t: &KernelTrial| t.degree.map_or(String::new(), |degree| format!(" of degree {degree}"));
        let tried = search.tried.iter().map(|t| format!("{}{} {}", t.kernel, degree(t), significant(t.log_evidence, 7)));
        say!("note: log evidence of the kernels tried: {}", tried.collect::<Vec<_>>().join(", "));
    }
    if let Some(search) = report.centre_search.as_ref().filter(|search| !search.kept) {
        say!(
            "note: the centres stay at training rows: learned centres reach a lower log evidence of {}",
            significant(search.learned_log_evidence, 7)
        );
    }
}

/// Prints notes on rows and columns that were left out without any effect.
fn note_adjustments(adjustments: &Adjustments) {
    if adjustments.merged_rows > 0 {
        say!("note: {} merged; results do not change", count(adjustments.merged_rows, "duplicate row"));
    }
    if adjustments.zero_columns > 0 {
        say!("note: {} left out, zero on every row", count(adjustments.zero_columns, "basis function"));
    }
}
