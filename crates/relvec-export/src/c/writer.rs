//! Writes C code from templates. `name_` and `NAME_` are the prefix of every identifier, `part_` that of one of several
//! models, and `$` is the suffix of single precision.

use std::cell::Cell;

use super::rounded::Rounded;

/// The text written so far, and the memory of its tables.
pub(super) struct Writer {
    pub out: String,
    /// True if numbers are in single precision.
    pub single: bool,
    /// True if centres are 16-bit whole numbers.
    pub whole_centres: bool,
    /// True if triangular factors are 16-bit whole numbers.
    pub whole_triangles: bool,
    name: String,
    /// Bytes of all tables.
    pub table_bytes: usize,
    /// True if a number was beyond the range of the precision.
    pub overflow: Cell<bool>,
}

impl Writer {
    pub fn new(name: &str, single: bool, whole: Option<Rounded>) -> Writer {
        let whole_triangles = whole.is_some_and(|whole| whole.triangles);
        let overflow = Cell::new(false);
        Writer {
            overflow,
            out: String::new(),
            single,
            whole_centres: whole.is_some(),
            whole_triangles,
            name: name.into(),
            table_bytes: 0,
        }
    }

    /// Returns the bytes of a number.
    pub fn size(&self) -> usize {
        if self.single { 4 } else { 8 }
    }

    /// Appends a template. `part` is the number of one of several models, and `values` replace `{key}`.
    pub fn code(&mut self, part: Part, template: &str, values: &[(&str, String)]) {
        let text = self.filled(part, template, values);
        self.out += &text;
        self.out.push('\n');
    }

    /// Returns a template with its names and values filled in.
    pub fn filled(&self, part: Part, template: &str, values: &[(&str, String)]) -> String {
        let prefix = part.map_or(format!("{}_", self.name), |k| format!("{}_{k}_", self.name));
        let mut text = template.replace("part_", &prefix).replace("name_", &format!("{}_", self.name));
        text = text.replace("NAME_", &format!("{}_", self.name.to_uppercase())).replace('$', if self.single { "f" } else { "" });
        for (key, value) in values {
            text = text.replace(&format!("{{{key}}}"), value);
        }
        text
    }

    /// Returns a number rounded to the precision.
    pub fn rounded(&self, v: f64) -> f64 {
        if self.single { f64::from(v as f32) } else { v }
    }

    /// Returns a number with all digits of the precision. A number beyond its range sets `overflow`.
    pub fn number(&self, v: f64) -> String {
        match self.rounded(v) {
            v if !v.is_finite() => {
                self.overflow.set(true);
                "INFINITY".into()
            }
            v if self.single => format!("{:e}f", v as f32),
            v => format!("{v:e}"),
        }
    }

    /// Writes a table of numbers.
    pub fn table(&mut self, part: Part, name: &str, values: impl IntoIterator<Item = f64>) {
        let cells: Vec<String> = values.into_iter().map(|v| self.number(v)).collect();
        self.table_bytes += cells.len() * self.size();
        self.cells(part, "name_real", name, &cells);
    }

    /// Writes a table of numbers that may be infinite.
    pub fn table_with_infinities(&mut self, part: Part, name: &str, values: impl IntoIterator<Item = f64>) {
        let before = self.overflow.get();
        self.table(part, name, values);
        self.overflow.set(before);
    }

    /// Writes a table of whole numbers from -32,767 to 32,767.
    pub fn wholes(&mut self, part: Part, name: &str, values: impl IntoIterator<Item = f64>) {
        let cells: Vec<String> = values.into_iter().map(|v| v.to_string()).collect();
        self.table_bytes += cells.len() * 2;
        self.cells(part, "short", name, &cells);
    }

    /// Writes a table of integers, with four bytes for each if one is above 65,535. The memory of an AVR is too small for so
    /// many columns.
    pub fn places(&mut self, part: Part, name: &str, values: &[usize]) {
        let cells: Vec<String> = values.iter().map(ToString::to_string).collect();
        let short = values.iter().all(|v| *v <= usize::from(u16::MAX));
        let (kind, bytes) = if short { ("unsigned short", 2) } else { ("unsigned long", 4) };
        self.table_bytes += cells.len() * bytes;
        self.cells(part, kind, name, &cells);
    }

    fn cells(&mut self, part: Part, kind: &str, name: &str, cells: &[String]) {
        if cells.is_empty() {
            return;
        }
        // Six numbers in double precision fill a line.
        let lines: Vec<String> = cells.chunks(6).map(|line| format!("    {}", line.join(", "))).collect();
        let values = [("length", cells.len().to_string()), ("cells", lines.join(",\n"))];
        self.code(part, &format!("static const {kind} part_{name}[{{length}}] NAME_TABLE = {{\n{{cells}}\n}};\n"), &values);
    }
}

/// Number of one of several models; `None` for the model itself.
pub(super) type Part = Option<usize>;

/// Returns text that is valid in a comment.
pub(super) fn comment(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() || c == '\\' { ' ' } else { c }).collect();
    plain.replace("*/", "* /").replace("/*", "/ *")
}

/// Returns text as a string literal.
pub(super) fn literal(text: &str) -> String {
    let byte = |b: u8| match b {
        b'"' | b'\\' | b'?' => format!("\\{}", b as char),
        b' '..=b'~' => (b as char).to_string(),
        // An escape of three octal digits ends, whatever follows.
        _ => format!("\\{b:03o}"),
    };
    format!("\"{}\"", text.bytes().map(byte).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::Writer;

    #[test]
    fn tables_of_columns_hold_every_column() {
        for (last, kind) in [(65_535, "unsigned short"), (65_536, "unsigned long")] {
            let mut w = Writer::new("model", false, None);
            w.places(None, "columns", &[0, last]);
            assert!(
                w.out.contains(&format!("static const {kind} model_columns[2]")) && w.out.contains(&last.to_string()),
                "{}",
                w.out
            );
        }
    }
}
