//! Graph builder with the notation of formulas: `(x - mean) * root` adds two operators.
//!
//! Operators are those of version 13 of the default domain whose form is unchanged in later versions (26 at the time of
//! writing).

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

use ndarray::{ArrayBase, Data, Dimension};

use super::messages::{
    AttributeProto, DimensionProto, GraphProto, NodeProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto,
    ValueInfoProto,
};

/// Types of an attribute: one whole number, or several.
const INT: i32 = 2;
const INTS: i32 = 7;

/// Element types of a tensor, with their numbers in onnx.proto.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Element {
    Float = 1,
    Int64 = 7,
    Text = 8,
    Bool = 9,
    Double = 11,
}

/// The graph built so far.
pub(crate) struct Graph {
    /// Type of all real numbers inside the graph.
    real: Element,
    proto: RefCell<GraphProto>,
}

/// A tensor in the graph.
#[derive(Clone, Copy)]
pub(crate) struct Value<'g> {
    graph: &'g Graph,
    /// Number of the tensor.
    id: usize,
}

/// The name of the input.
pub(crate) const INPUT: &str = "X";

impl Graph {
    /// Creates an empty graph for rows of `features` numbers. `outside` is the type of the input, `real` that of the
    /// numbers inside.
    pub fn new(features: usize, outside: Element, real: Element) -> Graph {
        let input = vec![info(INPUT, outside, &[None, Some(features)], "rows, one column for each feature")];
        Graph { real, proto: RefCell::new(GraphProto { name: "relvec".into(), input, ..Default::default() }) }
    }

    /// Returns the input in the type of the numbers inside.
    pub fn input(&self) -> Value<'_> {
        self.node("Cast", vec![INPUT.into()], vec![int("to", self.real as i64)])
    }

    pub fn finish(self) -> GraphProto {
        self.proto.into_inner()
    }

    /// Makes the value an output with a name and a type. `columns` is `None` for a vector.
    pub fn output(&self, name: &str, value: Value<'_>, element: Element, columns: Option<usize>, doc: &str) {
        let mut proto = self.proto.borrow_mut();
        let (kind, attribute) = match element {
            Element::Float | Element::Double => ("Cast", vec![int("to", element as i64)]),
            // Labels have the type of their table.
            _ => ("Identity", vec![]),
        };
        proto.node.push(node(kind, vec![value.name()], name.into(), attribute, format!("output_{name}")));
        let shape: Vec<Option<usize>> = std::iter::once(None).chain(columns.map(Some)).collect();
        proto.output.push(info(name, element, &shape, doc));
    }

    fn node(&self, kind: &str, inputs: Vec<String>, attributes: Vec<AttributeProto>) -> Value<'_> {
        let mut proto = self.proto.borrow_mut();
        let id = proto.node.len() + proto.initializer.len();
        proto.node.push(node(kind, inputs, name(id), attributes, format!("{}_{id}", kind.to_lowercase())));
        Value { graph: self, id }
    }

    fn initializer(&self, data_type: Element, dims: &[usize], raw_data: Option<Vec<u8>>, string_data: Vec<Vec<u8>>) -> Value<'_> {
        let mut proto = self.proto.borrow_mut();
        let id = proto.node.len() + proto.initializer.len();
        let dims = dims.iter().map(|d| *d as i64).collect();
        proto.initializer.push(TensorProto { dims, data_type: data_type as i32, string_data, name: name(id), raw_data });
        Value { graph: self, id }
    }

    /// Adds a constant of real numbers in the shape of `a`.
    pub fn table<S: Data<Elem = f64>, I: Dimension>(&self, a: &ArrayBase<S, I>) -> Value<'_> {
        let bytes = a.iter().flat_map(|v| match self.real {
            Element::Float => (*v as f32).to_le_bytes().to_vec(),
            _ => v.to_le_bytes().to_vec(),
        });
        self.initializer(self.real, a.shape(), Some(bytes.collect()), vec![])
    }

    pub fn scalar(&self, v: f64) -> Value<'_> {
        self.table(&ndarray::arr0(v))
    }

    /// Adds a vector of real numbers.
    pub fn row(&self, v: &[f64]) -> Value<'_> {
        self.table(&ndarray::ArrayView1::from(v))
    }

    /// Adds a vector of whole numbers.
    pub fn wholes(&self, v: &[i64]) -> Value<'_> {
        self.initializer(Element::Int64, &[v.len()], Some(v.iter().flat_map(|v| v.to_le_bytes()).collect()), vec![])
    }

    pub fn doubles(&self, v: &[f64]) -> Value<'_> {
        self.initializer(Element::Double, &[v.len()], Some(v.iter().flat_map(|v| v.to_le_bytes()).collect()), vec![])
    }

    pub fn booleans(&self, v: &[bool]) -> Value<'_> {
        self.initializer(Element::Bool, &[v.len()], Some(v.iter().map(|v| u8::from(*v)).collect()), vec![])
    }

    pub fn words(&self, v: &[String]) -> Value<'_> {
        self.initializer(Element::Text, &[v.len()], None, v.iter().map(|v| v.clone().into_bytes()).collect())
    }

    /// Concatenates values along `axis`.
    pub fn concat<'g>(&'g self, values: &[Value<'g>], axis: i64) -> Value<'g> {
        self.node("Concat", values.iter().map(Value::name).collect(), vec![int("axis", axis)])
    }
}

