//! Standard output: how wide it is, whether it takes colours, and results written to it.

use anyhow::Context;
use serde::Serialize;
use std::io::{ErrorKind, Write};
use untax_report::format::{ascii, clean_json};
use untax_report::terminal::Style;

/// How to draw on standard output. `COLUMNS` goes before what the terminal says.
pub fn style() -> Style {
    let stdout = std::io::stdout();
    let colour = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
    let wanted = of_terminal("COLUMNS").and_then(|columns| columns.parse().ok());
    let size = rustix::termios::tcgetwinsize(&stdout).ok();
    let width = wanted.or_else(|| size.map(|size| usize::from(size.ws_col)));
    let width = width.filter(|columns| *columns > 0);
    Style { colour, width: width.unwrap_or(Style::default().width) }
}

/// What the environment says of the terminal.
#[expect(clippy::disallowed_methods, reason = "how every program learns what a terminal shows")]
fn of_terminal(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether the user asked for ASCII: by the first of `LC_ALL`, `LC_CTYPE` and `LANG` that is set.
fn is_ascii_wanted() -> bool {
    let first = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(of_terminal);
    first.is_some_and(|locale| locale == "C" || locale == "POSIX")
}

/// Prints text for a person. A reader that went away (as `head` does) is not an error.
pub fn print(text: &str) -> anyhow::Result<()> {
    if is_ascii_wanted() { print_as_is(&ascii(text)) } else { print_as_is(text) }
}

fn print_as_is(text: &str) -> anyhow::Result<()> {
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
    print_as_is(&(clean_json(&json) + "\n"))
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

/// Fails where a report could not be written later, before anybody waits for it. Leaves what is there.
pub fn try_file(path: &std::path::Path) -> anyhow::Result<()> {
    let is_new = !path.exists();
    let open = std::fs::OpenOptions::new().append(true).create(true).open(path);
    open.with_context(|| format!("cannot write {}", path.display()))?;
    if is_new {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Writes a report to a file.
pub fn write_file(path: &std::path::Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    say(&format!("report: {}", path.display()));
    Ok(())
}
