//! The guard: a process of its own that puts everything back once the bench is gone.
//!
//! It holds one end of a socket whose other end the bench alone holds. Whatever ends the bench
//! (its own wish, an error, a panic, a signal it cannot catch) closes that end; the guard reads
//! the end of the stream and restores. Prior values are in a file before anything changes, so
//! that the next bench can restore what not even the guard survived.

use super::journal::{Journal, Setting};
use super::tree::Tree;
use crate::child::Program;
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// How long restoring is tried. Dying readers give their pages back within a second.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a new bench waits for the guard of the last one.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);
/// The guard's word that prior values are in its hands.
const READY: u8 = b'r';
/// The guard's word that all is as it was.
const RESTORED: u8 = b'.';

/// Why the pools are not in safe hands.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// Another bench runs, or its guard is at work.
    #[error(
        "another bench is running{}; wait for it, or end it and try again",
        pid.as_ref().map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    )]
    Locked {
        /// Its process, when it can be told.
        pid: Option<String>,
    },
    /// A file of the state directory.
    #[error("{}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// The guard did not start; nothing was changed.
    #[error("the guard of the page pools did not start; nothing was changed")]
    Start(#[source] io::Error),
    /// Something could not be restored.
    #[error("not restored: {left}; write the values by hand")]
    Left {
        /// The files, with the values to write and why it failed.
        left: String,
    },
}

fn state(path: &Path) -> impl FnOnce(io::Error) -> GuardError {
    move |source| GuardError::State { path: path.to_owned(), source }
}

/// The right to bench: one at a time per state directory, held until the guard is done, too.
#[derive(Debug)]
pub struct BenchLock(File);

impl BenchLock {
    /// Takes the right; waits a moment for the guard of a bench that just ended.
    pub fn take(directory: &Path) -> Result<Self, GuardError> {
        fs::create_dir_all(directory).map_err(state(directory))?;
        let path = directory.join("bench.lock");
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR);
        let mut file = File::from(opened.map_err(io::Error::from).map_err(state(&path))?);
        let began = Instant::now();
        while rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            if began.elapsed() > LOCK_PATIENCE {
                let mut pid = String::new();
                let read = file.read_to_string(&mut pid).is_ok() && !pid.is_empty();
                return Err(GuardError::Locked { pid: read.then_some(pid) });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // The number is for people; the lock holds without it.
        let _ = file.set_len(0).and_then(|()| file.rewind());
        let _ = write!(file, "{}", std::process::id());
        Ok(Self(file))
    }
}

/// Restores what an earlier bench and its guard left behind, both killed. Gives back the files
/// that were restored; none is the rule.
pub fn recover(_lock: &BenchLock, directory: &Path) -> Result<Vec<String>, GuardError> {
    let path = Journal::path(directory);
    let files = match Journal::load(&path).map_err(state(&path))? {
        Some(journal) => {
            restore(&journal)?;
            journal.settings().iter().map(Setting::file).collect()
        }
        None => Vec::new(),
    };
    remove(&path).map_err(state(&path))?;
    Ok(files)
}

fn restore(journal: &Journal) -> Result<(), GuardError> {
    let left = journal.restore(PATIENCE);
    if left.is_empty() {
        return Ok(());
    }
    let tell = |(s, why): &(&Setting, String)| format!("{} = {} ({why})", s.file(), s.prior());
    Err(GuardError::Left { left: left.iter().map(tell).collect::<Vec<_>>().join(", ") })
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// A guard at its post. Dropping it restores, like [`Guard::release`], without a word.
#[derive(Debug)]
pub struct Guard {
    journal: Journal,
    path: PathBuf,
    link: UnixStream,
    process: Child,
    restored: bool,
}

impl Guard {
    /// Saves the prior values, starts the guard, and returns once it has them. From here on, and
    /// not before, the settings may be changed.
    pub fn post(
        program: &Program,
        directory: &Path,
        lock: &BenchLock,
        tree: &Tree,
        settings: Vec<Setting>,
    ) -> Result<Self, GuardError> {
        let journal = Journal::new(tree, settings);
        let path = journal.save(directory).map_err(state(directory))?;
        let start = || -> io::Result<_> {
            let (mut link, its) = UnixStream::pair()?;
            let lock = Stdio::from(OwnedFd::from(lock.0.try_clone()?));
            let its = Stdio::from(OwnedFd::from(its));
            let process = program.start_guard(path.clone().into_os_string(), its, lock)?;
            let mut word = [0];
            link.read_exact(&mut word)?;
            if word == [READY] {
                Ok((link, process))
            } else {
                Err(io::ErrorKind::InvalidData.into())
            }
        };
        match start() {
            Ok((link, process)) => Ok(Self { journal, path, link, process, restored: false }),
            Err(error) => {
                // Nothing was changed, so the journal has nothing to tell.
                remove(&path).map_err(state(&path))?;
                Err(GuardError::Start(error))
            }
        }
    }

    /// What was before.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The guard's process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Has everything restored and waits for it.
    pub fn release(mut self) -> Result<(), GuardError> {
        self.stand_down()
    }

    fn stand_down(&mut self) -> Result<(), GuardError> {
        if std::mem::replace(&mut self.restored, true) {
            return Ok(());
        }
        let mut word = Vec::new();
        let heard =
            self.link.shutdown(Shutdown::Write).and_then(|()| self.link.read_to_end(&mut word));
        // The answer is what counts; how the process ended adds nothing.
        let _ = self.process.wait();
        if heard.is_ok() && word == [RESTORED] {
            return Ok(());
        }
        // The guard was killed, or could not do it: the journal is still ours.
        restore(&self.journal)?;
        remove(&self.path).map_err(state(&self.path))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Err(error) = self.stand_down() {
            eprintln!("untax: {error}");
        }
    }
}

/// The guard itself: the whole life of its process. Its standard input is the link to the bench,
/// its standard output the lock, held as long as it lives.
pub(crate) fn keep(journal: &Path) -> io::Result<()> {
    let prior = Journal::load(journal)?.ok_or(io::ErrorKind::NotFound)?;
    let mut link = UnixStream::from(rustix::io::dup(rustix::stdio::stdin())?);
    link.write_all(&[READY])?;
    // Returns when the bench's end is closed; a bench that dies with an unread word on its side
    // shows as an error instead, which says the same.
    let _ = io::copy(&mut link, &mut io::sink());
    match restore(&prior) {
        Ok(()) => {
            remove(journal)?;
            // A bench that was killed does not hear it.
            let _ = link.write_all(&[RESTORED]);
            Ok(())
        }
        Err(error) => Err(io::Error::other(error)),
    }
}
