//! Model files, bytes of statistics and checkpoints whose checksum is right and whose content is not: whatever loads predicts
//! without a panic and without NaN and is exported or refused, and what does not load says where and why.
//!
//! A fixed number of changes is tried; RELVEC_FUZZ_SECONDS asks for more, of other seeds.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use ndarray::{Array1, Array2, ArrayView2, s};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use relvec::*;
use relvec_export::{COptions, CPrecision, OnnxOptions, OnnxPrecision};
use serde_json::{Value, json};

/// Changed files of each kind that are tried in any case.
const CHANGES: u64 = 200;
/// Rows of the training tables.
const ROWS: usize = 24;

fn wave(i: usize) -> f64 {
    2.0 * ((i as f64 * 12.9898).sin() * 43758.5453).rem_euclid(1.0) - 1.0
}

fn rows() -> Array2<f64> {
    Array2::from_shape_fn((ROWS, 2), |(i, d)| 2.0 * wave(2 * i + d))
}

fn values() -> Array1<f64> {
    rows().outer_iter().enumerate().map(|(i, x)| x[0].sin() + 0.3 * x[1] + 0.2 * wave(1000 + i)).collect()
}

fn labels(count: usize) -> Vec<usize> {
    rows()
        .outer_iter()
        .enumerate()
        .map(|(i, x)| (((x[0] + 2.0) / 4.0 * count as f64) as usize + usize::from(i % 7 == 0)) % count)
        .collect()
}

