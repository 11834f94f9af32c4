//! Layout of named values and of tables for a given width, without boxes.

use crate::terminal::{self, Stream};

/// Width of the names; values begin in this column.
const NAMES: usize = 20;
/// Spaces between two columns of a table.
const GAP: usize = 3;

/// Lines of a name and a value. A long value is continued below its beginning.
pub(crate) struct Lines {
    pub text: String,
    /// Names and values as they were given.
    pub pairs: Vec<(String, String)>,
    width: Option<usize>,
}

impl Lines {
    pub fn new(stream: Stream) -> Lines {
        Lines { text: String::new(), pairs: vec![], width: terminal::width(stream) }
    }

    /// Adds a line. A line without a name continues the line above.
    pub fn line(&mut self, name: &str, value: &str) {
        let line = format!("{name:<NAMES$}{}", terminal::name(value));
        // A line that begins with a space is not wrapped.
        self.text += &self.width.map_or_else(|| line.clone(), |width| terminal::wrap(&line, width, NAMES));
        self.text.push('\n');
        self.pairs.push((name.to_string(), value.to_string()));
    }

    /// Adds a sum of terms. If it is longer than the line, each term has its own line.
    pub fn sum(&mut self, name: &str, value: &str) {
        let Some(width) = self.width.filter(|width| NAMES + value.chars().count() > *width) else {
            return self.line(name, value);
        };
        let terms = value.replace(" + ", "\n+ ");
        let room = width.saturating_sub(NAMES);
        let lines: Vec<String> = terms.lines().map(|term| terminal::wrap(&terminal::name(term), room, 4)).collect();
        let indent = " ".repeat(NAMES);
        self.text += &format!("{name:<NAMES$}{}\n", lines.join("\n").replace('\n', &format!("\n{indent}")));
        self.pairs.push((name.to_string(), value.to_string()));
    }
}

/// A column of a table.
pub(crate) struct Column {
    pub title: String,
    /// Text is aligned left, numbers right.
    pub number: bool,
    /// If the table is too wide, the columns of the highest rank are dropped first. Columns of rank 0 are always shown.
    pub rank: usize,
}

impl Column {
    pub fn text(title: &str) -> Column {
        Column { title: title.to_string(), number: false, rank: 0 }
    }

    /// Returns the column with another rank.
    pub fn ranked(self, rank: usize) -> Column {
        Column { rank, ..self }
    }

    pub fn number(title: &str, rank: usize) -> Column {
        Column { title: title.to_string(), number: true, rank }
    }
}

/// Returns the table with a rule under its header, and the titles of the columns dropped to fit into `width`
/// characters. The table may be wider if the remaining columns have rank 0.
pub(crate) fn table(columns: &[Column], rows: &[Vec<String>], width: usize) -> (String, Vec<String>) {
    let length = |text: &str| text.chars().count();
    let widths: Vec<usize> = (columns.iter().enumerate())
        .map(|(k, column)| rows.iter().map(|row| length(&row[k])).chain([length(&column.title)]).max().unwrap_or(0))
        .collect();
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    let total = |shown: &[usize]| shown.iter().map(|k| widths[*k]).sum::<usize>() + GAP * shown.len().saturating_sub(1);
    let mut dropped = vec![];
    while total(&shown) > width
        && let Some(place) = (0..shown.len()).filter(|i| columns[shown[*i]].rank > 0).max_by_key(|i| columns[shown[*i]].rank)
    {
        dropped.push(columns[shown.remove(place)].title.clone());
    }
    let line = |cell: &dyn Fn(usize) -> String| {
        let mut line = String::new();
        for (i, k) in shown.iter().enumerate() {
            let cell = cell(*k);
            let space = " ".repeat(widths[*k] - length(&cell));
            let gap = " ".repeat(if i == 0 { 0 } else { GAP });
            line += &if columns[*k].number { format!("{gap}{space}{cell}") } else { format!("{gap}{cell}{space}") };
        }
        format!("{}\n", line.trim_end())
    };
    let mut text = line(&|k| columns[k].title.clone());
    text += &format!("{}\n", "-".repeat(total(&shown)));
    rows.iter().for_each(|row| text += &line(&|k| terminal::name(&row[k]).into_owned()));
    (text, dropped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_tables_drop_columns_by_their_rank() {
        let columns = [Column::text("model"), Column::number("error", 0), Column::number("time", 2), Column::number("score", 1)];
        let rows = [vec!["rvm".into(), "1.5 ± 0.1".into(), "12".into(), "0.25".into()]];
        let (text, dropped) = table(&columns, &rows, 80);
        let wide = "model       error   time   score\n--------------------------------\nrvm     1.5 ± 0.1     12    0.25\n";
        assert_eq!((text.as_str(), dropped.len()), (wide, 0));
        let (text, dropped) = table(&columns, &rows, 26);
        assert_eq!(text.lines().next(), Some("model       error   score"));
        assert_eq!(dropped, ["time"]);
        let (text, dropped) = table(&columns, &rows, 5);
        assert_eq!((text.lines().next(), dropped.len()), (Some("model       error"), 2));
    }
}
