//! What the server gives: made once for each window, so that a scrape computes nothing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is told now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    /// All series.
    pub metrics: Arc<str>,
    /// The last check of each database, as JSON; empty before the first window ended.
    pub last: Arc<str>,
}

/// The latest texts, and whether windows still end.
#[derive(Debug)]
pub(crate) struct Published(Mutex<State>);

#[derive(Debug)]
struct State {
    texts: Texts,
    is_ready: bool,
    alive_at: Instant,
}

impl Published {
    /// Before anything was seen.
    pub fn new(metrics: String) -> Self {
        let texts = Texts { metrics: metrics.into(), last: "".into() };
        Self(Mutex::new(State { texts, is_ready: false, alive_at: Instant::now() }))
    }

    /// Says that a window was opened or ended, with what is told from now on.
    pub fn set(&self, metrics: String, last: Option<String>, is_ready: bool) {
        let mut state = self.lock();
        state.texts.metrics = metrics.into();
        if let Some(last) = last {
            state.texts.last = last.into();
        }
        state.is_ready = is_ready;
        state.alive_at = Instant::now();
    }

    /// What is told now.
    pub fn texts(&self) -> Texts {
        self.lock().texts.clone()
    }

    /// Whether a window is open, so that there will be something to tell.
    pub fn is_ready(&self) -> bool {
        self.lock().is_ready
    }

    /// For how long no window was opened or ended.
    pub fn silent_for(&self) -> Duration {
        self.lock().alive_at.elapsed()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Texts are replaced whole: one who panicked meanwhile left the ones before.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
