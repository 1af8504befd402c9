//! The kernel's files that the bench reads and writes, below a root that tests can move.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use untax_host::Host;

/// `/`, or a directory that looks like it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree(PathBuf);

impl Tree {
    /// The running machine.
    pub fn live() -> Self {
        Self(PathBuf::from("/"))
    }

    /// A directory in place of `/`.
    pub fn at(root: &Path) -> Self {
        Self(root.to_owned())
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.0
    }

    fn place(&self, file: &str) -> PathBuf {
        self.0.join(file.trim_start_matches('/'))
    }

    /// A file's text without the white space around it.
    pub fn text(&self, file: &str) -> io::Result<String> {
        let mut text = String::new();
        File::open(self.place(file))?.read_to_string(&mut text)?;
        Ok(text.trim().to_owned())
    }

    /// A file that holds one number.
    pub fn number(&self, file: &str) -> io::Result<u64> {
        self.text(file)?.parse().map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// A file that lists words and marks the valid one with brackets.
    pub fn word(&self, file: &str) -> io::Result<String> {
        let text = self.text(file)?;
        let marked = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        Ok(marked.map_or(text.clone(), |(word, _)| word.to_owned()))
    }

    /// Overwrites a file that is there.
    pub fn write(&self, file: &str, text: &str) -> io::Result<()> {
        use std::io::Write;
        let mut options = File::options();
        options.write(true).truncate(true).open(self.place(file))?.write_all(text.as_bytes())
    }

    /// The names in a directory; none when it cannot be listed.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let place = self.place(directory);
        Host::live().names(&place.to_string_lossy()).into_value().unwrap_or_default()
    }

    /// A line `key: N kB` of `/proc/meminfo`, in bytes.
    pub fn memory(&self, key: &str) -> io::Result<u64> {
        let text = self.text("/proc/meminfo")?;
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let kib =
            line.and_then(|value| value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        kib.and_then(|kib| kib.checked_mul(1024)).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}
