//! Lengths of time on the command line.

use std::time::Duration;
pub use untax_core::units::duration;
use untax_pipeline::WINDOW_LENGTHS;

/// The length of a window: zero, for a single look, or one of [`WINDOW_LENGTHS`].
pub fn window(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    if length.is_zero() || WINDOW_LENGTHS.contains(&length) {
        return Ok(length);
    }
    Err("a window is 500ms to 24h long, or 0s for a single look".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_no_length_or_one_that_gives_intervals() {
        for length in ["0s", "500ms", "10s", "24h"] {
            assert_eq!(window(length), duration(length));
        }
        for length in ["1ms", "499ms", "25h", "999999h", "-1s", "10"] {
            window(length).unwrap_err();
        }
    }
}
