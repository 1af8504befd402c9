//! Images of whole pages in PostgreSQL's log: how much of it they are, and of what is written.

use crate::model::disk_limit;
use crate::model::disk_requests;
use untax_core::Io;
use untax_core::database::IoLimit;
use untax_core::io::{Direction, Flow, Role};
use untax_core::window::Pair;

/// Share (0..1) of the log that is images of whole pages; `None` when the server does not say.
///
/// An image is at most a block of 8 KiB: less when it has a hole in the middle, and much less when it
/// is compressed.
pub fn share_of_log(pair: &Pair) -> Option<f64> {
    const BLOCK_BYTES: f64 = 8192.0;
    let (images, bytes) = (growth(pair, "wal_fpi")?, growth(pair, "wal_bytes")?);
    (bytes > 0.0).then(|| (images * BLOCK_BYTES / bytes).clamp(0.0, 1.0))
}

/// Whether images are compressed, so that their share of the log is not known.
pub fn are_compressed(pair: &Pair) -> bool {
    pair.end.setting("wal_compression").value().is_some_and(|value| value != "off")
}

/// Their share (0..1) of what is written to the log's files: each flush writes the page that it ends
/// in once more, so that is more than what is logged.
pub fn share_of_log_writes(io: &Io, pair: &Pair) -> f64 {
    let written: f64 =
        disk_requests::log_writes(io, &pair.end.id).map(|flow| flow.bytes.0 as f64).sum();
    if written > 0.0 { bytes(io, pair, written) / written } else { 0.0 }
}

/// The share (0..1) of the bytes asked of a limit that are not written without images. A page that was
/// changed for the first time since a checkpoint is also written by the next one: with the image that
/// write ends.
pub fn freed_share(io: &Io, pair: &Pair, limit: &IoLimit) -> f64 {
    let of = |role: Role| {
        let flows = disk_limit::flows_below(io, pair, limit, Direction::Write);
        flows.filter(|flow| flow.role == role).map(|flow| flow.bytes.0).sum::<u64>() as f64
    };
    let images = bytes(io, pair, of(Role::Log));
    let asked = disk_limit::asked_amount(io, pair, limit);
    if asked > 0.0 { (images + of(Role::Data).min(images)) / asked } else { 0.0 }
}

/// The part (0..1) of the waiting for disks below a limit that goes on without images: what the device
/// takes of it; the rest is before there is a request. Each request takes no longer than half of them do
/// now: slower are those behind images, and behind the pages that a checkpoint writes with them. Of those
/// that write the log there are fewer, by the images' part of its bytes, but never less than one for a flush.
pub fn device_part(io: &Io, pair: &Pair, limit: &IoLimit) -> f64 {
    let of = |direction| disk_limit::flows_below(io, pair, limit, direction);
    let flushes: u64 = of(Direction::Flush).map(|flow| flow.requests).sum();
    let kept = 1.0 - share_of_log_writes(io, pair);
    let goes_on = |flow: &Flow| match flow.role {
        Role::Log if flushes > 0 => kept.max(flushes as f64 / flow.requests.max(1) as f64).min(1.0),
        _ => 1.0,
    };
    let takes_s = |flow: &Flow| {
        let each = flow.latency.p50_s.0.min(flow.latency.mean_s.0) + flow.queued_s.0;
        flow.requests as f64 * each * goes_on(flow)
    };
    let writes = of(Direction::Write).filter(|flow| flow.role != Role::Data);
    let device_s: f64 = writes.chain(of(Direction::Flush)).map(takes_s).sum();
    let waited = disk_requests::waited_s(io, pair).filter(|waited| *waited > 0.0);
    waited.map_or(1.0, |waited| (device_s / waited).min(1.0))
}

/// Of so many bytes that were written to the log, those of images; none that anybody is charged for
/// where the server does not say, or not how small they are.
fn bytes(io: &Io, pair: &Pair, written: f64) -> f64 {
    let part = io.window_s.0 / pair.seconds.max(f64::MIN_POSITIVE);
    if are_compressed(pair) {
        return 0.0;
    }
    let images = || Some(share_of_log(pair)? * (growth(pair, "wal_bytes")? * part).min(written));
    images().unwrap_or(0.0)
}

fn growth(pair: &Pair, name: &str) -> Option<f64> {
    pair.told_growth(name).into_value()
}
