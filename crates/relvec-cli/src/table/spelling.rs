//! Numbers and dates in usual spellings: decimal commas, thousands separators, units.

/// Most characters of a unit.
const LONGEST_UNIT: usize = 12;

/// Decimal mark of a column, found from its cells in order. Commas are decimal marks only if this is possible for every
/// cell of the column.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Marks {
    /// Row and value of the first cell with a comma, and row of the first cell with a point.
    comma: Option<(usize, f64)>,
    point: Option<usize>,
    /// True if a cell excludes that commas separate thousands.
    sure: bool,
}

impl Marks {
    /// The cell is not a number, or it has another decimal mark than an earlier cell. The error is a predicate that
    /// follows the cell.
    pub fn read(&mut self, text: &str, row: usize) -> Result<f64, String> {
        let plain = text.parse().ok();
        let value = plain.or_else(|| decimal_comma(text)).ok_or_else(|| format!("is not a number{}", hint(text)))?;
        let other =
            |has: &str, row, other: &str| format!("has a decimal {has}, and the column has a decimal {other} in row {row}");
        match (plain.is_some(), self.comma, self.point) {
            (true, Some((row, _)), _) if text.contains('.') => return Err(other("point", row, "comma")),
            (false, _, Some(row)) => return Err(other("comma", row, "point")),
            (true, ..) if text.contains('.') => self.point = self.point.or(Some(row)),
            // Four digits in a row, or an exponent, exclude thousands separators.
            (true, ..) => {
                let unsigned = text.trim_start_matches(['+', '-']);
                self.sure |= unsigned.len() > 3 || !unsigned.bytes().all(|b| b.is_ascii_digit());
            }
            (false, ..) => {
                self.comma = self.comma.or(Some((row, value)));
                self.sure |= grouped(text).is_none();
            }
        }
        Ok(value)
    }

    /// Returns the problem if every comma can be a decimal mark or a thousands separator.
    pub fn doubt(&self) -> Option<String> {
        let (row, value) = self.comma.filter(|_| !self.sure)?;
        let text = format!("{value:.3}").replace('.', ",");
        Some(format!("{}, and no cell of the column decides (row {row})", readings(&text)?))
    }

    /// True if a cell had a decimal comma.
    pub fn has_comma(&self) -> bool {
        self.comma.is_some()
    }
}

/// Returns the value of a number with the decimal mark `mark`. Digits may be in groups of three, separated by the other
/// one of point and comma, by spaces or by apostrophes.
pub(super) fn with_decimal(text: &str, mark: char) -> Option<f64> {
    let (whole, decimals) = text.split_once(mark).map_or((text, None), |(whole, decimals)| (whole, Some(decimals)));
    let is_group_mark = |c: char| c != mark && (".,'\u{2019}".contains(c) || c.is_whitespace());
    let digits = whole.trim_start_matches(['+', '-']);
    let whole = match digits.chars().find(|c| is_group_mark(*c)) {
        None => whole.to_string(),
        Some(apart) => {
            let groups: Vec<&str> = digits.split(apart).collect();
            let fits = (1..=3).contains(&groups[0].len()) && groups[1..].iter().all(|group| group.len() == 3);
            if !fits || !groups.iter().all(|group| group.bytes().all(|b| b.is_ascii_digit())) {
                return None;
            }
            whole.replace(apart, "")
        }
    };
    let plain = decimals.map_or(whole.clone(), |decimals| format!("{whole}.{decimals}"));
    // Words such as inf are not accepted as numbers.
    if plain.contains(|c: char| c.is_ascii_digit()) { plain.parse().ok() } else { None }
}

/// Most characters of a date with time and zone.
const LONGEST_DATE: usize = 40;
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// True if `text` is a date or a time of day, such as 2024-03-01, 1.3.2024 10:15, 5-Jan-24 or 10:15:30.
pub(crate) fn is_date(text: &str) -> bool {
    if text.len() > LONGEST_DATE || !text.is_ascii() {
        return false;
    }
    let (first, rest) = text.split_once(['T', ' ']).map_or((text, ""), |(first, rest)| (first, rest.trim()));
    (is_day(first) && (rest.is_empty() || is_time(rest))) || is_time(text) || has_month(text)
}

