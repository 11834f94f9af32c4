//! Screens as people see them: their width, colours and levels.

use assert_cmd::Command;

use super::support::{Folder, class_table, noise, regression_table, three_classes};

/// What is said on both streams with these settings of the environment.
fn said(folder: &Folder, line: &str, environment: &[(&str, &str)]) -> String {
    let mut command = Command::cargo_bin("relvec").unwrap();
    command.current_dir(folder.path("")).args(line.split_whitespace()).env_remove("NO_COLOR").env_remove("COLUMNS");
    let output = command.envs(environment.iter().copied()).output().unwrap();
    assert!(output.status.success(), "relvec {line}: {output:?}");
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

fn folder() -> Folder {
    let folder = Folder::with("d.csv", regression_table(80, ",")).add("c.csv", class_table(80));
    let folder = folder.add("k.csv", three_classes(90, ["one", "two", "three"]));
    for line in ["d.csv --target y -o d.json", "c.csv --target kind -o c.json", "k.csv --target kind -o k.json"] {
        folder.fit(line);
    }
    folder.fit("d.csv --target y --gamma evidence-ard -o ard.json");
    folder
}

/// A sum whose text is longer than a line, with terms that are as well.
const SUM: &str = "fit d.csv --target y --kernel rbf(gamma=\"evidence-ard\")*poly(degree=2)[0]*matern32(gamma=0.5)+linear+\
                   periodic(period=12)[0]*rational_quadratic[1]*matern52(gamma=0.123456789)[1,0]+matern32[1] -o s.json";

#[test]
fn long_sums_have_a_line_for_each_term_and_short_numbers() {
    let folder = folder();
    let text = said(&folder, SUM, &[("COLUMNS", "80")]);
    let place = text.lines().position(|line| line.starts_with("kernel ")).unwrap_or_else(|| panic!("{text}"));
    let terms = text.lines().skip(place).take_while(|line| line.starts_with("kernel ") || line.starts_with(&" ".repeat(20)));
    let terms: Vec<&str> = terms.map(|line| &line[20..]).collect();
    assert_eq!(terms.iter().filter(|term| term.starts_with("+ ")).count(), 3, "{text}");
    assert!(terms.concat().contains("matern52(gamma=0.1235)[b, a]") && !terms.concat().contains("0.123456789"), "{text}");
    // A line that is not broken reads as the kernel, and the model file has every digit.
    let line = said(&folder, "inspect s.json", &[]);
    assert!(line.lines().any(|line| line.starts_with("kernel ") && line.matches(" + ").count() == 3), "{line}");
    let model = std::fs::read_to_string(folder.path("s.json")).unwrap();
    assert!(model.contains("0.123456789"), "{model}");
}

#[test]
fn no_line_is_wider_than_the_screen() {
    let folder = folder();
    let lines = [
        "fit d.csv --target y --preset tipping2001 --gamma 1e4 --set max_iterations=3 -o n.json",
        "fit d.csv --target y --cv 3 -o n.json",
        "fit k.csv --target kind --multi-class one_vs_rest -o n.json",
        "fit c.csv --target kind --machine svm -o n.json",
        SUM,
        "inspect d.json",
        "inspect s.json",
        "inspect ard.json",
        "inspect c.json",
        "inspect k.json",
        "score d.json d.csv",
        "score k.json k.csv",
        "score c.json c.csv --costs yes:no=5,no:yes=1 --reject-cost 0.3",
        "compare c.csv --target kind --cv 2 --inner-cv 2 --machines rvm,svm --grid gamma=0.3,1 --grid c=1,10",
        "compare d.csv --target y --cv 2 --inner-cv 2 --machines rvm,svm --grid gamma=0.3,1 --grid c=1 --grid epsilon=0.1",
        "demo",
    ];
    for columns in [80, 100] {
        for line in lines {
            let text = said(&folder, line, &[("COLUMNS", &columns.to_string())]);
            let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap();
            assert!(widest.chars().count() <= columns, "relvec {line}, {columns} columns: {widest}");
            assert!(!text.contains(['─', '═', '│', '\x1b']), "relvec {line}: {text}");
            assert!(!text.contains("NaN") && !text.contains("(s)"), "relvec {line}: {text}");
        }
    }
}

#[test]
fn a_wide_screen_has_columns_that_a_narrow_one_has_not() {
    let folder = folder();
    let line = "compare c.csv --target kind --cv 2 --inner-cv 2 --machines rvm --grid gamma=0.3,1";
    let [narrow, wide] = ["60", "100"].map(|columns| said(&folder, line, &[("COLUMNS", columns)]));
    assert!(narrow.contains("Not shown because the screen is too narrow:") && narrow.contains("error, %"), "{narrow}");
    assert!(wide.lines().any(|line| line.starts_with("model") && line.contains("ECE, %") && line.contains("fit, s")), "{wide}");
}

#[test]
fn errors_are_ascii_where_the_locale_is() {
    let folder = folder();
    let line = "compare d.csv --target y --cv 2 --inner-cv 2 --machines rvm --grid gamma=0.3,1";
    for (locale, ascii) in [("C", true), ("de_DE.ISO-8859-1", true), ("C.UTF-8", false), ("en_GB.utf8", false)] {
        let text = said(&folder, line, &[("LC_ALL", locale)]);
        assert_eq!((text.contains(" +/- "), text.contains(" ± ")), (ascii, !ascii), "{locale}: {text}");
        assert!(!ascii || text.is_ascii(), "{locale}: {text}");
    }
}

#[test]
fn the_first_line_of_a_fit_says_what_was_done() {
    let folder = folder();
    let narrow = "fit d.csv --target y --preset tipping2001 --gamma 1e4 -o n.json";
    let text = said(&folder, narrow, &[]);
    assert!(text.starts_with("Regression of `y` on 2 features, 80 rows: converged in "), "{text}");
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
    assert!(place("relevance vectors   ") < place("\nwarning: ") && place("\nwarning: ") < place("\nSaved n.json."), "{text}");
    assert!(text.ends_with("  relvec score n.json TEST.csv\n"), "{text}");
}

#[test]
fn colours_are_for_terminals_and_for_those_who_ask() {
    let folder = folder();
    let line = "fit d.csv --target y --preset tipping2001 --gamma 1e4 -o n.json";
    assert!(!said(&folder, line, &[]).contains('\x1b'));
    let coloured = said(&folder, &format!("{line} --color always"), &[("NO_COLOR", "1")]);
    assert!(coloured.starts_with("\x1b[1mRegression of `y`") && coloured.contains("\x1b[1;33mwarning:\x1b[0m"), "{coloured}");
    assert!(said(&folder, "inspect d.json --color always", &[]).starts_with("\x1b[1md.json: "));
    assert!(!said(&folder, &format!("{line} --color never"), &[]).contains('\x1b'));
}

#[test]
fn quiet_leaves_warnings_and_verbose_adds_reasons() {
    let folder = folder();
    let quiet = folder.ok("fit d.csv --target y --preset tipping2001 --gamma 1e4 -o n.json -q").stderr;
    assert!(quiet.starts_with("warning: ") && quiet.lines().count() == 1, "{quiet}");
    assert_eq!(folder.ok("fit d.csv --target y -q -o n.json").stderr, "");
    let verbose = folder.ok("-v fit d.csv --target y -o n.json").stderr;
    assert!(verbose.contains("iteration 1: ") && verbose.contains("note: task regress, since"), "{verbose}");
    folder.fails(2, "fit d.csv --target y -q -v -o o.json", &["--quiet", "--verbose"]);
    // Errors are never quiet.
    folder.fails(1, "fit none.csv --target y -q -o o.json", &["none.csv"]);
}

#[test]
fn a_constant_target_is_one_warning() {
    let folder = Folder::with("flat.csv", format!("x,y\n{}", (0..30).map(|i| format!("{i},3\n")).collect::<String>()));
    let text = folder.ok("fit flat.csv --target y -o m.json").stderr;
    assert_eq!(text.lines().filter(|line| line.starts_with("warning:")).count(), 1, "{text}");
    assert!(text.contains("warning: the target is constant, so the model predicts this constant"), "{text}");
}

#[test]
fn pure_noise_has_no_relevant_features() {
    let row = |i: usize| format!("{},{},{}\n", noise(3 * i), noise(3 * i + 1), noise(3 * i + 2));
    let folder = Folder::with("d.csv", format!("a,b,y\n{}", (0..100).map(row).collect::<String>()));
    let text = folder.ok("fit d.csv --target y -o m.json").stderr;
    assert!(text.contains("warning: no centre was selected") && !text.contains("feature relevance"), "{text}");
    assert!(!text.contains("candidates") && !text.contains("lower limit"), "{text}");
}

#[test]
fn counts_are_named() {
    let row = |i: usize| format!("{},{}\n", noise(i), i % 7);
    let folder = Folder::with("d.csv", format!("x,visits\n{}", (0..60).map(row).collect::<String>()));
    let text = folder.ok("fit d.csv --target visits --likelihood poisson -o m.json").stderr;
    assert!(text.starts_with("Regression of the counts `visits` on 1 feature"), "{text}");
    assert!(text.ends_with("relvec score m.json TEST.csv\n"), "{text}");
    // The columns that the next command needs are in it, as a shell reads them.
    let row = |i: usize| format!("{},{},{}\n", noise(i), 1 + i % 3, i % 7);
    let folder = Folder::with("d.csv", format!("x,time(h),visits\n{}", (0..60).map(row).collect::<String>()));
    let text = folder.ok("fit d.csv --target visits --likelihood poisson --exposure time(h) -o m.json").stderr;
    assert!(text.ends_with("relvec score m.json TEST.csv --exposure 'time(h)'\n"), "{text}");
    let text = folder.ok("fit d.csv --target visits --noise-variance time(h) -o m.json").stderr;
    assert!(text.ends_with("relvec predict m.json NEW.csv --noise-variance 'time(h)'\n"), "{text}");
    folder.fails(1, "fit d.csv --target x --likelihood poisson -o n.json", &["`d.csv`, target `x`: row 0"]);
}

#[test]
fn a_score_far_from_its_level_is_a_warning() {
    let folder = folder();
    let rows: String = (0..200).map(|i| format!("{},{},{}\n", 0.01 * f64::from(i), 1, 50 * (i % 2))).collect();
    let folder = folder.add("far.csv", format!("a,b,y\n{rows}"));
    let text = said(&folder, "score d.json far.csv", &[]);
    assert!(text.contains("warning: the 95 % interval covers ") && text.contains("too narrow"), "{text}");
    // The advice names options only if the fit may have had them.
    let options = "without --gamma, --weight-prior and --sparsity, or ";
    assert!(text.contains(options), "{text}");
    folder.ok("fit d.csv --target y -o default.json");
    let text = said(&folder, "score default.json far.csv", &[]);
    assert!(text.contains("Fit again with --calibrate;") && !text.contains(options), "{text}");
    let own = said(&folder, "score d.json d.csv", &[]);
    assert!(own.contains("note: the model was trained on 80 rows too") && !own.contains("warning"), "{own}");
}
