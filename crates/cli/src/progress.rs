//! Progress on standard error: a bar on a terminal, nothing elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// How much of a window is left; cleared when dropped.
pub struct Bar {
    bar: ProgressBar,
    window: Duration,
}

impl Bar {
    /// A bar for a window of this length.
    pub fn over(window: Duration) -> Self {
        let bar = ProgressBar::new(window.as_millis() as u64);
        if let Ok(style) = ProgressStyle::with_template("watching {bar:30} {msg}") {
            bar.set_style(style);
        }
        Self { bar, window }
    }

    /// Shows that so much of it has passed.
    pub fn show(&self, passed: Duration) {
        let left = self.window.saturating_sub(passed);
        self.bar.set_position(passed.as_millis() as u64);
        self.bar.set_message(format!("{:.0} s left", left.as_secs_f64().ceil()));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
