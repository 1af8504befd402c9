//! Progress on standard error: a bar on a terminal, nothing elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// How often a bar moves.
const STEP: Duration = Duration::from_millis(100);

/// Waits for a window to pass, and shows how much of it is left. Calls `tick` at every step.
pub fn wait(window: Duration, mut tick: impl FnMut()) {
    let bar = ProgressBar::new(window.as_millis() as u64);
    if let Ok(style) = ProgressStyle::with_template("watching {bar:30} {msg}") {
        bar.set_style(style);
    }
    let begun = Instant::now();
    while let Some(left) = window.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
        tick();
        bar.set_position(begun.elapsed().as_millis() as u64);
        bar.set_message(format!("{:.0} s left", left.as_secs_f64().ceil()));
        std::thread::sleep(left.min(STEP));
    }
    bar.finish_and_clear();
}
