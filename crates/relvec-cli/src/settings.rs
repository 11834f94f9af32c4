//! Converts arguments to the parameters of a model. `--set PATH=VALUE` writes into the JSON of the library's own
//! struct, so that a new parameter there needs no new option here.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use relvec::{
    Bernoulli, CentreRule, Dictionary, DictionaryRule, Encoding, Formulation, Gamma, Gaussian, Inference, Kernel, Landmarks,
    Likelihood, MultiClass, Rvm, Svm, Variance, WeightPrior,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::args::{FitArgs, MachineKind, Preset, Task};
use crate::failure::usage;

/// The model that the arguments describe.
#[derive(Debug)]
pub(crate) enum Machine {
    Rvm(Box<Settings>),
    Svm(Box<SvmSettings>),
}

/// Parameters of a support vector machine for each possible task.
#[derive(Debug)]
pub(crate) struct SvmSettings {
    classify: Option<Svm>,
    regress: Option<Svm>,
}

impl SvmSettings {
    /// Returns the task if the arguments decide it.
    pub fn task(&self) -> Option<Task> {
        match (&self.classify, &self.regress) {
            (Some(_), None) => Some(Task::Classify),
            (None, Some(_)) => Some(Task::Regress),
            _ => None,
        }
    }

    /// Returns the parameters for a task, if it is possible.
    pub fn machine(&self, task: Task) -> Option<&Svm> {
        match task {
            Task::Classify => self.classify.as_ref(),
            Task::Regress => self.regress.as_ref(),
        }
    }
}

/// The parameters of a relevance vector machine.
#[derive(Debug)]
pub(crate) struct Settings {
    pub rvm: Rvm,
    /// The task, if the arguments decide it.
    pub task: Option<Task>,
    /// The table of landmarks, if one is given.
    pub centres: Option<PathBuf>,
}

/// Checks that points of a file can be landmarks: every column must be a feature as it is.
///
/// # Errors
/// A column holds categories or has an indicator.
pub(crate) fn check_landmarks(encoding: Option<&Encoding>) -> Result<()> {
    let mut columns = encoding.into_iter().flat_map(|encoding| &encoding.columns);
    match columns.find(|column| column.indicator || !column.categories.is_empty()) {
        Some(column) => Err(usage(format!(
            "--landmarks FILE cannot be combined with the column `{}`: the file contains features, but this column is encoded by \
             other features. --drop leaves it out",
            column.name
        ))),
        None => Ok(()),
    }
}

/// Returns the parameters that the arguments describe, with the task if they decide it. Names of features in kernels
/// stand for no columns yet.
///
/// Without `--task`, the likelihood is Gaussian until the target is read, unless a setting names another likelihood.
///
/// # Errors
/// Unknown names, or values of the wrong kind or out of range. The exit code is 2.
pub(crate) fn resolve(args: &FitArgs) -> Result<Machine> {
    match args.machine {
        MachineKind::Rvm => resolve_rvm(args, None).map(|settings| Machine::Rvm(Box::new(settings))),
        MachineKind::Svm => resolve_svm(args, None).map(|settings| Machine::Svm(Box::new(settings))),
    }
}

