//! The `untax` program: see `untax --help`.

fn main() -> std::process::ExitCode {
    untax::main()
}
