//! A model as one C header: tables and short loops over them, without allocation, input or output.

mod basis;
mod outputs;
mod rounded;
mod self_test;
mod spread;
mod writer;

use relvec_predict::{Factor, Kernel, Model};

use self::rounded::Rounded;
use self::writer::{Writer, comment};
use crate::error::{Error, Result, vectors};
use crate::machine::{Basis, Machine, Spread, Task};
use crate::normal_form::normal_form;
use crate::single;

const FORMAT: &str = "C";
/// Largest accepted change of a prediction by 16-bit tables, in the units of `rounded::changes`. It is too small to see
/// in a plot.
const LIMIT: f64 = 0.02;
/// Keywords and reserved names of C99 and C++11 that match the pattern of a name.
const WORDS: [&str; 20] = [
    "auto", "bool", "break", "case", "char", "class", "const", "do", "double", "else", "enum", "extern", "float", "for", "if",
    "int", "main", "new", "switch", "while",
];

/// Precision of the numbers in a C header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CPrecision {
    /// Single precision, with half the memory. Small processors compute in it.
    #[default]
    Float,
    /// Double precision.
    Double,
    /// Centres are 16-bit whole numbers with a step for each feature. Triangular factors are too, with a step for each
    /// row, if this is accurate enough. Other numbers and sums are in single precision. The header states how far
    /// predictions differ from those of the model.
    Int16,
}

impl CPrecision {
    /// Names of all precisions, as in the command and in Python.
    pub const NAMES: [&'static str; 3] = ["float", "double", "int16"];

    /// Returns the precision of a name, or `None` for other names.
    pub fn from_name(name: &str) -> Option<CPrecision> {
        let all = [CPrecision::Float, CPrecision::Double, CPrecision::Int16];
        CPrecision::NAMES.iter().position(|known| *known == name).map(|k| all[k])
    }
}

/// Options of a C header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct COptions {
    /// Prefix of all names in the header.
    pub name: String,
    /// Precision of the numbers.
    pub precision: CPrecision,
    /// True if regression has standard deviations. Their triangular factors are most of the tables.
    pub std: bool,
}

impl Default for COptions {
    fn default() -> COptions {
        COptions { name: "model".into(), precision: CPrecision::default(), std: true }
    }
}

/// Returns a C99 and C++11 header that predicts like the model, standardisation included.
///
/// With the name `model`, regression and counts have `model_predict(x, mean, std)`. Classifiers have `model_class(x)`,
/// `model_probabilities(x, p)` and `model_label(k)`; support vector machines have probabilities only if they were
/// trained with them. Support vector machines for classes also have `model_decision(x, f)`. With MODEL_SELF_TEST
/// defined, `model_self_test()` predicts ten rows and returns 0 if the predictions are correct. On AVR the tables
/// remain in flash memory.
///
/// # Errors
/// The kernel is external, the variance is healed, sparse centres would have more than 10^8 numbers with their zeros, or
/// C does not allow the name. Or single precision would change predictions, or cannot represent a number of the model.
pub fn to_c(model: &Model, options: &COptions) -> Result<String> {
    check_name(&options.name)?;
    let written = normal_form(model, FORMAT)?;
    let machine = Machine::new(&written, FORMAT)?;
    if options.precision != CPrecision::Double {
        single::check(
            &machine,
            FORMAT,
            options.std,
            "precision = double, or fit with weight_prior = ard and variance = posterior",
        )?;
    }
    let (held, whole, changes) = match options.precision {
        CPrecision::Int16 => whole_numbers(&written, options.std)?,
        _ => (written.clone().into_owned(), None, String::new()),
    };
    let is_single = options.precision != CPrecision::Double;
    let mut body = Writer::new(&options.name, is_single, whole);
    outputs::all(&mut body, &machine, options.std);
    self_test::self_test(&mut body, &held, options.std)?;
    if body.overflow.get() {
        return Err(Error::Range { format: FORMAT });
    }
    let mut w = Writer::new(&options.name, is_single, whole);
    head(&mut w, model, &machine, options, body.table_bytes, &changes)?;
    w.out += &body.out;
    w.code(None, "#endif", &[]);
    Ok(w.out)
}

