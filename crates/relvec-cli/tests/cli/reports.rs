//! Reports: pages that say what `score` says, that need nothing else, and that no name of a table breaks.

use super::support::{Folder, noise, numbers, regression_table, three_classes};

/// The page that `line` writes, checked for what every page has.
#[track_caller]
fn page(folder: &Folder, line: &str) -> String {
    folder.ok(&format!("report {line} -o page.html"));
    let page = folder.read("page.html");
    check(&page);
    page
}

/// A page asks for nothing, and its tags match.
#[track_caller]
fn check(page: &str) {
    for request in ["http", "src=", "url(", "<script", "<link", "@import", "NaN", "href"] {
        assert!(!page.contains(request), "{request}");
    }
    assert!(page.starts_with("<!DOCTYPE html>") && page.len() < 500_000, "{} bytes", page.len());
    let (head, rest) = page.split_once("<style>").unwrap();
    let body = rest.split_once("</style>").unwrap().1;
    let mut open: Vec<&str> = vec![];
    for piece in head.split('<').skip(2).chain(body.split('<').skip(1)) {
        let (tag, text) = piece.split_once('>').expect("a tag ends");
        assert!(!text.contains('>') && tag.matches('"').count() % 2 == 0, "<{piece}");
        let name = tag.split([' ', '/']).find(|part| !part.is_empty()).unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "</{name}>");
        } else if name != "meta" && !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} are not closed");
}

/// The measures of `score`, each by its name and its number of the model, are in the page.
#[track_caller]
fn has_scores(folder: &Folder, page: &str, files: &str) {
    let score = folder.ok(&format!("score {files}")).stdout;
    let lines: Vec<&str> = score.lines().skip(4).take_while(|line| !line.is_empty()).collect();
    assert!(!lines.is_empty(), "{score}");
    for line in lines {
        let (name, rest) = line.split_once(')').unwrap();
        let own = rest.split_whitespace().next().unwrap();
        let cell = format!("{name})</th><td>{own}</td>");
        assert!(page.contains(&cell), "{cell}");
    }
}

fn rows(n: usize, columns: impl Fn(usize) -> String, head: &str) -> String {
    format!("{head}\n{}", (0..n).map(|i| columns(i) + "\n").collect::<String>())
}

#[test]
fn a_page_on_values_has_the_scores_and_the_coverage() {
    let folder = Folder::with("d.csv", regression_table(60, ",")).add("new.csv", regression_table(97, ","));
    for settings in ["", "--likelihood student_t", "--machine svm", "--weight-prior ard"] {
        folder.ok(&format!("fit d.csv --target y {settings} -o m.json"));
        let page = page(&folder, "m.json new.csv");
        has_scores(&folder, &page, "m.json new.csv");
        for text in ["Observed against predicted", "Residuals against predicted", "Rows with the largest residuals"] {
            assert!(page.contains(text), "{settings}: {text}");
        }
        if settings == "--machine svm" {
            assert!(!page.contains("Coverage of intervals") && page.contains("Support vectors"));
            continue;
        }
        let (_, truth) = super::support::parse_csv(&folder.read("new.csv"));
        let truth = numbers(&truth, 2);
        for level in ["0.5", "0.8", "0.99"] {
            let (_, found) = folder.ok(&format!("predict m.json new.csv --level {level}")).csv();
            let (lower, upper) = (numbers(&found, 2), numbers(&found, 3));
            let inside = (0..97).filter(|i| lower[*i] <= truth[*i] && truth[*i] <= upper[*i]).count();
            let percent = 100.0 * level.parse::<f64>().unwrap();
            let cells = format!("{percent} %</th><td>{:.1} %</td><td>{inside} of 97</td>", 100.0 * inside as f64 / 97.0);
            assert!(page.contains(&cells), "{settings}: {cells}");
        }
    }
}

