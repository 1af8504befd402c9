//! A directory and a port of one's own.

use crate::account::Account;
use crate::error::at;
use crate::shell::Shell;
use crate::{LabError, program};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The directory is made by the shell that removes it, so that there is no moment at which it
/// could be forgotten.
const MAKE: &str = r#"directory=$(mktemp -d -t untax-lab.XXXXXXXX) && echo "$directory""#;

/// A server that is being stopped may still write: tried until nothing is left.
const REMOVE: &str = r#"
ticks=600
while [ -n "$directory" ] && [ -e "$directory" ] && [ "$ticks" -gt 0 ]; do
    rm -rf --one-file-system "$directory" 2>/dev/null || sleep 0.1
    ticks=$((ticks - 1))
done
"#;

/// A directory that only its owner enters, removed with this value.
pub(crate) struct Scratch {
    shell: Shell,
    logs: AtomicU32,
}

impl Scratch {
    pub(crate) fn new(owner: &Account) -> Result<Self, LabError> {
        let shell = Shell::guard::<&str>(MAKE, REMOVE, &[])?;
        if shell.said.is_empty() {
            return Err(LabError::Host { why: "mktemp made no directory".to_owned() });
        }
        let scratch = Self { shell, logs: AtomicU32::new(0) };
        scratch.give("", owner)?;
        Ok(scratch)
    }

    pub(crate) fn path(&self) -> &Path {
        Path::new(&self.shell.said)
    }

    /// A path in the directory.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// A path in the directory, as a word of a command line.
    pub(crate) fn word(&self, name: &str) -> String {
        self.join(name).to_string_lossy().into_owned()
    }

    /// The last part of the path: unique on this machine.
    pub(crate) fn name(&self) -> &str {
        self.shell.said.rsplit('/').next().unwrap_or_default()
    }

    /// Writes a file that the owner may read.
    pub(crate) fn write(&self, name: &str, text: &str, owner: &Account) -> Result<(), LabError> {
        let path = self.join(name);
        std::fs::write(&path, text).map_err(at(&path))?;
        self.give(name, owner)
    }

    fn give(&self, name: &str, owner: &Account) -> Result<(), LabError> {
        let path = self.join(name);
        std::os::unix::fs::chown(&path, Some(owner.uid), Some(owner.gid)).map_err(at(&path))
    }

    /// A file for the output of one run of a program.
    pub(crate) fn log(&self, words: &[String]) -> PathBuf {
        let number = self.logs.fetch_add(1, Ordering::Relaxed);
        self.join(&format!("{}.{number}.log", program::name(words)))
    }

    /// Runs a program to its end and gives what it printed.
    pub(crate) fn run(&self, words: &[String]) -> Result<String, LabError> {
        program::run(words, self.path(), &self.log(words))
    }
}

/// A port of the loopback interface that was free just now.
pub(crate) fn free_port() -> Result<u16, LabError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|source| LabError::Port { source })
}
