//! Kernels as text: `0.3*rbf(gamma=0.5)[0,2] + linear`.
//!
//! ```text
//! kernel = term { "+" term }                   term = part { "*" part }, of which at most one is a number
//! part = number | name [ "(" key "=" JSON { "," key "=" JSON } ")" ] [ "[" column { "," column } "]" ]
//! column = whole number | name of a feature | the name as a JSON string
//! ```

use core::fmt;

use serde_json::{Map, Value, json};

use super::{Factor, Gamma, Kernel, Sum, Term};
use crate::error::{Error, Result};
use crate::prelude::*;

/// Most features that an error lists.
const FEATURES_SHOWN: usize = 10;

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
        Kernel::parse_named(text, gamma, &[])
    }

    /// Reads a kernel as [`Kernel::parse`] does, with names of features in brackets: `rbf[age,"net income"]`. The
    /// kernel contains the positions of the features in `features`, `[D]`.
    ///
    /// A name that contains a comma, a bracket or a quotation mark is written as a JSON string. So is a name that is a
    /// whole number, because a number without quotation marks is a position. The name of a column of categories stands
    /// for all of its features, such as `colour=blue` and `colour=red`. The name of a column with an indicator stands
    /// for both features, such as `age` and `age is missing`.
    ///
    /// # Errors
    /// [`Error::Parameter`] names the part that cannot be read, a parameter out of its range, or an unknown name with
    /// the features whose names are nearest.
    ///
    /// ```
    /// use relvec_predict::{Gamma, Kernel};
    ///
    /// let features = ["age", "colour=blue", "colour=red", "net income"].map(String::from);
    /// let kernel = Kernel::parse_named("rbf[age,\"net income\"] + linear[colour]", &Gamma::default(), &features)?;
    /// assert_eq!(kernel, Kernel::parse("rbf[0,3] + linear[1,2]", &Gamma::default())?);
    /// assert_eq!(kernel.to_text(Some(4), &features), "rbf(gamma=\"scale\")[age, \"net income\"] + linear[colour]");
    /// # Ok::<(), relvec_predict::Error>(())
    /// ```
    pub fn parse_named(text: &str, gamma: &Gamma, features: &[String]) -> Result<Kernel> {
        parse(text, gamma, &mut |name| {
            let places = named(name, features);
            if places.is_empty() { Err(misread(text, name, &nearest(name, features))) } else { Ok(places) }
        })
    }

    /// Returns the names of features in the brackets of a text, in their order.
    ///
    /// # Errors
    /// Returns an error for a text that [`Kernel::parse_named`] rejects whatever the features.
    pub fn names(text: &str) -> Result<Vec<String>> {
        let mut names: Vec<String> = vec![];
        parse(text, &Gamma::default(), &mut |name| {
            let place = names.iter().position(|own| own == name).unwrap_or(names.len());
            if place == names.len() {
                names.push(name.into());
            }
            // No number of a column is so large.
            Ok(vec![usize::MAX - place])
        })?;
        Ok(names)
    }
}

