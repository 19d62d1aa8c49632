//! How a command ends badly.

use std::io::{self, Write};
use std::path::Path;

use lapidary::Error;

/// Why a command fails; each sort has its exit code.
#[derive(Debug)]
pub enum Failure {
    /// The command line is wrong.
    Usage(String),
    /// The device asked for is not there.
    NoDevice(String),
    /// A result is wrong, or something went wrong.
    Failed(String),
    /// Nobody reads what is printed any more.
    Unread,
}

impl Failure {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Unread => 0,
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::NoDevice(_) => 3,
        }
    }

    /// Tells it on stderr, which may be closed.
    pub fn say(&self) {
        let _ = match self {
            Self::Unread => Ok(()),
            Self::Usage(text) => writeln!(io::stderr(), "lapidary: {text}\nSee lapidary --help."),
            Self::NoDevice(text) | Self::Failed(text) => writeln!(io::stderr(), "lapidary: {text}"),
        };
    }

    /// What went wrong with a file.
    pub fn file(path: &Path, fault: impl std::fmt::Display) -> Self {
        Self::Failed(format!("{}: {fault}", path.display()))
    }
}

impl From<Box<Error>> for Failure {
    fn from(error: Box<Error>) -> Self {
        match &*error {
            Error::Unavailable { .. } | Error::NoDevice { .. } => Self::NoDevice(error.to_string()),
            // Only the command line and the environment set options.
            Error::InvalidOption { .. } => Self::Usage(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Self {
        Self::Usage(error.to_string())
    }
}