/// Returns the parameters of a relevance vector machine. `features`: the names of the features, `[D]`, once the table has
/// been read.
///
/// # Errors
/// Errors as those of [`resolve`], and a kernel that contains an unknown name.
pub(crate) fn resolve_rvm(args: &FitArgs, features: Option<&[String]>) -> Result<Settings> {
    for (flag, given) in [("--formulation", args.formulation.is_some()), ("--probability", args.probability)] {
        if given {
            return Err(usage(format!("{flag} is for --machine svm")));
        }
    }
    let task = task(args)?;
    let rule = Landmarks::from_name(&args.landmarks);
    let given = Path::new(&args.landmarks).is_file().then(|| PathBuf::from(&args.landmarks));
    let (landmarks, centres) = match (rule, given) {
        (Ok(rule), _) => (rule, None),
        (Err(_), Some(file)) => (Landmarks::default(), Some(file)),
        (Err(e), None) => return Err(usage(format!("--landmarks {}: {e}; and there is no such file", args.landmarks))),
    };
    let start = args.preset.map_or_else(Rvm::default, Preset::rvm);
    let (kernel, kernels) = kernels(args, &start.kernel, features)?;
    let weight_prior = args.weight_prior.as_deref().map(WeightPrior::from_name).transpose().map_err(|e| usage(e.to_string()))?;
    let variance = match args.variance.as_deref() {
        None => start.variance,
        Some("auto") => None,
        Some(name) => Some(Variance::from_name(name).map_err(|e| usage(e.to_string()))?),
    };
    let rvm = Rvm {
        kernel,
        kernels,
        centres: CentreRule::from_name(&args.centres).map_err(|e| usage(e.to_string()))?,
        inference: Inference::from_name(&args.inference).map_err(|e| usage(e.to_string()))?,
        likelihood: match &args.likelihood {
            Some(name) => Likelihood::from_name(name).map_err(|e| usage(e.to_string()))?,
            None => likelihood(task.unwrap_or(Task::Regress)),
        },
        multi_class: MultiClass::from_name(&args.multi_class).map_err(|e| usage(e.to_string()))?,
        dictionary: args.dictionary,
        landmarks,
        threads: args.threads,
        sparsity: args.sparsity.unwrap_or(start.sparsity),
        cv: args.cv,
        calibrate: args.calibrate,
        weight_prior: weight_prior.unwrap_or(start.weight_prior),
        residual: args.residual.or(start.residual),
        variance,
        keep_rows: args.keep_rows,
        keep_statistics: args.keep_statistics,
        time_limit: args.time_limit.or(start.time_limit),
        memory_limit: args.memory_limit.or(start.memory_limit),
        ..start
    };
    let rvm = args.set.iter().try_fold(rvm, |rvm, setting| apply(&rvm, setting))?;
    // Landmarks from a file are read later, and the target may decide the task. The check therefore leaves out both.
    let keep_statistics = rvm.keep_statistics && centres.is_none();
    let known = Rvm { keep_statistics, ..rvm.clone() };
    known.check().map_err(|e| usage(as_typed(args, e.to_string())))?;
    check_stream(args, &rvm, task, centres.is_some())?;
    Ok(Settings { rvm, task, centres })
}

