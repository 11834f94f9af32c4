//! Writes a support vector machine in LIBSVM's format.

use std::borrow::Cow;
use std::fmt::Write;

use ndarray::{Array2, ArrayView1};
use relvec_predict::{FittedBasis, Gamma, Kernel, Label, Margins, Model, MultiClass, SparseRows};

use super::{FORMAT, places};
use crate::error::{Error, Result};
use crate::examples::{Examples, Expected};

/// Returns the text of a model file for LIBSVM.
///
/// Classes that are not whole numbers are numbered from 0 in their order, since LIBSVM has no class names.
///
/// # Errors
/// The model is a relevance vector machine, uses one-versus-rest for three classes or more, or standardises features.
/// Or its kernel is not linear, poly, rbf or sigmoid, or has a gamma for each feature.
pub fn to_libsvm(model: &Model) -> Result<String> {
    let (margins, kernel, centres) = parts(model)?;
    let expansion = &model.expansion;
    let mut out = format!("svm_type {}\n{}", margins.formulation, header_of(kernel)?);
    let classes = margins.classes.unwrap_or(2);
    writeln!(out, "nr_class {classes}\ntotal_sv {}", centres.nrows()).expect("strings grow");
    let Some(_) = margins.classes else {
        writeln!(out, "rho {:?}\nSV", -expansion.intercept[0]).expect("strings grow");
        let order: Vec<usize> = (0..centres.nrows()).collect();
        return Ok(out + &vectors(&expansion.weights.t().to_owned(), &centres, &order));
    };
    let places = places(classes);
    let line = |name: &str, value: &dyn Fn(usize) -> f64| {
        let values: Vec<String> = places.iter().map(|place| format!("{:?}", value(*place))).collect();
        format!("{name} {}\n", values.join(" "))
    };
    out += &line("rho", &|place| expansion.intercept[place]);
    out += &format!("label {}\n", labels(&model.classes, classes).join(" "));
    if !margins.sigmoids.is_empty() {
        out += &line("probA", &|place| margins.sigmoids[place][0]);
        out += &line("probB", &|place| -margins.sigmoids[place][1]);
    }
    let own = &margins.vector_classes;
    let count = |k: usize| own.iter().filter(|class| **class == k).count().to_string();
    out += &format!("nr_sv {}\nSV\n", (0..classes).map(count).collect::<Vec<_>>().join(" "));
    // All vectors of the first class come first.
    let mut order: Vec<usize> = (0..centres.nrows()).collect();
    order.sort_by_key(|n| own[*n]);
    Ok(out + &vectors(&coefficients(model, margins, classes)?, &centres, &order))
}

/// Returns ten rows and their predictions in LIBSVM's format, for its program svm-predict: all predictions of the written
/// model are those of the file.
///
/// # Errors
/// The errors of [`to_libsvm`].
pub fn libsvm_self_test(model: &Model) -> Result<String> {
    let (margins, ..) = parts(model)?;
    let Examples { rows, expected } = Examples::new(model)?;
    let targets: Vec<String> = match expected {
        Expected::Classes { label, .. } => {
            let names = labels(&model.classes, margins.classes.unwrap_or(2));
            label.into_iter().map(|class| names[class].clone()).collect()
        }
        Expected::Values { mean, .. } => mean.column(0).iter().map(|value| format!("{value:?}")).collect(),
    };
    let cells = |row: ArrayView1<f64>| -> String {
        row.iter().enumerate().filter(|(_, v)| **v != 0.0).map(|(d, v)| format!(" {}:{v:?}", d + 1)).collect()
    };
    Ok(targets.iter().zip(rows.outer_iter()).map(|(target, row)| format!("{target}{}\n", cells(row))).collect())
}

