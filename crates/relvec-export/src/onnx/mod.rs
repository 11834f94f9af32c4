//! Writes a model as an ONNX graph of standard operators (version 13 and later): scaling, kernel, functions, variances,
//! probabilities.

mod classes;
mod graph;
mod kernel;
mod messages;
mod spread;
#[cfg(test)]
mod tests;

use ndarray::Array2;
use prost::Message;
use relvec_predict::{Label, Model};
use serde_json::{Value as Json, json};

use self::graph::{Element, Graph, INPUT, Value};
use self::messages::{ModelProto, OperatorSetIdProto, StringStringEntryProto};
use self::spread::Rows;
use crate::error::{Error, Result};
use crate::examples::{Examples, Expected};
use crate::machine::{Machine, Task, Values};
use crate::normal_form::normal_form;
use crate::single;

const FORMAT: &str = "ONNX";
/// Version of the operators, the first in which ReduceSum and Unsqueeze take their axes as inputs, as in all later
/// versions.
const OPERATORS: i64 = 13;
/// Version of the file format, that of ONNX 1.10 (2021).
const FILE: i64 = 8;
/// Largest variance of a log rate for which the rate is treated as log-normal, as in the core.
const LARGEST_LOG_VARIANCE: f64 = 4.0;
/// Most bytes of a file (2 GB, the limit of a protobuf message).
const LARGEST_FILE: usize = i32::MAX as usize;

/// Precision of the numbers in an ONNX graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnnxPrecision {
    /// Double precision inside and outside.
    #[default]
    Float64,
    /// Rows and predictions in single precision, everything between in double precision.
    Mixed,
    /// Single precision throughout, for accelerators without double precision.
    Float32,
}

impl OnnxPrecision {
    /// Names of all precisions, as in the command and in Python.
    pub const NAMES: [&'static str; 3] = ["float64", "mixed", "float32"];

    /// Returns the precision of a name, or `None` for other names.
    pub fn from_name(name: &str) -> Option<OnnxPrecision> {
        let all = [OnnxPrecision::Float64, OnnxPrecision::Mixed, OnnxPrecision::Float32];
        OnnxPrecision::NAMES.iter().position(|known| *known == name).map(|k| all[k])
    }

    /// Returns the type of input and outputs.
    fn outside(self) -> Element {
        if self == OnnxPrecision::Float64 { Element::Double } else { Element::Float }
    }

    /// Returns the type of the numbers inside the graph.
    fn inside(self) -> Element {
        if self == OnnxPrecision::Float32 { Element::Float } else { Element::Double }
    }
}

/// Options of an ONNX graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnnxOptions {
    /// Precision of the numbers.
    pub precision: OnnxPrecision,
    /// True if regression has the output `std`. Its triangular factors are most of the file.
    pub std: bool,
}

impl Default for OnnxOptions {
    fn default() -> OnnxOptions {
        OnnxOptions { precision: OnnxPrecision::Float64, std: true }
    }
}

/// Returns the bytes of an ONNX file that predicts like the model, standardisation included.
///
/// The input `X` is [N, D]. Regression and counts have the outputs `mean` and `std` (of a new observation), [N, K]
/// each. Classifiers have `label`, `[N]`, and `probabilities`, [N, K] (moderated, as `predict_proba`). Support vector
/// machines for classes have `label`, `decision`, [N, C], and `probabilities` if they were trained with them. The
/// metadata contain features, classes, kernel, checksum, and ten rows with their predictions.
///
/// # Errors
/// The kernel is external, the variance is healed, sparse centres would have more than 10^8 numbers with their zeros,
/// single precision would change predictions, or the file would exceed 2 GB.
pub fn to_onnx(model: &Model, options: &OnnxOptions) -> Result<Vec<u8>> {
    let written = normal_form(model, FORMAT)?;
    let machine = Machine::new(&written, FORMAT)?;
    let examples = Examples::new(&written)?;
    let precision = options.precision;
    let is_single = precision == OnnxPrecision::Float32;
    if is_single {
        single::check(&machine, FORMAT, options.std, "precision = mixed")?;
    }
    let graph = Graph::new(model.n_features, precision.outside(), precision.inside());
    let rows = Rows::new(&graph, graph.input(), &machine, is_single);
    Writer { graph: &graph, model, outside: precision.outside() }.outputs(rows, &machine, options.std, is_single);
    let proto = ModelProto {
        ir_version: FILE,
        producer_name: "relvec".into(),
        producer_version: env!("CARGO_PKG_VERSION").into(),
        doc_string: description(model),
        graph: Some(graph.finish()),
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: OPERATORS }],
        metadata_props: metadata(model, &examples)?,
    };
    match proto.encoded_len() {
        bytes if bytes > LARGEST_FILE => Err(Error::Size { format: FORMAT, bytes, limit: LARGEST_FILE }),
        _ => Ok(proto.encode_to_vec()),
    }
}

