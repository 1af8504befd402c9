//! Programs: where they are, and running one to its end.

use crate::SceneError;
use crate::shell::Shell;
use std::path::{Path, PathBuf};
use std::time::Duration;
use untax_host::Host;

/// Where programs are. Fixed rather than from the environment, so that a run does not depend on
/// the user that starts it; servers are in `sbin`, which the path of many users lacks.
pub(crate) const DIRECTORIES: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The longest that a preparation may take: filling some ten GiB on a slow disk.
pub(crate) const PREPARATION: Duration = Duration::from_secs(600);

/// How much of a program's output an error shows.
const SHOWN_LINES: usize = 12;

/// The path of an installed program.
pub fn find(program: &str, package: &str) -> Result<PathBuf, SceneError> {
    find_in(DIRECTORIES.iter().map(PathBuf::from), program, package)
}

/// The path of a program in one of `directories`.
pub(crate) fn find_in(
    mut directories: impl Iterator<Item = PathBuf>,
    program: &str,
    package: &str,
) -> Result<PathBuf, SceneError> {
    directories.find_map(|d| Some(d.join(program)).filter(|p| p.is_file())).ok_or_else(|| {
        SceneError::Missing { program: program.to_owned(), package: package.to_owned() }
    })
}

/// Runs a program to its end in `directory` and gives what it printed.
pub(crate) fn run(words: &[String], directory: &Path, log: &Path) -> Result<String, SceneError> {
    let shell = Shell::run(words, "KILL", log, directory)?;
    finish(shell, &name(words), log, PREPARATION)
}

/// Waits for the end of a program and gives what it printed.
pub(crate) fn finish(
    mut shell: Shell,
    program: &str,
    log: &Path,
    deadline: Duration,
) -> Result<String, SceneError> {
    let Some(status) = shell.wait(deadline) else {
        return Err(SceneError::Late {
            program: program.to_owned(),
            what: "done",
            seconds: deadline.as_secs(),
            output_end: tail(log),
        });
    };
    if !status.success() {
        let (program, status) = (program.to_owned(), status.to_string());
        return Err(SceneError::Failed { program, status, output_end: tail(log) });
    }
    Ok(text(log))
}

/// The program's own name in a command line, for messages: the word after what enters its group and
/// root, and changes the user.
pub(crate) fn name(words: &[String]) -> String {
    let start = words.iter().rposition(|word| word == "--").map_or(0, |at| at + 1);
    let path = words.get(start).map_or("", String::as_str);
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// The text of a file of this machine.
pub(crate) fn host_text(path: &str) -> Result<String, SceneError> {
    let reading = Host::live().text(path);
    match reading.why() {
        Some(why) => Err(SceneError::Host { why }),
        None => Ok(reading.into_value().unwrap_or_default()),
    }
}

/// What a program printed; empty when that cannot be read, as it only goes into messages and
/// parsers that look for something in it.
pub(crate) fn text(log: &Path) -> String {
    host_text(&log.to_string_lossy()).unwrap_or_default()
}

/// The end of what a program printed, on one line.
pub(crate) fn tail(log: &Path) -> String {
    let text = text(log);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = lines.len().saturating_sub(SHOWN_LINES);
    if lines.is_empty() { "nothing".to_owned() } else { lines[shown..].join(" | ") }
}

/// Words of a command line.
pub(crate) fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_its_package() {
        let error = find("no-such-server", "a-package").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no-such-server is not installed; try 'apt-get install a-package'"
        );
    }

    #[test]
    fn the_name_is_that_of_the_program_itself() {
        let words = ["setpriv", "--reuid=1", "--", "/usr/bin/redis-server", "x"].map(str::to_owned);
        assert_eq!(name(&words), "redis-server");
        assert_eq!(name(&words[3..4]), "redis-server");
        let entered = [&["sh", "/group", "--"].map(str::to_owned)[..], &words].concat();
        assert_eq!(name(&entered), "redis-server");
    }
}
