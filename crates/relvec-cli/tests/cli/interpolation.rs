//! What `fit` and `inspect` say of models that interpolate their rows, and what they call the rows of a model.

use super::support::{Folder, class_table, regression_table};

/// The lines that warn of it.
fn warned(stderr: &str) -> Vec<&str> {
    stderr.lines().filter(|line| line.contains("relevance vectors (") || line.contains("lower limit")).collect()
}

#[test]
fn a_fit_that_interpolates_warns_once_and_says_what_to_try() {
    // Of 60 rows 22 are of one class, and have a kernel each.
    let of_class = |(i, line): (usize, &str)| match (i, line.rsplit_once(',')) {
        (1.., Some((features, _))) => format!("{features},{}\n", if i <= 22 { "yes" } else { "no" }),
        _ => format!("{line}\n"),
    };
    let classes: String = class_table(60).lines().enumerate().map(of_class).collect();
    let folder = Folder::with("d.csv", regression_table(60, ",")).add("c.csv", classes);
    let narrow = folder.fit("d.csv --target y --gamma 1e4 -o m.json");
    let [line] = warned(&narrow.stderr)[..] else { panic!("{}", narrow.stderr) };
    assert!(line.starts_with("warning: more than a third of the rows are relevance vectors ("), "{line}");
    assert!(line.contains(" of 60)") && line.contains("intervals are"), "{line}");
    for option in ["--gamma evidence", "--weight-prior auto", "--sparsity auto", "--cv 5"] {
        assert!(line.contains(option), "{option}: {line}");
    }
    let inspect = folder.ok("inspect m.json").stdout;
    assert!(inspect.contains("interpolation       suspected: intervals may be too narrow\n"), "{inspect}");
    assert_eq!(folder.ok("inspect m.json --json").json()["interpolates"], true);
    // What was tried already is not advised.
    let tried = folder.fit("d.csv --target y --gamma 1e4 --cv 5 --json");
    let [line] = warned(&tried.stderr)[..] else { panic!("{}", tried.stderr) };
    assert!(!line.contains("--cv") && tried.json()["interpolates"] == true, "{line}");

    let classes = folder.fit("c.csv --target kind --gamma 1e4 -o c.json");
    let [line] = warned(&classes.stderr)[..] else { panic!("{}", classes.stderr) };
    assert!(line.contains("probabilities are probably overconfident"), "{line}");
    let inspect = folder.ok("inspect c.json").stdout;
    assert!(inspect.contains("interpolation       suspected: probabilities may be overconfident\n"), "{inspect}");
}

#[test]
fn noise_at_its_lower_limit_is_a_warning() {
    let rows: String = (0..40).map(|i| format!("{i},{}\n", (0.25 * f64::from(i)).sin())).collect();
    let folder = Folder::with("d.csv", format!("x,y\n{rows}"));
    let run = folder.ok("fit d.csv --target y --json");
    let [line] = warned(&run.stderr)[..] else { panic!("{}", run.stderr) };
    assert!(
        line.contains(
            "the noise variance is at its lower limit, as if the target had no noise. If it has, intervals are far too narrow"
        ),
        "{line}"
    );
}

#[test]
fn ordinary_fits_do_not_warn() {
    let folder = Folder::with("d.csv", regression_table(60, ",")).add("c.csv", class_table(60));
    for line in ["d.csv --target y", "c.csv --target kind", "d.csv --target y --gamma 1e4 --weight-prior process"] {
        let run = folder.ok(&format!("fit {line} -o m.json --json"));
        assert!(warned(&run.stderr).is_empty(), "{line}: {}", run.stderr);
        assert_eq!(run.json().get("interpolates"), None);
        assert!(!folder.ok("inspect m.json").stdout.contains("interpolation"), "{line}");
    }
}

/// Under a process prior the rows of a model are centres, and so are those of regression on labels.
#[test]
fn rows_are_called_relevance_vectors_where_weights_have_precisions_alone() {
    let folder = Folder::with("d.csv", regression_table(60, ",")).add("c.csv", class_table(60));
    for (line, prior) in [("d.csv --target y", "process"), ("c.csv --target kind", "process"), ("d.csv --target y", "ard")] {
        let run = folder.ok(&format!("fit {line} --weight-prior {prior} -o m.json"));
        for text in [run.stderr, folder.ok("inspect m.json").stdout] {
            let named = |name: &str| text.lines().any(|line| line.starts_with(name));
            assert_eq!(named("centres "), prior == "process", "{line}: {text}");
            assert_eq!(named("relevance vectors "), prior == "ard", "{line}: {text}");
            let searched = prior == "process" && line.starts_with('d');
            assert_eq!(text.contains(" of them chosen by the search"), searched, "{line}: {text}");
        }
    }
    let noise: String = (0..40i64).map(|i| format!("{i},{}\n", (i * i * i * 7919 + i * i * 131 + 17 * i) % 101)).collect();
    let folder = Folder::with("n.csv", format!("x,y\n{noise}"));
    let run = folder.ok("fit n.csv --target y --task regress --json");
    assert!(run.stderr.contains("no centre was selected; the model predicts a constant"), "{}", run.stderr);
    assert!(run.stderr.contains("try --likelihood student_t"), "{}", run.stderr);
}

#[test]
fn a_tenth_to_a_third_of_the_rows_is_a_note() {
    let folder = Folder::with("d.csv", regression_table(60, ","));
    let many_rows = Folder::with("d.csv", regression_table(200, ","));
    let few = many_rows.fit("d.csv --target y --weight-prior ard --gamma 0.01 -o m.json").stderr;
    assert!(!few.contains("of the rows are relevance vectors"), "{few}");
    let some = "d.csv --target y --weight-prior ard --gamma 0.3 --sparsity 0";
    let text = folder.fit(&format!("{some} -o m.json")).stderr;
    let line = text.lines().find(|line| line.ends_with("Add --cv 5 to check the intervals."));
    assert!(
        line.is_some_and(|line| line.starts_with("note: ") && line.contains(" % of the rows are relevance vectors (")),
        "{text}"
    );
    assert!(!folder.fit(&format!("{some} --cv 5 -o m.json")).stderr.contains("of the rows are relevance vectors"));
}
