//! Names, numbers, files, pipes and limits that mean harm, or mishaps: no panic, nothing lost, nothing left behind.

use super::support::{Folder, class_table, regression_table};

fn fitted() -> Folder {
    let folder = Folder::with("d.csv", regression_table(60, ","));
    folder.fit("d.csv --target y -o m.json");
    folder
}

#[test]
fn more_draws_than_there_is_memory_for_are_refused_before_anything_is_written() {
    let folder = fitted();
    for samples in ["18446744073709551615", "9223372036854775807", "100000000000000"] {
        folder.fails(1, &format!("predict m.json d.csv --samples {samples}"), &["draws", "memory limit"]);
        folder.fails(1, &format!("predict m.json d.csv --samples {samples} -o p.csv"), &["draws", "memory limit"]);
    }
    let (header, rows) = folder.ok("predict m.json d.csv --samples 7").csv();
    assert_eq!((header.len(), rows.len()), (11, 60));
}

/// Counts of every command, as large as there are: an error, or as many as there are rows.
#[test]
fn the_largest_count_panics_nowhere() {
    let folder = fitted();
    let most = u64::MAX;
    for line in [
        format!("fit d.csv --target y -o n.json --dictionary {most}"),
        format!("fit d.csv --target y -o n.json --cv {most}"),
        format!("fit d.csv --target y -o n.json --keep-rows {most}"),
        format!("fit d.csv --target y -o n.json --set max_iterations={most}"),
        format!("fit d.csv --target y -o n.json --set seed={most}"),
        format!("fit d.csv --target y -o n.json --threads {most}"),
        format!("fit d.csv --target y -o n.json --machine svm --set max_iterations={most}"),
        format!("predict m.json d.csv --samples 1 --seed {most}"),
        format!("predict m.json d.csv --threads {most}"),
        format!("compare d.csv --target y --cv {most}"),
        format!("compare d.csv --target y --inner-cv {most}"),
    ] {
        let run = folder.run(&line);
        assert!((0..=2).contains(&run.code) && !run.stderr.contains("panicked"), "{line}: {run:?}");
    }
}

/// A level that rounds to 1 where it is not seen from its end.
#[test]
fn the_interval_of_a_level_next_to_one_is_finite() {
    let folder = fitted();
    let (_, rows) = folder.ok("predict m.json d.csv --level 0.99999999999999994").csv();
    let width =
        |row: &Vec<String>| (row[3].parse::<f64>().unwrap() - row[2].parse::<f64>().unwrap()) / row[1].parse::<f64>().unwrap();
    // Of a normal variable 1.1e-16 are beyond 8.29 standard deviations.
    assert!(rows.iter().all(|row| (width(row) / 2.0 - 8.29).abs() < 0.01), "{:?}", rows[0]);
    let score = folder.ok("score m.json d.csv --level 0.99999999999999994 --format json").json();
    assert_eq!(score["measures"]["coverage"], serde_json::json!(1.0));
    for level in ["1", "0", "nan", "-0.5", "1e-400"] {
        folder.fails(2, &format!("predict m.json d.csv --level={level}"), &["between 0 and 1"]);
    }
}

/// What names hold does not reach the terminal as it is; in CSV and JSON it does.
#[test]
fn terminal_escapes_in_names_and_labels_are_spelt_out() {
    let (escape, label) = ("\u{1b}[31mred", "\u{1b}]0;title\u{7}yes");
    let table = class_table(40).replace("u,v,kind", &format!("{escape},v,kind")).replace("yes", label);
    let folder = Folder::with("d.csv", table.clone()).add("e.csv", table.replace("v,kind", "v,k\u{9b}2J"));
    let raw = |text: &str| text.chars().any(|c| c.is_control() && c != '\n' && c != '\t');
    for line in [
        "fit d.csv --target kind -o m.json",
        "inspect m.json",
        "score m.json d.csv",
        "predict m.json d.csv -o p.csv",
        "predict m.json e.csv -o p.csv",
        "score m.json e.csv --target nothing\u{1b}[1m",
        "compare d.csv --target kind --cv 2 --inner-cv 2 --machines svm",
        "fit e.csv --target v --drop nothing -o n.json",
        "predict m.json d.csv --prior no\u{1b}=0.5,yes=0.5",
    ] {
        let run = folder.run(line);
        assert!(!raw(&run.stderr) && !raw(&run.stdout), "{line}: {run:?}");
    }
    assert!(folder.ok("inspect m.json").stdout.contains("\\u{1b}[31mred"));
    assert!(folder.read("p.csv").contains(label));
    let summary = folder.ok("inspect m.json --json").json();
    assert_eq!(summary["features"][0], escape);
}