/// A real model of every kind, by name.
fn kinds() -> Vec<(String, Model)> {
    let (x, t) = (rows(), values());
    let rvm = || Rvm { kernel: Rbf { gamma: 0.5.into() }.into(), threads: Some(1), ..Rvm::tipping2001() };
    let real = Targets::real(t.view());
    let fit = |rvm: Rvm, targets: &Targets| rvm.fit(x.view(), targets).unwrap().0;
    let mut all: Vec<(String, Model)> = Kernel::NAMES
        .iter()
        .map(|name| (format!("kernel {name}"), fit(Rvm { kernel: Kernel::from_name(name).unwrap(), ..rvm() }, &real)))
        .collect();
    let mut add = |name: &str, model: Model| all.push((name.into(), model));
    for name in ["sequential", "em", "mackay", "variational"] {
        add(name, fit(Rvm { inference: Inference::from_name(name).unwrap(), ..rvm() }, &real));
    }
    let ard = Rvm { kernel: Rbf { gamma: vec![0.5, 0.2].into() }.into(), ..rvm() };
    let mut named = fit(ard, &real);
    (named.features, named.target) = (vec!["a".into(), "b".into()], Some("y".into()));
    named.scaling = Some(Scaling::of(x.view(), None));
    let column = |name: &str, categories: &[&str], mean: f64| EncodedColumn {
        name: name.into(),
        categories: categories.iter().map(|text| text.to_string()).collect(),
        indicator: false,
        means: vec![mean],
    };
    let mut encoded = named.clone();
    let columns = vec![column("a", &[], 0.5), column("b", &["no", "yes"], 0.25)];
    let encoding = Encoding { columns, missing: Some(Missing::Mean) };
    (encoded.features, encoded.encoding) = (encoding.features(), Some(encoding));
    add("features", named);
    add("encoding", encoded);
    add("student_t", fit(Rvm { likelihood: StudentT::default().into(), ..rvm() }, &real));
    let counts = t.mapv(|t| (2.0 + 2.0 * t).abs().round());
    add("poisson", fit(Rvm { likelihood: Poisson::default().into(), ..rvm() }, &Targets::real(counts.view())));
    let healed = Rvm { variance: Some(Variance::Healed), ..rvm() };
    add("healed", fit(healed.clone(), &real));
    let mut calibrated = fit(healed, &real);
    calibrated.posterior.as_mut().unwrap().variance_factor = Some(1.5);
    add("calibrated", calibrated);
    let pair = Array2::from_shape_fn((ROWS, 2), |(i, k)| t[i] * (1.0 + k as f64) + 0.1 * wave(77 + 3 * i + k));
    add("outputs", fit(Rvm { variance: Some(Variance::Healed), ..rvm() }, &Targets::outputs(pair.view())));
    add("statistics", fit(Rvm { keep_statistics: true, dictionary: Dictionary::Size(6), ..rvm() }, &real));
    let process = || Rvm { weight_prior: WeightPrior::Process, ..rvm() };
    add("process", fit(process(), &real));
    add("process student_t", fit(Rvm { likelihood: StudentT::default().into(), ..process() }, &real));
    add("process outputs", fit(process(), &Targets::outputs(pair.view())));
    let noise = Array1::from_elem(ROWS, 0.04);
    let known = Targets::real(t.view()).with_noise_variance(noise.view());
    add("known noise", fit(rvm(), &known));
    add("learned centres", fit(Rvm { centres: CentreRule::Learned, ..rvm() }, &real));
    let phi = Array2::from_shape_fn((ROWS, 5), |(i, j)| (x[[i, 0]] * (j as f64 + 1.0)).cos());
    add("given", Rvm { basis: Basis::Given, ..rvm() }.fit(phi.view(), &real).unwrap().0);
    let plain = fit(rvm(), &real);
    let relevance = plain.relevance.clone();
    add("external", plain.with_external_kernel(&relevance, 2, None));
    let (two, three) = (labels(2), labels(3));
    let (two, three) = (Targets::classes(&two, 2), Targets::classes(&three, 3));
    let classes = |rule: MultiClass| Rvm { likelihood: Bernoulli::default().into(), multi_class: rule, ..rvm() };
    let mut binary = fit(classes(MultiClass::Auto), &two);
    binary.classes = vec![Label::Text("no".into()), Label::Text("yes".into())];
    add("two classes", binary);
    add("joint", fit(classes(MultiClass::Joint), &three));
    let pinned = concat!(env!("CARGO_MANIFEST_DIR"), "/../relvec/tests/pinned/rvc_class_precisions.json");
    add("precisions of classes", Model::from_json(&fs::read_to_string(pinned).unwrap()).unwrap());
    for rule in [MultiClass::OneVsRest, MultiClass::OneVsOne] {
        let model = fit(classes(rule), &three);
        let relevance = model.relevance.clone();
        add(rule.name(), model.clone());
        add(&format!("{} external", rule.name()), model.with_external_kernel(&relevance, 2, None));
    }
    for name in Formulation::NAMES {
        let formulation = Formulation::from_name(name).unwrap();
        let kernel: Kernel = Rbf { gamma: 0.5.into() }.into();
        let svm = Svm { kernel, formulation, threads: Some(1), probability: name.ends_with("svc"), ..Svm::default() };
        let svm = |multi_class| Svm { multi_class, ..svm.clone() };
        if !name.ends_with("svc") {
            add(name, svm(MultiClass::Auto).fit(x.view(), &real).unwrap().0);
            continue;
        }
        add(name, svm(MultiClass::Auto).fit(x.view(), &two).unwrap().0);
        for rule in [MultiClass::OneVsOne, MultiClass::OneVsRest] {
            let mut machine = svm(rule);
            if let Formulation::NuSvc(own) = &mut machine.formulation {
                own.nu = 0.2;
            }
            add(&format!("{name} {}", rule.name()), machine.fit(x.view(), &three).unwrap().0);
        }
    }
    let kernel: Kernel = Rbf { gamma: vec![0.5, 2.0].into() }.into();
    let svm = Svm { kernel, threads: Some(1), ..Svm::default() };
    add("sparse", svm.fit_sparse(&SparseRows::from_dense(x.view()), &three).unwrap().0);
    for name in ["healed", "process", "outputs", "one_vs_one"] {
        let Some((_, model)) = all.iter().find(|(own, _)| own == name) else { panic!("no model {name}") };
        let model = model.clone().with_sparse_centres();
        all.push((format!("{name} sparse"), model));
    }
    all
}