impl<'g> Value<'g> {
    fn name(&self) -> String {
        name(self.id)
    }

    fn one(self, kind: &str, attributes: Vec<AttributeProto>) -> Value<'g> {
        self.graph.node(kind, vec![self.name()], attributes)
    }

    fn two(self, kind: &str, other: Value<'g>, attributes: Vec<AttributeProto>) -> Value<'g> {
        self.graph.node(kind, vec![self.name(), other.name()], attributes)
    }

    pub fn exp(self) -> Value<'g> {
        self.one("Exp", vec![])
    }

    pub fn sin(self) -> Value<'g> {
        self.one("Sin", vec![])
    }

    /// Returns the remainder of the division by `period`, with the sign of the value.
    pub fn remainder(self, period: f64) -> Value<'g> {
        self.two("Mod", self.graph.scalar(period), vec![int("fmod", 1)])
    }

    pub fn log(self) -> Value<'g> {
        self.one("Log", vec![])
    }

    pub fn sqrt(self) -> Value<'g> {
        self.one("Sqrt", vec![])
    }

    pub fn tanh(self) -> Value<'g> {
        self.one("Tanh", vec![])
    }

    pub fn abs(self) -> Value<'g> {
        self.one("Abs", vec![])
    }

    pub fn square(self) -> Value<'g> {
        self * self
    }

    /// Returns the element-wise maximum.
    pub fn max(self, other: Value<'g>) -> Value<'g> {
        self.two("Max", other, vec![])
    }

    /// Returns the element-wise minimum.
    pub fn min(self, other: Value<'g>) -> Value<'g> {
        self.two("Min", other, vec![])
    }

    pub fn at_least(self, v: f64) -> Value<'g> {
        self.max(self.graph.scalar(v))
    }

    pub fn at_most(self, v: f64) -> Value<'g> {
        self.min(self.graph.scalar(v))
    }

    pub fn matmul(self, other: Value<'g>) -> Value<'g> {
        self.two("MatMul", other, vec![])
    }

    pub fn transpose(self, order: &[i64]) -> Value<'g> {
        self.one("Transpose", vec![ints("perm", order)])
    }

    /// Returns the sum along `axis`, which is removed.
    pub fn sum(self, axis: i64) -> Value<'g> {
        self.two("ReduceSum", self.graph.wholes(&[axis]), vec![int("keepdims", 0)])
    }

    /// Returns the sum along `axis`, which is kept with one entry.
    pub fn sum_kept(self, axis: i64) -> Value<'g> {
        self.two("ReduceSum", self.graph.wholes(&[axis]), vec![int("keepdims", 1)])
    }

    pub fn unsqueeze(self, axis: i64) -> Value<'g> {
        self.two("Unsqueeze", self.graph.wholes(&[axis]), vec![])
    }

    pub fn reshape(self, shape: &[i64]) -> Value<'g> {
        self.two("Reshape", self.graph.wholes(shape), vec![])
    }

    /// Returns the entries `places` along `axis`.
    pub fn take(self, places: &[usize], axis: i64) -> Value<'g> {
        let places: Vec<i64> = places.iter().map(|v| *v as i64).collect();
        self.two("Gather", self.graph.wholes(&places), vec![int("axis", axis)])
    }

    /// Returns the entries of this vector at `places`.
    pub fn at(self, places: Value<'g>) -> Value<'g> {
        self.two("Gather", places, vec![int("axis", 0)])
    }

    pub fn log_softmax(self, axis: i64) -> Value<'g> {
        self.one("LogSoftmax", vec![int("axis", axis)])
    }

    /// Returns the index of the first largest entry along axis 1, `[N]`.
    pub fn largest(self) -> Value<'g> {
        self.one("ArgMax", vec![int("axis", 1), int("keepdims", 0)])
    }

    /// Returns 1 for entries above 0, otherwise 0.
    pub fn is_positive(self) -> Value<'g> {
        let real = self.graph.real as i64;
        self.two("Greater", self.graph.scalar(0.0), vec![]).one("Cast", vec![int("to", real)])
    }
}

