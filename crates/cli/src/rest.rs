//! Ctrl-Z: while this program is stopped it traces nothing that happens often.

use signal_hook::consts::SIGTSTP;
use signal_hook::flag::{register, register_conditional_default};
use signal_hook::low_level::emulate_default_handler;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Listens for the wish to stop; when dropped, that stops this process at once again.
pub struct Rest {
    wanted: Arc<AtomicBool>,
    unheard: Arc<AtomicBool>,
}

impl Rest {
    /// Listens from now on.
    pub fn by_signal() -> std::io::Result<Self> {
        let (wanted, unheard) = (Arc::default(), Arc::default());
        register_conditional_default(SIGTSTP, Arc::clone(&unheard))?;
        register(SIGTSTP, Arc::clone(&wanted))?;
        Ok(Self { wanted, unheard })
    }

    /// Whether a stop was asked for since this was asked last.
    pub fn is_wanted(&self) -> bool {
        self.wanted.swap(false, Relaxed)
    }

    /// Stops this process until it is told to go on; gives for how long.
    pub fn take() -> std::io::Result<Duration> {
        let begun = Instant::now();
        emulate_default_handler(SIGTSTP)?;
        Ok(begun.elapsed())
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        self.unheard.store(true, Relaxed);
    }
}
