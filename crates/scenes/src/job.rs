//! Programs that do a piece of work and end, in any runtime.

use crate::account::Account;
use crate::container::{Container, Place, bubblewrap_words};
use crate::group::Group;
use crate::network::Network;
use crate::program;
use crate::scratch::Scratch;
use crate::setup::{Runtime, Setup};
use crate::shell::{Shell, TICK};
use crate::{SceneError, account};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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
        let Started { shell, log, name, container } = self.spawn(words)?;
        let output = program::finish(shell, &name, &log, deadline);
        drop(container);
        output
    }

    /// Starts a program that runs until the value is dropped, and waits until it has printed a line.
    pub fn start(&self, words: &[String], patience: Duration) -> Result<Started, SceneError> {
        let mut started = self.spawn(words)?;
        let since = Instant::now();
        while !started.printed().contains('\n') {
            let ended = started.shell.exit_status();
            let output_end = started.printed();
            let program = started.name.clone();
            if let Some(status) = ended {
                let status = status.to_string();
                return Err(SceneError::Failed { program, status, output_end });
            }
            if since.elapsed() > patience {
                let seconds = patience.as_secs();
                return Err(SceneError::Late { program, what: "ready", seconds, output_end });
            }
            std::thread::sleep(TICK);
        }
        Ok(started)
    }

    fn spawn(&self, words: &[String]) -> Result<Started, SceneError> {
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
        Ok(Started { shell, log, name: program::name(words), container })
    }
}

/// A program of a [`Job`] that runs; killed when this is dropped, and its container deleted.
pub struct Started {
    // In this order: the program ends before its container goes.
    shell: Shell,
    log: PathBuf,
    name: String,
    container: Option<Container>,
}

impl Started {
    /// What it printed so far.
    pub fn printed(&self) -> String {
        program::text(&self.log)
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
        let server =
            job.start(&words(["/bin/sh", "-c", "echo ready; exec sleep 60"]), second).unwrap();
        assert_eq!(server.printed(), "ready\n");
        let ended = job.start(&words(["/bin/sh", "-c", "printf why"]), second);
        assert!(matches!(ended, Err(SceneError::Failed { output_end, .. }) if output_end == "why"));
        drop(server);
        drop(job);
        assert!(!file.exists() && !directory.exists());
    }
}
