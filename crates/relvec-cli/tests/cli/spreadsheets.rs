//! Ten tables as spreadsheet programs and instruments export them: what `describe` says of each, that its command fits it, and that the
//! numbers are those of the plain table.

use super::support::{Folder, noise, numbers};

const ROWS: usize = 60;

/// What all tables hold: an area, whether there is a garden, and a price.
fn plain() -> Vec<(f64, bool, f64)> {
    let row = |i: usize| {
        let (area, garden) = ((110.0 + 90.0 * noise(3 * i)).round() / 2.0, i.is_multiple_of(3));
        (area, garden, (1000.0 + 2000.0 * area + 50_000.0 * f64::from(u8::from(garden)) + 9000.0 * noise(3 * i + 1)).round())
    };
    (0..ROWS).map(row).collect()
}

/// Digits in groups of three.
fn grouped(value: f64, mark: &str) -> String {
    let digits = format!("{value:.0}");
    let place = |i: usize| if i > 0 && (digits.len() - i).is_multiple_of(3) { mark } else { "" };
    digits.char_indices().map(|(i, digit)| format!("{}{digit}", place(i))).collect()
}

fn table(header: &str, row: impl Fn(f64, bool, f64) -> String) -> String {
    header.to_string() + &plain().into_iter().map(|(area, garden, price)| row(area, garden, price)).collect::<String>()
}