/// Returns the model that tables of whole numbers represent, which tables these are, and a text on the changes of
/// predictions. Triangular factors are rounded too if this is accurate enough, otherwise only centres.
///
/// # Errors
/// Rounding only the centres changes predictions by more than the limit.
fn whole_numbers(model: &Model, std: bool) -> Result<(Model, Option<Rounded>, String)> {
    let one = |triangles: bool| {
        let held = rounded::rounded(model, Rounded { triangles });
        let text = changes(model, &held, std)?;
        let which = if triangles { "centres and triangles" } else { "centres" };
        Ok((
            held,
            Some(Rounded { triangles }),
            format!("   16-bit tables ({which}) change\n   {text},\n   measured on the lines between its vectors.\n"),
        ))
    };
    one(true).or_else(|_: Error| one(false))
}

/// Returns the changes by tables of whole numbers, as text.
///
/// # Errors
/// A change exceeds the limit.
fn changes(model: &Model, held: &Model, std: bool) -> Result<String> {
    let mut words = vec![];
    for (what, change, unit) in rounded::changes(model, held)? {
        if what == "a standard deviation" && !std {
            continue;
        }
        if !(change <= LIMIT) {
            let (precision, instead) = ("16-bit tables", "precision = float");
            return Err(Error::Precision {
                format: FORMAT,
                precision,
                what,
                change,
                unit,
                vectors: vectors(model),
                limit: LIMIT,
                instead,
            });
        }
        words.push(format!("{what} by {change:.1e} of {unit}"));
    }
    Ok(format!("{} at most", words.join(", ")))
}

fn check_name(name: &str) -> Result<()> {
    let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let good = letters && name.starts_with(|c: char| c.is_ascii_alphabetic()) && !WORDS.contains(&name);
    if good { Ok(()) } else { Err(Error::Name { found: name.into() }) }
}

/// Writes the description of the file, its memory and time, and the common definitions.
fn head(w: &mut Writer, model: &Model, machine: &Machine, options: &COptions, table_bytes: usize, changes: &str) -> Result<()> {
    let features = match model.features.is_empty() {
        true => format!("{} numbers", model.n_features),
        false => model.features.join(", "),
    };
    let target = model.target.iter().chain(&model.targets).cloned().collect::<Vec<_>>().join(", ");
    let kernel = match model.kernel() {
        Some(kernel @ Kernel::Sum(_)) => format!("{kernel:.4}"),
        Some(kernel) => kernel.name().into(),
        None => "columns of a given design matrix".into(),
    };
    let cost = Cost::of(machine, options.std);
    let values = [
        ("version", env!("CARGO_PKG_VERSION").to_string()),
        ("checksum", model.checksum()?),
        ("what", format!("{} {}, kernel {kernel}", machine.len(), vectors(model))),
        ("tables", table_bytes.to_string()),
        ("stack", (cost.numbers * w.size()).to_string()),
        ("products", cost.products.to_string()),
        ("calls", cost.calls.to_string()),
        ("real", if w.single { "float" } else { "double" }.to_string()),
        ("features", model.n_features.to_string()),
        ("vectors", machine.len().max(1).to_string()),
        ("functions", model.outputs().to_string()),
        ("precision", if w.single { "single" } else { "double" }.to_string()),
        ("target", comment(&if target.is_empty() { "the target".to_string() } else { target })),
        // Names are filled in last, so that braces in them are not keys.
        ("names", comment(&features)),
    ];
    let classes =
        model.n_classes().map_or("#define NAME_OUTPUTS {functions}".to_string(), |k| format!("#define NAME_CLASSES {k}"));
    let template = format!(
        "/* A model of relvec {{version}} (checksum of its file {{checksum}}): {{what}}.
   Predicts {{target}}
   from x, in this order: {{names}}.
   C99 or C++11 in {{precision}} precision, without allocation. It needs only <math.h>. Rows are not checked: x must be finite.
   Tables: {{tables}} bytes. Stack of a prediction: about {{stack}} bytes.
   Work: about {{products}} multiply-adds and {{calls}} calls of functions in <math.h>.
{changes}*/
#ifndef NAME_H
#define NAME_H

#include <math.h>

#ifdef __AVR__
#include <avr/pgmspace.h>
#define NAME_TABLE PROGMEM
#define NAME_AT(table, i) pgm_read_float(&(table)[i])
#define NAME_PLACE(table, i) ((int)pgm_read_word(&(table)[i]))
#define NAME_WHOLE(table, i) ((name_real)(short)pgm_read_word(&(table)[i]))
#else
#define NAME_TABLE
#define NAME_AT(table, i) ((table)[i])
#define NAME_PLACE(table, i) ((int)(table)[i])
#define NAME_WHOLE(table, i) ((name_real)(table)[i])
#endif

#define NAME_FEATURES {{features}}
#define NAME_VECTORS {{vectors}}
#define NAME_FUNCTIONS {{functions}}
{classes}

typedef {{real}} name_real;
"
    );
    w.code(None, &template, &values);
    Ok(())
}

