//! The `halobench` command.

mod cli;

fn main() -> std::process::ExitCode {
    halobench::child::enter_if_child();
    cli::main()
}
