//! Numbers and lists for people. Files and JSON contain all digits; these texts are rounded.

use crate::terminal;

/// Returns `value` with `digits` significant digits, with an exponent if that is shorter to read.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let scientific = format!("{value:.*e}", digits - 1);
    let exponent: i32 = scientific.split_once('e').map_or(0, |(_, e)| e.parse().unwrap_or(0));
    let last = digits as i32 - 1 - exponent;
    if !(-4..=6).contains(&exponent) {
        return scientific;
    }
    let plain = format!("{value:.*}", last.max(0) as usize);
    if plain.contains('.') { plain.trim_end_matches('0').trim_end_matches('.').to_string() } else { plain }
}

/// Returns a text such as "1 row" or "2 rows".
pub(crate) fn count(n: usize, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {noun}{plural}")
}

/// Returns a whole number, with commas between groups of three digits from 10,000 on.
pub(crate) fn thousands(n: usize) -> String {
    let digits = n.to_string();
    if n < 10_000 {
        return digits;
    }
    let place = |i: usize| if i > 0 && (digits.len() - i).is_multiple_of(3) { "," } else { "" };
    digits.char_indices().map(|(i, digit)| format!("{}{digit}", place(i))).collect()
}

/// Returns a text such as "5 of 100 rows (5 %)". The share is left out if the count is none, all, or out of fewer than
/// ten.
pub(crate) fn share(part: usize, all: usize, noun: &str) -> String {
    let percent = 100.0 * part as f64 / all as f64;
    let plural = if all == 1 { "" } else { "s" };
    let counts = format!("{} of {} {noun}{plural}", thousands(part), thousands(all));
    match part {
        _ if part == 0 || part >= all || all < 10 => counts,
        _ if percent < 1.0 => format!("{counts} ({} %)", significant(percent, 1)),
        _ => format!("{counts} ({percent:.0} %)"),
    }
}

/// Joins at most `most` names by commas, with long names cut. If there are more, their number follows.
pub(crate) fn list<S: AsRef<str>>(names: &[S], most: usize) -> String {
    let shown = names.iter().take(most).map(|name| cut(&terminal::name(name.as_ref()))).collect::<Vec<_>>().join(", ");
    if names.len() > most { format!("{shown}, ... ({} in all)", names.len()) } else { shown }
}

/// Most characters of a text in a message. Usual names are shorter, but a cell of a damaged table may contain a million
/// characters.
const TEXT_SHOWN: usize = 200;

/// Returns the beginning of a text that may be very long, for a message.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

/// True if the spelling of a whole number contains more than its `value`: 007 and 07 are other names than 7, and so are
/// two long numbers that are equal in 64-bit floating point.
pub(crate) fn is_code(text: &str, value: f64) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    digits.bytes().all(|b| b.is_ascii_digit()) && digits != value.abs().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_name_their_base() {
        assert_eq!(share(5, 100, "row"), "5 of 100 rows (5 %)");
        assert_eq!(share(100, 100, "row"), "100 of 100 rows");
        assert_eq!(share(3, 1_234_567, "row"), "3 of 1,234,567 rows (0.0002 %)");
        assert_eq!(share(2, 5, "row"), "2 of 5 rows");
        assert_eq!(thousands(9999), "9999");
        assert_eq!(thousands(12_345), "12,345");
    }

    #[test]
    fn numbers_keep_their_significant_digits() {
        let cases = [
            (0.0, "0"),
            (0.2, "0.2"),
            (1.0 / 9.0, "0.1111"),
            (-123456.0, "-123456"),
            (12.3456, "12.35"),
            (9.99999, "10"),
            (1e-12, "1.000e-12"),
            (0.00012345, "0.0001234"),
            (0.000012345, "1.234e-5"),
            (1e9, "1.000e9"),
            (f64::INFINITY, "inf"),
        ];
        for (value, text) in cases {
            assert_eq!(significant(value, 4), text);
        }
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(list(&["a", "b"], 2), "a, b");
        assert_eq!(list(&["a", "b", "c"], 2), "a, b, ... (3 in all)");
        assert_eq!(cut(&"\u{e9}".repeat(TEXT_SHOWN)), "\u{e9}".repeat(TEXT_SHOWN));
        assert_eq!(cut(&"\u{e9}".repeat(1 << 20)), format!("{}...", "\u{e9}".repeat(TEXT_SHOWN)));
    }
}
