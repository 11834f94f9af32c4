//! Ten rows with their predictions in C.

use ndarray::{Array2, ArrayView1};

use relvec_predict::Model;

use super::writer::Writer;
use crate::error::Result;
use crate::examples::{Examples, Expected, ROWS, expected};

/// Largest difference of a prediction, relative to the largest of its kind. It is well above rounding (1e-13 and 1e-5)
/// and well below the effect of a wrong table.
const TOLERANCE_DOUBLE: f64 = 1e-9;
const TOLERANCE_SINGLE: f64 = 1e-3;
/// The class is not compared if the score of the second class is closer than this share of the largest score, since
/// rounding may decide.
const NEAR: f64 = 0.01;
/// Marks a class that is not compared.
const NOT_COMPARED: f64 = -1.0;

/// Expected numbers of each row, with the scale of the error of each column.
struct Columns {
    values: Array2<f64>,
    scales: Vec<f64>,
    classes: Option<Vec<f64>>,
    /// Code that computes `found` and the class `k` from x.
    call: &'static str,
}

/// Writes `name_self_test`. `model` is the model that the tables represent.
pub(super) fn self_test(w: &mut Writer, model: &Model, std: bool) -> Result<()> {
    let mut examples = Examples::new(model)?;
    if w.single {
        // The program sees the rows in single precision.
        examples.rows.mapv_inplace(|v| f64::from(v as f32));
        examples.expected = expected(model, &examples.rows)?;
    }
    let own = columns(examples.expected, std);
    let tables = w.table_bytes;
    w.out += &w.filled(None, "#ifdef NAME_SELF_TEST\n", &[]);
    w.table(None, "test_rows", examples.rows.iter().copied());
    w.table_with_infinities(None, "test_values", own.values.iter().copied());
    w.table(None, "test_scales", own.scales.iter().copied());
    w.table(None, "test_classes", own.classes.clone().unwrap_or(vec![NOT_COMPARED; ROWS]));
    // These tables do not count, since a program without the test does not contain them.
    w.table_bytes = tables;
    let tolerance = w.number(if w.single { TOLERANCE_SINGLE } else { TOLERANCE_DOUBLE });
    let values = [
        ("rows", ROWS.to_string()),
        ("columns", own.scales.len().to_string()),
        ("call", w.filled(None, own.call, &[])),
        ("tolerance", tolerance),
    ];
    let template =
        "/* Returns 0 if ten rows are predicted as by relvec. Otherwise returns the number, from 1, of the first row that is not. */
static inline int name_self_test(void) {
    name_real x[NAME_FEATURES], found[{columns}], wanted, off;
    int n, i, k;
    for (n = 0; n < {rows}; n++) {
        for (i = 0; i < NAME_FEATURES; i++) x[i] = NAME_AT(name_test_rows, n * NAME_FEATURES + i);
        {call}
        for (i = 0; i < {columns}; i++) {
            wanted = NAME_AT(name_test_values, n * {columns} + i);
            off = fabs$(found[i] - wanted);
            if (found[i] >= wanted && found[i] <= wanted) continue;
            if (!(off <= {tolerance} * NAME_AT(name_test_scales, i))) return n + 1;
        }
        wanted = NAME_AT(name_test_classes, n);
        if (wanted >= 0 && k != (int)wanted) return n + 1;
    }
    return 0;
}
#endif
";
    w.code(None, template, &values);
    Ok(())
}

fn columns(expected: Expected, std: bool) -> Columns {
    match expected {
        Expected::Values { mean, std: Some(deviation) } if std => {
            let values = ndarray::concatenate![ndarray::Axis(1), mean, deviation];
            let call = "name_predict(x, found, found + NAME_OUTPUTS);\n        k = -1;";
            Columns { scales: scales(&values), values, classes: None, call }
        }
        Expected::Values { mean, .. } => {
            Columns { scales: scales(&mean), values: mean, classes: None, call: "name_predict(x, found);\n        k = -1;" }
        }
        Expected::Classes { label, probabilities: Some(p), decision: None } => {
            let classes = Some(clear(&label, &p));
            Columns { scales: vec![1.0; p.ncols()], values: p, classes, call: "k = name_probabilities(x, found);" }
        }
        Expected::Classes { label, probabilities, decision } => {
            let f = decision.unwrap_or_else(|| Array2::zeros((label.len(), 1)));
            // A vote may change if a function is near 0.
            let near = |f: ArrayView1<f64>| f.iter().any(|v| v.abs() < NEAR);
            let classes = label.iter().zip(f.outer_iter()).map(|(k, f)| if near(f) { NOT_COMPARED } else { *k as f64 }).collect();
            match probabilities {
                Some(p) => {
                    let call = "name_decision(x, found);\n        k = name_probabilities(x, found + NAME_FUNCTIONS);";
                    let scales = scales(&f).into_iter().chain(vec![1.0; p.ncols()]).collect();
                    Columns { scales, values: ndarray::concatenate![ndarray::Axis(1), f, p], classes: Some(classes), call }
                }
                None => {
                    let call = "name_decision(x, found);\n        k = name_class(x);";
                    Columns { scales: scales(&f), values: f, classes: Some(classes), call }
                }
            }
        }
    }
}

/// Returns the largest finite absolute value of each column.
fn scales(values: &Array2<f64>) -> Vec<f64> {
    let largest = |column: ArrayView1<f64>| column.iter().filter(|v| v.is_finite()).fold(0.0f64, |most, v| most.max(v.abs()));
    values.columns().into_iter().map(largest).collect()
}

/// Returns the classes, with those marked that have a nearly equal second class.
fn clear(label: &[usize], p: &Array2<f64>) -> Vec<f64> {
    let second =
        |k: usize, p: ArrayView1<f64>| p.iter().enumerate().filter(|(l, _)| *l != k).fold(0.0f64, |most, (_, v)| most.max(*v));
    let one = |(k, p): (&usize, ArrayView1<f64>)| if p[*k] - second(*k, p) < NEAR { NOT_COMPARED } else { *k as f64 };
    label.iter().zip(p.outer_iter()).map(one).collect()
}
