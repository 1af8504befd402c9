//! Standard output: how wide it is, whether it takes colours, and results written to it.

use anyhow::Context;
use serde::Serialize;
use std::io::{ErrorKind, Write};
use untax_report::format::clean_json;
use untax_report::terminal::Style;

/// How to draw on standard output.
pub fn style() -> Style {
    let stdout = std::io::stdout();
    let colour = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
    let width = rustix::termios::tcgetwinsize(&stdout)
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0);
    Style { colour, width: width.unwrap_or(Style::default().width) }
}

/// Prints a result. A reader that went away (as `head` does) is not an error.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Prints a line of results; false when nobody reads them any more.
pub fn print_line(line: &str) -> anyhow::Result<bool> {
    let mut stdout = std::io::stdout().lock();
    match writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true).context("cannot write to standard output"),
    }
}

/// Prints a result as JSON.
pub fn print_json<T: Serialize>(value: &T) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(value).context("cannot write the result as JSON")?;
    print(&(clean_json(&json) + "\n"))
}

/// Says something on standard error.
pub fn say(message: &str) {
    let _ = writeln!(anstream::stderr(), "{message}");
}

/// Says what a person should know beside a result.
pub fn say_all(notes: &[String]) {
    for note in notes {
        say(&format!("untax: {note}"));
    }
}

/// Writes a report to a file.
pub fn write_file(path: &std::path::Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    say(&format!("report: {}", path.display()));
    Ok(())
}
