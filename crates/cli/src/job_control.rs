//! Ctrl-Z: while a check or a stream is suspended it traces no thread's switches and wakeups.

use signal_hook::consts::SIGTSTP;
use signal_hook::flag::{register, register_conditional_default};
use signal_hook::low_level::emulate_default_handler;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use untax_host::{Host, process};
use untax_pipeline::Step;
use untax_trials::is_ignored;

/// Catches Ctrl-Z, so that tracing pauses first; when dropped, Ctrl-Z stops this process at once again.
pub struct Suspend(Option<&'static Flags>);

struct Flags {
    wanted: Arc<AtomicBool>,
    unheard: Arc<AtomicBool>,
}

/// Signals are listened for once in the life of a process.
static FLAGS: LazyLock<io::Result<Flags>> = LazyLock::new(|| {
    let flags = Flags { wanted: Arc::default(), unheard: Arc::default() };
    register_conditional_default(SIGTSTP, Arc::clone(&flags.unheard))?;
    register(SIGTSTP, Arc::clone(&flags.wanted))?;
    Ok(flags)
});

impl Suspend {
    /// Listens from now on, unless nobody could tell this process to go on.
    pub fn by_signal() -> io::Result<Self> {
        if is_ignored(SIGTSTP) || is_orphaned() {
            return Ok(Self(None));
        }
        let flags =
            FLAGS.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
        flags.wanted.store(false, Relaxed);
        flags.unheard.store(false, Relaxed);
        Ok(Self(Some(flags)))
    }

    /// What a window is to do now: suspend, if Ctrl-Z was pressed since this was asked last.
    pub fn step(&self) -> Step {
        if self.is_wanted() { Step::Suspend(suspend) } else { Step::Continue }
    }

    fn is_wanted(&self) -> bool {
        self.0.is_some_and(|flags| flags.wanted.swap(false, Relaxed))
    }
}

impl Drop for Suspend {
    fn drop(&mut self) {
        let Some(flags) = self.0 else { return };
        flags.unheard.store(true, Relaxed);
        if self.is_wanted() {
            suspend();
        }
    }
}

/// Stops this process until it is told to go on; returns for how long. A process that cannot stop goes on.
fn suspend() -> Duration {
    let begun = Instant::now();
    match emulate_default_handler(SIGTSTP) {
        Ok(()) => begun.elapsed(),
        Err(_) => Duration::ZERO,
    }
}

/// Whether no shell looks after this process's group, as far as can be seen: then the kernel does not let
/// Ctrl-Z stop it either.
fn is_orphaned() -> bool {
    let stat = |pid| process::stat(&Host::live(), pid).into_value();
    let shell_session = |group| stat(stat(group)?.parent)?.session;
    let own = stat(std::process::id());
    own.and_then(|own| Some(shell_session(own.group?)? != own.session?)).unwrap_or(true)
}
