//! `lapidary`: what this machine computes on, how fast, and products of files.
//!
//! Data goes to stdout, talk to stderr. Exit codes: 0, 1 for a wrong result or a failure, 2 for a wrong command line, 3 where the device
//! asked for is not there.

mod arguments;
mod bench;
mod destination;
mod export;
mod failure;
mod judge;
mod listing;
mod matmul;
mod measure;
mod npy;
mod output;
mod status;
mod table;
mod tune;

use std::process::ExitCode;

use arguments::Command;
use failure::Failure;

fn main() -> ExitCode {
    match arguments::parse().and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.say();
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Print(text) => output::print(&text),
        Command::Backends(common) => listing::backends(&common),
        Command::Devices(common) => listing::devices(&common),
        Command::Default(common) => status::default(&common),
        Command::Summary(common) => status::summary(&common),
        Command::Status(common) => status::status(&common),
        Command::Bench(common, settings) => bench::run(&common, &settings),
        Command::Tune(common, clear) => tune::run(&common, clear),
        Command::Matmul(common, files) => matmul::run(&common, &files),
    }
}