/// Everything that can be asked of a model of finite rows; `Err`: what has come out as NaN.
fn ask_all(model: &Model) -> std::result::Result<(), String> {
    let d = match &model.expansion.basis {
        FittedBasis::External { .. } => model.relevance.len(),
        _ => model.n_features,
    };
    if d > 1000 {
        return Ok(());
    }
    if let Some(encoding) = &model.encoding {
        for cell in [RawCell::Missing, RawCell::Number(1.7e308), RawCell::Text("yes"), RawCell::Boolean(true)] {
            if let Ok(Some(row)) = encoding.encode(&vec![cell; encoding.columns.len()])
                && (row.len() != d || row.iter().any(|v| !v.is_finite()))
            {
                return Err(format!("features {row:?} of {cell:?}"));
            }
        }
    }
    let extremes = [0.0, 1.0, -1.0, 1e-308, 1e8, -1e155, 1.7e308, -1.7e308];
    let x = Array2::from_shape_fn((12, d), |(i, k)| if i < 8 { extremes[i] } else { wave(17 * i + k) });
    let ordinary = x.slice(s![8.., ..]);
    for x in [x.view(), ordinary] {
        if let Ok(found) = model.basis_values(&SparseRows::from_dense(x)) {
            numbers("basis_values", found.iter().filter(|v| v.is_nan()))?;
        }
        let on_basis = model.on_basis();
        let asked = if matches!(model.expansion.basis, FittedBasis::External { .. }) { &on_basis } else { model };
        ask(asked, x)?;
        if let FittedBasis::External { .. } = model.expansion.basis {
            if let Ok(found) = model.log_probability_from_basis(x, Moderation::Posterior) {
                numbers("log_probability_from_basis", found.iter().filter(|v| v.is_nan()))?;
            }
            if let Ok(found) = model.decision_from_basis(x) {
                numbers("decision_from_basis", &found)?;
            }
        }
    }
    let _ = (model.well_determined(), model.in_use(), model.weight_covariance(), model.n_classes(), model.multi_class());
    let again = Model::from_json(&model.to_json().map_err(|e| e.to_string())?);
    match again {
        Ok(again) if again == *model => Ok(()),
        other => Err(format!("what was loaded and written is not what is read again: {other:?}")),
    }
}

fn numbers<'a>(what: &str, values: impl IntoIterator<Item = &'a f64>) -> std::result::Result<(), String> {
    match values.into_iter().find(|v| v.is_nan()) {
        Some(_) => Err(format!("{what} is NaN")),
        None => Ok(()),
    }
}

