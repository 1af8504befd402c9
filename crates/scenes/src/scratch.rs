//! A directory and a port for one server.
//!
//! The directory belongs to the server's user, which may put links into it at any moment: root must
//! neither write there nor run a program there. So that user writes all files there, and our own files
//! (scripts, logs, containers) are in a directory beside it.

use crate::account::Account;
use crate::error::at;
use crate::program::words;
use crate::shell::Shell;
use crate::{SceneError, program};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The shell that removes the directories also makes them: at no moment do they exist without it.
const MAKE: &str = r#"
directory=$(mktemp -d -t untax-lab.XXXXXXXX) && mkdir -m 700 "$directory.own" &&
    echo "$directory" || echo
"#;

const REMOVE: &str = r#"
[ -z "$directory" ] || remove "$directory" "$directory.own"
"#;

/// Writes text `$2` into file `$1`.
const WRITE: &str = r#"printf %s "$2" >"$1""#;

/// A directory that only its owner enters, and one that only we do; removed with this value.
pub(crate) struct Scratch {
    shell: Shell,
    logs: AtomicU32,
}

impl Scratch {
    pub(crate) fn new(owner: &Account) -> Result<Self, SceneError> {
        let shell = Shell::guard::<&str>(MAKE, REMOVE, &[])?;
        if shell.first_line.is_empty() {
            return Err(SceneError::Host { why: "mktemp made no directory".to_owned() });
        }
        let scratch = Self { shell, logs: AtomicU32::new(0) };
        let path = scratch.path();
        std::os::unix::fs::chown(path, Some(owner.uid), Some(owner.gid)).map_err(at(path))?;
        Ok(scratch)
    }

    pub(crate) fn path(&self) -> &Path {
        Path::new(&self.shell.first_line)
    }

    /// A path in the directory.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// A path in the directory, as a word of a command line.
    pub(crate) fn word(&self, name: &str) -> String {
        self.join(name).to_string_lossy().into_owned()
    }

    /// A path in the directory that only we enter.
    pub(crate) fn private(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("{}.own", self.shell.first_line)).join(name)
    }

    /// The last part of the path: unique on this machine.
    pub(crate) fn name(&self) -> &str {
        self.shell.first_line.rsplit('/').next().unwrap_or_default()
    }

    /// Writes a file as the owner: shorter than 128 KiB, the most that the kernel takes for a word.
    pub(crate) fn write(&self, name: &str, text: &str, owner: &Account) -> Result<(), SceneError> {
        let write = words(["/bin/sh", "-c", WRITE, "write", &self.word(name), text]);
        self.run_as(owner, &write).map(drop)
    }

    /// Writes a file for programs of ours, and gives its path.
    pub(crate) fn keep(&self, name: &str, text: &str) -> Result<String, SceneError> {
        let path = self.private(name);
        std::fs::write(&path, text).map_err(at(&path))?;
        Ok(path.to_string_lossy().into_owned())
    }

    /// A file for the output of one run of a program.
    pub(crate) fn log(&self, words: &[String]) -> PathBuf {
        let number = self.logs.fetch_add(1, Ordering::Relaxed);
        self.private(&format!("{}.{number}.log", program::name(words)))
    }

    /// Runs a program of ours to its end and gives what it printed. Not in the owner's directory:
    /// sysbench loads what lies where it runs.
    pub(crate) fn run(&self, words: &[String]) -> Result<String, SceneError> {
        program::run(words, &self.private(""), &self.log(words))
    }

    /// Runs a program to its end as the owner, in the owner's directory.
    pub(crate) fn run_as(&self, owner: &Account, words: &[String]) -> Result<String, SceneError> {
        let words = [&owner.prefix("KILL")[..], words].concat();
        program::run(&words, self.path(), &self.log(&words))
    }
}

/// A port of the loopback interface that was free just now.
pub(crate) fn free_port() -> Result<u16, SceneError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|source| SceneError::Port { source })
}

/// This port, or else one that is free.
pub(crate) fn free_port_or(port: Option<u16>) -> Result<u16, SceneError> {
    port.map_or_else(free_port, Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::process::Command;

    #[test]
    fn what_is_ours_lies_beside_the_servers_directory_and_goes_with_it() {
        let scratch = Scratch::new(&Account::own().unwrap()).unwrap();
        let (own, directory) = (scratch.private(""), scratch.path().to_owned());
        let kept = scratch.keep("work.sql", "SELECT 1").unwrap();
        let log = scratch.log(&words(["/bin/true"]));
        assert!(log.starts_with(&own) && Path::new(&kept).starts_with(&own));
        assert!(!own.starts_with(&directory) && directory.is_dir());
        assert_eq!(own.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        let place = scratch.run(&words(["/bin/pwd"])).unwrap();
        assert!(Path::new(place.trim()).extension().is_some_and(|e| e == "own"), "{place}");
        drop(scratch);
        assert!(!own.exists() && !directory.exists());
    }

    #[test]
    fn a_process_keeps_the_files_that_it_works_on() {
        let scratch = Scratch::new(&Account::own().unwrap()).unwrap();
        let path = scratch.path().to_owned();
        std::fs::write(scratch.join("data"), "").unwrap();
        let mut last = Command::new("/bin/sh");
        let mut last =
            last.args(["-c", "sleep 0.5; test -e data"]).current_dir(&path).spawn().unwrap();
        drop(scratch);
        assert!(last.wait().unwrap().success());
        assert!(!path.exists());
    }

    #[test]
    fn what_a_program_left_mounted_among_our_files_goes_too() {
        if !account::is_root() {
            return;
        }
        let scratch = Scratch::new(&Account::own().unwrap()).unwrap();
        let (own, mounted) = (scratch.private(""), scratch.private("null-netns"));
        std::fs::write(&mounted, "").unwrap();
        let network = Path::new("/proc/self/ns/net");
        let mount = Command::new("mount").arg("--bind").args([network, &mounted]).status().unwrap();
        assert!(mount.success());
        drop(scratch);
        assert!(!own.exists());
    }

    #[test]
    fn the_owner_writes_what_the_server_reads() {
        // Another user than ourselves, where we may become one.
        let owner = Account::for_server("nobody").unwrap();
        let scratch = Scratch::new(&owner).unwrap();
        scratch.write("conf", "100 %s\\n\n", &owner).unwrap();
        let file = scratch.join("conf");
        assert_eq!(program::text(&file), "100 %s\\n\n");
        assert_eq!(file.metadata().unwrap().uid(), owner.uid);
        let ours = PathBuf::from(scratch.keep("ours", "as it was").unwrap());
        symlink(&ours, scratch.join("link")).unwrap();
        let written = scratch.write("link", "changed", &owner);
        assert_eq!(written.is_err(), account::is_root(), "where a link leads only root may write");
        assert_eq!(program::text(&ours) == "as it was", account::is_root());
    }
}
