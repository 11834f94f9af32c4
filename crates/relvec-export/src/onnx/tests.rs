//! Runs graphs of all kinds of models with a small interpreter of their operators.

use std::collections::HashMap;

use ndarray::{ArrayD, Axis, IxDyn, Slice, stack};
use prost::Message;
use relvec_predict::Model;

use super::messages::{ModelProto, NodeProto, TensorProto};
use super::{OnnxOptions, OnnxPrecision, to_onnx};
use crate::error::Error;
use crate::examples::{Examples, Expected};

#[path = "../../tests/models/mod.rs"]
mod models;

type Tensor = ArrayD<f64>;

/// Returns the numbers of an initializer; texts become their indices.
fn tensor(proto: &TensorProto) -> Tensor {
    let shape: Vec<usize> = proto.dims.iter().map(|d| *d as usize).collect();
    let Some(raw) = &proto.raw_data else {
        return Tensor::from_shape_vec(IxDyn(&shape), (0..proto.string_data.len()).map(|k| k as f64).collect()).unwrap();
    };
    let number = |bytes: &[u8]| match proto.data_type {
        1 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
        7 => i64::from_le_bytes(bytes.try_into().unwrap()) as f64,
        9 => f64::from(bytes[0]),
        11 => f64::from_le_bytes(bytes.try_into().unwrap()),
        other => panic!("type {other}"),
    };
    let size = [1, 4, 8][match proto.data_type {
        9 => 0,
        1 => 1,
        _ => 2,
    }];
    Tensor::from_shape_vec(IxDyn(&shape), raw.chunks(size).map(number).collect()).unwrap()
}

/// Applies a function element by element, with numpy's broadcasting.
fn both(a: &Tensor, b: &Tensor, f: impl Fn(f64, f64) -> f64) -> Tensor {
    let dimensions = a.ndim().max(b.ndim());
    let at = |t: &Tensor, i: usize| (i + t.ndim()).checked_sub(dimensions).map_or(1, |i| t.shape()[i]);
    let one = |i: usize| if at(a, i) == 1 { at(b, i) } else { at(a, i) };
    let shape: Vec<usize> = (0..dimensions).map(one).collect();
    let wide = |t: &Tensor| t.broadcast(IxDyn(&shape)).expect("shapes that broadcast").to_owned();
    let (mut out, other) = (wide(a), wide(b));
    out.zip_mut_with(&other, |x, y| *x = f(*x, *y));
    out
}

fn matmul(a: &Tensor, b: &Tensor) -> Tensor {
    match (a.ndim(), b.ndim()) {
        (2, 2) => {
            let (a, b) = (a.view().into_dimensionality::<ndarray::Ix2>(), b.view().into_dimensionality::<ndarray::Ix2>());
            a.unwrap().dot(&b.unwrap()).into_dyn()
        }
        (3, 3) if a.shape()[0] == 0 => Tensor::zeros(IxDyn(&[0, a.shape()[1], b.shape()[2]])),
        (3, 3) => {
            let pairs = a.outer_iter().zip(b.outer_iter());
            let products: Vec<Tensor> = pairs.map(|(a, b)| matmul(&a.to_owned(), &b.to_owned())).collect();
            stack(Axis(0), &products.iter().map(|p| p.view()).collect::<Vec<_>>()).unwrap()
        }
        other => panic!("product of {other:?} dimensions"),
    }
}

fn axis(t: &Tensor, axis: i64) -> Axis {
    Axis(usize::try_from(axis).ok().filter(|axis| *axis < t.ndim().max(1)).expect("an axis of the tensor"))
}

fn log_softmax(t: &Tensor, along: Axis) -> Tensor {
    let mut out = t.clone();
    for mut lane in out.lanes_mut(along) {
        let top = lane.iter().fold(f64::NEG_INFINITY, |m, v| m.max(*v));
        let log = top + lane.iter().map(|v| (v - top).exp()).sum::<f64>().ln();
        lane.mapv_inplace(|v| v - log);
    }
    out
}