/// Returns the parameters of a support vector machine. `features`: the names of the features, `[D]`, once the table has
/// been read.
///
/// # Errors
/// Errors as those of [`resolve`], and a kernel that contains an unknown name.
pub(crate) fn resolve_svm(args: &FitArgs, features: Option<&[String]>) -> Result<SvmSettings> {
    let elsewhere = [
        ("--likelihood", args.likelihood.is_some()),
        ("--noise-variance", args.noise_variance.is_some()),
        ("--exposure", args.exposure.is_some()),
        ("--inference", args.inference != Inference::NAMES[0]),
        ("--centres", args.centres != CentreRule::NAMES[0]),
        ("--dictionary", args.dictionary != Dictionary::default()),
        ("--landmarks", args.landmarks != Landmarks::NAMES[0]),
        ("--stream", args.stream),
        ("--checkpoint", args.checkpoint.is_some()),
        ("--preset", args.preset.is_some()),
        ("--sparsity", args.sparsity.is_some()),
        ("--cv", args.cv.is_some()),
        ("--calibrate", args.calibrate),
        ("--weight-prior", args.weight_prior.is_some()),
        ("--residual", args.residual.is_some()),
        ("--variance", args.variance.is_some()),
        ("--keep-rows", args.keep_rows.is_some()),
        ("--keep-statistics", args.keep_statistics),
        ("--memory-limit", args.memory_limit.is_some()),
    ];
    if let Some((flag, _)) = elsewhere.into_iter().find(|(_, given)| *given) {
        return Err(usage(format!(
            "{flag} is for --machine rvm: a support vector machine has no likelihood and no posterior, and learns from all rows \
             in memory"
        )));
    }
    let start = Svm::default();
    let (kernel, kernels) = kernels(args, &start.kernel, features)?;
    if !kernels.is_empty() {
        let names = args.kernel.join(",");
        return Err(usage(format!("--kernel {names}: a support vector machine has no evidence to choose a kernel by; name one")));
    }
    let svm = Svm {
        kernel,
        multi_class: MultiClass::from_name(&args.multi_class).map_err(|e| usage(e.to_string()))?,
        probability: args.probability,
        threads: args.threads,
        time_limit: args.time_limit.or(start.time_limit),
        ..start
    };
    let with = |name: &str| -> Result<Svm> {
        let own = Svm { formulation: Formulation::from_name(name).map_err(|e| usage(e.to_string()))?, ..svm.clone() };
        let own = args.set.iter().try_fold(own, |own, setting| apply(&own, setting))?;
        own.check().map_err(|e| usage(as_typed(args, e.to_string())))?;
        Ok(own)
    };
    // Without a formulation the target decides, or a setting that only one formulation has.
    let names = match &args.formulation {
        Some(name) if name.ends_with("svc") => [Some(name.as_str()), None],
        Some(name) => [None, Some(name.as_str())],
        None => [Some("c_svc"), Some("epsilon_svr")],
    };
    let asked = or_classes(args, args.task)?;
    let open = |task| asked.is_none_or(|asked| asked == task);
    let [classify, regress] =
        [(Task::Classify, names[0]), (Task::Regress, names[1])].map(|(task, name)| name.filter(|_| open(task)).map(with));
    match (classify, regress) {
        (None, None) => {
            let (name, task) = (args.formulation.as_deref().unwrap_or_default(), asked.map_or("", Task::name));
            Err(usage(format!("--formulation {name} cannot be combined with --task {task}")))
        }
        (Some(Err(e)), None) | (None, Some(Err(e))) => Err(e),
        (Some(Err(e)), Some(Err(other))) if e.to_string() == other.to_string() => Err(e),
        (Some(Err(e)), Some(Err(other))) => Err(usage(format!("{e}; and to learn values: {other}"))),
        (classify, regress) => Ok(SvmSettings { classify: classify.and_then(Result::ok), regress: regress.and_then(Result::ok) }),
    }
}

/// Returns the kernel, or several to choose among. Their gamma is that of `start` unless it is given.
fn kernels(args: &FitArgs, start: &Kernel, features: Option<&[String]>) -> Result<(Kernel, Vec<Kernel>)> {
    let given = args.gamma.as_deref().map(gamma).transpose()?;
    let gamma = given.as_ref().or(start.gamma()).cloned().unwrap_or_default();
    let names: Vec<&str> = args.kernels().collect();
    let all = match names.as_slice() {
        ["auto"] => Kernel::candidates(&gamma),
        names if names.contains(&"auto") => {
            return Err(usage(format!(
                "--kernel {}: auto already stands for several kernels; name either auto or kernels",
                names.join(",")
            )));
        }
        texts => {
            let wrong = |e: relvec::Error| usage(as_typed(args, e.to_string()));
            texts.iter().map(|text| kernel(text, &args.data, &gamma, features, wrong)).collect::<Result<Vec<_>>>()?
        }
    };
    if given.is_some() && all.iter().all(|kernel| kernel.gamma().is_none() && kernel.as_sum().is_none()) {
        let (names, gamma) = (args.kernel.join(","), args.gamma.as_deref().unwrap_or_default());
        return Err(usage(format!("--gamma {gamma}: the kernel {names} has no gamma, nor other parameters to learn")));
    }
    if all.len() > 1
        && let Some(setting) = args.set.iter().find(|s| s.trim_start().starts_with("kernel."))
    {
        return Err(usage(format!("--set {setting}: for several kernels use --gamma, or --set kernels=[...] as in JSON")));
    }
    Ok(match all.as_slice() {
        [one] => (one.clone(), vec![]),
        _ => (all[0].clone(), all),
    })
}

