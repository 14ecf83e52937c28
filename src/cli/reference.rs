//! The reference of the command line, `docs/cli.md`, generated from the definitions of the arguments.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command, CommandFactory as _};

use super::Cli;

/// Options of every command, which the reference lists once.
const COMMON: [&str; 5] = ["seed", "threads", "quiet", "json", "help"];

/// Returns the whole page.
fn page() -> String {
    let program = Cli::command();
    let mut page = String::from(
        "# Commands\n\nEvery command and option of `bufgym`. `bufgym COMMAND --help` shows the same with examples. \
         This page is written from the program's definitions.\n\n## Options of every command\n\n",
    );
    let common = program.get_arguments();
    table(&mut page, common.filter(|option| is_common(option)));
    page.push_str(
        "\nExit codes: 0 success, 1 a failure such as a full disk, 2 bad input, 129, 130 and 143 after a signal \
         (hang-up, interrupt, termination).\n",
    );
    for command in program.get_subcommands() {
        describe(&mut page, "bufgym", command);
    }
    page
}

/// Adds a section for a command, and one for each of its subcommands.
fn describe(page: &mut String, parent: &str, command: &Command) {
    let name = format!("{parent} {}", command.get_name());
    let about = command.get_about().map(ToString::to_string);
    let _ = write!(page, "\n## {name}\n\n{}.\n", about.unwrap_or_default());
    let own = || command.get_arguments().filter(|option| !is_common(option));
    if own().next().is_some() {
        page.push('\n');
        table(page, own());
    }
    let more = command.get_after_help().map(ToString::to_string);
    let more = more
        .as_deref()
        .and_then(|more| more.split("Examples:").next());
    if let Some(notes) = more.map(str::trim).filter(|notes| !notes.is_empty()) {
        let _ = write!(page, "\n{}\n", notes.replace("\n  ", "\n- "));
    }
    for below in command.get_subcommands() {
        describe(page, &name, below);
    }
}

fn is_common(option: &Arg) -> bool {
    COMMON.contains(&option.get_id().as_str()) || option.get_id() == "version"
}

fn table<'a>(page: &mut String, options: impl Iterator<Item = &'a Arg>) {
    page.push_str("|option|meaning|\n|---|---|\n");
    for option in options.filter(|option| !option.is_hide_set()) {
        let values: Vec<&str> = option
            .get_value_names()
            .unwrap_or_default()
            .iter()
            .map(clap::builder::Str::as_str)
            .collect();
        let values = match option.get_action().takes_values() {
            true => format!(" {}", values.join(" ")),
            false => String::new(),
        };
        let named = match option.get_long() {
            Some(long) => format!("--{long}{values}"),
            None => values.trim().to_owned(),
        };
        let help = option.get_help().map(ToString::to_string);
        let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
        let (named, help) = (cell(&named), cell(&help.unwrap_or_default()));
        let _ = writeln!(page, "|`{named}`|{help}|");
    }
}

/// `BLESS=1 cargo test --release --bin bufgym reference` rewrites the page.
#[test]
fn the_page_of_commands_is_that_of_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cli.md");
    let page = page();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/cli.md is out of date: BLESS=1 cargo test --release --bin bufgym reference"
    );
}