fn operate(node: &NodeProto, inputs: &[&Tensor]) -> Tensor {
    let a = inputs[0];
    let int = |name: &str| node.attribute.iter().find(|own| own.name == name).and_then(|own| own.i).expect("an attribute");
    match node.op_type.as_str() {
        "Cast" | "Identity" => a.clone(),
        "Add" => both(a, inputs[1], |x, y| x + y),
        "Sub" => both(a, inputs[1], |x, y| x - y),
        "Mul" => both(a, inputs[1], |x, y| x * y),
        "Div" => both(a, inputs[1], |x, y| x / y),
        "Max" => both(a, inputs[1], f64::max),
        "Min" => both(a, inputs[1], f64::min),
        "Greater" => both(a, inputs[1], |x, y| f64::from(x > y)),
        "Mod" => both(a, inputs[1], |x, y| x % y),
        "Neg" => -a,
        "Exp" => a.mapv(f64::exp),
        "Sin" => a.mapv(f64::sin),
        "Log" => a.mapv(f64::ln),
        "Sqrt" => a.mapv(f64::sqrt),
        "Tanh" => a.mapv(f64::tanh),
        "Abs" => a.mapv(f64::abs),
        "MatMul" => matmul(a, inputs[1]),
        "Transpose" => {
            let order: Vec<usize> = node.attribute[0].ints.iter().map(|v| *v as usize).collect();
            a.view().permuted_axes(IxDyn(&order)).as_standard_layout().into_owned()
        }
        "ReduceSum" => {
            let along = axis(a, inputs[1][0] as i64);
            let sum = a.sum_axis(along);
            if int("keepdims") == 1 { sum.insert_axis(along) } else { sum }
        }
        "Unsqueeze" => a.clone().insert_axis(Axis(inputs[1][0] as usize)),
        "Reshape" => {
            let known: f64 = inputs[1].iter().filter(|v| **v > 0.0).product();
            let size = |v: &f64| if *v < 0.0 { a.len() / known as usize } else { *v as usize };
            let shape: Vec<usize> = inputs[1].iter().map(size).collect();
            Tensor::from_shape_vec(IxDyn(&shape), a.iter().copied().collect()).unwrap()
        }
        "Gather" => {
            let places: Vec<usize> = inputs[1].iter().map(|v| *v as usize).collect();
            a.select(axis(a, int("axis")), &places)
        }
        "Concat" => {
            let views: Vec<_> = inputs.iter().map(|t| t.view()).collect();
            ndarray::concatenate(axis(a, int("axis")), &views).unwrap()
        }
        "LogSoftmax" => log_softmax(a, axis(a, int("axis"))),
        "ArgMax" => a.map_axis(axis(a, int("axis")), |lane| {
            (1..lane.len()).fold(0, |best, k| if lane[k] > lane[best] { k } else { best }) as f64
        }),
        other => panic!("operator {other}"),
    }
}

/// Returns the outputs of a file for rows, by their names.
fn run(bytes: &[u8], rows: &Tensor) -> HashMap<String, Tensor> {
    let graph = ModelProto::decode(bytes).unwrap().graph.unwrap();
    let mut values: HashMap<String, Tensor> = graph.initializer.iter().map(|t| (t.name.clone(), tensor(t))).collect();
    values.insert(graph.input[0].name.clone(), rows.clone());
    for node in &graph.node {
        let inputs: Vec<&Tensor> = node.input.iter().map(|name| &values[name]).collect();
        let value = operate(node, &inputs);
        assert!(values.insert(node.output[0].clone(), value).is_none(), "{} is made twice", node.output[0]);
    }
    graph.output.iter().map(|output| (output.name.clone(), values[&output.name].clone())).collect()
}

fn near(found: &Tensor, wanted: &ndarray::Array2<f64>, limit: f64, what: &str) {
    let size = wanted.iter().filter(|v| v.is_finite()).fold(0.0f64, |m, v| m.max(v.abs()));
    assert_eq!(found.shape(), wanted.shape(), "{what}");
    let same = |(f, w): (&f64, &f64)| f == w || (f - w).abs() <= limit * size;
    assert!(found.iter().zip(wanted).all(same), "{what}: {found} instead of {wanted}");
}