/// True for a year, a month and a day in numbers, or a year and a month.
fn is_day(text: &str) -> bool {
    let Some(mark) = text.chars().find(|c| "-/.".contains(*c)) else { return false };
    let parts: Vec<&str> = text.split(mark).collect();
    if !parts.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())) {
        return false;
    }
    let within = |part: &str, most: u32| part.len() <= 2 && part.parse().is_ok_and(|n: u32| (1..=most).contains(&n));
    match parts[..] {
        [year, month, day] if year.len() == 4 => within(month, 12) && within(day, 31),
        [a, b, year] if matches!(year.len(), 2 | 4) => (within(a, 31) && within(b, 12)) || (within(a, 12) && within(b, 31)),
        [year, month] if mark != '.' => year.len() == 4 && month.len() == 2 && within(month, 12),
        _ => false,
    }
}

/// True for hours and minutes, with optional seconds and zone.
fn is_time(text: &str) -> bool {
    let end = text.find(|c: char| !(c.is_ascii_digit() || ":.".contains(c))).unwrap_or(text.len());
    let (clock, zone) = text.split_at(end);
    let parts: Vec<&str> = clock.split(':').collect();
    let digits = |part: &&str| (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    let second = |part: &str| part.split_once('.').map_or(part, |(whole, _)| whole).len() == 2;
    let fits = match parts[..] {
        [hour, minute] => digits(&hour) && minute.len() == 2 && digits(&minute),
        [hour, minute, seconds] => digits(&hour) && minute.len() == 2 && digits(&minute) && second(seconds),
        _ => false,
    };
    fits && (zone.is_empty()
        || matches!(zone.trim().to_ascii_uppercase().as_str(), "Z" | "UTC" | "AM" | "PM")
        || zone.starts_with(['+', '-']))
}

/// True for the name of a month with one or two numbers and nothing else.
fn has_month(text: &str) -> bool {
    let words: Vec<&str> = text.split(|c: char| " -/.,".contains(c)).filter(|word| !word.is_empty()).collect();
    let is_number = |word: &&str| word.len() <= 4 && word.bytes().all(|b| b.is_ascii_digit());
    let is_month = |word: &&str| {
        let word = word.to_ascii_lowercase();
        let full = [
            "january",
            "february",
            "march",
            "april",
            "june",
            "july",
            "august",
            "september",
            "sept",
            "october",
            "november",
            "december",
        ];
        MONTHS.contains(&word.as_str()) || full.contains(&word.as_str())
    };
    let (numbers, months) = (words.iter().filter(|w| is_number(w)).count(), words.iter().filter(|w| is_month(w)).count());
    months == 1 && (1..=2).contains(&numbers) && words.len() == numbers + 1
}

/// Returns the value of a number with a decimal comma, such as 0,5 or -1,25e3.
pub(super) fn decimal_comma(text: &str) -> Option<f64> {
    let (whole, rest) = text.split_once(',')?;
    let whole = whole.trim_start_matches(['+', '-']);
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let fits = digits(whole) && text.len() - rest.len() - whole.len() <= 2 && !rest.contains([',', '.']);
    let fits = fits && (!whole.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit()));
    if fits { text.replacen(',', ".", 1).parse().ok() } else { None }
}

/// Returns a number without its commas if these can separate thousands: 1 to 3 digits, then groups of three. The number
/// must not begin with 0.
fn grouped(text: &str) -> Option<String> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut groups = unsigned.split(',');
    let first = groups.next().filter(|first| (1..=3).contains(&first.len()) && !first.starts_with('0'))?;
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let rest: Vec<&str> = groups.collect();
    let fits = digits(first) && !rest.is_empty() && rest.iter().all(|group| group.len() == 3 && digits(group));
    fits.then(|| text.replace(',', ""))
}

/// Returns both readings of a number with commas that may separate thousands.
fn readings(text: &str) -> Option<String> {
    let thousands = grouped(text)?;
    Some(match decimal_comma(text) {
        Some(value) => format!("`{text}` is {value} with a decimal comma and {thousands} with a thousands separator"),
        None => format!("`{text}` is {thousands} with thousands separators"),
    })
}

/// Possible meanings of a cell that a person reads as a number but that is not a plain number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quantity {
    /// Letters after the number; empty for signs such as % or $.
    pub unit: String,
    /// Its possible values, as text.
    pub readings: String,
}

