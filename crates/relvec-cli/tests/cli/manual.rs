//! What shells and `man` are given.

use super::support::Folder;

#[test]
fn completions_know_commands_and_options() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = folder.ok(&format!("completions {shell}")).stdout;
        for word in ["relvec", "inspect", "weight-prior"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    folder.fails(2, "completions tcsh", &["tcsh", "bash"]);
}

#[test]
fn every_command_has_a_page() {
    let folder = Folder::new();
    let run = folder.ok("man pages/man1");
    for name in ["relvec", "relvec-fit", "relvec-predict", "relvec-score", "relvec-inspect", "relvec-compare", "relvec-demo"] {
        let page = folder.read(&format!("pages/man1/{name}.1"));
        assert!(page.contains(&format!(".TH {name} 1")) && page.contains(".SH SYNOPSIS"), "{name}: {page}");
        assert!(run.stdout.contains(&format!("{name}.1")), "{}", run.stdout);
    }
    assert!(folder.read("pages/man1/relvec-fit.1").contains("TARGET AND COLUMNS"));
}

#[test]
fn options_of_fit_are_grouped_and_explained() {
    let folder = Folder::new();
    let short = folder.ok("fit -h").stdout;
    let long = folder.ok("help fit").stdout;
    for heading in ["Target and columns:", "Model:", "Kernel:", "Error bars and validation:", "Large tables:", "Screen:"] {
        assert!(short.contains(heading) && long.contains(heading), "{heading}");
    }
    assert!(short.lines().count() < 130 && long.lines().count() > 200, "{short}");
    assert!(short.contains("Usage: relvec fit [OPTIONS] --target <NAME> <DATA>"), "{short}");
}
