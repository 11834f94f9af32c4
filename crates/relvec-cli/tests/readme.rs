//! The commands of README.md run, as written there.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::Command;

/// Every `sh` block of README.md that calls `relvec`, in one folder and one shell.
#[test]
fn commands_of_the_readme() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = fs::read_to_string(&readme).expect("README.md");
    let blocks = text.split("\n```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let script: String = blocks.filter(|b| b.lines().any(|l| l.starts_with("relvec "))).collect();
    assert!(script.contains("relvec fit"), "README.md has no command to run");

    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("an old folder removed");
    }
    fs::create_dir_all(&folder).expect("a folder to work in");
    let command = Path::new(env!("CARGO_BIN_EXE_relvec")).parent().expect("the folder of the command");
    let path = std::env::join_paths(
        std::iter::once(command.to_path_buf()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let output = Command::new("sh")
        .args(["-euc", &script])
        .current_dir(&folder)
        .env("PATH", path.expect("a search path"))
        .output()
        .expect("a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let predictions = fs::read_to_string(folder.join("predictions.csv")).expect("predictions.csv");
    assert!(predictions.starts_with("prediction,std,lower,upper\n"), "{predictions}");
    assert_eq!(predictions.lines().count(), 101);
}