/// Returns the quantity in `text`, such as 5%, $5.50, 1,010 or 12 kg, or `None` for a plain number or another text.
pub(crate) fn quantity(text: &str) -> Option<Quantity> {
    let is_sign = |c: char| "+-\u{2212}".contains(c);
    let is_currency = |c: char| "$\u{a2}\u{a3}\u{a4}\u{a5}\u{20a0}".contains(c) || ('\u{20a0}'..='\u{20cf}').contains(&c);
    let inner = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')).unwrap_or(text);
    let body = inner.trim_start_matches(|c: char| is_sign(c) || is_currency(c) || c.is_whitespace());
    let mark = |c: char| c.is_ascii_digit() || ".,'\u{2019}_".contains(c) || c.is_whitespace();
    let end = body.find(|c| !mark(c)).unwrap_or(body.len());
    let number = body[..end].trim();
    let unit = body[end..].trim();
    // Squares and cubes, such as m2, count as units only after a space. Without a space the text may be a code.
    let apart = body[..end].ends_with(char::is_whitespace) && unit.starts_with(char::is_alphabetic);
    let unit = unit.strip_suffix(['2', '3']).filter(|_| apart).unwrap_or(unit);
    if unit.chars().count() > LONGEST_UNIT || unit.contains(|c: char| c.is_ascii_digit() || ",;:()-".contains(c)) {
        return None;
    }
    let plain = plain(number)?;
    if text.parse::<f64>().is_ok() {
        return None;
    }
    let readings = readings(number).unwrap_or_else(|| match unit {
        "%" => format!("`{text}` is {plain} in percent and {} as a share", plain / 100.0),
        _ => format!("`{text}` is {plain} as a plain number"),
    });
    let letters = unit.chars().any(char::is_alphabetic);
    Some(Quantity { unit: if letters { unit.to_string() } else { String::new() }, readings })
}

/// Returns the value of digits with a decimal mark or in groups of three.
fn plain(number: &str) -> Option<f64> {
    if !number.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let value = number.parse().ok().or_else(|| decimal_comma(number)).or_else(|| grouped(number)?.parse().ok());
    value.or_else(|| {
        // Groups of three separated by one mark, with an optional other mark and decimals.
        let mark = number.chars().find(|c| !c.is_ascii_digit())?;
        let last = number.chars().rev().find(|c| !c.is_ascii_digit())?;
        let (whole, decimals) = if last == mark { (number, "") } else { number.rsplit_once(last)? };
        let groups: Vec<&str> = whole.split(mark).collect();
        let digits = |part: &&str| part.bytes().all(|b| b.is_ascii_digit());
        let fits = ".,".contains(last) || last == mark;
        let fits = fits && (1..=3).contains(&groups[0].len()) && groups[1..].iter().all(|group| group.len() == 3);
        let fits = fits && groups.iter().all(digits) && digits(&decimals);
        if fits { format!("{}.{decimals}", groups.concat()).parse().ok() } else { None }
    })
}

