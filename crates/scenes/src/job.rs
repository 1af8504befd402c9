//! Programs that do a piece of work and end, in any runtime.

use crate::account::Account;
use crate::container::{Container, Place, bubblewrap_words};
use crate::group::Group;
use crate::network::Network;
use crate::program;
use crate::scratch::Scratch;
use crate::setup::{Runtime, Setup};
use crate::shell::Shell;
use crate::{SceneError, account};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much longer than its work a program may run: starting and ending in a sandbox.
const EXTRA_TIME: Duration = Duration::from_secs(120);

/// A directory in which programs of ours run, as this user, in the runtime of a setup; removed with this value.
pub struct Job {
    scratch: Scratch,
    account: Account,
    runtime: Runtime,
    enter_command: Vec<String>,
    place: Place,
}

impl Job {
    /// Prepares the directory; nothing runs yet.
    pub fn new(setup: &Setup) -> Result<Self, SceneError> {
        if setup.runtime != Runtime::Host && !account::is_root() {
            return Err(SceneError::NeedsRoot { what: "a program in a container" });
        }
        let account = Account::own()?;
        let scratch = Scratch::new(&account)?;
        let group = setup.group.map(Group::enter_command).unwrap_or_default();
        let network = setup.network.map(Network::enter_command).unwrap_or_default();
        Ok(Self {
            scratch,
            account,
            runtime: setup.runtime,
            enter_command: [&group[..], &network, setup.before_server].concat(),
            place: Place::of(setup),
        })
    }

    /// The directory, which programs see under the same name.
    pub fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// Writes a file there.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, SceneError> {
        let path = self.scratch.join(name);
        std::fs::write(&path, text).map_err(crate::error::at(&path))?;
        Ok(path)
    }

    /// Runs a program to its end, which is killed after this time and a while, and gives what it printed.
    pub fn run(&self, words: &[String], time: Duration) -> Result<String, SceneError> {
        self.run_within(words, time + EXTRA_TIME)
    }

    /// The same, killed after exactly this time.
    pub fn run_within(&self, words: &[String], deadline: Duration) -> Result<String, SceneError> {
        let (container, inner) = match self.runtime {
            Runtime::Host => (None, words.to_vec()),
            Runtime::Bubblewrap => {
                (None, [&bubblewrap_words(&self.scratch, &self.place.shown)?[..], words].concat())
            }
            runtime => {
                let (scratch, account) = (&self.scratch, &self.account);
                let container = Container::new(runtime, scratch, account, &self.place, words)?;
                let command = container.command();
                (Some(container), command)
            }
        };
        let whole = [&self.enter_command[..], &inner].concat();
        let log = self.scratch.log(words);
        let shell = Shell::run(&whole, "KILL", &log, self.directory())?;
        let output = program::finish(shell, &program::name(words), &log, deadline);
        drop(container);
        output
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::words;

    #[test]
    fn a_program_runs_in_a_directory_of_its_own_that_is_gone_afterwards() {
        let job = Job::new(&Setup::default()).unwrap();
        let file = job.write("note", "written").unwrap();
        let second = Duration::from_secs(1);
        let script = "pwd; cat note";
        let output = job.run(&words(["/bin/sh", "-c", script]), second).unwrap();
        let directory = job.directory().to_owned();
        assert_eq!(output, format!("{}\nwritten", directory.display()));
        let failed = job.run(&words(["/bin/sh", "-c", "echo why; exit 3"]), second).unwrap_err();
        assert!(failed.to_string().contains("why"), "{failed}");
        let late = job.run_within(&words(["/bin/sleep", "60"]), Duration::from_millis(100));
        assert!(matches!(late, Err(SceneError::Late { .. })));
        drop(job);
        assert!(!file.exists() && !directory.exists());
    }
}