/// Reads a kernel for the table `data`. Before the table has been read, every name is the name of a feature. `wrong`
/// makes the error of an expression that cannot be read.
pub(crate) fn kernel(
    text: &str,
    data: &Path,
    gamma: &Gamma,
    features: Option<&[String]>,
    wrong: impl Fn(relvec::Error) -> anyhow::Error + Copy,
) -> Result<Kernel> {
    let names = Kernel::names(text).map_err(wrong)?;
    let Some(features) = features else { return Kernel::parse_named(text, gamma, &names).map_err(wrong) };
    let kernel = Kernel::parse_named(text, gamma, features).with_context(|| format!("`{}`", data.display()))?;
    // In tables of numbered columns, the number of a column can be the name of another one.
    let other = |column: &usize| features.iter().position(|name| *name == column.to_string()).is_some_and(|d| d != *column);
    if let Kernel::Sum(sum) = &kernel
        && !names.iter().any(|name| name.parse::<usize>().is_ok())
        && let Some(column) =
            sum.terms.iter().flat_map(|term| &term.factors).flat_map(|own| own.columns.iter().flatten()).find(|c| other(c))
    {
        let name = &features[*column];
        say!(
            "note: --kernel {text}: [{column}] is the feature at position {column}, `{name}`; [\"{column}\"] is the feature of that name"
        );
    }
    Ok(kernel)
}

/// Returns a message about a setting with the option that set it.
fn as_typed(args: &FitArgs, message: String) -> String {
    let named = [
        ("gamma", args.gamma.clone()),
        ("time_limit", args.time_limit.map(|limit| limit.to_string())),
        ("residual", args.residual.map(|share| share.to_string())),
    ];
    let Some((setting, expected)) = message.split_once(": ") else { return message };
    for (name, given) in named {
        let own = setting.split_once(" = ").is_some_and(|(path, _)| path.rsplit('.').next() == Some(name));
        if let (true, Some(given)) = (own && !args.set.iter().any(|s| s.contains(name)), given) {
            // `null` is not a value on the command line, where the option is left out instead.
            return format!("--{} {given}: {}", name.replace('_', "-"), expected.trim_end_matches(", or null"));
        }
    }
    message
}

/// Reads gamma: a number, one number per feature, or a rule.
fn gamma(text: &str) -> Result<Gamma> {
    // Text that is not JSON is a word.
    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_string()));
    serde_json::from_value(value).map_err(|e| usage(format!("--gamma {text}: {e}")))
}

/// True if a setting other than the kernel needs the rows in memory. The kernel can be learned from a sample.
pub(crate) fn needs_rows(rvm: &Rvm) -> bool {
    let known = Rvm { kernel: relvec::Rbf::default().into(), kernels: vec![], ..rvm.clone() };
    known.needs_rows() || rvm.weight_prior == WeightPrior::Process && !rvm.has_process_in_blocks()
}

/// True if classes can be learned from rows in blocks: by one model under a process prior, else by one for each class.
pub(crate) fn suits_classes(rvm: &Rvm) -> bool {
    let rule = if rvm.weight_prior == WeightPrior::Ard { MultiClass::OneVsRest } else { MultiClass::Joint };
    !matches!(rvm.inference, Inference::Variational(_)) && (rvm.multi_class == MultiClass::Auto || rvm.multi_class == rule)
}

