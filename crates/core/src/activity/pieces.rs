//! Where active time went, piece by piece over a window.

use super::kinds::Part;
use super::slice::Slice;
use super::window::Activity;
use crate::Seconds;
use crate::database::Model;
use serde::{Deserialize, Serialize};
use std::ops::Add;

/// No picture shows more pieces, and no result grows with the length of its window.
const MOST: usize = 60;

/// Active time of threads that serve clients, in one piece of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Piece {
    /// How long the piece is.
    pub length_s: Seconds,
    /// On a CPU.
    pub on_cpu_s: Seconds,
    /// Waiting for a CPU that others had.
    pub contended_s: Seconds,
    /// Waiting until a CPU that slept was awake.
    pub wake_up_s: Seconds,
    /// Held back by a CPU limit.
    pub throttled_s: Seconds,
    /// Waiting for a disk.
    pub disk_s: Seconds,
    /// Reclaiming memory.
    pub reclaim_s: Seconds,
    /// Waiting for a lock.
    pub lock_s: Seconds,
    /// Waiting for the network to take data.
    pub network_s: Seconds,
}

impl Add for Piece {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            length_s: self.length_s + other.length_s,
            on_cpu_s: self.on_cpu_s + other.on_cpu_s,
            contended_s: self.contended_s + other.contended_s,
            wake_up_s: self.wake_up_s + other.wake_up_s,
            throttled_s: self.throttled_s + other.throttled_s,
            disk_s: self.disk_s + other.disk_s,
            reclaim_s: self.reclaim_s + other.reclaim_s,
            lock_s: self.lock_s + other.lock_s,
            network_s: self.network_s + other.network_s,
        }
    }
}

impl Activity {
    /// The window in pieces of equal numbers of slices, at most 60. Each part of all of them together is that of the
    /// window.
    pub fn pieces(&self, model: Model) -> Vec<Piece> {
        let of_slices = |slices: &[Slice]| {
            slices.iter().map(|slice| self.piece(slice, model)).fold(Piece::default(), Add::add)
        };
        let each = self.slices.len().div_ceil(MOST).max(1);
        self.slices.chunks(each).map(of_slices).collect()
    }

    fn piece(&self, slice: &Slice, model: Model) -> Piece {
        let factor = self.stands_for(slice);
        let part = |part: Part| {
            let counts = |s: &super::Spent| s.part(model) == part && !s.in_background(model);
            Seconds(slice.sum(counts) * factor)
        };
        Piece {
            length_s: Seconds(slice.traced_s.0 * factor),
            on_cpu_s: part(Part::OnCpu),
            contended_s: part(Part::Contended),
            wake_up_s: part(Part::WakeUp),
            throttled_s: part(Part::Throttled),
            disk_s: part(Part::Disk),
            reclaim_s: part(Part::Reclaim),
            lock_s: part(Part::Lock),
            network_s: part(Part::Network),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Doing, Polling, Spent};
    use super::*;

    fn slice(traced_s: f64, on_cpu_s: f64, disk_s: f64) -> Slice {
        let spent = |doing, seconds| Spent::own(Polling::Forever, doing, Seconds(seconds));
        let spent = vec![spent(Doing::OnCpu, on_cpu_s), spent(Doing::Disk, disk_s)];
        Slice {
            stands_for_s: Some(Seconds(2.0 * traced_s)),
            ..Slice::traced(Seconds(traced_s), spent)
        }
    }

    #[test]
    fn pieces_add_up_to_the_window() {
        let mut rng = fastrand::Rng::with_seed(7);
        for count in [1, 3, 59, 60, 61, 200, 1000] {
            let slices: Vec<Slice> =
                (0..count).map(|_| slice(0.2 + rng.f64(), rng.f64(), rng.f64() * 3.0)).collect();
            let activity = Activity::traced("a:1", Seconds(100.0), slices);
            let pieces = activity.pieces(Model::Process);
            assert!(pieces.len() <= MOST, "{count} slices are {} pieces", pieces.len());
            let whole = pieces.into_iter().fold(Piece::default(), Add::add);
            let is_near = |a: f64, b: f64| (a - b).abs() < 1e-6 * (1.0 + b);
            assert!(is_near(whole.length_s.0, 100.0), "{whole:?}");
            for (piece, part) in [(whole.on_cpu_s, Part::OnCpu), (whole.disk_s, Part::Disk)] {
                assert!(is_near(piece.0, activity.part(part, Model::Process).0), "{part:?}");
            }
        }
        assert!(Activity::traced("a:1", Seconds(1.0), Vec::new()).pieces(Model::Thread).is_empty());
    }
}
