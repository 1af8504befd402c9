//! The project's own tooling: see `cargo xtask --help`.

fn main() -> std::process::ExitCode {
    xtask::main()
}