/// Returns an error for settings that are not possible with blocks of rows.
fn check_stream(args: &FitArgs, rvm: &Rvm, task: Option<Task>, given: bool) -> Result<()> {
    let flag = match (args.stream, &args.checkpoint) {
        (true, _) => "--stream",
        (false, Some(_)) => "--checkpoint",
        (false, None) => return Ok(()),
    };
    let all = rvm.dictionary == Dictionary::Rule(DictionaryRule::All);
    if task == Some(Task::Classify) {
        if args.checkpoint.is_some() {
            return Err(usage("--checkpoint is for regression: it saves sums over rows, and classification has no such sums"));
        }
        if !suits_classes(rvm) {
            return Err(usage(
                "--stream: classes are learned in blocks with another --inference than variational and with --multi-class auto or \
                 joint (auto or one_vs_rest with --weight-prior ard); leave it out, so that the table is held in memory",
            ));
        }
    } else if args.checkpoint.is_some() && !matches!(rvm.likelihood, Likelihood::Gaussian(_)) {
        let name = rvm.likelihood.name();
        return Err(usage(format!(
            "--checkpoint is for --likelihood gaussian: it saves sums over rows, and {name} has no such sums. Use --stream instead"
        )));
    }
    if all && !given {
        return Err(usage(format!(
            "{flag} cannot be combined with --dictionary all: give a number of rows, such as --dictionary 1000"
        )));
    }
    if needs_rows(rvm) {
        return Err(usage(format!(
            "{flag} cannot be combined with learned centres, a process prior for classes, cross-validation or --keep-rows: these need \
             the table in memory. Fit them to some of the rows, and give the results with --landmarks and --sparsity"
        )));
    }
    if args.checkpoint.is_some() && rvm.weight_prior == WeightPrior::Process {
        return Err(usage("--checkpoint cannot be combined with --weight-prior process: its sums are for --weight-prior ard"));
    }
    Ok(())
}

/// Returns the task if --task, the likelihood, or known noise or exposures decide it.
fn task(args: &FitArgs) -> Result<Option<Task>> {
    let named = args.likelihood.as_deref().map(Likelihood::from_name).transpose().map_err(|e| usage(e.to_string()))?;
    let implied = named.as_ref().map(|l| if l.is_for_classes() { Task::Classify } else { Task::Regress });
    if let (Some(asked), Some(implied), Some(likelihood)) = (args.task, implied, &named)
        && asked != implied
    {
        return Err(usage(format!("--task {} cannot be combined with --likelihood {}", asked.name(), likelihood.name())));
    }
    let name = named.as_ref().map_or("gaussian", Likelihood::name);
    let asked = args.task.or(implied).or_else(|| task_of_settings(&args.set));
    let asked = or_classes(args, asked)?;
    for (flag, given, needed) in
        [("--noise-variance", &args.noise_variance, "gaussian"), ("--exposure", &args.exposure, "poisson")]
    {
        if given.is_some() && (name != needed || asked == Some(Task::Classify)) {
            return Err(usage(format!("{flag} is for --likelihood {needed}")));
        }
    }
    Ok(asked.or(args.noise_variance.is_some().then_some(Task::Regress)))
}

/// Returns the task `asked` for. An argument about several classes implies classification.
///
/// # Errors
/// There is such an argument, and another task is asked for.
fn or_classes(args: &FitArgs, asked: Option<Task>) -> Result<Option<Task>> {
    let Some(said) = multi_class_said(args) else { return Ok(asked) };
    match asked {
        None | Some(Task::Classify) => Ok(Some(Task::Classify)),
        Some(Task::Regress) => Err(usage(format!("{said} is for classes and cannot be combined with regression"))),
    }
}

/// Returns the argument that chooses how more than two classes are modelled, if there is one.
pub(crate) fn multi_class_said(args: &FitArgs) -> Option<String> {
    if args.multi_class != MultiClass::NAMES[0] {
        return Some(format!("--multi-class {}", args.multi_class));
    }
    let says = |setting: &&String| {
        setting
            .split_once('=')
            .is_some_and(|(path, value)| path.trim() == "multi_class" && value.trim().trim_matches('"') != MultiClass::NAMES[0])
    };
    args.set.iter().find(says).map(|setting| format!("--set {setting}"))
}

/// Returns the likelihood of a task, with its default parameters.
pub(crate) fn likelihood(task: Task) -> Likelihood {
    match task {
        Task::Regress => Likelihood::Gaussian(Gaussian::default()),
        Task::Classify => Likelihood::Bernoulli(Bernoulli::default()),
    }
}

