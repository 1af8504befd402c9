//! Uniform random keys, and the mixing that rows and hash index are made with.

/// The step of the generator: 2^64 over the golden ratio, as in `SplitMix64`.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a number so that every bit of the result depends on every bit of the number: the
/// finaliser of `SplitMix64` (Steele, Lea and Flood, 2014). A bijection: no two numbers give the
/// same.
#[inline]
pub(crate) fn mix(number: u64) -> u64 {
    let a = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let b = (a ^ (a >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    b ^ (b >> 31)
}

/// Maps a random number onto `0..range` (Lemire's multiplication; its bias, at most `range` in
/// 2^64, is far below what any bench can see).
#[inline]
pub(crate) fn within(random: u64, range: u64) -> u64 {
    ((u128::from(random) * u128::from(range)) >> 64) as u64
}

/// A stream of uniform keys: `SplitMix64`, one multiplication more than nothing, so that the
/// bench measures memory and not its generator.
#[derive(Debug, Clone)]
pub struct Keys {
    state: u64,
    rows: u64,
}

impl Keys {
    /// The stream number `stream` of a seed; streams do not overlap in any bench's lifetime.
    pub fn new(seed: u64, stream: u64, rows: u64) -> Self {
        Self { state: mix(seed ^ mix(stream.wrapping_add(1))), rows }
    }

    /// The next key.
    #[inline]
    pub fn next_key(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        within(mix(self.state), self.rows)
    }

    /// The next key, made to depend on `seen`: it cannot be known before `seen` is.
    #[inline]
    pub(crate) fn next_after(&mut self, seen: u64) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        within(mix(self.state ^ seen), self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_uniform_and_repeatable() {
        let (rows, draws) = (50, 100_000);
        let mut keys = Keys::new(7, 0, rows);
        let mut counts = [0_u32; 50];
        (0..draws).for_each(|_| counts[keys.next_key() as usize] += 1);
        // Chi-square with 49 degrees of freedom: above 85.4 once in a thousand seeds.
        let expected = f64::from(draws) / rows as f64;
        let chi: f64 = counts.iter().map(|c| (f64::from(*c) - expected).powi(2) / expected).sum();
        assert!(chi < 85.4, "{chi}");
        let (mut a, mut b, mut c) = (Keys::new(7, 1, 9), Keys::new(7, 1, 9), Keys::new(7, 2, 9));
        let draw = |k: &mut Keys| (0..40).map(|_| k.next_key()).collect::<Vec<_>>();
        let (a, b, c) = (draw(&mut a), draw(&mut b), draw(&mut c));
        assert_eq!(a, b);
        assert_ne!(a, c);
    }
}