/// Reads a kernel. `find` returns the columns of a name.
fn parse(text: &str, gamma: &Gamma, find: &mut dyn FnMut(&str) -> Result<Vec<usize>>) -> Result<Kernel> {
    let mut terms = vec![];
    for own in split(text, '+') {
        let mut term = Term { amplitude: None, factors: vec![] };
        for part in split(own, '*') {
            match part.parse() {
                Ok(number) if term.amplitude.is_none() => term.amplitude = Some(number),
                Ok(_) => return Err(misread(text, part, "one number in a product")),
                Err(_) => term.factors.push(factor(text, part, gamma, find)?),
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

fn misread(text: &str, found: &str, expected: &str) -> Error {
    Error::Parameter { name: "kernel".into(), found: format!("`{text}`, with `{found}`"), expected: expected.into() }
}

/// Returns the places in `text` where a character for which `is` holds stands outside of quotation marks, after `depth`
/// more opening than closing brackets. A bracket belongs to the text inside of it.
fn outside<'a>(text: &'a str, depth: i32, is: impl Fn(char) -> bool + 'a) -> impl Iterator<Item = usize> + 'a {
    let (mut open, mut quoted, mut escaped) = (0, false, false);
    let mut counts = move |c: char| {
        quoted ^= c == '"' && !escaped;
        escaped = quoted && !escaped && c == '\\';
        open += i32::from(!quoted && matches!(c, '(' | '['));
        let here = !quoted && open == depth;
        open -= i32::from(!quoted && matches!(c, ')' | ']'));
        here
    };
    text.char_indices().filter(move |(_, c)| counts(*c) && is(*c)).map(|(place, _)| place)
}

/// Splits a text at marks outside of brackets and quotation marks.
fn split(text: &str, mark: char) -> Vec<&str> {
    let mut start = 0;
    let ends: Vec<usize> = outside(text, 0, move |c| c == mark).chain([text.len()]).collect();
    let next = |end: usize| text[core::mem::replace(&mut start, end + mark.len_utf8())..end].trim();
    ends.into_iter().map(next).collect()
}

/// Returns the text between the brackets that `text` begins with, and the text behind them.
fn enclosed(text: &str, open: char, close: char) -> Option<(&str, &str)> {
    let end = outside(text, 1, move |c| c == close).next().filter(|_| text.starts_with(open))?;
    Some((&text[open.len_utf8()..end], &text[end + close.len_utf8()..]))
}

fn factor(text: &str, part: &str, gamma: &Gamma, find: &mut dyn FnMut(&str) -> Result<Vec<usize>>) -> Result<Factor> {
    let (name, mut rest) = part.split_at(part.find(['(', '[', ' ']).unwrap_or(part.len()));
    let names: Vec<&str> = Kernel::NAMES.iter().copied().filter(|name| *name != "sum").collect();
    if !names.contains(&name) {
        return Err(misread(text, part, &format!("a number or one of {}", names.join(", "))));
    }
    let (mut settings, mut units, mut columns) = (Map::new(), json!([]), None);
    if let Some((inner, behind)) = enclosed(rest.trim(), '(', ')') {
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
    if let Some((inner, behind)) = enclosed(rest.trim(), '[', ']') {
        rest = behind;
        let mut all: Vec<usize> = vec![];
        for one in split(inner, ',') {
            let places = match (one.parse(), one.starts_with('"')) {
                (Ok(place), _) => vec![place],
                (Err(_), false) => find(one)?,
                (Err(_), true) => {
                    let name = serde_json::from_str::<String>(one);
                    find(&name.map_err(|_| misread(text, one, "a name between two quotation marks, as in JSON"))?)?
                }
            };
            if places.iter().any(|place| all.contains(place)) {
                return Err(misread(text, one, "each column once in a kernel"));
            }
            all.extend(places);
        }
        columns = Some(all);
    }
    if Kernel::from_name(name)?.gamma().is_some() {
        settings.entry("gamma").or_insert(json!(gamma));
    }
    if !rest.trim().is_empty() {
        let expected = "name(parameter=value, ...)[column, ...], joined by + and *; names of columns with commas or brackets in \
                        quotation marks";
        return Err(misread(text, rest.trim(), expected));
    }
    let own = json!({ "kernel": { name: settings }, "columns": columns, "units": units });
    serde_json::from_value(own).map_err(|e| misread(text, part, &format!("parameters of {name}: {e}")))
}

/// Returns the positions of the features that a name stands for: a feature, or else all features `NAME=CATEGORY`, and
/// the indicator `NAME is missing`. There are none if the name is unknown.
fn named(name: &str, features: &[String]) -> Vec<usize> {
    let rest = |d: &usize| features[*d].strip_prefix(name);
    let all = |is: &dyn Fn(&str) -> bool| (0..features.len()).filter(|d| rest(d).is_some_and(is)).collect::<Vec<_>>();
    let mut own = all(&str::is_empty);
    if own.is_empty() {
        own = all(&|rest| rest.starts_with('='));
    }
    if !own.is_empty() {
        own.extend(all(&|rest| rest == " is missing"));
    }
    own
}

/// Returns the expectation for an unknown name, with the features whose names are nearest.
fn nearest(name: &str, features: &[String]) -> String {
    if features.is_empty() {
        return "the number of a column, from 0, because the features have no names".into();
    }
    let mut order: Vec<&String> = features.iter().collect();
    order.sort_by_cached_key(|feature| distance(name, feature));
    let shown: Vec<&str> = order.iter().take(FEATURES_SHOWN).map(|feature| feature.as_str()).collect();
    let more = if features.len() > FEATURES_SHOWN { format!(", ... ({} in all)", features.len()) } else { String::new() };
    format!("a feature, of which the nearest are {}{more}", shown.join(", "))
}

/// Returns the number of characters to insert, delete or replace in one text to get the other, in any case of letters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, own) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = core::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let least = (diagonal + usize::from(own != *other)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = core::mem::replace(&mut row[j + 1], least);
        }
    }
    row[b.len()]
}

/// Formats the kernel as [`Kernel::to_text`] does, with numbers of columns. A precision, such as `{kernel:.4}`, gives the
/// number of significant digits.
impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.to_text(f.precision(), &[]))
    }
}