fn ask(model: &Model, x: ArrayView2<f64>) -> std::result::Result<(), String> {
    for variance in [Variance::Posterior, Variance::Healed] {
        for found in model.predict_outputs_with(x, variance).into_iter().flatten() {
            numbers("mean", &found.mean)?;
            numbers("variance", &found.variance())?;
            numbers("std", &found.std())?;
            numbers("deviation", &found.deviation())?;
            if model.is_of_counts()
                && let Ok(counts) = found.counts(None)
            {
                numbers("counts", counts.mean.iter().chain(&counts.std()))?;
            }
        }
    }
    for found in [model.predict_output_means(x), model.decision_function(x)].into_iter().flatten() {
        numbers("function", &found)?;
    }
    for moderation in [Moderation::Posterior, Moderation::PlugIn] {
        if let Ok(found) = model.predict_log_probability(x, moderation) {
            numbers("log probability", &found)?;
            let classes = model.n_classes().unwrap_or(0);
            let decision = Decision { prior: Some(vec![1.0 / classes as f64; classes]), ..Decision::default() };
            if let Ok(decided) = model.decide(x, &decision) {
                numbers("decision", &decided.probabilities)?;
            }
        }
    }
    if let Ok(found) = model.predict_functions(x) {
        numbers("functions", found.mean.iter().chain(&found.covariance))?;
    }
    if let Ok(classes) = model.predict_class(x) {
        assert!(classes.iter().all(|k| Some(*k) < model.n_classes()), "{classes:?} of {:?}", model.n_classes());
    }
    if let Ok((mean, covariance)) = model.predict_covariance(x, None) {
        numbers("covariance", mean.iter().chain(&covariance))?;
    }
    if let Ok(found) = model.draws(3, 1, true).and_then(|mut draws| draws.at(x)) {
        numbers("draws", &found)?;
    }
    if model.has_several_outputs() {
        for k in 0..model.outputs() {
            model.output(k).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

/// The value at a random place of a tree, and how to get there.
fn pick<'a>(random: &mut Pcg64, tree: &'a mut Value, path: &mut String) -> &'a mut Value {
    let inside = match tree {
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => false,
    };
    if !inside || random.random_range(0..8) == 0 {
        return tree;
    }
    let next = match tree {
        Value::Object(map) => {
            let k = random.random_range(0..map.len());
            let (name, value) = map.iter_mut().nth(k).expect("counted");
            *path += &format!(".{name}");
            value
        }
        Value::Array(list) => {
            let k = random.random_range(0..list.len());
            *path += &format!("[{k}]");
            &mut list[k]
        }
        other => return other,
    };
    pick(random, next, path)
}

/// Changes something somewhere; returns what.
fn change(random: &mut Pcg64, tree: &mut Value) -> String {
    let other = pick(random, &mut tree.clone(), &mut String::new()).clone();
    let mut path = String::new();
    let place = pick(random, tree, &mut path);
    let strange = [
        json!(0),
        json!(-1),
        json!(1e308),
        json!(-1e308),
        json!(5e-324),
        json!(1e-160),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1u64 << 62),
        json!(0.5),
        json!(2),
        json!(null),
        json!(true),
        json!(""),
        json!([]),
        json!({}),
        json!("one_vs_one"),
        json!("em"),
        json!("svm"),
        json!("healed"),
        json!("\u{1b}[2J"),
    ];
    let any = strange[random.random_range(0..strange.len())].clone();
    match (place, random.random_range(0..10)) {
        (Value::Array(list), 0..=1) if !list.is_empty() => {
            list.remove(random.random_range(0..list.len()));
        }
        (Value::Array(list), 2) if !list.is_empty() => list.push(list[random.random_range(0..list.len())].clone()),
        (Value::Array(list), 3) if !list.is_empty() => {
            let n = list.len();
            list.swap(random.random_range(0..n), random.random_range(0..n));
        }
        (Value::Array(list), 4) => list.clear(),
        (Value::Object(map), 0..=2) if !map.is_empty() => {
            let key = map.keys().nth(random.random_range(0..map.len())).cloned().expect("counted");
            map.remove(&key);
        }
        (place @ Value::Number(_), 0..=2) => *place = json!(-place.as_f64().unwrap_or(0.0)),
        (place @ Value::Number(_), 3) => *place = json!(place.as_f64().unwrap_or(0.0) * 1e200),
        (place @ Value::Number(_), 4) => *place = json!(place.as_f64().unwrap_or(0.0) + 1.0),
        (place, 5..=7) => *place = other,
        (place, _) => *place = any,
    }
    format!("model{path}")
}

/// Tries a changed model; `Ok`: whether it loads.
/// A model that loads is exported, or refused with a reason.
fn export(model: &Model) {
    for precision in [OnnxPrecision::Float64, OnnxPrecision::Float32] {
        drop(relvec_export::to_onnx(model, &OnnxOptions { precision, std: true }));
    }
    for precision in [CPrecision::Float, CPrecision::Double, CPrecision::Int16] {
        drop(relvec_export::to_c(model, &COptions { precision, ..COptions::default() }));
    }
    drop(relvec_export::to_libsvm(model));
}

fn try_model(tree: &Value) -> std::result::Result<bool, String> {
    // The checksum is of the contents as they are written.
    let text = match serde_json::from_value::<Model>(tree.clone()) {
        Ok(model) => model.to_json().map_err(|e| e.to_string())?,
        Err(_) => json!({"format": "relvec-model", "format_version": FORMAT_VERSION, "checksum": "", "model": tree}).to_string(),
    };
    let tried = catch_unwind(AssertUnwindSafe(|| match Model::from_json(&text) {
        Ok(model) => {
            // Tables of many features take long, and too many are refused.
            if !(1_001..=1_000_000).contains(&model.n_features) {
                export(&model);
            }
            ask_all(&model).map(|()| true)
        }
        Err(Error::ModelFile(message)) if message.starts_with("model") => Ok(false),
        Err(other) => Err(format!("no place is named: {other}")),
    }));
    tried.unwrap_or_else(|_| Err("a panic".into()))
}

