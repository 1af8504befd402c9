//! Memory that moved between NUMA nodes: said whether throughput changed or not.

use crate::history::Track;
use crate::stretches::Times;
use untax_core::timeline::Note;

/// A share of memory that moved is told from this on.
const LEAST: f64 = 0.1;

/// Memory has moved when a window changes the share by less.
const SETTLED: f64 = 0.02;

/// When much of a database's memory came to be on another node. No claim about throughput.
pub(crate) fn notes(track: &Track, times: &Times) -> Vec<Note> {
    let nodes: Vec<(&str, &[f64])> = track.columns("memory-on-node.").collect();
    if nodes.len() < 2 {
        return Vec::new();
    }
    let mut told: Vec<(usize, Note)> = Vec::new();
    for (at, (name, _)) in nodes.iter().enumerate() {
        let shares: Vec<(usize, f64)> =
            (0..times.end_s.len()).filter_map(|window| share(&nodes, at, window)).collect();
        let node = name.trim_end_matches("_bytes");
        told.extend(moves(&shares).into_iter().map(|(window, before, after)| {
            let text = format!(
                "memory moved between nodes: {:.0} % → {:.0} % of it is on node {node}",
                before * 100.0,
                after * 100.0
            );
            (window, Note { id: "placement".to_owned(), at: Some(times.start(window)), text })
        }));
    }
    // What one node loses another one gets: the first of a window says it.
    told.sort_by_key(|(window, _)| *window);
    told.dedup_by_key(|(window, _)| *window);
    told.into_iter().map(|(_, note)| note).collect()
}

/// The share of one node in a window, where memory is known.
fn share(nodes: &[(&str, &[f64])], at: usize, window: usize) -> Option<(usize, f64)> {
    let bytes = |column: &[f64]| column.get(window).copied().filter(|value| value.is_finite());
    let all: f64 = nodes.iter().filter_map(|(_, column)| bytes(column)).sum();
    // A node that has none of it is not named in that window.
    let own = bytes(nodes[at].1).unwrap_or(0.0);
    (all > 0.0).then(|| (window, own / all))
}

/// The windows in which a share left its level, with the level before and the one that it came to.
fn moves(shares: &[(usize, f64)]) -> Vec<(usize, f64, f64)> {
    let Some(&(_, mut level)) = shares.first() else { return Vec::new() };
    let (mut moves, mut begun) = (Vec::new(), None);
    for (at, &(window, share)) in shares.iter().enumerate() {
        if (share - level).abs() < LEAST {
            begun = None;
            continue;
        }
        let first = *begun.get_or_insert(window);
        let next = shares.get(at + 1).map(|(_, next)| *next);
        if next.is_none_or(|next| (next - share).abs() < SETTLED) {
            moves.push((first, level, share));
            (level, begun) = (share, None);
        }
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(shares: &[f64]) -> Vec<(usize, f64, f64)> {
        let shares: Vec<(usize, f64)> = shares.iter().copied().enumerate().collect();
        moves(&shares)
    }

    #[test]
    fn a_move_is_told_once_however_long_it_takes() {
        assert_eq!(moved(&[0.97, 0.96, 0.97, 0.02, 0.02, 0.02]), [(3, 0.97, 0.02)]);
        assert_eq!(moved(&[0.9, 0.75, 0.5, 0.2, 0.2, 0.21]), [(1, 0.9, 0.2)]);
        assert_eq!(moved(&[0.9, 0.9, 0.3]), [(2, 0.9, 0.3)]);
        assert_eq!(moved(&[0.2, 0.9, 0.9, 0.2, 0.2]), [(1, 0.2, 0.9), (3, 0.9, 0.2)]);
    }

    #[test]
    fn memory_that_stays_is_not_told() {
        assert!(moved(&[]).is_empty() && moved(&[0.5]).is_empty());
        assert!(moved(&[0.5, 0.55, 0.48, 0.53, 0.45]).is_empty());
    }
}