/// Writer of the outputs.
struct Writer<'g, 'm> {
    graph: &'g Graph,
    model: &'m Model,
    outside: Element,
}

impl<'g> Writer<'g, '_> {
    fn outputs(&self, rows: Rows<'g>, machine: &Machine, std: bool, single: bool) {
        match &machine.task {
            Task::Values(values) => self.values(rows, machine, values, std),
            Task::Counts(spread) => {
                let (f, v) = (rows.functions(machine), rows.variance(machine, spread));
                let mean = (f + v * 0.5).exp();
                self.numbers("mean", mean, 1, "expected count");
                if std {
                    let variance = mean * mean * relative_variance(v) + mean;
                    self.numbers("std", variance.sqrt(), 1, "standard deviation of a count");
                }
            }
            Task::Two(spread) => {
                let odds = classes::odds(rows, machine, spread.as_ref());
                self.classes(classes::two(self.graph, odds), 2);
            }
            Task::Joint(spread) => self.classes(classes::joint(rows, machine, spread.as_ref()), self.model.outputs()),
            Task::Committee { rule, members } => {
                let log_probabilities = classes::committee(rows, machine, *rule, members, single);
                self.classes(log_probabilities, self.model.n_classes().unwrap_or(members.len()));
            }
            Task::Margins(margins) => {
                let f = rows.functions(machine);
                let Some(classes) = margins.classes else {
                    return self.numbers("mean", f, self.model.outputs(), "predicted value");
                };
                self.label(classes::votes(self.graph, f, margins), classes);
                if !margins.sigmoids.is_empty() {
                    let log_probabilities = classes::platt(self.graph, f, margins);
                    self.numbers("probabilities", log_probabilities.exp(), classes, "probability of each class");
                }
                self.numbers("decision", f, self.model.outputs(), "value of each function; above 0 means the later class");
            }
        }
    }

    fn values(&self, rows: Rows<'g>, machine: &Machine, values: &Values, std: bool) {
        let outputs = values.ratios.len();
        self.numbers("mean", rows.functions(machine), outputs, "predicted value");
        if std {
            let v = rows.variance(machine, &values.spread) * self.graph.row(&values.ratios) + self.graph.row(&values.noise);
            self.numbers("std", v.sqrt(), outputs, "standard deviation of a new observation");
        }
    }

    fn numbers(&self, name: &str, value: Value<'g>, columns: usize, doc: &str) {
        self.graph.output(name, value, self.outside, Some(columns), doc);
    }

    /// Adds label and probabilities from log probabilities, [N, K].
    fn classes(&self, log_probabilities: Value<'g>, classes: usize) {
        self.label(log_probabilities, classes);
        self.numbers("probabilities", log_probabilities.exp(), classes, "probability of each class");
    }

    /// Adds the label of the class with the largest score, [N, K].
    fn label(&self, scores: Value<'g>, classes: usize) {
        let (names, element) = self.names(classes);
        self.graph.output("label", names.at(scores.largest()), element, None, "most probable class");
    }

    /// Returns the labels in a type for all of them, or numbers from 0 if there are no names.
    fn names(&self, classes: usize) -> (Value<'g>, Element) {
        let (graph, labels) = (self.graph, &self.model.classes);
        if labels.is_empty() {
            return (graph.wholes(&(0..classes as i64).collect::<Vec<_>>()), Element::Int64);
        }
        let all = |f: &dyn Fn(&Label) -> bool| labels.iter().all(f);
        if all(&|label| matches!(label, Label::Boolean(_))) {
            let values: Vec<bool> = labels.iter().map(|label| *label == Label::Boolean(true)).collect();
            return (graph.booleans(&values), Element::Bool);
        }
        let whole = |label: &Label| if let Label::Integer(v) = label { Some(*v) } else { None };
        if let Some(values) = labels.iter().map(whole).collect::<Option<Vec<i64>>>() {
            return (graph.wholes(&values), Element::Int64);
        }
        let number = |label: &Label| match label {
            Label::Integer(v) => Some(*v as f64),
            Label::Number(v) => Some(*v),
            _ => None,
        };
        match labels.iter().map(number).collect::<Option<Vec<f64>>>() {
            Some(values) => (graph.doubles(&values), Element::Double),
            None => (graph.words(&labels.iter().map(ToString::to_string).collect::<Vec<_>>()), Element::Text),
        }
    }
}

