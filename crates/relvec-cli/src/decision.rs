//! Decision rules from the arguments, with the class names of the model; and look-up of these names.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use ndarray::Array2;
use relvec::{Decision, Label, Model};

use crate::args::{DecisionArgs, ReadArgs};
use crate::failure::usage;
use crate::table::{Cell, Table};

use crate::text::{is_code, list};

/// Most class names of a list that are shown.
const NAMES_SHOWN: usize = 12;

/// Reports errors that the arguments show without the model.
pub(crate) fn check(args: &DecisionArgs) -> Result<()> {
    if let Some((name, _)) = first_twice(&args.prior) {
        return Err(usage(format!("--prior: the class `{name}` is given twice")));
    }
    let prior: Vec<f64> = args.prior.iter().map(|(_, p)| *p).collect();
    let classes = prior.len();
    match prior.is_empty() {
        true => Ok(()),
        false => {
            Decision { prior: Some(prior), ..Decision::default() }.check(classes).map_err(|e| usage(format!("--prior: {e}")))
        }
    }
}

/// Returns the decision rule for the classes of `model`, or `None` if no option of decisions is given.
///
/// # Errors
/// The model is of regression or has no probabilities; classes are unknown or left out; the table of costs cannot be
/// read; [`Model::decide`] refuses the rule.
pub(crate) fn resolve(args: &DecisionArgs, model: &Model) -> Result<Option<Decision>> {
    let asked = [
        ("--prior", !args.prior.is_empty()),
        ("--costs", args.costs.is_some()),
        ("--reject", args.reject.is_some()),
        ("--reject-cost", args.reject_cost.is_some()),
    ];
    let Some((flag, _)) = asked.into_iter().find(|(_, asked)| *asked) else { return Ok(None) };
    let Some(classes) = model.n_classes() else {
        bail!("{flag} is for classifiers, and this is a regression model");
    };
    let prior = (!args.prior.is_empty()).then(|| prior(&args.prior, model, classes)).transpose().context("--prior")?;
    let costs = args.costs.as_deref().map(|text| costs(text, model, classes).with_context(|| format!("--costs {text}")));
    let decision = Decision { prior, costs: costs.transpose()?, reject: args.reject, reject_cost: args.reject_cost };
    if model.margins.as_ref().is_some_and(|margins| margins.sigmoids.is_empty()) {
        return Err(relvec::Error::NoProbability.into());
    }
    // A decision on no rows checks that the rule suits the model before anything is written.
    model.decide_by(Array2::zeros((0, classes)), &decision)?;
    Ok(Some(decision))
}

/// Returns the name of class `k`, or its number if the model was trained without names.
pub(crate) fn class_name(model: &Model, k: usize) -> String {
    model.classes.get(k).map_or_else(|| k.to_string(), Label::to_string)
}

/// Returns the number of the class `name`. Numbers are compared by value, but codes such as 007 by their text.
///
/// # Errors
/// The model has no such class. The message lists the classes.
pub(crate) fn class_of(model: &Model, name: &str) -> Result<usize> {
    // Codes are compared as texts: 007 and 7 are different names.
    let number = name.parse::<f64>().ok().filter(|v| !is_code(name, *v));
    let is = |label: &Label| match label {
        // If some classes are texts, a number is compared by its shortest text.
        Label::Text(text) => text == name || number.is_some_and(|v| *text == v.to_string()),
        Label::Boolean(value) => value.to_string().eq_ignore_ascii_case(name),
        // Above 2^53 different whole numbers are equal in 64-bit floating point, so the texts are compared.
        Label::Integer(value) if value.unsigned_abs() > 1 << f64::MANTISSA_DIGITS => value.to_string() == name,
        Label::Integer(value) => number == Some(*value as f64),
        Label::Number(value) => number == Some(*value),
    };
    let found = match model.classes.is_empty() {
        true => (0..model.n_classes().unwrap_or(0)).find(|k| number == Some(*k as f64)),
        false => model.classes.iter().position(is),
    };
    found.ok_or_else(|| {
        let known: Vec<String> = (0..model.n_classes().unwrap_or(0)).map(|k| class_name(model, k)).collect();
        anyhow!("the model has no class `{name}`; its classes are: {}", list(&known, NAMES_SHOWN))
    })
}

/// Returns the number of the class that a cell names. In a table with decimal commas, the cell may be such a number.
///
/// # Errors
/// The errors of [`class_of`].
fn class_in(table: &Table, model: &Model, name: &str) -> Result<usize> {
    let number = table.decimal_comma(name);
    class_of(model, name).or_else(|e| number.map_or(Err(e), |number| class_of(model, &number.to_string())))
}