/// Returns advice on a cell that is not a number. It follows the words "is not a number".
pub(super) fn hint(text: &str) -> String {
    let missing = ["none", "-", "."];
    if missing.contains(&text.to_lowercase().as_str()) {
        return format!("; if this means a missing value, use --na {text}");
    }
    if is_date(text) {
        return " but a date or a time".to_string();
    }
    if let Some(readings) = readings(text) {
        return format!(": {readings}; write the number without commas, or set the decimal mark (--decimal . or --decimal ,)");
    }
    if decimal_comma(text).is_some() {
        return " (a decimal point is expected, not a comma)".to_string();
    }
    match quantity(text) {
        Some(quantity) if text.chars().all(|c| c.is_ascii_digit() || " .,'-+\u{2019}\u{a0}\u{202f}".contains(c)) => {
            format!(": {}; set the decimal mark (--decimal . or --decimal ,)", quantity.readings)
        }
        Some(quantity) => format!(": {}; write only the number, without units and separators", quantity.readings),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_commas_are_read() {
        let cases = [("0,124", 0.124), ("-1,5", -1.5), ("+12,", 12.0), (",5", 0.5), ("1,5e-3", 0.0015), ("1234,5", 1234.5)];
        for (text, value) in cases {
            assert_eq!(decimal_comma(text), Some(value), "{text}");
        }
        for text in ["", ",", "-,", "1,2,3", "1.000,5", "a,5", "1,a", "--1,5", "1,+5", "1 ,5", "inf,5"] {
            assert_eq!(decimal_comma(text), None, "{text}");
        }
    }

    fn read(cells: &[&str]) -> (Result<Vec<f64>, String>, Option<String>) {
        let mut marks = Marks::default();
        let values = cells.iter().enumerate().map(|(row, text)| marks.read(text, row + 1)).collect();
        (values, marks.doubt())
    }

    #[test]
    fn commas_are_decimal_marks_if_every_cell_fits_and_one_is_no_thousand() {
        let fits = [
            (&["0,124", "0,311"][..], vec![0.124, 0.311]),
            (&["1,010", "0,5"], vec![1.01, 0.5]),
            (&["1,010", "1200"], vec![1.01, 1200.0]),
            (&["1,010", "1e5"], vec![1.01, 1e5]),
            (&["7", "8"], vec![7.0, 8.0]),
            (&["7.5", "8.123"], vec![7.5, 8.123]),
        ];
        for (cells, values) in fits {
            assert_eq!(read(cells), (Ok(values), None), "{cells:?}");
        }
        for cells in [&["1,010"][..], &["7", "1,010"], &["-123,456", "999"]] {
            assert!(read(cells).1.is_some(), "{cells:?}");
        }
        let (_, doubt) = read(&["7", "1,010"]);
        let expected = "`1,010` is 1.01 with a decimal comma and 1010 with a thousands separator, and no cell of the column \
                        decides (row 2)";
        assert_eq!(doubt.as_deref(), Some(expected));
        for cells in [&["0,5", "1.5"][..], &["1.5", "0,5"], &["0,5", "1,234,567"], &["0,5", "x"]] {
            assert!(read(cells).0.is_err(), "{cells:?}");
        }
    }

    #[test]
    fn a_given_decimal_mark_settles_what_groups_thousands() {
        let cases = [
            ("1,234,567.5", '.', 1234567.5),
            ("1,234", '.', 1234.0),
            ("-1'010.5", '.', -1010.5),
            ("1.234,5", ',', 1234.5),
            ("1.234", ',', 1234.0),
            ("12\u{a0}345,5", ',', 12345.5),
            ("0,5", ',', 0.5),
            ("1e-3", '.', 0.001),
            ("1,5e3", ',', 1500.0),
        ];
        for (text, mark, value) in cases {
            assert_eq!(with_decimal(text, mark), Some(value), "{text}");
        }
        for (text, mark) in
            [("0,5", '.'), ("1,23", '.'), ("1.5", ','), ("1,234,56", '.'), ("1.2.3", '.'), ("5 kg", '.'), ("inf", '.')]
        {
            assert_eq!(with_decimal(text, mark), None, "{text}");
        }
    }

    #[test]
    fn dates_are_told_from_names_and_numbers() {
        let dates = [
            "2024-03-01",
            "1.3.2024",
            "03/14/24",
            "2024-03-01T10:15:30Z",
            "2024-03-01 10:15:30.5+01:00",
            "1.3.2024 10:15",
            "10:15",
            "5-Jan-24",
            "Jan 5, 2024",
            "5 January 2024",
            "March 2024",
            "2024-03",
            "10:15 PM",
        ];
        for text in dates {
            assert!(is_date(text), "{text}");
        }
        for text in [
            "red",
            "May",
            "5",
            "1.5",
            "1.2.3",
            "10-20",
            "18-25",
            "2024",
            "192.168.0.1",
            "May be 5",
            "40.50.60",
            "12:3",
            "a:b",
            "3:1:x",
        ] {
            assert!(!is_date(text), "{text}");
        }
    }

    #[test]
    fn quantities_are_told_from_names() {
        let cases = [
            ("5%", "", "5 in percent and 0.05 as a share"),
            ("$5.50", "", "5.5 as a plain number"),
            ("-$5.50", "", "5.5"),
            ("(5.50)", "", "5.5"),
            ("5,50 \u{20ac}", "", "5.5"),
            ("1,010", "", "1.01 with a decimal comma and 1010 with"),
            ("1,234,567", "", "1234567 with thousands"),
            ("1.234,5", "", "1234.5"),
            ("12 345", "", "12345"),
            ("1'010.5", "", "1010.5"),
            ("12 kg", "kg", "12 as"),
            ("3.5km/h", "km/h", "3.5"),
            ("103 m2", "m", "103"),
        ];
        for (text, unit, readings) in cases {
            let found = quantity(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(found.unit, unit, "{text}");
            assert!(found.readings.contains(readings), "{text}: {}", found.readings);
        }
        for text in
            ["", "red", "5", "-0.5e3", "Q1", "class 3", "10-20", "2020-01-01", "1.2.3", "12:30", "3a4", "3a2", "inf", "%", "a5%"]
        {
            assert_eq!(quantity(text), None, "{text}");
        }
    }
}