/// Cost of one prediction.
struct Cost {
    /// Numbers on the stack.
    numbers: usize,
    products: usize,
    /// Calls of functions in <math.h>.
    calls: usize,
}

impl Cost {
    fn of(machine: &Machine, std: bool) -> Cost {
        let model = machine.model;
        let (d, m, c) = (model.n_features, machine.len(), model.outputs());
        let (of_kernel, of_functions) = match &machine.basis {
            Basis::Kernel { kernel, .. } => work(kernel, d),
            Basis::Columns(_) => (d, 1),
        };
        let (numbers, products, calls) = (d + m + c, m * (of_kernel + c), m * of_functions);
        let spread = |own: &Spread| {
            let n = own.scale.len();
            let prior = if own.prior.is_some() { m * m / 2 } else { 0 };
            (n.max(m), n * n / 2 + prior)
        };
        let (more_numbers, more_products, more_calls) = match &machine.task {
            Task::Values(values) if std => {
                let (numbers, products) = spread(&values.spread);
                (numbers + c, products, c)
            }
            Task::Counts(own) | Task::Two(Some(own)) => {
                let (numbers, products) = spread(own);
                (numbers, products, 4)
            }
            Task::Joint(Some(own)) => {
                let (n, r) = (own.factor.nrows(), own.present.len());
                (r * n + r * r + r + 3 * c, r * n * n / 3 + r * r * n / 2 + c * c * r * r, c * (2 * c + 1))
            }
            Task::Committee { members, .. } => members
                .iter()
                .map(|member| Cost::of(member, true))
                .fold((m + members.len() + 2 * c * c, 0, 0), |(numbers, products, calls), own| {
                    (numbers.max(own.numbers + m), products + own.products, calls + own.calls)
                }),
            _ => (c, 0, c),
        };
        Cost { numbers: numbers + more_numbers, products: products + more_products, calls: calls + more_calls }
    }
}

/// Returns the multiply-adds and the calls of functions for a kernel of rows with this number of columns.
fn work(kernel: &Kernel, columns: usize) -> (usize, usize) {
    let of_factor = |own: &Factor| {
        let columns = own.columns.as_ref().map_or(columns, Vec::len);
        let (products, calls) = work(&own.kernel, columns);
        let calls = if matches!(own.kernel, Kernel::Linear(_) | Kernel::Poly(_)) { 0 } else { calls };
        (1 + products + 2 * own.units.len(), calls)
    };
    match kernel {
        Kernel::Sum(sum) => {
            let all = sum.terms.iter().flat_map(|term| &term.factors).map(of_factor);
            all.fold((sum.terms.len(), 0), |sum, own| (sum.0 + own.0, sum.1 + own.1))
        }
        Kernel::Periodic(_) => (2 * columns, 2 * columns + 1),
        _ => (columns, 1),
    }
}
