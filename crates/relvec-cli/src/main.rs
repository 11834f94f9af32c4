//! The command `relvec`.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(relvec_cli::main(std::env::args_os()))
}
