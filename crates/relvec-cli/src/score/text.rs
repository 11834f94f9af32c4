//! The measures as text, with those of a constant prediction.

use crate::layout::{self, Column};
use crate::measures::Measure;
use crate::terminal::{self, Stream};

/// Returns headline, table and the sentences below. `constant`: name of the constant prediction.
pub(super) fn of(headline: &str, constant: &str, measures: &[Measure], sentences: &[String]) -> String {
    let columns = [
        Column::text(""),
        Column::number("model", 0),
        Column::number(&terminal::name(constant), 0),
        Column::text("better is").ranked(1),
    ];
    let row = |own: &Measure| {
        let name = format!("{} ({})", own.name, terminal::name(&own.unit));
        vec![name, own.own(), own.of_constant(), own.better().into()]
    };
    let rows: Vec<Vec<String>> = measures.iter().map(row).collect();
    let (table, _) = layout::table(&columns, &rows, terminal::table_width(Stream::Stdout));
    let mut text = format!("{}\n{table}", terminal::headline(headline, Stream::Stdout));
    for sentence in sentences {
        text += &format!("\n{}\n", terminal::paragraph(sentence, Stream::Stdout));
    }
    text
}
