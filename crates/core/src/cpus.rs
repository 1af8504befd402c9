//! Sets of CPUs, by their numbers.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A set of CPUs. Its text is the kernel's list, such as `0-15,32-47`; that of no CPU is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpus(Vec<u64>);

/// The highest number that is read: the kernel's own limit is 8192 (`NR_CPUS` with `MAXSMP`).
const MOST: u32 = 8192;

/// A text is no list of CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpusError(String);

impl fmt::Display for CpusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no list of CPUs such as 0-3,8", self.0)
    }
}

impl std::error::Error for CpusError {}

impl Cpus {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a CPU is one of them.
    pub fn has(&self, cpu: u32) -> bool {
        self.0.get(cpu as usize / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// All of them, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.0.len() as u32 * 64).filter(|cpu| self.has(*cpu))
    }

    /// Those that are in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        self.with(other, |own, other| own & other)
    }

    /// Those that are in either.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        self.with(other, |own, other| own | other)
    }

    /// Those that are not in the other.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.with(other, |own, other| own & !other)
    }

    /// Whether all of them are in the other.
    pub fn is_within(&self, other: &Self) -> bool {
        self.without(other).is_empty()
    }

    fn with(&self, other: &Self, join: impl Fn(u64, u64) -> u64) -> Self {
        let word = |words: &[u64], place: usize| words.get(place).copied().unwrap_or(0);
        let words = 0..self.0.len().max(other.0.len());
        Self::of_words(
            words.map(|place| join(word(&self.0, place), word(&other.0, place))).collect(),
        )
    }

    /// Without empty words at the end, so that equal sets are equal values.
    fn of_words(mut words: Vec<u64>) -> Self {
        while words.last() == Some(&0) {
            words.pop();
        }
        Self(words)
    }
}

impl FromIterator<u32> for Cpus {
    fn from_iter<T: IntoIterator<Item = u32>>(numbers: T) -> Self {
        let mut bits = Vec::new();
        for cpu in numbers {
            let place = cpu as usize / 64;
            bits.resize(bits.len().max(place + 1), 0);
            bits[place] |= 1 << (cpu % 64);
        }
        Self::of_words(bits)
    }
}

impl FromStr for Cpus {
    type Err = CpusError;

    fn from_str(list: &str) -> Result<Self, CpusError> {
        let list = list.trim();
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|cpu| *cpu < MOST);
        let range = |part: &str| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let (low, high) = (number(low)?, number(high)?);
            (low <= high).then_some(low..=high)
        };
        if list.is_empty() {
            return Ok(Self::default());
        }
        let ranges: Option<Vec<RangeInclusive<u32>>> = list.split(',').map(range).collect();
        ranges
            .map(|ranges| ranges.into_iter().flatten().collect())
            .ok_or_else(|| CpusError(list.to_owned()))
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for cpu in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == cpu => *last = cpu,
                _ => ranges.push((cpu, cpu)),
            }
        }
        let range = |(first, last): &(u32, u32)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        };
        f.write_str(&ranges.iter().map(range).collect::<Vec<_>>().join(","))
    }
}

impl Serialize for Cpus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cpus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl schemars::JsonSchema for Cpus {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cpus".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "CPUs as the kernel lists them, such as 0-3,8; empty for none.",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(list: &str) -> Cpus {
        list.parse().unwrap()
    }

    #[test]
    fn a_list_is_read_and_written_as_the_kernel_does() {
        for list in ["", "0", "0-3", "0-3,8", "0,2,4-5,4095"] {
            assert_eq!(cpus(list).to_string(), list);
        }
        assert_eq!(cpus(" 3,1-2\n").to_string(), "1-3");
        for wrong in ["x", "1-", "3-1", "0,,1", "-1", "99999999", "0-99999999"] {
            assert!(wrong.parse::<Cpus>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn sets_are_cut_joined_and_compared() {
        let (a, b) = (cpus("0-3"), cpus("2-5"));
        assert_eq!(a.and(&b), cpus("2-3"));
        assert_eq!(a.or(&b), cpus("0-5"));
        assert_eq!(a.without(&b), cpus("0-1"));
        assert!(cpus("2-3").is_within(&a) && !b.is_within(&a));
    }
}