/// Returns the variance of a rate divided by the square of its mean, from the variance `v` of its log, as in the core.
/// It is exp(v) - 1 up to [`LARGEST_LOG_VARIANCE`] and grows with the square root above. exp(v) - 1 = tanh(v / 2)
/// (exp(v) + 1) avoids cancellation.
fn relative_variance(v: Value<'_>) -> Value<'_> {
    let inside = v.at_most(LARGEST_LOG_VARIANCE);
    (inside * 0.5).tanh() * (inside.exp() + 1.0) + (v.sqrt() - inside.sqrt())
}

/// Returns the description of the file.
fn description(model: &Model) -> String {
    let features = match model.features.is_empty() {
        true => format!("{} numbers", model.n_features),
        false => model.features.join(", "),
    };
    let target = model.target.as_ref().map_or(String::new(), |target| format!(" of {target}"));
    format!("relvec model{target}. Input {INPUT}, one row for each prediction, columns in this order: {features}")
}

fn metadata(model: &Model, examples: &Examples) -> Result<Vec<StringStringEntryProto>> {
    let task = match (model.n_classes(), model.is_of_counts()) {
        (Some(_), _) => "classification",
        (None, true) => "counts",
        (None, false) => "regression",
    };
    let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    let entries = [
        ("relvec.version", json!(env!("CARGO_PKG_VERSION"))),
        ("relvec.checksum", json!(model.checksum()?)),
        ("relvec.machine", json!(model.machine)),
        ("relvec.task", json!(task)),
        ("relvec.features", json!(model.features)),
        ("relvec.target", json!(model.target)),
        ("relvec.targets", json!(model.targets)),
        ("relvec.classes", json!(model.classes)),
        ("relvec.kernel", json!(model.kernel())),
        ("relvec.self_test", self_test(model, examples)),
    ];
    Ok(entries.iter().map(|(key, value)| StringStringEntryProto { key: (*key).into(), value: text(value) }).collect())
}

/// Returns rows and the predictions of relvec, by the names of input and outputs.
fn self_test(model: &Model, examples: &Examples) -> Json {
    let table = |a: &Array2<f64>| json!(a.outer_iter().map(|row| row.to_vec()).collect::<Vec<_>>());
    let mut out = json!({ INPUT: table(&examples.rows) });
    let mut add = |name: &str, value: Option<Json>| value.into_iter().for_each(|value| out[name] = value);
    match &examples.expected {
        Expected::Values { mean, std } => {
            add("mean", Some(table(mean)));
            add("std", std.as_ref().map(table));
        }
        Expected::Classes { label, probabilities, decision } => {
            let name = |k: &usize| model.classes.get(*k).map_or_else(|| json!(k), |label| json!(label));
            add("label", Some(label.iter().map(name).collect()));
            add("probabilities", probabilities.as_ref().map(table));
            add("decision", decision.as_ref().map(table));
        }
    }
    out
}
