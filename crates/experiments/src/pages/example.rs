//! A result made by hand: three row widths, four page sizes, six numbers of connections.

use super::schema::{Cell, PagesBench, Ratio, SCHEMA};
use untax_core::Bytes;
use untax_core::bench::{Estimate, Noise, RatioVerdict, Warning};
use untax_core::calibration::{Calibration, TouchPenalty};
use untax_core::interval::Interval;

/// A name that clears the screen, breaks lines, reverses text and closes tags.
const HOSTILE: &str =
    "evil\u{1b}[2J\u{1b}]0;owned\u{7}\nname\r\u{202e}</script><script>alert(1)</script>&\"'\u{9b}";

/// Row width, reads per second of one connection on 4k, and what 2m, 1g and thp are worth.
const SHAPES: [(u64, f64, [f64; 3]); 3] = [
    (128, 2.2e6, [1.52, 1.58, 1.40]),
    (8192, 1.02e6, [1.16, 1.19, 1.10]),
    (16384, 0.67e6, [1.09, 1.08, 1.005]),
];
const CONNECTIONS: [u32; 6] = [1, 2, 4, 8, 16, 64];
const FLOOR: f64 = 0.018;

pub(super) fn bench() -> PagesBench {
    PagesBench {
        schema: SCHEMA.into(),
        run: "20260301-113000-91cc".into(),
        taken_at: "2026-03-01T11:30:00Z".parse().unwrap(),
        cpu_model: "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz".into(),
        kernel_release: "6.1.0-18-amd64".into(),
        idle: "driver haltpoll, governor haltpoll, guest_halt_poll_ns 0".into(),
        rows: 100_000_000,
        access: "hash".into(),
        model: "process".into(),
        trial_s: 2.0,
        seed: 42,
        method: vec![
            "Trials of all pages alternate; each reader verifies every row it reads.".into(),
            "Intervals are 95 % intervals of the median.".into(),
        ],
        cells: SHAPES.into_iter().flat_map(cells).collect(),
        ratios: SHAPES.into_iter().flat_map(ratios).collect(),
        noise: Noise { ratios: vec![1.004; 72], floor: FLOOR },
        warnings: vec![Warning {
            id: "pool-short".into(),
            text: "13 of 64 pages of 1 GiB could be had; the 16 KiB rows use 1g for their first 13 GiB"
                .into(),
        }],
        calibration: Some(calibration()),
        spoiled: Vec::new(),
        complete: true,
    }
}

/// As many rows as fit 12.8 GB.
fn rows(row: u64) -> u64 {
    12_800_000_000 / row
}

fn throughput(base: f64, connections: u32) -> f64 {
    // Two CPUs: the second connection doubles it, the others only switch.
    base * f64::from(connections.min(2)) * (1.0 - 0.004 * f64::from(connections.max(2) - 2))
}

fn cells((row, base, worth): (u64, f64, [f64; 3])) -> Vec<Cell> {
    let pages = [("4k", 1.0), ("2m", worth[0]), ("1g", worth[1]), ("thp", worth[2])];
    let mut out = Vec::new();
    for (page, worth) in pages {
        for connections in CONNECTIONS {
            let median = throughput(base, connections) * worth;
            let tables = if page == "4k" { 16 << 20 } else { 128 << 10 };
            out.push(Cell {
                page: page.into(),
                row_bytes: Bytes(row),
                connections,
                model: "process".into(),
                rows: rows(row),
                table_bytes: Bytes(row * rows(row)),
                trials: vec![median; 7],
                reads_per_s: Estimate { median, low: median * 0.985, high: median * 1.02 },
                page_table_bytes: Bytes(tables * u64::from(connections)),
            });
        }
    }
    out
}

fn ratios((row, _, worth): (u64, f64, [f64; 3])) -> Vec<Ratio> {
    let mut out = Vec::new();
    for (of, worth) in [("2m", worth[0]), ("1g", worth[1]), ("thp", worth[2])] {
        for (i, connections) in CONNECTIONS.into_iter().enumerate() {
            let factor = worth + 0.012 * i as f64 - 0.03;
            let interval = Interval::new(factor * 0.98, factor, factor * 1.025);
            out.push(Ratio {
                of: of.into(),
                over: "4k".into(),
                row_bytes: Bytes(row),
                connections,
                factor,
                low: interval.low,
                high: interval.high,
                verdict: RatioVerdict::judge(interval, FLOOR),
            });
        }
    }
    out
}

pub(super) fn calibration() -> Calibration {
    let touch = |gib: u64, ns: f64| TouchPenalty {
        working_set_bytes: Bytes(gib << 30),
        taking_turns: false,
        extra_ns: Interval::new(ns * 0.9, ns, ns * 1.1),
    };
    Calibration {
        taken_at: "2026-03-01T11:30:00Z".parse().unwrap(),
        cpu_model: "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz".into(),
        kernel_release: "6.1.0-18-amd64".into(),
        source: "bench pages".into(),
        minor_fault_ns: Interval::new(5900.0, 6300.0, 7100.0),
        write_fault_ns: Some(Interval::new(700.0, 800.0, 950.0)),
        unmap_ns: Some(Interval::new(180.0, 200.0, 240.0)),
        touches_missing: None,
        touches: vec![touch(1, 38.0), touch(8, 74.0)],
    }
}

/// The same with fewer connections: enough for a snapshot that a person can read.
pub(super) fn small() -> PagesBench {
    let mut bench = bench();
    bench.cells.retain(|c| [1, 16].contains(&c.connections));
    bench.ratios.retain(|r| [1, 16].contains(&r.connections));
    bench
}

/// The same with every text hostile.
pub(super) fn hostile() -> PagesBench {
    let mut bench = bench();
    bench.run = HOSTILE.into();
    bench.cpu_model = HOSTILE.into();
    bench.kernel_release = HOSTILE.into();
    bench.warnings = vec![Warning { id: HOSTILE.into(), text: HOSTILE.into() }];
    bench.cells[0].page = HOSTILE.into();
    bench.ratios[0].of = HOSTILE.into();
    bench
}
