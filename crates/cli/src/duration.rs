//! Lengths of time on the command line.

use std::time::Duration;
use untax_pipeline::WINDOW_LENGTHS;

/// The length of a window: zero, for a single look, or one of [`WINDOW_LENGTHS`].
pub fn window(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    if length.is_zero() || WINDOW_LENGTHS.contains(&length) {
        return Ok(length);
    }
    Err("a window is 500ms to 24h long, or 0s for a single look".to_owned())
}

/// A time such as `10s`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text} is not a time such as 10s, 500ms or 2m");
    let split = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(split);
    let seconds_each = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let seconds = number.parse::<f64>().map_err(|_| wrong())? * seconds_each;
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
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

    #[test]
    fn times_have_units() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        for wrong in ["10", "s", "-1s", "1y", "", "1e999s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
