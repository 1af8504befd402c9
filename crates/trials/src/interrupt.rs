//! The wish to stop, and waiting that heeds it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use untax_host::Host;

/// How long a wish to stop may go unheard.
const HEARING: Duration = Duration::from_millis(20);

/// Set by whoever wants trials to stop: a signal handler, mostly.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// The trials were asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

impl Interrupt {
    /// Raised by SIGINT, SIGTERM and SIGHUP of this process; a second SIGINT ends it at once. SIGHUP stays
    /// ignored where it is, as by `nohup`.
    pub fn by_signals() -> std::io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        use signal_hook::flag;
        let interrupt = Self::default();
        // The order matters: the first signal finds the flag down and raises it, the second
        // finds it up.
        flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&interrupt.0))?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if signal != SIGHUP || !is_ignored(SIGHUP) {
                flag::register(signal, Arc::clone(&interrupt.0))?;
            }
        }
        Ok(interrupt)
    }

    /// Raised by SIGINT alone; a second one ends this process at once.
    pub fn by_ctrl_c() -> std::io::Result<Self> {
        use signal_hook::{consts::SIGINT, flag};
        let interrupt = Self::default();
        flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&interrupt.0))?;
        flag::register(SIGINT, Arc::clone(&interrupt.0))?;
        Ok(interrupt)
    }

    /// Raises it.
    pub fn raise(&self) {
        self.0.store(true, Relaxed);
    }

    /// Refuses to go on once it is raised.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.0.load(Relaxed) { Err(Interrupted) } else { Ok(()) }
    }

    /// Sleeps, unless it is raised before or meanwhile.
    pub fn sleep(&self, length: Duration) -> Result<(), Interrupted> {
        let until = Instant::now() + length;
        loop {
            self.check()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(HEARING));
        }
    }
}

impl From<Arc<AtomicBool>> for Interrupt {
    /// Raised by whoever sets the flag.
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }
}

/// Whether this process was started so that it ignores a signal, or does by now.
pub fn is_ignored(signal: i32) -> bool {
    let status = Host::live().text("/proc/self/status").into_value().unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
