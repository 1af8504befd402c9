//! Programs of many threads, made of `threads.c`.

use super::{Bystander, Untax, text};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program or library made of a file of `support/`.
pub fn built(untax: &Untax, source: &str, options: &[&str]) -> PathBuf {
    let (file, made) = (untax.path("source.c"), untax.path("made"));
    fs::write(&file, source).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-Wall", "-Werror"]).args(options);
    let output = compiler.arg("-o").arg(&made).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    made
}

/// A program of many threads; what it says goes to a file.
pub struct Threads {
    pub program: Bystander,
    said: PathBuf,
}

impl Threads {
    pub fn start(untax: &Untax, words: [&str; 3]) -> Self {
        Self::start_reading(untax, words, Path::new("/dev/null"))
    }

    pub fn start_reading(untax: &Untax, words: [&str; 3], from: &Path) -> Self {
        let program = built(untax, include_str!("threads.c"), &["-pthread"]);
        let said = untax.path("said");
        // `Bystander` lets nothing be said.
        let mut shell = Command::new("sh");
        shell.args(["-c", "to=$1 from=$2; shift 2; exec \"$@\" >\"$to\" <>\"$from\"", "sh"]);
        shell.arg(&said).arg(from);
        let program = Bystander::start({
            shell.arg(program).args(words);
            shell
        });
        Self { program, said }
    }

    /// The last line so far.
    pub fn says(&self) -> String {
        let said = text(self.said.to_str().unwrap());
        // The last one may be half written.
        let whole = said.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().last().unwrap_or_default().to_owned()
    }

    /// How many there were so far.
    pub fn count(&self) -> f64 {
        self.says().parse().unwrap_or(0.0)
    }

    /// How many there are.
    pub fn alive(&self) -> usize {
        fs::read_dir(format!("/proc/{}/task", self.program.id())).map_or(0, Iterator::count)
    }
}
