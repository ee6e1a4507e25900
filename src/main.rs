//! The `pretrained` binary: everything is in the library.

fn main() -> std::process::ExitCode {
    pretrained::cli::main()
}
