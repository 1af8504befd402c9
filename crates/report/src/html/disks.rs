//! The pattern of input and output: what each disk did for whom.

use crate::facts;
use crate::format::{self, THIN};
use crate::svg::{self, Range};
use maud::{Markup, html};
use std::collections::BTreeSet;
use untax_core::io::Flow;
use untax_core::storage::{self, Storage};
use untax_core::{Bytes, Io, Reading, Seconds};

/// All flows of a check, by device, the busiest first; nothing when no disk was watched.
pub fn disks(io: &Reading<Io>) -> Markup {
    let Some(io) = io.value() else { return html! {} };
    html! {
        section {
            h2 { "The disks" }
            @for (database, said) in sentences(io) { p { strong { (database) } ": " (said) } }
            @for device in &io.devices {
                h3 { (device.name) }
                p.quiet { (facts::device_line(device).join(", ")) }
                (flows(io, &device.name))
            }
            @if let Some(why) = io.flows.why() {
                p.unknown { "Requests, their roles and latencies: " (format::NOT_MEASURED) ": " (why) }
            }
        }
    }
}

/// What a person would say of the storage of each database.
fn sentences(io: &Io) -> Vec<(String, String)> {
    let flows = io.flows.value().into_iter().flatten();
    let databases: BTreeSet<&String> = flows.filter_map(|flow| flow.database.as_ref()).collect();
    let said = |id: &String| (id.clone(), storage::in_words(&Storage::of(io, id), None));
    databases.into_iter().map(said).filter(|(_, said)| !said.is_empty()).collect()
}

fn flows(io: &Io, device: &str) -> Markup {
    let all = io.flows.value().into_iter().flatten();
    let mut here: Vec<&Flow> = all.filter(|flow| flow.device == device).collect();
    here.sort_by_key(|flow| std::cmp::Reverse(flow.requests));
    if here.is_empty() {
        return html! {};
    }
    let sizes = Range::of(here.iter().filter(|flow| moves(flow)).flat_map(|flow| &flow.sizes));
    let times = Range::of(here.iter().flat_map(|flow| &flow.latencies));
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th { "For" } th { "Requests" } th.number { "1/s" } th.number { "Bytes/s" }
                        th.number { "In sequence" } th.number { "Burst" } th.number { "At once" }
                        th.number { "Mean" } th.number { "99" (THIN) "%" } th.number { "Longest" }
                        th { "Sizes" } th { "Times" } th { "Each second" }
                    }
                }
                tbody { @for flow in &here { (row(flow, io.window_s, sizes, times)) } }
            }
        }
        p.quiet {
            "Burst: the busiest second over the median one, or where most seconds have nothing, the busiest quarter "
            "of a second over the mean. At once: requests that the device had, mean. Sizes and times on one axis for "
            "all rows, from the least to the most of this disk, by their logarithms. Each second: bytes from zero to "
            "the most of the row."
        }
    }
}

/// Whether it is of requests with data: flushes have none.
fn moves(flow: &Flow) -> bool {
    flow.bytes > Bytes(0)
}

fn row(flow: &Flow, window_s: Seconds, sizes: Range, times: Range) -> Markup {
    let seconds = window_s.0.max(f64::MIN_POSITIVE);
    let moved = moves(flow);
    let size = |bytes: f64| format::bytes(Bytes(bytes as u64));
    let time = |s: f64| format::seconds(Seconds(s));
    let amount = Bytes((flow.bytes.0 as f64 / seconds) as u64);
    let (role, direction) = (flow.role.name(), flow.direction.name());
    let burst = flow.seconds.as_deref().and_then(storage::burst).unwrap_or(flow.burst);
    let at_once = flow.latency.mean_s.0 * flow.requests as f64 / seconds;
    let each: Vec<f64> =
        flow.seconds.iter().flatten().map(|second| second.bytes.0 as f64).collect();
    html! {
        tr {
            td { (flow.database.as_deref().unwrap_or("others")) }
            td { (role) " " (direction) }
            td.number { (format::number(flow.requests as f64 / seconds)) }
            td.number { @if moved { (format::bytes(amount)) } }
            td.number { @if moved { (format::percent(flow.sequential)) } }
            td.number { @if moved { (format::number(burst)) "×" } }
            td.number { (format::number(at_once)) }
            td.number { (format::seconds(flow.latency.mean_s)) }
            td.number { (format::seconds(flow.latency.p99_s)) }
            td.number { (format::seconds(flow.latency.max_s)) }
            td { @if moved { (svg::histogram(&flow.sizes, sizes, "sizes of requests", size)) } }
            td { (svg::histogram(&flow.latencies, times, "times of requests", time)) }
            td { @if moved && each.len() > 1 { (svg::each_second(&each, "bytes of each second", size)) } }
        }
    }
}