/// Returns the parts of a model that LIBSVM can represent.
fn parts(model: &Model) -> Result<(&Margins, &Kernel, Cow<'_, SparseRows>)> {
    let refuse = |found: &str, instead| Err(Error::Unsupported { format: FORMAT, found: found.into(), instead });
    let Some(margins) = &model.margins else {
        return refuse("a relevance vector machine", "export it as ONNX or C, or fit a support vector machine");
    };
    let (kernel, centres) = match &model.expansion.basis {
        FittedBasis::Kernel { kernel, centres } => (kernel, Cow::Owned(SparseRows::from_dense(centres.view()))),
        FittedBasis::Sparse { kernel, centres } => (kernel, Cow::Borrowed(centres)),
        _ => return refuse("a kernel that relvec does not compute", "fit with linear, poly, rbf or sigmoid"),
    };
    if matches!(margins.multi_class, Some(rule) if rule != MultiClass::OneVsOne) {
        return refuse("one-versus-rest of several classes", "fit with multi_class = one_vs_one");
    }
    if model.encoding.is_some() {
        return Err(Error::Encoding { format: FORMAT });
    }
    if model.scaling.is_some() {
        return refuse("standardisation of the features", "fit with standardize = false");
    }
    Ok((margins, kernel, centres))
}

/// Returns the lines of the kernel.
fn header_of(kernel: &Kernel) -> Result<String> {
    let gamma = |gamma: &Gamma| match gamma {
        Gamma::Value(v) => Ok(format!("gamma {v:?}\n")),
        _ => {
            let found = "a gamma for each feature".to_string();
            Err(Error::Unsupported { format: FORMAT, found, instead: "fit with one gamma, to features of one scale" })
        }
    };
    match kernel {
        Kernel::Linear(_) => Ok("kernel_type linear\n".into()),
        Kernel::Rbf(own) => Ok(format!("kernel_type rbf\n{}", gamma(&own.gamma)?)),
        Kernel::Poly(own) => {
            Ok(format!("kernel_type polynomial\ndegree {}\n{}coef0 {:?}\n", own.degree, gamma(&own.gamma)?, own.coef0))
        }
        Kernel::Sigmoid(own) => Ok(format!("kernel_type sigmoid\n{}coef0 {:?}\n", gamma(&own.gamma)?, own.coef0)),
        other => {
            let found = format!("the kernel {}", other.name());
            Err(Error::Unsupported { format: FORMAT, found, instead: "fit with linear, poly, rbf or sigmoid" })
        }
    }
}

/// Returns the class labels: whole numbers unchanged, others by their index.
fn labels(classes: &[Label], count: usize) -> Vec<String> {
    let whole = |label: &Label| match label {
        // LIBSVM reads 32-bit numbers.
        Label::Integer(v) => i32::try_from(*v).ok().map(|v| v.to_string()),
        _ => None,
    };
    match classes.iter().map(whole).collect::<Option<Vec<String>>>() {
        Some(labels) if labels.len() == count => labels,
        _ => (0..count).map(|k| k.to_string()).collect(),
    }
}

/// Returns the coefficients of each vector against the other classes, [K - 1, M].
fn coefficients(model: &Model, margins: &Margins, classes: usize) -> Result<Array2<f64>> {
    let weights = &model.expansion.weights;
    let mut out = Array2::zeros((classes - 1, weights.nrows()));
    for ((n, pair), weight) in weights.indexed_iter().filter(|(_, weight)| **weight != 0.0) {
        let j = (1..classes).find(|j| j * (j + 1) / 2 > pair).expect("a pair of classes");
        let (i, own) = (pair - j * (j - 1) / 2, margins.vector_classes[n]);
        match own {
            own if own == i => out[[j - 1, n]] = -weight,
            own if own == j => out[[i, n]] = -weight,
            own => {
                let found = format!("a vector of class {own} in the pair {i}, {j}");
                return Err(Error::Unsupported { format: FORMAT, found, instead: "the model file may be damaged" });
            }
        }
    }
    Ok(out)
}

/// Returns a line for each vector: its coefficients and its nonzero entries.
fn vectors(coefficients: &Array2<f64>, centres: &SparseRows, order: &[usize]) -> String {
    let line = |n: &usize| {
        let own = coefficients.column(*n).iter().map(|v| format!("{v:?} ")).collect::<String>();
        own + &centres.row(*n).iter().map(|(d, v)| format!("{}:{v:?} ", d + 1)).collect::<String>() + "\n"
    };
    order.iter().map(line).collect()
}
