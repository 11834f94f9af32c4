//! Pieces of HTML. Every text passes [`text`], so that names from tables cannot end an element or an attribute.

use std::borrow::Cow;

use crate::terminal;

/// Most characters of a text. Usual names are shorter, but a cell may contain a million characters.
const LONGEST: usize = 200;
/// Most characters of a value that is a list of names.
const LONGEST_VALUE: usize = 2000;

/// Returns a text for an element or an attribute in double quotes, cut and escaped. Control characters are written as
/// in Rust strings.
pub(super) fn text(raw: &str) -> String {
    paragraph(&shortened(raw, LONGEST))
}

fn shortened(raw: &str, most: usize) -> Cow<'_, str> {
    match raw.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}...", &raw[..end])),
        None => Cow::Borrowed(raw),
    }
}

/// Returns the text of sentences of this program, escaped but not cut, since their names are already short.
pub(super) fn paragraph(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in terminal::name(raw).chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // Invisible characters that change the direction of the text around them.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => out += &c.escape_unicode().to_string(),
            c => out.push(c),
        }
    }
    out
}

/// Returns a table under a caption. The first cell of a row is its header. `words`: columns, counted from 0, that are
/// aligned left.
pub(super) fn table(caption: &str, head: &[&str], rows: &[Vec<String>], words: &[usize]) -> String {
    let class = |k: usize| if words.contains(&k) { " class=\"w\"" } else { "" };
    let head: String =
        head.iter().enumerate().map(|(k, name)| format!("<th scope=\"col\"{}>{}</th>", class(k), text(name))).collect();
    let cell = |(k, cell): (usize, &String)| match k {
        0 => format!("<th scope=\"row\"{}>{}</th>", class(0), text(cell)),
        _ => format!("<td{}>{}</td>", class(k), text(cell)),
    };
    let body: String =
        rows.iter().map(|row| format!("<tr>{}</tr>\n", row.iter().enumerate().map(cell).collect::<String>())).collect();
    let caption = paragraph(caption);
    // A table that is too wide can be scrolled, also by keyboard. Its caption is not scrolled.
    let scroll = format!("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">");
    format!(
        "<div class=\"table\"><p class=\"small\">{caption}</p>\n{scroll}<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div></div>\n"
    )
}

/// Returns a section under a heading, or nothing if the body is empty.
pub(super) fn section(id: &str, heading: &str, body: &str) -> String {
    if body.is_empty() {
        return String::new();
    }
    format!("<section aria-labelledby=\"{id}\"><h2 id=\"{id}\">{}</h2>\n{body}</section>\n", paragraph(heading))
}

/// Returns a list of named values, such as settings.
pub(super) fn list(pairs: &[(String, String)]) -> String {
    let one = |(name, value): &(String, String)| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>\n", text(name), paragraph(&shortened(value, LONGEST_VALUE)))
    };
    format!("<dl>{}</dl>\n", pairs.iter().map(one).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_element_or_its_attribute() {
        assert_eq!(text("<script>\"&'\u{0}\n\u{202e}"), "&lt;script&gt;&quot;&amp;&#39;\\u{0}\\n\\u{202e}");
        assert!(text(&"é".repeat(1 << 20)).len() < 2 * LONGEST + 4);
        let cells = [vec!["</table>".to_string(), "1".into()]];
        let html = table("<b>", &["<i>", "x"], &cells, &[0]);
        assert!(!html.contains("<b>") && !html.contains("<i>") && html.matches("</table>").count() == 1);
    }
}