#[cfg(unix)]
mod unix {
    use std::fs::{self, File, Permissions};
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::thread;

    use assert_cmd::cargo::CommandCargoExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn relvec(folder: &Folder, line: &str) -> Command {
        let mut command = Command::cargo_bin("relvec").unwrap();
        command.current_dir(folder.path(".")).args(line.split_whitespace());
        command
    }

    fn shell(folder: &Folder, line: &str) -> (Option<i32>, String) {
        let own = Command::cargo_bin("relvec").unwrap();
        let line = line.replace("relvec", &format!("'{}'", own.get_program().to_string_lossy()));
        let output = Command::new("sh").current_dir(folder.path(".")).args(["-c", &line]).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Each file that a command writes: with the permissions of the old file, through links, by the umask where it is new.
    #[test]
    fn permissions_and_links_stay() {
        let folder = fitted();
        for line in ["fit d.csv --target y -o FILE", "predict m.json d.csv -o FILE", "score m.json d.csv -o FILE"] {
            let run = |name: &str| folder.ok(&line.replace("FILE", name));
            fs::write(folder.path("old"), "old").unwrap();
            fs::set_permissions(folder.path("old"), Permissions::from_mode(0o640)).unwrap();
            run("old");
            assert!(mode(&folder.path("old")) == 0o640 && folder.read("old") != "old", "{line}");
            // A link, one in another folder by a relative path, and one that leads to nothing yet.
            fs::create_dir_all(folder.path("deep")).unwrap();
            symlink("old", folder.path("link")).unwrap();
            symlink("../link", folder.path("deep/far")).unwrap();
            symlink("new", folder.path("dangling")).unwrap();
            for (link, file) in [("link", "old"), ("deep/far", "old"), ("dangling", "new")] {
                let _ = fs::write(folder.path("old"), "old");
                run(link);
                assert!(fs::symlink_metadata(folder.path(link)).unwrap().is_symlink(), "{line} {link}");
                assert!(folder.read(file).len() > 3, "{line} {link}");
            }
            for name in ["old", "link", "deep/far", "dangling", "new"] {
                fs::remove_file(folder.path(name)).unwrap();
            }
            let line = line.replace("FILE", "fresh");
            assert_eq!(shell(&folder, &format!("umask 027; relvec {line}")).0, Some(0));
            assert_eq!(mode(&folder.path("fresh")), 0o640, "{line}");
            fs::remove_file(folder.path("fresh")).unwrap();
        }
        assert_eq!(folder.names(), ["d.csv", "deep", "m.json"]);
    }

    #[test]
    fn devices_and_pipes_are_written_through() {
        let folder = fitted();
        for line in ["fit d.csv --target y -o OUT", "predict m.json d.csv -o OUT"] {
            folder.ok(&line.replace("OUT", "/dev/null"));
            assert!(!fs::metadata("/dev/null").unwrap().is_file());
            assert!(Command::new("mkfifo").arg(folder.path("pipe")).status().unwrap().success());
            let path = folder.path("pipe");
            let reader = thread::spawn(move || {
                let mut text = String::new();
                File::open(path).unwrap().read_to_string(&mut text).unwrap();
                text
            });
            folder.ok(&line.replace("OUT", "pipe"));
            assert!(reader.join().unwrap().len() > 100, "{line}");
            fs::remove_file(folder.path("pipe")).unwrap();
            let piped = relvec(&folder, &line.replace("OUT", "/dev/stdout")).output().unwrap();
            assert!(piped.status.success() && piped.stdout.len() > 100, "{line}");
            // A file that is open as stdout goes on, and is not replaced beneath who has it open.
            let (code, _) = shell(&folder, &format!("echo before > log; relvec {} >> log", line.replace("OUT", "/dev/stdout")));
            assert!(code == Some(0) && folder.read("log").starts_with("before\n") && folder.read("log").len() > 100, "{line}");
            fs::remove_file(folder.path("log")).unwrap();
        }
    }

    /// What cannot be written is found out before the fit, whose table is not even there.
    #[test]
    fn what_cannot_be_written_fails_before_the_work() {
        let folder = Folder::with("readonly", "x").add("file", "x");
        fs::set_permissions(folder.path("readonly"), Permissions::from_mode(0o444)).unwrap();
        symlink("loop", folder.path("loop")).unwrap();
        let long = "n".repeat(300);
        let deep = format!("{}/m.json", ["d"; 3000].join("/"));
        for (name, says) in [
            ("readonly", "read-only"),
            (long.as_str(), "too long"),
            (deep.as_str(), "too long"),
            ("none/m.json", "no folder"),
            ("file/m.json", "Not a directory"),
            (".", "folder"),
            ("loop", "symbolic links"),
        ] {
            for flag in ["-o", "-o m.json --checkpoint"] {
                folder.fails(1, &format!("fit nothing.csv --target y --dictionary 5 {flag} {name}"), &["cannot write", says]);
            }
        }
        assert_eq!(folder.read("readonly"), "x");
    }

    /// However a command ends, no file stays behind but those that it has finished.
    #[test]
    fn ended_programs_leave_no_parts() {
        let folder = fitted();
        for signal in ["-INT", "-TERM"] {
            // A table that never ends, of which predictions are being written.
            assert!(Command::new("mkfifo").arg(folder.path("pipe.csv")).status().unwrap().success());
            let mut child =
                relvec(&folder, "predict m.json pipe.csv -o p.csv").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let mut pipe = File::options().write(true).open(folder.path("pipe.csv")).unwrap();
            std::io::Write::write_all(&mut pipe, b"a,b\n1,2\n3,4\n").unwrap();
            assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
            assert!(!child.wait().unwrap().success());
            drop(pipe);
            fs::remove_file(folder.path("pipe.csv")).unwrap();
            assert_eq!(folder.names(), ["d.csv", "m.json"], "{signal}");
        }
    }

    /// Nobody listens: no command panics, and what is written to files is written.
    #[test]
    fn closed_pipes_end_no_command_with_a_panic() {
        let folder = fitted();
        for line in [
            "fit d.csv --target y -o n.json --json",
            "fit d.csv --target y -o n.json --verbose-that-is-not-there",
            "fit d.csv --target y -o n.json --dictionary 5 --stream",
            "predict m.json d.csv",
            "predict m.json nothing.csv",
            "score m.json d.csv",
            "inspect m.json",
            "inspect m.json --json",
            "compare d.csv --target y --cv 2 --inner-cv 2 --machines svm",
            "demo --out figures",
            "--help",
            "fit --help",
        ] {
            let closed = || {
                let (reader, writer) = std::io::pipe().unwrap();
                drop(reader);
                writer
            };
            let status = relvec(&folder, line).stdout(closed()).stderr(closed()).status().unwrap();
            assert!(status.code().is_some_and(|code| (0..=2).contains(&code)), "{line}: {status}");
            if line.contains("-o n.json") && status.success() {
                fs::remove_file(folder.path("n.json")).unwrap();
            }
        }
        let full = File::options().write(true).open("/dev/full").unwrap();
        assert!(relvec(&folder, "fit d.csv --target y -o n.json").stderr(full).status().unwrap().success());
        assert!(folder.names().contains(&"n.json".to_string()));
    }

    /// Where the system limits the address space, the matrix crate's room is asked for first.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_limited_address_space_is_an_error_that_names_it() {
        let folder = fitted();
        let mut refused = 0;
        for kilobytes in [60_000, 100_000, 200_000, 4_000_000] {
            for line in ["fit d.csv --target y -o n.json --threads 2", "predict m.json d.csv --threads 2", "score m.json d.csv"] {
                let (code, stderr) = shell(&folder, &format!("ulimit -v {kilobytes}; relvec {line} > out"));
                match code {
                    Some(0) => {}
                    Some(1) => {
                        assert!(stderr.contains("address space") && stderr.contains("ulimit -v"), "{kilobytes} {line}: {stderr}");
                        refused += 1;
                    }
                    other => panic!("{kilobytes} {line}: {other:?} {stderr}"),
                }
                assert!(kilobytes < 4_000_000 || code == Some(0), "{line}: {stderr}");
            }
        }
        assert!(refused > 0, "60 MB are room enough");
    }
}
