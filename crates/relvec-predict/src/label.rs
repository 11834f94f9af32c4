//! Class labels.

use core::fmt;

use crate::prelude::*;

use serde::{Deserialize, Serialize};

/// The label of a class in the model file. The core itself only numbers classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected true, false, a number or text")]
pub enum Label {
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A finite number.
    Number(f64),
    /// A text.
    Text(String),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Label::Boolean(value) => value.fmt(f),
            Label::Integer(value) => value.fmt(f),
            Label::Number(value) => value.fmt(f),
            Label::Text(text) => f.write_str(text),
        }
    }
}
