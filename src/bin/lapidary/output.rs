//! What goes to stdout, and the talk beside it.

use std::io::{self, ErrorKind, IsTerminal, Write};

use serde_json::{Map, Value};

use crate::failure::Failure;

/// Counts up when a field changes its meaning or goes; new ones may come.
const SCHEMA: u64 = 1;

/// Prints text, which ends its own lines. A reader that has gone away, as `head` does, is no fault.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::Unread,
        _ => Failure::Failed(format!("stdout: {error}")),
    })
}

/// The JSON of a command: its fields, with the schema's number and the command's name.
pub fn json_text(command: &str, fields: Value) -> String {
    let mut object = Map::new();
    object.insert("schema".to_owned(), SCHEMA.into());
    object.insert("command".to_owned(), command.into());
    if let Value::Object(fields) = fields {
        object.extend(fields);
    }
    format!("{:#}\n", Value::Object(object))
}

/// Prints it.
pub fn print_json(command: &str, fields: Value) -> Result<(), Failure> {
    print(&json_text(command, fields))
}

/// A word to who watches.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// So many things, e.g. `1 thread` or `2 threads`.
pub fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Columns of a whole bar.
const BAR: usize = 20;

/// A line on stderr that tells what is being done, and goes when it is: on a terminal only, so that logs stay short.
pub struct Progress(bool);

impl Progress {
    pub fn new() -> Self {
        Self(io::stderr().is_terminal())
    }

    /// How many of so many things are done, as a bar, and what comes next.
    pub fn bar(&self, done: usize, of: usize, text: &str) {
        let filled = BAR * done.min(of) / of.max(1);
        self.show(&format!("[{:<BAR$}] {done}/{of} {text}", "#".repeat(filled)));
    }

    pub fn show(&self, text: &str) {
        if self.0 {
            let short: String = text.chars().take(79).collect();
            let _ = write!(io::stderr(), "\r{short:79}");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.0 {
            let _ = write!(io::stderr(), "\r{:79}\r", "");
        }
    }
}