/// Returns the text of a cell that names a class.
fn class_cell(table: &Table, column: usize) -> Result<String> {
    match table.cell(column) {
        Cell::Text(text) => Ok(text.to_string()),
        Cell::Number(value) => Ok(value.to_string()),
        Cell::Integer(value) => Ok(value.to_string()),
        Cell::Boolean(value) => Ok(value.to_string()),
        Cell::Missing => Err(table.missing(column)),
        Cell::Other(what) => Err(table.error(column, &format!("{what} cannot be class names"))),
    }
}

/// Returns the number of the true class in the current row. `known` caches the numbers of names seen before.
///
/// # Errors
/// The errors of [`class_of`].
pub(crate) fn true_class(table: &Table, column: usize, model: &Model, known: &mut HashMap<String, usize>) -> Result<usize> {
    let name = class_cell(table, column)?;
    if let Some(k) = known.get(&name) {
        return Ok(*k);
    }
    let k = class_in(table, model, &name).map_err(|e| table.error(column, &e.to_string()))?;
    known.insert(name, k);
    Ok(k)
}

fn prior(given: &[(String, f64)], model: &Model, classes: usize) -> Result<Vec<f64>> {
    let mut prior = vec![None; classes];
    for (name, p) in given {
        put(&mut prior[class_of(model, name)?], *p, || format!("the class `{name}` is given twice"))?;
    }
    let all = prior.into_iter().enumerate();
    all.map(|(k, p)| p.ok_or_else(|| anyhow!("the class `{}` is left out", class_name(model, k)))).collect()
}

/// Returns the costs, [K, K], rows by true class. `text` is the name of a table if such a file exists, otherwise the
/// costs.
fn costs(text: &str, model: &Model, classes: usize) -> Result<Array2<f64>> {
    let path = Path::new(text);
    if path.exists() || !text.contains('=') {
        return tabled_costs(path, model, classes);
    }
    // Correct decisions have cost 0 unless their cost is given.
    let mut costs = vec![None; classes * classes];
    for part in text.split(',') {
        let bad = || anyhow!("`{part}`: expected TRUE:DECIDED=COST, such as ill:well=10, or the name of a table");
        let ((truth, decided), cost) =
            part.rsplit_once('=').and_then(|(pair, cost)| Some((pair.split_once(':')?, cost))).ok_or_else(bad)?;
        let place = class_of(model, truth.trim())? * classes + class_of(model, decided.trim())?;
        put(&mut costs[place], cost.trim().parse::<f64>().map_err(|_| bad())?, || format!("`{part}` is given twice"))?;
    }
    if let Some(place) = (0..classes * classes).find(|place| costs[*place].is_none() && place / classes != place % classes) {
        bail!("{}:{} is left out", class_name(model, place / classes), class_name(model, place % classes));
    }
    Ok(Array2::from_shape_fn((classes, classes), |(k, j)| costs[k * classes + j].unwrap_or(0.0)))
}

/// Reads costs from a table. Its first column names the true class; its other columns are decisions and have their
/// names.
fn tabled_costs(path: &Path, model: &Model, classes: usize) -> Result<Array2<f64>> {
    let mut table = Table::open(path, &ReadArgs::default())?;
    let names = table.columns()[1..].to_vec();
    let decided: Vec<usize> = names.iter().map(|name| class_of(model, name)).collect::<Result<_>>().context("the header")?;
    if let Some(k) = (0..classes).find(|k| !decided.contains(k)) {
        bail!("there is no column for the class `{}`; the first column is for the true classes", class_name(model, k));
    }
    let mut rows: Vec<Option<Vec<f64>>> = vec![None; classes];
    while table.advance()? {
        let name = class_cell(&table, 0)?;
        let mut row = vec![f64::NAN; classes];
        for (place, class) in decided.iter().enumerate() {
            row[*class] = table.number(place + 1)?;
        }
        let class = class_in(&table, model, &name).map_err(|e| table.error(0, &e.to_string()))?;
        put(&mut rows[class], row, || format!("the class `{name}` has two rows"))?;
    }
    if let Some(k) = (0..classes).find(|k| rows[*k].is_none()) {
        bail!("there is no row for the class `{}`", class_name(model, k));
    }
    Ok(Array2::from_shape_vec((classes, classes), rows.into_iter().flatten().flatten().collect())?)
}

/// Sets a value that has not been set before; otherwise returns the error `twice`.
fn put<T>(place: &mut Option<T>, value: T, twice: impl Fn() -> String) -> Result<()> {
    match place.replace(value) {
        Some(_) => Err(anyhow!(twice())),
        None => Ok(()),
    }
}

fn first_twice(given: &[(String, f64)]) -> Option<&(String, f64)> {
    given.iter().enumerate().find(|(i, (name, _))| given[..*i].iter().any(|(other, _)| other == name)).map(|(_, pair)| pair)
}