/// Describes the table `d.csv`, fits it by the command that is shown, and returns that, the whole description, and the predictions.
#[track_caller]
fn walk(folder: &Folder, line: &str) -> (String, String, Vec<f64>) {
    let text = folder.ok(line).stdout;
    let command = text.lines().find_map(|line| line.strip_prefix("  relvec ")).expect("a command").to_string();
    // The words as a shell takes them apart.
    let (mut words, mut quoted) = (vec![String::new()], false);
    for c in command.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    let model = words.last().unwrap().clone();
    let run = folder.run_args(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(run.code, 0, "{command}\n{}", run.stderr);
    let reading = ["--decimal", "--sep", "--comment", "--na"].map(|option| words.iter().position(|word| word == option));
    let mut predict = vec!["predict", &model, "d.csv"];
    reading.iter().flatten().for_each(|place| predict.extend(words[*place..place + 2].iter().map(String::as_str)));
    let run = folder.run_args(&predict);
    assert_eq!(run.code, 0, "{predict:?}\n{}", run.stderr);
    (command, text, numbers(&run.csv().1, 0))
}

/// The predictions of the plain table.
fn expected() -> Vec<f64> {
    let text = table("area,garden,price\n", |area, garden, price| format!("{area},{},{price}\n", u8::from(garden)));
    walk(&Folder::with("d.csv", text), "describe d.csv").2
}

#[test]
fn semicolons_decimal_commas_and_a_byte_order_mark() {
    let text = table("\u{feff}Fl\u{e4}che [m\u{b2}];Garten;Preis\r\n", |area, garden, price| {
        format!("{};{};{price},0\r\n", format!("{area:.1}").replace('.', ","), if garden { "ja" } else { "ein" })
    });
    let (command, text, predicted) = walk(&Folder::with("d.csv", text), "describe d.csv");
    assert_eq!(command, "fit d.csv --target Preis -o d.json");
    assert!(text.contains("60 rows, 3 columns; separated by semicolons") && text.contains("2: ein, ja"), "{text}");
    assert!(text.contains("- decimal commas are read in Fl\u{e4}che [m\u{b2}], Preis"), "{text}");
    assert_eq!(predicted, expected());
}

#[test]
fn thousands_separated_by_commas() {
    let text = table("area,garden,price\n", |area, garden, price| {
        format!("{area:.1},{},\"{}\"\n", if garden { "yes" } else { "no" }, grouped(price, ","))
    });
    let folder = Folder::with("d.csv", text);
    folder.fails(
        1,
        "fit d.csv --target price -o m.json",
        &["the target `price`", "with a decimal comma and", "with a thousands separator"],
    );
    let (command, _, predicted) = walk(&folder, "describe d.csv");
    assert_eq!(command, "fit d.csv --target price --decimal . -o d.json");
    assert_eq!(predicted, expected());
}

#[test]
fn thousands_separated_by_points_and_decimal_commas() {
    let text = table("area;garden;price\n", |area, garden, price| {
        let area = format!("{area:.1}").replace('.', ",");
        format!("{area};{};{},00\n", if garden { "yes" } else { "no" }, grouped(price, "."))
    });
    let (command, _, predicted) = walk(&Folder::with("d.csv", text), "describe d.csv");
    assert_eq!(command, "fit d.csv --target price --decimal , -o d.json");
    assert_eq!(predicted, expected());
}

#[test]
fn units_belong_into_the_header() {
    let folder =
        Folder::with("d.csv", table("area,garden,price\n", |area, garden, price| format!("{area} m2,{garden},{price}\n")));
    let unit = ["row 1 (line 2), column `area`", "m2` is not a number", "write only the number, without unit", "--drop area"];
    folder.fails(1, "fit d.csv --target price -o m.json", &unit);
    assert_eq!(walk(&folder, "describe d.csv").0, "fit d.csv --target price --drop area -o d.json");
    let text = table("\"area, m2\",garden (y/n),price [$]\n", |area, garden, price| format!("{area},{garden},{price}\n"));
    let (command, _, predicted) = walk(&Folder::with("d.csv", text), "describe d.csv");
    assert_eq!(command, "fit d.csv --target 'price [$]' -o d.json");
    assert_eq!(predicted, expected());
}

#[test]
fn dates_are_named_with_what_to_do() {
    let text = table("sold,area,garden,price\n", |area, garden, price| format!("03/14/2024,{area},{garden},{price}\n"));
    let folder = Folder::with("d.csv", text);
    folder.fails(1, "fit d.csv --target price -o m.json", &["column `sold`", "`03/14/2024` is a date or a time", "--drop sold"]);
    let (command, text, predicted) = walk(&folder, "describe d.csv");
    assert_eq!(command, "fit d.csv --target price --drop sold -o d.json");
    assert!(text.contains("days since the first date"), "{text}");
    assert_eq!(predicted, expected());
}

#[test]
fn blank_rows_and_separators_behind_the_last_cell() {
    let rows = table("", |area, garden, price| format!("{area};{};{price};;\r\n;;;;\r\n\r\n", u8::from(garden)));
    let folder = Folder::with("d.csv", format!("sep=;\r\narea;garden;price;;\r\n\r\n{rows}"));
    let (command, text, predicted) = walk(&folder, "describe d.csv");
    assert_eq!(command, "fit d.csv --target price -o d.json");
    assert!(text.contains("- 60 rows without any value skipped"), "{text}");
    assert_eq!(predicted, expected());
    let folder = Folder::with("d.csv", "a;y;\n1;2;\n3;4;5\n");
    folder.fails(1, "fit d.csv --target y -o m.json", &["row 2 (line 3) has 3 cells, the header has 2"]);
}

#[test]
fn empty_cells_follow_the_rule_for_missing_cells() {
    let text = table("area,garden,price\n", |area, garden, price| {
        let area = if area < 40.0 { "n/a".to_string() } else { area.to_string() };
        format!(
            "{area},{},{price}\n",
            if area.starts_with('6') {
                ""
            } else if garden {
                "yes"
            } else {
                "no"
            }
        )
    });
    let folder = Folder::with("d.csv", text);
    folder.fails(1, "fit d.csv --target price -o m.json", &["Missing cells in", "area ", "garden ", "--missing drop"]);
    let (command, ..) = walk(&folder, "describe d.csv");
    assert_eq!(command, "fit d.csv --target price --missing mean -o d.json");
}

#[test]
fn spaces_between_columns_and_lines_of_comments() {
    let rows = table("", |area, garden, price| format!("  {area:8.1}   {}  {price:12.1}\n", u8::from(garden)));
    let folder = Folder::with("d.csv", format!("# measured in May\n# by hand\n  area  garden price\n{rows}# end\n"));
    folder.fails(1, "describe d.csv", &["the first line begins with `#`", "--comment #"]);
    let (command, text, predicted) = walk(&folder, "describe d.csv --comment #");
    assert_eq!(command, "fit d.csv --target price --comment '#' -o d.json");
    assert!(text.contains("separated by spaces") && text.contains("cells are separated by spaces"), "{text}");
    assert_eq!(predicted, expected());
    let (command, _, predicted) = walk(&folder, "describe d.csv --comment # --sep space");
    assert_eq!(command, "fit d.csv --target price --sep space --comment '#' -o d.json");
    assert_eq!(predicted, expected());
    folder.fails(1, "fit d.csv --target price --comment # --sep tab -o m.json", &["no column `price`"]);
    folder.fails(2, "fit d.csv --target price --sep ab -o m.json", &["--sep", "comma, semicolon, tab, space"]);
}

#[test]
fn quotes_row_numbers_and_names() {
    let row = |i: usize, (area, garden, price): (f64, bool, f64)| {
        format!("\"{}\",\"Mr. \"\"{i}\"\"\",\"{area}\",\"{}\",\"{price}\"\n", i + 1, if garden { "TRUE" } else { "FALSE" })
    };
    let rows: String = plain().into_iter().enumerate().map(|(i, values)| row(i, values)).collect();
    let folder = Folder::with("d.csv", format!("\"no.\",\"name of owner\",\"area\",\"garden\",\"price\"\n{rows}"));
    let (command, text, predicted) = walk(&folder, "describe d.csv");
    assert_eq!(command, "fit d.csv --target price --drop 'no.,name of owner' -o d.json");
    assert!(text.contains("`no.` counts the rows") && text.contains("2: FALSE, TRUE"), "{text}");
    assert_eq!(predicted, expected());
}

#[test]
fn signs_for_missing_cells_and_another_separator() {
    let text = table("area|garden|price\n", |area, garden, price| {
        format!("{}|{}|{price}\n", if area < 40.0 { "-".to_string() } else { area.to_string() }, u8::from(garden))
    });
    let folder = Folder::with("d.csv", text);
    folder.fails(1, "describe d.csv --target price", &["no column `price`", "area|garden|price"]);
    let text = folder.ok("describe d.csv --sep |").stdout.replace("\n  ", " ");
    assert!(text.contains("`-` is not a number; if this means a missing value, use --na -"), "{text}");
    let (command, ..) = walk(&folder, "describe d.csv --sep | --na -");
    assert_eq!(command, "fit d.csv --target price --missing mean --sep '|' --na - -o d.json");
}