/// Compares a file with the model. One-versus-one probabilities are the solution of equations in the file, and of an
/// iteration that ends at 1e-10 / K in the core, so their tolerance is larger.
fn check(name: &str, model: &Model, bytes: &[u8]) {
    let limit = if name.contains("one_vs_one") { 1e-10 } else { 1e-12 };
    let Examples { rows, expected } = Examples::new(model).unwrap();
    let found = run(bytes, &rows.into_dyn());
    let check = |output: &str, wanted: &ndarray::Array2<f64>| near(&found[output], wanted, limit, &format!("{name}: {output}"));
    match expected {
        Expected::Values { mean, std } => {
            check("mean", &mean);
            std.iter().for_each(|std| check("std", std));
        }
        Expected::Classes { label, probabilities, decision } => {
            probabilities.iter().for_each(|p| check("probabilities", p));
            decision.iter().for_each(|f| check("decision", f));
            // Labels that are numbers are compared by value, texts by their indices.
            let class = |v: &f64| match &model.classes.first() {
                Some(relvec_predict::Label::Integer(_) | relvec_predict::Label::Number(_)) => {
                    model.classes.iter().position(|label| label.to_string().parse() == Ok(*v)).expect("a class")
                }
                _ => *v as usize,
            };
            assert_eq!(found["label"].iter().map(class).collect::<Vec<_>>(), label, "{name}");
        }
    }
}

#[test]
fn graphs_of_all_kinds_predict_as_the_model() {
    let mut written = 0;
    for (name, model) in models::all() {
        match to_onnx(&model, &OnnxOptions::default()) {
            Ok(bytes) => {
                check(&name, &model, &bytes);
                written += 1;
            }
            Err(Error::HealedVariance { .. }) => assert!(name.contains("healed"), "{name}"),
            Err(Error::ExternalKernel { .. }) => assert_eq!(name, "rvr_precomputed"),
            Err(other) => panic!("{name}: {other}"),
        }
    }
    assert!(written >= 105, "{written}");
}

#[test]
fn no_rows_and_one_row_are_predicted() {
    for (name, model) in models::all() {
        let Ok(bytes) = to_onnx(&model, &OnnxOptions::default()) else { continue };
        let rows = Examples::new(&model).unwrap().rows.into_dyn();
        let all = run(&bytes, &rows);
        for few in [0, 1] {
            for (output, values) in run(&bytes, &rows.slice_axis(Axis(0), Slice::from(..few)).to_owned()) {
                let wanted = all[&output].slice_axis(Axis(0), Slice::from(..few)).to_owned();
                assert!(
                    values.shape() == wanted.shape() && both(&values, &wanted, |a, b| a - b).iter().all(|d| d.abs() < 1e-12),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn precisions_have_names_and_types() {
    let (_, model) = models::pinned().into_iter().find(|(name, _)| name == "rvr_rbf").unwrap();
    for (name, input, table) in [("float64", 11, 11), ("mixed", 1, 11), ("float32", 1, 1)] {
        let precision = OnnxPrecision::from_name(name).unwrap();
        let proto = ModelProto::decode(&to_onnx(&model, &OnnxOptions { precision, std: true }).unwrap()[..]).unwrap();
        let graph = proto.graph.unwrap();
        let kind = |info: &super::messages::ValueInfoProto| info.r#type.clone().unwrap().tensor_type.unwrap().elem_type;
        assert!(graph.input.iter().chain(&graph.output).all(|info| kind(info) == input), "{name}");
        assert!(graph.initializer.iter().all(|t| t.data_type == table || t.data_type == 7), "{name}");
    }
    assert_eq!(OnnxPrecision::from_name("half"), None);
}

#[test]
fn metadata_say_what_the_file_is() {
    let (_, model) = models::pinned().into_iter().find(|(name, _)| name == "command_scaled").unwrap();
    let proto = ModelProto::decode(&to_onnx(&model, &OnnxOptions::default()).unwrap()[..]).unwrap();
    let known: HashMap<_, _> = proto.metadata_props.into_iter().map(|entry| (entry.key, entry.value)).collect();
    assert_eq!(known["relvec.checksum"], model.checksum().unwrap());
    assert_eq!(known["relvec.task"], "regression");
    assert_eq!(known["relvec.features"], serde_json::to_string(&model.features).unwrap());
    let test: serde_json::Value = serde_json::from_str(&known["relvec.self_test"]).unwrap();
    assert_eq!(test["X"].as_array().unwrap().len(), 10);
    assert_eq!(test["std"].as_array().unwrap().len(), 10);
}