impl Kernel {
    /// Most values of gamma, and most pairs of units, in a text with few digits.
    #[doc(hidden)]
    pub const NUMBERS_SHOWN: usize = 4;

    /// Returns the kernel as a text that [`Kernel::parse_named`] reads with the same `features`, `[D]`. Columns without a
    /// name, or with a name that stands for other columns as well, are written as numbers.
    ///
    /// With `digits`, numbers have that many significant digits. There are then spaces around `*` and in lists, where a
    /// long text can be broken into lines. Of more than four values of gamma, and of more than four pairs of units, only
    /// the number is then written, as in `gamma=[5 values]`. Such a text is not read as a kernel.
    pub fn to_text(&self, digits: Option<usize>, features: &[String]) -> String {
        let Kernel::Sum(sum) = self else { return factor_text(&Factor::new(self.clone()), digits, features) };
        let term = |term: &Term| {
            let amplitude = term.amplitude.map(|own| digits.map_or_else(|| own.to_string(), |digits| rounded(own, digits)));
            let factors = term.factors.iter().map(|factor| factor_text(factor, digits, features));
            amplitude.into_iter().chain(factors).collect::<Vec<_>>().join(if digits.is_some() { " * " } else { "*" })
        };
        sum.terms.iter().map(term).collect::<Vec<_>>().join(" + ")
    }
}

fn factor_text(factor: &Factor, digits: Option<usize>, features: &[String]) -> String {
    let value = json!(factor.kernel);
    let many = |length: usize| digits.is_some() && length > Kernel::NUMBERS_SHOWN;
    let units = (!factor.units.is_empty()).then(|| match factor.units.len() {
        pairs if many(pairs) => format!("units=[{pairs} pairs]"),
        _ => format!("units={}", json_text(&json!(factor.units), digits)),
    });
    let own = value[factor.kernel.name()].as_object().into_iter().flatten();
    let parameter = |(key, value): (&String, &Value)| match value.as_array() {
        Some(values) if many(values.len()) => format!("{key}=[{} values]", values.len()),
        _ => format!("{key}={}", json_text(value, digits)),
    };
    let all: Vec<String> = own.map(parameter).chain(units).collect();
    let parameters = if all.is_empty() { String::new() } else { format!("({})", all.join(", ")) };
    let gap = if digits.is_some() { ", " } else { "," };
    let columns = factor.columns.as_ref().map_or(String::new(), |own| format!("[{}]", column_texts(own, features).join(gap)));
    format!("{}{parameters}{columns}", factor.kernel.name())
}

/// Returns the texts of columns: the name that stands for the next columns, or else the number of the next one.
fn column_texts(columns: &[usize], features: &[String]) -> Vec<String> {
    let (mut texts, mut rest) = (vec![], columns);
    while let Some(first) = rest.first() {
        let feature = features.get(*first).map_or("", String::as_str);
        // The name of a column of categories is the text before an equals sign of its features.
        let names = feature.match_indices('=').map(|(end, _)| &feature[..end]).chain([feature]);
        let stands = |name: &&str| {
            let own = named(name, features);
            !own.is_empty() && rest.starts_with(&own)
        };
        let name = names.into_iter().find(stands);
        texts.push(name.map_or_else(|| first.to_string(), name_text));
        rest = &rest[name.map_or(1, |name| named(name, features).len())..];
    }
    texts
}

/// Returns the name of a column, in quotation marks if it could be read as anything else.
fn name_text(name: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !"()[],\"".contains(c);
    let is_plain = !name.is_empty() && name.chars().all(plain) && name.parse::<usize>().is_err();
    if is_plain { name.into() } else { json!(name).to_string() }
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
