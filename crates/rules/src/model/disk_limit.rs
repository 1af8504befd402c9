//! Limits of control groups on requests to disks: whether one holds a database's requests back.

use crate::evidence;
use crate::model::disk_requests;
use crate::model::reclaim;
use untax_core::database::{IoLimit, Limited};
use untax_core::io::{Direction, Flow};
use untax_core::window::Pair;
use untax_core::{Evidence, Io, Window};

/// From this part of a limit on, it is reached: requests come in bursts, and what is left of the
/// limit between them is lost.
const REACHED: f64 = 0.8;

/// The limit that a database reached, if any did, of those of one kind. The tightest one counts.
pub fn reached_limit<'a>(window: &Window, pair: &'a Pair, what: Limited) -> Option<&'a IoLimit> {
    let io = window.io.value()?;
    let groups = pair.end.cgroup.value()?;
    let is_reached = |limit: &&IoLimit| {
        let asked = asked_amount(io, pair, limit) / io.window_s.0.max(f64::MIN_POSITIVE);
        limit.what == what && asked >= REACHED * limit.per_s as f64
    };
    groups.io.value()?.iter().filter(is_reached).min_by_key(|limit| limit.per_s)
}

/// What was asked of a limit in the window: requests, or bytes.
pub fn asked_amount(io: &Io, pair: &Pair, limit: &IoLimit) -> f64 {
    let requests =
        |direction| flows_below(io, pair, limit, direction).map(|f| f.requests).sum::<u64>();
    let bytes = |direction| flows_below(io, pair, limit, direction).map(|f| f.bytes.0).sum::<u64>();
    let asked = match limit.what {
        Limited::Reads => requests(Direction::Read),
        Limited::Writes => requests(Direction::Write) + requests(Direction::Flush),
        Limited::ReadBytes => bytes(Direction::Read),
        Limited::WrittenBytes => bytes(Direction::Write),
    };
    asked as f64
}

/// The database's requests of one direction on the device of a limit. Nobody makes those that empty
/// the device's cache, so they count with who writes there.
pub fn flows_below<'a>(
    io: &'a Io,
    pair: &'a Pair,
    limit: &'a IoLimit,
    direction: Direction,
) -> impl Iterator<Item = &'a Flow> {
    let is_below = move |flow: &&Flow| {
        flow.direction == direction
            && io.device(&flow.device).is_some_and(|device| device.number == limit.device)
            && (direction == Direction::Flush || flow.database.as_ref() == Some(&pair.end.id))
    };
    io.flows.value().into_iter().flatten().filter(is_below)
}

/// The share of active time in which anybody whom clients wait for waits for devices, or for the
/// filesystem, whose own requests are held back too.
pub fn waiting(window: &Window, pair: &Pair) -> f64 {
    let all = [disk_requests::disk_stall(window, pair), reclaim::file_stall(window, pair)];
    let shares = all.into_iter().filter_map(|stall| Some(stall.into_value()??.share.mid));
    shares.fold(0.0, |sum, share| sum + share).min(1.0)
}

/// A limit as evidence words it.
pub fn evidence(limit: &IoLimit) -> Evidence {
    let kind = match limit.what {
        Limited::Reads => &evidence::LIMIT_READS,
        Limited::Writes => &evidence::LIMIT_WRITES,
        Limited::ReadBytes => &evidence::LIMIT_READ_BYTES,
        Limited::WrittenBytes => &evidence::LIMIT_WRITTEN_BYTES,
    };
    let source = format!("io.max or blkio.throttle of {}, device {}", limit.cgroup, limit.device);
    Evidence::new(kind, limit.per_s as f64, source)
}
