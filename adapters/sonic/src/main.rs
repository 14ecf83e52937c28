//! The `bufgym-sonic-agent` command.

mod program;

fn main() -> std::process::ExitCode {
    program::main()
}
