//! Kernels as text: `0.3*rbf(gamma=0.5)[0,2] + linear`.
//!
//! ```text
//! kernel = term { "+" term }                   term = part { "*" part }, of which at most one is a number
//! part = number | name [ "(" key "=" JSON { "," key "=" JSON } ")" ] [ "[" column { "," column } "]" ]
//! ```

use core::fmt;

use serde_json::{Map, Value, json};

use super::{Factor, Gamma, Kernel, Sum, Term};
use crate::error::{Error, Result};
use crate::prelude::*;

impl Kernel {
    /// Reads a kernel from its name, or from a sum of products of kernels, such as `rbf + linear` or `rbf[0,2] +
    /// 0.5*periodic(period=12)[1]`.
    ///
    /// Numbers are amplitudes of terms. Parentheses contain parameters, as in JSON, and the units of [`Factor`].
    /// Brackets contain columns, counted from 0. `gamma` is used for kernels whose gamma the text does not give. A
    /// single kernel on all columns is not stored as a sum.
    ///
    /// # Errors
    /// [`Error::Parameter`] names the part that cannot be read, or a parameter out of its range.
    pub fn parse(text: &str, gamma: &Gamma) -> Result<Kernel> {
        let mut terms = vec![];
        for own in split(text, '+') {
            let mut term = Term { amplitude: None, factors: vec![] };
            for part in split(own, '*') {
                match part.parse() {
                    Ok(number) if term.amplitude.is_none() => term.amplitude = Some(number),
                    Ok(_) => return Err(misread(text, part, "one number in a product")),
                    Err(_) => term.factors.push(factor(text, part, gamma)?),
                }
            }
            terms.push(term);
        }
        let kernel = match &terms[..] {
            [Term { amplitude: None, factors }] if factors[..] == [Factor::new(factors[0].kernel.clone())] => {
                factors[0].kernel.clone()
            }
            _ => Sum { terms }.into(),
        };
        kernel.check()?;
        Ok(kernel)
    }
}

fn misread(text: &str, found: &str, expected: &str) -> Error {
    Error::Parameter { name: "kernel".into(), found: format!("`{text}`, with `{found}`"), expected: expected.into() }
}

/// Splits a text at marks outside of brackets.
fn split(text: &str, mark: char) -> Vec<&str> {
    let mut depth = 0i32;
    let outside = |c: char| {
        depth += i32::from(matches!(c, '(' | '[')) - i32::from(matches!(c, ')' | ']'));
        c == mark && depth == 0
    };
    text.split(outside).map(str::trim).collect()
}

fn factor(text: &str, part: &str, gamma: &Gamma) -> Result<Factor> {
    let (name, mut rest) = part.split_at(part.find(['(', '[', ' ']).unwrap_or(part.len()));
    let names: Vec<&str> = Kernel::NAMES.iter().copied().filter(|name| *name != "sum").collect();
    if !names.contains(&name) {
        return Err(misread(text, part, &format!("a number or one of {}", names.join(", "))));
    }
    let (mut settings, mut units, mut columns) = (Map::new(), json!([]), None);
    if let Some((inner, behind)) = rest.trim().strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        rest = behind;
        for setting in split(inner, ',') {
            let pair = setting.split_once('=').and_then(|(key, value)| Some((key.trim(), serde_json::from_str(value).ok()?)));
            match pair {
                Some(("units", value)) => units = value,
                Some((key, value)) => _ = settings.insert(key.into(), value),
                None => return Err(misread(text, setting, "a parameter and its value, such as gamma=0.5 or gamma=\"scale\"")),
            }
        }
    }
    if let Some((inner, behind)) = rest.trim().strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        rest = behind;
        let index = |one: &str| one.parse::<usize>().map_err(|_| misread(text, one, "the number of a column, from 0"));
        columns = Some(split(inner, ',').into_iter().map(index).collect::<Result<Vec<_>>>()?);
    }
    if Kernel::from_name(name)?.gamma().is_some() {
        settings.entry("gamma").or_insert(json!(gamma));
    }
    if !rest.trim().is_empty() {
        return Err(misread(text, rest.trim(), "name(parameter=value, ...)[column, ...], joined by + and *"));
    }
    let own = json!({ "kernel": { name: settings }, "columns": columns, "units": units });
    serde_json::from_value(own).map_err(|e| misread(text, part, &format!("parameters of {name}: {e}")))
}

/// Formats the kernel as a text that [`Kernel::parse`] reads. With a precision, such as `{kernel:.4}`, numbers have
/// that many significant digits. There are then spaces around `*` and in lists, where a long text can be broken into
/// lines.
impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let digits = f.precision();
        let Kernel::Sum(sum) = self else { return f.write_str(&factor_text(&Factor::new(self.clone()), digits)) };
        let term = |term: &Term| {
            let amplitude = term.amplitude.map(|own| digits.map_or_else(|| own.to_string(), |digits| rounded(own, digits)));
            let factors = term.factors.iter().map(|factor| factor_text(factor, digits));
            amplitude.into_iter().chain(factors).collect::<Vec<_>>().join(if digits.is_some() { " * " } else { "*" })
        };
        f.write_str(&sum.terms.iter().map(term).collect::<Vec<_>>().join(" + "))
    }
}

fn factor_text(factor: &Factor, digits: Option<usize>) -> String {
    let value = json!(factor.kernel);
    let units = (!factor.units.is_empty()).then(|| format!("units={}", json_text(&json!(factor.units), digits)));
    let own = value[factor.kernel.name()].as_object().into_iter().flatten();
    let all: Vec<String> = own.map(|(key, value)| format!("{key}={}", json_text(value, digits))).chain(units).collect();
    let parameters = if all.is_empty() { String::new() } else { format!("({})", all.join(", ")) };
    let columns = factor.columns.as_ref().map_or(String::new(), |columns| json_text(&json!(columns), digits));
    format!("{}{parameters}{columns}", factor.kernel.name())
}

/// Formats a value as JSON. With `digits`, numbers are rounded and lists have spaces.
fn json_text(value: &Value, digits: Option<usize>) -> String {
    match (value, digits) {
        (Value::Array(values), Some(_)) => {
            format!("[{}]", values.iter().map(|value| json_text(value, digits)).collect::<Vec<_>>().join(", "))
        }
        (Value::Number(number), Some(digits)) if number.is_f64() => {
            number.as_f64().map_or_else(|| number.to_string(), |value| rounded(value, digits))
        }
        _ => value.to_string(),
    }
}

/// Formats a number with `digits` significant digits.
fn rounded(value: f64, digits: usize) -> String {
    format!("{value:.*e}", digits.saturating_sub(1)).parse().map_or_else(|_| value.to_string(), |own: f64| format!("{own:?}"))
}