#[test]
fn a_page_on_classes_has_the_scores_and_the_confusions() {
    for names in [["a", "b", "b"], ["a", "b", "c"]] {
        let folder = Folder::with("d.csv", three_classes(60, names)).add("new.csv", three_classes(150, names));
        for settings in ["", "--weight-prior ard", "--machine svm", "--machine svm --probability"] {
            folder.ok(&format!("fit d.csv --target kind {settings} -o m.json"));
            let page = page(&folder, "m.json new.csv");
            has_scores(&folder, &page, "m.json new.csv");
            let (_, found) = folder.ok("predict m.json new.csv").csv();
            let right = (0..150).filter(|i| i % 3 == 0 && found[*i][0] == "a").count();
            assert!(page.contains(&format!("<th scope=\"row\" class=\"w\">a</th><td>{right}</td>")), "{right}");
            let probable = settings != "--machine svm";
            assert_eq!(page.contains("Reliability"), probable, "{settings}");
            // Functions of pairs have no names of classes.
            let pairs = settings.contains("svm") && names[2] == "c";
            assert_eq!(["b/a", "c/a", "c/b"].iter().all(|pair| page.contains(&format!(">{pair}</th>"))), pairs, "{settings}");
            assert_eq!(page.contains("ROC curve"), probable || names[2] == "b", "{settings}");
        }
    }
}

#[test]
fn a_page_on_counts_has_their_deviance() {
    let line = |i: usize| {
        let (x, days) = (3.0 * noise(2 * i), 1 + i % 5);
        let expected = (1.0 + x.sin()).exp() * days as f64;
        format!("{x},{days},{}", (expected + expected.sqrt() * noise(2 * i + 1)).round().max(0.0))
    };
    let folder = Folder::with("d.csv", rows(120, line, "x,days,visits"));
    folder.ok("fit d.csv --target visits --likelihood poisson --exposure days -o m.json");
    let page = page(&folder, "m.json d.csv --exposure days");
    let (_, found) = folder.ok("predict m.json d.csv --exposure days").csv();
    let (_, table) = super::support::parse_csv(&folder.read("d.csv"));
    let (mean, truth, days) = (numbers(&found, 0), numbers(&table, 2), numbers(&table, 1));
    let deviance = |mean: &dyn Fn(usize) -> f64| {
        let one = |i: usize| 2.0 * (if truth[i] > 0.0 { truth[i] * (truth[i] / mean(i)).ln() } else { 0.0 } - truth[i] + mean(i));
        format!("{:.3}", (0..120).map(one).sum::<f64>() / 120.0)
    };
    let rate = truth.iter().sum::<f64>() / days.iter().sum::<f64>();
    let cell = |name: &str, place: usize| -> f64 {
        let row = page.split(&format!("{name}</th>")).nth(1).unwrap();
        row.split("<td>").nth(place).unwrap().split('<').next().unwrap().parse().unwrap()
    };
    for (place, expected) in [(1, deviance(&|i| mean[i])), (2, deviance(&|i| rate * days[i]))] {
        let (found, expected) = (cell("Poisson deviance (per row)", place), expected.parse::<f64>().unwrap());
        assert!((found - expected).abs() < 0.006 * expected, "{found} {expected}");
    }
    assert!(cell("NLPD (nats)", 1) < cell("NLPD (nats)", 2));
    assert!(page.contains("trained on 120 rows too"));
    folder.fails(1, "report m.json d.csv --noise-variance days -o page2.html", &["trained with such a column"]);
}

#[test]
fn several_targets_have_a_section_each_and_one_may_be_missing() {
    let line = |i: usize| {
        let x = 3.0 * noise(i);
        format!("{x},{},{}", x.sin() + 0.1 * noise(i + 500), 100.0 * x.cos() + 5.0 * noise(i + 900))
    };
    let folder = Folder::with("d.csv", rows(80, line, "x,slope,height"));
    let alone = folder.read("d.csv").lines().map(|l| l.rsplit_once(',').unwrap().0.to_string() + "\n").collect::<String>();
    let folder = folder.add("slope.csv", alone);
    folder.ok("fit d.csv --target slope --target height -o m.json");
    let both = page(&folder, "m.json d.csv");
    assert!(both.contains("Predictions of `slope`") && both.contains("Predictions of `height`"));
    has_scores(&folder, &both, "m.json d.csv --target height");
    let one = page(&folder, "m.json slope.csv");
    assert!(one.contains("Predictions of `slope`") && !one.contains("Predictions of `height`"));
    assert!(one.contains("the table has no column height"));
    let asked = page(&folder, "m.json d.csv --target height");
    assert!(!asked.contains("Predictions of `slope`") && asked.contains("Predictions of `height`"));
    folder.fails(1, "report m.json slope.csv --target height -o no.html", &["height", "--target"]);
}