/// Returns the task if a setting of a likelihood decides it.
fn task_of_settings(settings: &[String]) -> Option<Task> {
    let named = |name: &str| settings.iter().any(|s| s.starts_with(&format!("likelihood.{name}.")));
    if named("gaussian") || named("poisson") || named("student_t") {
        Some(Task::Regress)
    } else if named("bernoulli") || named("softmax") {
        Some(Task::Classify)
    } else {
        None
    }
}

/// Returns the parameters with one `PATH=VALUE` written into them.
fn apply<M: Serialize + DeserializeOwned>(machine: &M, setting: &str) -> Result<M> {
    let Some((path, value)) = setting.split_once('=') else {
        return Err(usage(format!("--set {setting}: expected PATH=VALUE, such as kernel.rbf.gamma=0.5")));
    };
    let mut tree = serde_json::to_value(machine)?;
    let slot = find(&mut tree, path.trim())?;
    let value = value.trim();
    // Text that is not JSON is a word: gamma=scale needs no quotes.
    *slot = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_string()));
    serde_json::from_value(tree).map_err(|e| usage(format!("--set {setting}: {e}")))
}

/// Returns the entry of the settings that `path` names.
///
/// The name of the chosen kernel, likelihood or scheme may be left out: kernel.gamma means kernel.rbf.gamma if the
/// kernel is rbf.
fn find<'a>(tree: &'a mut Value, path: &str) -> Result<&'a mut Value> {
    let mut here = tree;
    let mut known_as = String::new();
    for key in path.split('.') {
        if only_child(here).is_some_and(|child| here.get(key).is_none() && here[&child].get(key).is_some()) {
            let child = only_child(here).unwrap_or_default();
            known_as = join(&known_as, &child);
            here = &mut here[child.as_str()];
        }
        if here.get(key).is_none() {
            return Err(unknown(here, &known_as, path));
        }
        known_as = join(&known_as, key);
        here = &mut here[key];
    }
    // A whole group cannot be set. Its name selects an enum variant, which has its own option.
    if here.is_object() {
        return Err(usage(format!(
            "--set {path}: this is a group of settings; known in it: {}",
            leaves(here, &known_as).join(", ")
        )));
    }
    Ok(here)
}

fn unknown(here: &Value, known_as: &str, path: &str) -> anyhow::Error {
    let names = leaves(here, known_as);
    let known = if names.is_empty() { "none here".to_string() } else { names.join(", ") };
    let last = |name: &str| name.rsplit('.').next().map(str::to_string);
    let alike: Vec<&String> = names.iter().filter(|name| last(name) == last(path)).collect();
    let perhaps = match alike.as_slice() {
        [] => String::new(),
        [first, ..] => format!("; did you mean {first}?"),
    };
    let hint = match known_as {
        "kernel" => " (another kernel is chosen with --kernel)",
        "inference" => " (another scheme is chosen with --inference)",
        "likelihood" => " (the likelihood follows from --task)",
        "formulation" => " (another formulation is chosen with --formulation)",
        _ => "",
    };
    usage(format!("--set {path}: unknown setting{perhaps}; known: {known}{hint}"))
}

/// Returns the key of an object with one entry that is itself an object: the chosen variant of an enum.
fn only_child(value: &Value) -> Option<String> {
    match value.as_object()?.iter().collect::<Vec<_>>().as_slice() {
        [(key, Value::Object(_))] => Some((*key).clone()),
        _ => None,
    }
}