/// What the command predicts by a model that loads: no NaN in its table, or an error.
fn predict_by_the_command(folder: &Path, tree: &Value) -> std::result::Result<(), String> {
    let model: Model = serde_json::from_value(tree.clone()).map_err(|e| e.to_string())?;
    let columns = if model.features.is_empty() {
        (0..model.n_features.min(50)).map(|k| format!("c{k}")).collect()
    } else {
        model.features.clone()
    };
    let row = |i: usize| (0..columns.len()).map(|k| (1.5 * wave(31 * i + k)).to_string()).collect::<Vec<_>>().join(",");
    let table: Vec<String> = std::iter::once(columns.join(",")).chain((0..4).map(row)).collect();
    let path = |name: &str| folder.join(name);
    fs::write(path("d.csv"), table.join("\n") + "\n").unwrap();
    fs::write(path("m.json"), model.to_json().unwrap()).unwrap();
    let _ = fs::remove_file(path("p.csv"));
    let words = ["m.json", "d.csv"].map(|name| path(name).into_os_string());
    let words = ["relvec".into(), "predict".into()].into_iter().chain(words).chain(["-o".into(), path("p.csv").into_os_string()]);
    let code = catch_unwind(AssertUnwindSafe(|| relvec_cli::main(words))).map_err(|_| "the command panics")?;
    let written = fs::read_to_string(path("p.csv")).unwrap_or_default();
    match code {
        0 if written.contains("NaN") => Err(format!("NaN with exit code 0: {written}")),
        0 => Ok(()),
        _ if written.is_empty() => Ok(()),
        _ => Err("a failed command has written its table".into()),
    }
}