#[test]
fn without_the_target_the_page_is_on_the_model_alone() {
    let table = regression_table(40, ",");
    let features = table.lines().map(|l| l.rsplit_once(',').unwrap().0.to_string() + "\n").collect::<String>();
    let folder = Folder::with("d.csv", &table).add("x.csv", features);
    folder.ok("fit d.csv --target y -o m.json");
    for line in ["m.json", "m.json x.csv"] {
        let page = page(&folder, line);
        assert!(page.contains("describes only the model") && page.contains("Features") && !page.contains("RMSE"), "{line}");
        assert_eq!(page.contains("the table has no column y"), line.contains("x.csv"));
    }
    folder.fails(1, "report m.json x.csv --target y -o no.html", &["there is no column `y`"]);
    folder.fails(2, "report m.json d.csv -o m.json", &["m.json"]);
    folder.fails(2, "report m.json d.csv", &["--output"]);
    folder.fails(1, "report m.json d.csv --exposure a -o no.html", &["--exposure is for models of counts"]);
    folder.fails(1, "report none.json d.csv -o no.html", &["none.json"]);
}

#[test]
fn rows_keep_their_numbers_where_others_are_left_out() {
    // Row 0 has a missing cell; row 5 is far from what it should be.
    let line = |i: usize| {
        let x = 3.0 * noise(i);
        let y = x.sin() + 0.05 * noise(i + 500) + if i == 5 { 40.0 } else { 0.0 };
        format!("{},{},{y}", if i == 0 { String::new() } else { x.to_string() }, if i.is_multiple_of(2) { "red" } else { "blue" })
    };
    let folder = Folder::with("d.csv", rows(60, line, "x,colour,y"));
    folder.ok("fit d.csv --target y --missing drop --likelihood student_t -o m.json");
    let page = page(&folder, "m.json d.csv");
    let largest = page.split("Rows with the largest residuals").nth(2).unwrap();
    assert!(largest.split("<tbody>").nth(1).unwrap().starts_with("<tr><th scope=\"row\">5</th>"), "{largest}");
    assert!(page.contains("1 of 60 rows (2 %) with missing cells left out"));
    assert!(page.contains("colour (blue, red)"), "categories are named");
}

#[test]
fn names_from_a_table_do_not_become_part_of_the_page() {
    let names = ["<script>alert(1)</script>", "a&b\"c'd", "</title></style><img onerror=x>"];
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect();
    let class = ["</td></table><b>", "--><svg onload=y>"];
    let line = |i: usize| {
        let (a, b) = (noise(i), noise(i + 300));
        format!("{a},{b},{}", class[usize::from(a + 0.3 * b + 0.2 * noise(i + 700) > 0.0)])
    };
    let folder = Folder::with("d.csv", rows(80, line, &quoted.join(",")));
    let run = folder.run_args(&["fit", "d.csv", "--weight-prior", "ard", "-o", "m.json", "--target", names[2]]);
    assert_eq!(run.code, 0, "{run:?}");
    let page = page(&folder, "m.json d.csv");
    for raw in names.iter().chain(&class) {
        assert!(!page.contains(raw), "{raw}");
    }
    for shown in ["&lt;script&gt;alert(1)&lt;/script&gt;", "a&amp;b&quot;c&#39;d", "&lt;/td&gt;&lt;/table&gt;&lt;b&gt;"] {
        assert!(page.contains(shown), "{shown}");
    }
}

#[test]
fn the_page_depends_neither_on_threads_nor_grows_with_rows() {
    let line = |i: usize| {
        let x = 3.0 * noise(i);
        format!("{x},{}", x.sin() + 0.1 * noise(i + 50_000))
    };
    let folder = Folder::with("d.csv", rows(20_000, line, "x,y")).add("few.csv", rows(50, line, "x,y"));
    folder.ok("fit few.csv --target y --weight-prior ard -o m.json");
    let one = page(&folder, "m.json d.csv --threads 1");
    assert_eq!(one, page(&folder, "m.json d.csv --threads 2"));
    assert!(one.contains("3000 of 20,000 rows are drawn"));
    let dots = one.matches("<circle").count();
    assert!((6000..6100).contains(&dots), "{dots}");
    has_scores(&folder, &one, "m.json d.csv");
}