/// Returns the paths of all settings below `value`.
fn leaves(value: &Value, path: &str) -> Vec<String> {
    match value {
        Value::Object(map) => map.iter().flat_map(|(key, value)| leaves(value, &join(path, key))).collect(),
        _ if path.is_empty() => Vec::new(),
        _ => vec![path.to_string()],
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};

    /// Returns the parameters that `relvec fit` uses with these options.
    fn machine(options: &str) -> Rvm {
        let words = format!("relvec fit d.csv --target y --task regress --json {options}");
        let Command::Fit(args) = Args::try_parse_from(words.split_whitespace()).unwrap().command else { unreachable!() };
        let Machine::Rvm(settings) = resolve(&args).unwrap() else { panic!("a support vector machine") };
        settings.rvm
    }

    #[test]
    fn without_options_the_settings_are_those_of_the_library() {
        assert_eq!(machine(""), Rvm::default());
        assert_eq!(machine("--preset tipping2001"), Rvm::tipping2001());
    }

    #[test]
    fn options_win_over_the_preset() {
        let own = machine("--preset tipping2001 --gamma evidence --sparsity 2 --variance healed");
        let kernel = Kernel::Rbf(relvec::Rbf { gamma: Gamma::Rule(relvec::GammaRule::Evidence) });
        assert_eq!(own, Rvm { kernel, sparsity: 2.0.into(), variance: Some(Variance::Healed), ..Rvm::tipping2001() });
        let auto = machine("--preset tipping2001 --variance auto");
        assert_eq!(auto, Rvm { variance: None, ..Rvm::tipping2001() });
        let set = machine("--set sparsity=3 --set kernel.gamma=0.5 --preset tipping2001");
        let kernel = Kernel::Rbf(relvec::Rbf { gamma: 0.5.into() });
        assert_eq!(set, Rvm { kernel, sparsity: 3.0.into(), ..Rvm::tipping2001() });
        let other = machine("--preset tipping2001 --kernel matern32");
        assert_eq!(other.kernel, Kernel::Matern32(relvec::Matern32 { gamma: Gamma::Rule(relvec::GammaRule::Scale) }));
    }

    #[test]
    fn settings_reach_every_level() {
        let rvm = Rvm::default();
        let rvm = apply(&rvm, "max_iterations=7").unwrap();
        let rvm = apply(&rvm, "kernel.rbf.gamma=0.5").unwrap();
        let rvm = apply(&rvm, "likelihood.noise_variance = 0.04").unwrap();
        let rvm = apply(&rvm, "inference.search.hyperpriors.c=1e-3").unwrap();
        let rvm = apply(&rvm, "bias=false").unwrap();
        assert_eq!(rvm.max_iterations, 7);
        assert_eq!(rvm.kernel, Kernel::Rbf(relvec::Rbf { gamma: 0.5.into() }));
        assert_eq!(rvm.likelihood, Likelihood::Gaussian(Gaussian { noise_variance: Some(0.04) }));
        assert!(matches!(rvm.inference, Inference::Search(ref s) if s.hyperpriors.c == 1e-3));
        assert!(!rvm.bias);
    }

    #[test]
    fn the_variant_may_be_left_out_and_words_need_no_quotes() {
        let rvm = apply(&Rvm::default(), "kernel.gamma=[1, 2]").unwrap();
        assert_eq!(rvm.kernel, Kernel::Rbf(relvec::Rbf { gamma: vec![1.0, 2.0].into() }));
        let rvm = apply(&rvm, "kernel.gamma=scale").unwrap();
        assert_eq!(rvm.kernel, Kernel::Rbf(relvec::Rbf::default()));
    }

    #[test]
    fn wrong_paths_list_the_right_ones() {
        let message = |setting: &str| apply(&Rvm::default(), setting).unwrap_err().to_string();
        assert!(message("kernel.rbf.sigma=1").contains("known: kernel.rbf.gamma"));
        assert!(message("kernel.poly.degree=3").contains("--kernel"));
        assert!(message("seeds=1").contains("max_iterations, memory_limit, multi_class, posterior, residual, seed"));
        assert!(message("kernel=rbf").contains("group of settings"));
        assert!(message("seed").contains("PATH=VALUE"));
        assert!(message("seed=-1").contains("seed=-1"));
        assert!(message("seed.x=1").contains("none here") || message("seed.x=1").contains("known: seed"));
        assert!(message("").contains("PATH=VALUE"));
    }
}
