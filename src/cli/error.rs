//! Errors of the command line. Each is one line and has an exit code.

use std::fmt;

use bufgym_util::input;
use clap::error::ContextValue;

/// Largest number of characters of a line on stderr. Errors shorten quotes to excerpts; this limit catches
/// quotes that were not shortened.
pub const LINE: usize = 2_000;

/// The reason why a command did not succeed.
pub enum CliError {
    /// The user's input is wrong: exit code 2, nothing written.
    Input(anyhow::Error),
    /// The work itself failed: exit code 1.
    Failure(anyhow::Error),
    /// A signal ended the work, which has saved its state and reported it. Contains the exit code.
    Interrupted(u8),
}

/// Result of a step of a command.
pub type CliResult<T = ()> = Result<T, CliError>;

impl CliError {
    /// Builds an error for wrong input.
    pub fn input(error: impl Into<anyhow::Error>) -> CliError {
        CliError::Input(error.into())
    }

    /// Builds an error for wrong input from a text.
    pub fn bad(message: impl Into<String>) -> CliError {
        CliError::Input(anyhow::anyhow!(message.into()))
    }

    /// Builds an error for a failure of the work.
    pub fn failure(error: impl Into<anyhow::Error>) -> CliError {
        CliError::Failure(error.into())
    }
}

impl fmt::Display for CliError {
    /// Writes the chain of causes on one line. A cause that the line already contains is not repeated.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (CliError::Input(error) | CliError::Failure(error)) = self else {
            return f.write_str("interrupted");
        };
        let mut line = String::new();
        for cause in error.chain() {
            let cause = cause.to_string();
            if line.is_empty() {
                line = cause;
            } else if !line.contains(&cause) {
                line = format!("{line}: {cause}");
            }
        }
        f.write_str(&input::line(&fold(&line), LINE))
    }
}

/// Marks an error as the fault of the input or of the work.
pub trait ResultExt<T> {
    /// Treats an error as wrong input.
    fn or_bad_input(self) -> CliResult<T>;
    /// Treats an error as a failure of the work.
    fn or_failure(self) -> CliResult<T>;
}

impl<T, E: Into<anyhow::Error>> ResultExt<T> for Result<T, E> {
    fn or_bad_input(self) -> CliResult<T> {
        self.map_err(CliError::input)
    }

    fn or_failure(self) -> CliResult<T> {
        self.map_err(CliError::failure)
    }
}

/// Returns the message of a `clap` error on one line, with excerpts of the user's input.
pub fn usage(mut error: clap::Error) -> String {
    let quoted: Vec<_> = error
        .context()
        .filter_map(|(kind, value)| Some((kind, shortened(value)?)))
        .collect();
    for (kind, value) in quoted {
        error.insert(kind, value);
    }
    one_line_usage(&error.render().to_string())
}

/// Returns a shortened value to replace one that may contain the user's input.
fn shortened(value: &ContextValue) -> Option<ContextValue> {
    match value {
        ContextValue::String(text) => Some(ContextValue::String(input::excerpt(text))),
        _ => None,
    }
}

/// Returns the message of a `clap` error without its usage section, on one line.
fn one_line_usage(rendered: &str) -> String {
    let message = rendered.split("\nUsage:").next().unwrap_or(rendered);
    let message = message
        .split("\nFor more information")
        .next()
        .unwrap_or(message);
    input::line(&fold(message), LINE)
}

/// Joins the non-empty lines of a message: with a space after a colon or comma, otherwise with a semicolon.
fn fold(message: &str) -> String {
    let mut line = String::new();
    for part in message
        .lines()
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        if !line.is_empty() {
            line.push_str(if line.ends_with([':', ',']) {
                " "
            } else {
                "; "
            });
        }
        line.push_str(part);
    }
    line
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_usage_error_becomes_one_line_with_its_tip() {
        let rendered = "error: unexpected argument '--wokers' found\n\n  tip: a similar argument exists: '--workers'\n\nUsage: bufgym train --workers <N>\n\nFor more information, try '--help'.\n";
        assert_eq!(
            one_line_usage(rendered),
            "error: unexpected argument '--wokers' found; tip: a similar argument exists: '--workers'"
        );
    }

    #[test]
    fn missing_arguments_are_listed_after_the_colon() {
        let rendered = "error: the following required arguments were not provided:\n  --out <DIR>\n\nUsage: x\n";
        assert_eq!(
            one_line_usage(rendered),
            "error: the following required arguments were not provided: --out <DIR>"
        );
    }

    #[test]
    fn what_an_error_quotes_can_neither_fill_nor_control_a_terminal() {
        let text = format!("policy \u{1b}[31m{}\rlast", "x".repeat(1_000_000));
        let line = CliError::bad(text).to_string();
        assert_eq!(line.chars().count(), LINE + 1);
        assert!(line.starts_with("policy \\u{1b}[31mxx") && line.ends_with("x\\rlast"));
    }

    #[test]
    fn a_chain_is_one_line_and_says_nothing_twice() {
        let error = anyhow::anyhow!("disk is full").context("cannot write a.csv");
        assert_eq!(
            CliError::Failure(error).to_string(),
            "cannot write a.csv: disk is full"
        );
        let error = anyhow::anyhow!("disk is full").context("cannot write: disk is full");
        assert_eq!(
            CliError::Failure(error).to_string(),
            "cannot write: disk is full"
        );
        let error = Err::<(), _>(anyhow::anyhow!("expected `]`\n at line 3")).context("a.toml");
        assert_eq!(
            CliError::Input(error.unwrap_err()).to_string(),
            "a.toml: expected `]`; at line 3"
        );
    }
}