macro_rules! operator {
    ($Trait:ident, $method:ident, $kind:literal) => {
        impl<'g> $Trait<Value<'g>> for Value<'g> {
            type Output = Value<'g>;

            fn $method(self, other: Value<'g>) -> Value<'g> {
                self.two($kind, other, vec![])
            }
        }

        impl<'g> $Trait<f64> for Value<'g> {
            type Output = Value<'g>;

            fn $method(self, other: f64) -> Value<'g> {
                self.two($kind, self.graph.scalar(other), vec![])
            }
        }
    };
}

operator!(Add, add, "Add");
operator!(Sub, sub, "Sub");
operator!(Mul, mul, "Mul");
operator!(Div, div, "Div");

impl<'g> Neg for Value<'g> {
    type Output = Value<'g>;

    fn neg(self) -> Value<'g> {
        self.one("Neg", vec![])
    }
}

fn name(id: usize) -> String {
    format!("v{id}")
}

fn node(kind: &str, input: Vec<String>, output: String, attribute: Vec<AttributeProto>, name: String) -> NodeProto {
    NodeProto { input, output: vec![output], name, op_type: kind.into(), attribute }
}

fn int(name: &str, i: i64) -> AttributeProto {
    AttributeProto { name: name.into(), i: Some(i), ints: vec![], kind: INT }
}

fn ints(name: &str, ints: &[i64]) -> AttributeProto {
    AttributeProto { name: name.into(), i: None, ints: ints.to_vec(), kind: INTS }
}

fn info(name: &str, element: Element, shape: &[Option<usize>], doc: &str) -> ValueInfoProto {
    let dimension = |d: &Option<usize>| match d {
        Some(d) => DimensionProto { dim_value: Some(*d as i64), dim_param: None },
        None => DimensionProto { dim_value: None, dim_param: Some("N".into()) },
    };
    let shape = Some(TensorShapeProto { dim: shape.iter().map(dimension).collect() });
    let r#type = Some(TypeProto { tensor_type: Some(TensorTypeProto { elem_type: element as i32, shape }) });
    ValueInfoProto { name: name.into(), r#type, doc_string: doc.into() }
}
