//! What passed the disks in each second of a window.

use std::collections::HashMap;
use std::time::{Duration, Instant};
use untax_core::Bytes;
use untax_core::io::Second;

const EACH: Duration = Duration::from_secs(1);

/// Windows of more seconds have them not told apart: ten minutes of a busy host are some hundred KiB.
const MOST: usize = 600;

/// Requests and bytes of every flow so far, at each second. Keys and values are those of the table `flows`.
pub(crate) struct EachSecond {
    begun: Instant,
    /// How many looks there were; the first one when the window opened.
    looks: u32,
    so_far: HashMap<Vec<u8>, Vec<(u32, Second)>>,
}

impl EachSecond {
    pub fn new() -> Self {
        Self { begun: Instant::now(), looks: 0, so_far: HashMap::new() }
    }

    /// Whether the next second is over.
    pub fn is_due(&self) -> bool {
        self.begun.elapsed() >= EACH * self.looks && (self.looks as usize) <= MOST + 1
    }

    /// Adds a look. One that comes more than half a second late leaves out the seconds that it missed.
    pub fn add(&mut self, flows: &HashMap<Vec<u8>, Vec<u8>>) {
        let now = (self.begun.elapsed().as_secs_f64() + 0.5) as u32;
        self.looks = now + 1;
        for (key, value) in flows {
            if let Some(second) = second(value) {
                self.so_far.entry(key.clone()).or_default().push((now, second));
            }
        }
    }

    /// The whole seconds of one flow; `None` where the window has too many, or none.
    pub fn of(&self, key: &[u8]) -> Option<Vec<Second>> {
        let whole = self.looks.checked_sub(1).filter(|whole| *whole > 0)? as usize;
        if whole > MOST {
            return None;
        }
        let mut each = vec![Second::default(); whole];
        let all = self.so_far.get(key)?;
        // One that was first seen within the window had moved nothing before.
        let first =
            all.first().filter(|(at, _)| *at > 0).map(|(at, _)| (at - 1, Second::default()));
        let all: Vec<(u32, Second)> = first.into_iter().chain(all.iter().copied()).collect();
        for both in all.windows(2) {
            let [(from, before), (to, after)] = *both else { continue };
            let seconds = u64::from(to.saturating_sub(from).max(1));
            let grown = Second {
                bytes: Bytes(after.bytes.0.saturating_sub(before.bytes.0) / seconds),
                requests: after.requests.saturating_sub(before.requests) / seconds,
            };
            for at in from..to {
                if let Some(place) = each.get_mut(at as usize) {
                    *place = grown;
                }
            }
        }
        Some(each)
    }
}

/// The first two fields of `struct flow`: requests and bytes.
fn second(value: &[u8]) -> Option<Second> {
    let number = |at: usize| Some(u64::from_ne_bytes(value.get(at..at + 8)?.try_into().ok()?));
    Some(Second { requests: number(0)?, bytes: Bytes(number(8)?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(seconds: &mut EachSecond, ago_s: f64, flows: &[(u8, u64)]) {
        // The window began so long ago.
        seconds.begun = Instant::now().checked_sub(Duration::from_secs_f64(ago_s)).unwrap();
        let value = |bytes: u64| [7_u64.to_ne_bytes(), bytes.to_ne_bytes()].concat();
        seconds.add(&flows.iter().map(|(key, bytes)| (vec![*key], value(*bytes))).collect());
    }

    #[test]
    fn each_second_has_what_was_moved_in_it() {
        let mut seconds = EachSecond::new();
        look(&mut seconds, 0.0, &[(1, 100)]);
        look(&mut seconds, 1.02, &[(1, 150)]);
        look(&mut seconds, 2.01, &[(1, 150), (2, 30)]);
        // A second was missed.
        look(&mut seconds, 4.1, &[(1, 350), (2, 30)]);
        let bytes = |key: u8| -> Vec<u64> {
            seconds.of(&[key]).unwrap().iter().map(|second| second.bytes.0).collect()
        };
        assert_eq!(bytes(1), [50, 0, 100, 100]);
        assert_eq!(bytes(2), [0, 30, 0, 0], "first seen in the second second");
        assert_eq!(seconds.of(&[9]), None);
        assert_eq!(EachSecond::new().of(&[1]), None);
    }
}
