//! Whether trials can all be true: those of one cell beside each other, and those of one table by how many
//! readers they had.
//!
//! The guards beside a trial see what the kernel counts. A reader that was not woken, or a machine that
//! stopped for a moment, is seen by its result alone.

use super::options::Page;
use super::warnings::Warning;
use std::collections::BTreeMap;
use untax_core::calibration::MOST_APART;
use untax_core::stats;

/// Reads or touches per second by round: what pairs trials of different cells.
pub(super) type Rounds = BTreeMap<u32, f64>;

/// What distinguishes cells; in the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) row_bytes: u64,
    pub(super) connections: u32,
    pub(super) page: Page,
}

/// The larger of two rates over the smaller; infinite where one is no rate at all.
pub(super) fn apart(a: f64, b: f64) -> f64 {
    let are_rates = [a, b].into_iter().all(|rate| rate.is_finite() && rate > 0.0);
    if are_rates { a.max(b) / a.min(b) } else { f64::INFINITY }
}

/// Takes out the trials that are far from the median of their cell. Of two that are far from each other
/// nobody knows which is right: see [`is_split`].
pub(super) fn take_out_strays(rounds: &mut Rounds) -> Rounds {
    let rates: Vec<f64> = rounds.values().copied().collect();
    let (Some(median), 3..) = (stats::median(&rates), rates.len()) else { return Rounds::new() };
    let is_stray = |rate: &f64| apart(*rate, median) > MOST_APART;
    let strays = rounds.iter().filter(|(_, rate)| is_stray(rate));
    let strays: Rounds = strays.map(|(round, rate)| (*round, *rate)).collect();
    rounds.retain(|round, _| !strays.contains_key(round));
    strays
}

/// Whether a cell has two trials alone, which are far from each other.
pub(super) fn is_split(rounds: &Rounds) -> bool {
    let mut rates = rounds.values();
    rounds.len() == 2
        && rates.next().zip(rates.next()).is_some_and(|(a, b)| apart(*a, *b) > MOST_APART)
}

/// Cells of one table that cannot both be true: with more readers it was read much more slowly, or more
/// often than so many readers can.
pub(super) fn contradictions(medians: &BTreeMap<Key, f64>) -> Vec<(Key, Key)> {
    let next = |few: &Key| {
        let alike = |key: &&Key| (key.row_bytes, key.page) == (few.row_bytes, few.page);
        let more = medians.keys().filter(alike).filter(|key| key.connections > few.connections);
        more.min_by_key(|key| key.connections).copied()
    };
    let pairs = medians.keys().filter_map(|few| Some((*few, next(few)?)));
    let cannot = |(few, many): &(Key, Key)| {
        let (with_few, with_many) = (medians[few], medians[many]);
        let times = f64::from(many.connections) / f64::from(few.connections);
        let most = with_few * times;
        (with_many < with_few && apart(with_few, with_many) > MOST_APART)
            || (with_many > most && apart(with_many, most) > MOST_APART)
    };
    pairs.filter(cannot).collect()
}

/// Says which cells contradict each other.
pub(super) fn warning((few, many): (Key, Key), medians: &BTreeMap<Key, f64>) -> Warning {
    let rate = |key: Key| format!("{:.0} reads/s with {}", medians[&key], key.connections);
    cells_apart(few, format!("{} and {} connections", rate(few), rate(many)))
}

/// Says which two trials of a cell do.
pub(super) fn split_warning(key: Key, rounds: &Rounds) -> Warning {
    let rates: Vec<String> = rounds.values().map(|rate| format!("{rate:.0}")).collect();
    cells_apart(
        key,
        format!("{} reads/s with {} connections", rates.join(" and "), key.connections),
    )
}

fn cells_apart(key: Key, rates: String) -> Warning {
    Warning::CellsApart { page: key.page.id(), row_bytes: key.row_bytes, rates }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(rates: &[f64]) -> Rounds {
        (0..).zip(rates.iter().copied()).collect()
    }

    #[test]
    fn a_broken_trial_is_no_part_of_its_cell() {
        let mut cell = rounds(&[1.0e6, 1.1e6, 9.0e3, 0.6e6, 1.9e6]);
        assert_eq!(take_out_strays(&mut cell), [(2, 9.0e3)].into());
        assert_eq!(cell.len(), 4, "noise stays");
        for (a, b, split) in [(1e6, 9e3, true), (1e6, 0.0, true), (1e6, 0.4e6, false)] {
            let mut two = rounds(&[a, b]);
            assert!(take_out_strays(&mut two).is_empty(), "which one is right?");
            assert_eq!(is_split(&two), split);
        }
        assert!(!is_split(&rounds(&[1e6])) && take_out_strays(&mut rounds(&[1e6])).is_empty());
    }

    #[test]
    fn readers_neither_disappear_nor_double_themselves() {
        let found = |rates: &[(u32, f64)]| {
            let key = |connections| Key { row_bytes: 128, connections, page: Page::Small };
            let medians = rates.iter().map(|(n, rate)| (key(*n), *rate)).collect();
            let pairs = contradictions(&medians);
            assert!(pairs.iter().all(|pair| warning(*pair, &medians).to_string().contains("4k")));
            pairs
                .into_iter()
                .map(|(few, many)| (few.connections, many.connections))
                .collect::<Vec<_>>()
        };
        let none: Vec<(u32, u32)> = Vec::new();
        assert_eq!(found(&[(1, 1e6), (2, 1.9e6), (4, 1.8e6)]), none);
        assert_eq!(found(&[(1, 1e6), (2, 0.5e6)]), none, "they may slow each other down");
        assert_eq!(found(&[(1, 9e3), (2, 1.9e6), (4, 1.8e6)]), [(1, 2)]);
        assert_eq!(found(&[(1, 1e6), (2, 1e4), (4, 1.8e6)]), [(1, 2), (2, 4)]);
        assert_eq!(found(&[(1, 0.0), (2, 1e6)]), [(1, 2)]);
    }
}