/// How long to go on beyond what is tried in any case.
fn seconds() -> Duration {
    let asked = std::env::var("RELVEC_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs_f64(asked.unwrap_or(0.0))
}

/// Calls `one` with 0, 1, 2, ...: so often, and until the time that is asked for has passed.
fn repeat(least: u64, mut one: impl FnMut(u64)) {
    let (start, time) = (Instant::now(), seconds());
    let mut k = 0;
    while k < least || start.elapsed() < time {
        one(k);
        k += 1;
    }
}

#[test]
fn changed_model_files_are_refused_or_predict() {
    let kinds = kinds();
    for (name, model) in &kinds {
        assert_eq!(Model::from_json(&model.to_json().unwrap()).as_ref(), Ok(model), "{name}");
        ask_all(model).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    let trees: Vec<Value> = kinds.iter().map(|(_, model)| serde_json::to_value(model).unwrap()).collect();
    let folder = tempfile::tempdir().unwrap();
    let (mut loaded, mut tried) = (0, 0);
    repeat(CHANGES * kinds.len() as u64, |k| {
        let which = k as usize % kinds.len();
        let mut random = Pcg64::seed_from_u64(k);
        let mut tree = trees[which].clone();
        let changes: Vec<String> = (0..1 + k % 2).map(|_| change(&mut random, &mut tree)).collect();
        match try_model(&tree) {
            Ok(own) => {
                loaded += usize::from(own);
                if own && loaded % 4 == 0 {
                    predict_by_the_command(folder.path(), &tree).unwrap_or_else(|e| panic!("{} (seed {k}): {e}", kinds[which].0));
                }
            }
            Err(e) => panic!("{}, {} changed (seed {k}): {e}", kinds[which].0, changes.join(" and ")),
        }
        tried += 1;
    });
    // Neither are all files refused nor none.
    assert!(loaded > tried / 50 && loaded < tried, "{loaded} of {tried} load");
}

/// One wrong value in each place that the rules are about, and what the message has to say.
#[test]
fn messages_name_the_place_what_was_found_and_what_was_expected() {
    let kinds = kinds();
    let refused = |kind: &str, path: &str, value: Value, says: &str| {
        let model = &kinds.iter().find(|(name, _)| name == kind).unwrap_or_else(|| panic!("no {kind}")).1;
        let mut tree = serde_json::to_value(model).unwrap();
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let key = path.rsplit('/').next().unwrap();
        let place = tree.pointer_mut(parent).unwrap_or_else(|| panic!("{kind} has no {parent}"));
        match place {
            Value::Array(list) => list[key.parse::<usize>().unwrap()] = value,
            place => place[key] = value,
        }
        let broken: Model = serde_json::from_value(tree).unwrap_or_else(|e| panic!("{kind} {path}: {e}"));
        let message = Model::from_json(&broken.to_json().unwrap()).unwrap_err().to_string();
        assert!(message.contains(says) && message.contains("found") && message.contains("expected"), "{kind} {path}: {message}");
    };
    let rbf = "kernel rbf";
    refused(rbf, "/machine", json!("gp"), "model.machine: found \"gp\"");
    refused(rbf, "/inference", json!("magic"), "model.inference: found \"magic\"");
    refused(rbf, "/n_rows", json!(u64::MAX), "model.n_rows: found 18446744073709551615");
    refused(rbf, "/n_features", json!(3), "model.expansion.basis.kernel.centres: found rows of 2");
    refused(rbf, "/alpha/0", json!(-1.0), "model.alpha[0]: found -1");
    refused(rbf, "/relevance", json!([]), "model.relevance: found 0 entries");
    refused(rbf, "/posterior/noise_variance", json!(-0.5), "model.posterior.noise_variance[0]: found -0.5");
    refused(rbf, "/posterior/noise_variance", json!(null), "model.posterior.noise_variance: found null");
    refused(rbf, "/posterior/scale/0", json!(-2.0), "model.posterior.scale[0]: found -2");
    refused(rbf, "/posterior/factor/0/0", json!(0.0), "model.posterior.factor[0][0]: found 0");
    refused(rbf, "/posterior/factor/1", json!([1.0]), "model.posterior.factor[1]: found 1 entries");
    refused(
        rbf,
        "/expansion/basis/kernel/kernel/rbf/gamma",
        json!(-1.0),
        "model.expansion.basis.kernel.kernel.rbf.gamma: found -1",
    );
    refused(
        rbf,
        "/expansion/basis/kernel/kernel/rbf/gamma",
        json!("scale"),
        "model.expansion.basis.kernel.kernel.rbf.gamma: found a rule",
    );
    refused(rbf, "/variance", json!("healed"), "model.variance: found healed");
    refused("features", "/features", json!(["a"]), "model.features: found 1 entries");
    refused("features", "/scaling/scale/1", json!(0.0), "model.scaling.scale[1]: found 0");
    refused("features", "/scaling/mean", json!([]), "model.scaling.mean: found 0 entries");
    refused("calibrated", "/posterior/variance_factor", json!(0.0), "model.posterior.variance_factor[0]: found 0");
    refused("healed", "/kept_rows/weights/0", json!(0.0), "model.kept_rows.weights[0]: found 0");
    refused("healed", "/kept_rows/prior_variance", json!(-1.0), "model.kept_rows.prior_variance: found -1");
    refused("healed", "/kept_rows/residuals", json!([1.0]), "model.kept_rows.residuals: found 1 entries");
    refused("outputs", "/kept_rows/further", json!([]), "model.kept_rows.further: found 0 entries");
    refused("outputs", "/posterior/variance_ratios/1", json!(-1.0), "model.posterior.variance_ratios[1]: found -1");
    refused("statistics", "/statistics/gram/1", json!([1.0]), "model.statistics.gram[1]: found 1 entries");
    refused("statistics", "/statistics/gram/2/1", json!(1e9), "model.statistics.gram[2][1]: found 1000000000");
    refused("statistics", "/statistics/gram/1/1", json!(-1.0), "model.statistics.gram[1][1]: found -1");
    refused("statistics", "/statistics/weight", json!(1e9), "model.statistics.gram[0][0]: found 24");
    refused("statistics", "/statistics/range", json!([1.0, 0.0]), "model.statistics.range: found [1, 0]");
    refused("statistics", "/statistics/n_rows", json!(u64::MAX), "model.statistics.n_rows: found");
    refused("statistics", "/statistics/landmarks", json!([0]), "model.statistics.landmarks: found 1 entries");
    refused("student_t", "/posterior/noise_degrees", json!(-1.0), "model.posterior.noise_degrees[0]: found -1");
    refused("poisson", "/posterior/noise_variance", json!(1.0), "model.posterior.noise_variance: found a number");
    refused("two classes", "/classes", json!(["no", "no"]), "model.classes: found 1 entries");
    refused("two classes", "/classes", json!(["no", "yes", "perhaps"]), "model.classes: found 3 entries");
    refused("two classes", "/class_frequencies/0", json!(-0.5), "model.class_frequencies[0]: found -0.5");
    refused("one_vs_one", "/committee/rule", json!("joint"), "model.committee.rule: found joint");
    refused("one_vs_one", "/committee/members", json!([]), "model.committee.members: found 0 entries");
    refused("c_svc", "/margins/formulation", json!("nu_svr"), "model.margins.formulation: found \"nu_svr\"");
    refused("c_svc", "/margins/bounded", json!(1000), "model.margins.bounded: found 1000");
    refused("c_svc one_vs_one", "/margins/classes", json!(u64::MAX), "model.margins.classes: found 18446744073709551615");
    refused("c_svc one_vs_one", "/margins/vector_classes/0", json!(9), "model.margins.vector_classes[0]: found 9");
    refused("epsilon_svr", "/margins/objective", json!([]), "model.margins.objective: found 0 entries");
}

/// Names in the checks that upper floors own.
#[test]
fn names_of_schemes_and_formulations_are_those_that_files_may_have() {
    let kinds = kinds();
    let named = |name: &str| {
        kinds
            .iter()
            .any(|(_, m)| m.inference.as_deref() == Some(name) || m.margins.as_ref().is_some_and(|m| m.formulation == name))
    };
    assert!(Inference::NAMES.iter().chain(Formulation::NAMES).all(|name| named(name)));
}

/// Bytes of statistics after a change of their header or their numbers, the checksum refitted.
fn damaged(random: &mut Pcg64, good: &[u8]) -> Vec<u8> {
    let start = b"relvec statistics 1\n".len();
    let size = u64::from_le_bytes(good[start..start + 8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&good[start + 8..start + 8 + size]).unwrap();
    let mut numbers = good[start + 8 + size..good.len() - 4].to_vec();
    if random.random_range(0..2) == 0 {
        change(random, &mut header);
    } else {
        let k = random.random_range(0..numbers.len() / 8);
        let strange = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300, -1e300, 5e-324, 1.0];
        let value = strange[random.random_range(0..strange.len())];
        numbers[8 * k..8 * k + 8].copy_from_slice(&value.to_le_bytes());
    }
    let header = serde_json::to_vec(&header).unwrap();
    let mut out = good[..start].to_vec();
    out.extend((header.len() as u64).to_le_bytes());
    out.extend(header);
    out.extend(numbers);
    out.extend(crc32fast::hash(&out).to_le_bytes());
    out
}

fn sums() -> Statistics {
    let x = rows();
    let mut sums = Statistics::new(&Rbf { gamma: 0.5.into() }.into(), x.slice(s![..4, ..])).unwrap();
    sums.update(x.view(), &Targets::real(values().view())).unwrap();
    sums
}

#[test]
fn changed_statistics_are_refused_or_fit() {
    let (good, x) = (sums().to_bytes(), rows());
    repeat(300, |k| {
        let bytes = damaged(&mut Pcg64::seed_from_u64(k), &good);
        let tried = catch_unwind(AssertUnwindSafe(|| {
            let Ok(mut sums) = Statistics::from_bytes(&bytes) else { return Ok(()) };
            let own = sums.clone();
            let _ = sums.merge(&own);
            let rvm = Rvm { max_iterations: 5, threads: Some(1), ..Rvm::tipping2001() };
            let Ok((model, _)) = rvm.fit_statistics(&own) else { return Ok(()) };
            match model.predict(x.view()) {
                Ok(found) => numbers("mean", found.mean.iter().chain(&found.model_variance)),
                Err(_) => Ok(()),
            }
        }));
        tried.unwrap_or_else(|_| Err("a panic".into())).unwrap_or_else(|e| panic!("seed {k}: {e}"));
    });
}

/// The model that `fit` makes in a folder, and the exit code.
fn run_fit(folder: &Path) -> (u8, Option<String>) {
    let model = folder.join("m.json");
    let _ = fs::remove_file(&model);
    let path = |name: &str| folder.join(name).into_os_string();
    let words = ["relvec", "fit"].map(Into::into).into_iter().chain([path("d.csv")]);
    let words = words.chain(["--target", "y", "--preset", "tipping2001", "--dictionary", "5"].map(Into::into));
    let words = words.chain(["--threads", "1", "--checkpoint"].map(Into::into));
    let code = relvec_cli::main(words.chain([path("c"), "-o".into(), path("m.json")]));
    (code, fs::read_to_string(model).ok())
}

/// Whatever stands in a checkpoint beside the sums: it is refused, or the model is that of the table.
#[test]
fn changed_checkpoints_are_refused_or_make_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    let (x, t) = (rows(), values());
    let table: String = x.outer_iter().zip(&t).map(|(x, t)| format!("{},{},{t}\n", x[0], x[1])).collect();
    fs::write(folder.path().join("d.csv"), format!("a,b,y\n{table}")).unwrap();
    let (code, expected) = run_fit(folder.path());
    assert_eq!(code, 0);
    let good = fs::read(&path).unwrap();
    let start = b"relvec checkpoint 1\n".len();
    let size = u64::from_le_bytes(good[start..start + 8].try_into().unwrap()) as usize;
    let head: Value = serde_json::from_slice(&good[start + 12..start + 12 + size]).unwrap();
    let sums = &good[start + 12 + size..];
    let write = |head: &Value, sums: &[u8]| {
        let head = serde_json::to_vec(head).unwrap();
        let mut out = good[..start].to_vec();
        out.extend((head.len() as u64).to_le_bytes());
        out.extend(crc32fast::hash(&head).to_le_bytes());
        out.extend(head);
        out.extend(sums);
        fs::write(&path, out).unwrap();
    };
    write(&head, sums);
    assert_eq!(run_fit(folder.path()), (0, expected.clone()));
    let changed = |pointer: &str, value: Value| {
        let mut own = head.clone();
        *own.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
        own
    };
    let landmarks: Vec<usize> = serde_json::from_value(head["plan"]["landmarks"].clone()).unwrap();
    let mut others = landmarks.clone();
    others[0] = (0..ROWS).find(|row| !landmarks.contains(row)).unwrap();
    for (pointer, value) in [
        ("/done", json!(0)),
        ("/done", json!(u64::MAX)),
        ("/plan/rows", json!(0)),
        ("/plan/scaling", json!(null)),
        ("/plan/scaling/mean", json!([0.0])),
        ("/plan/scaling/scale", json!([1.0])),
        ("/plan/scaling/scale/0", json!(0.0)),
        ("/plan/scaling/scale/0", json!(1.0)),
        ("/plan/constant", json!([7])),
        ("/plan/landmarks", json!([0])),
        ("/plan/landmarks", json!(others)),
        ("/plan/landmarks/0", json!(u64::MAX)),
    ] {
        write(&changed(pointer, value), sums);
        assert_eq!(run_fit(folder.path()), (1, None), "{pointer}");
    }
    // Sums of another table, at other landmarks.
    write(&head, &self::sums().to_bytes());
    assert_eq!(run_fit(folder.path()), (1, None));
    repeat(60, |k| {
        let mut random = Pcg64::seed_from_u64(k);
        let mut own = head.clone();
        let what = change(&mut random, &mut own);
        write(&own, sums);
        let tried = catch_unwind(AssertUnwindSafe(|| run_fit(folder.path())));
        match tried {
            Ok((0, model)) => assert!(same(&model, &expected), "seed {k}, {what}"),
            Ok((code, model)) => assert!(code == 1 && model.is_none(), "seed {k}, {what}: {code}"),
            Err(_) => panic!("seed {k}, {what}: a panic"),
        }
    });
}

/// Models are the same but for the names that say nothing of the sums.
fn same(one: &Option<String>, other: &Option<String>) -> bool {
    let read = |text: &Option<String>| text.as_ref().and_then(|text| Model::from_json(text).ok());
    match (read(one), read(other)) {
        (Some(one), Some(other)) => {
            one.expansion == other.expansion && one.scaling == other.scaling && one.relevance == other.relevance
        }
        _ => false,
    }
}
