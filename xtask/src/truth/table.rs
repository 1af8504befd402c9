//! `docs/results/truth.md`.

use super::replay::{self, Replayed};
use std::fmt::Write;
use untax_core::Gain;

const HEAD: &str = "# Does a measured gain lie within the predicted one?

Windows of real servers, recorded beside trials with a cause and without it (ABBA pairs), judged by the rules of today.
`make test` judges them again. Predicted: the medians of what the checks with the cause say. Measured: the median of the
paired ratios of throughput, with its interval; of three pairs that is their range. A hit: the two intervals
overlap as they are written here.
Every case can be recorded anew with `cargo xtask truth record --cases ID`.

";

const OPEN: &str =
    "| case | rank | tax | throughput predicted | measured | hit | latency predicted | recorded |
|---|---|---|---|---|---|---|---|
";

/// The document.
pub fn document() -> anyhow::Result<String> {
    let all = replay::all()?;
    let mut text = format!("<!-- Written by `cargo xtask docs`. -->\n\n{HEAD}");
    let parts = [
        ("Cases that numbers of the model were chosen by", false),
        ("Cases that were never used for a decision", true),
    ];
    for (title, held_out) in parts {
        let of: Vec<&Replayed> = all.iter().filter(|r| r.case.is_held_out == held_out).collect();
        let hits = of.iter().filter(|replayed| replayed.is_hit()).count();
        let _ = writeln!(text, "## {title}\n\n**{hits} of {} hit.**\n", of.len());
        text.push_str(OPEN);
        for replayed in &of {
            text.push_str(&row(replayed));
        }
        text.push('\n');
    }
    let misses: Vec<String> =
        all.iter().filter_map(|r| Some(format!("- `{}`: {}\n", r.case.id, r.case.miss?))).collect();
    if !misses.is_empty() {
        let _ = write!(text, "## Misses\n\n{}", misses.concat());
    }
    Ok(format!("{}\n", text.trim_end()))
}

fn row(replayed: &Replayed) -> String {
    let gain = |gain: Option<Gain>| {
        gain.map_or("unmeasured".to_owned(), |g| {
            format!("{:.2} ({:.2}–{:.2})", g.factor, g.low, g.high)
        })
    };
    let rank = replayed.rank.map_or("not found".to_owned(), |rank| rank.to_string());
    let tax = replayed.tax.map_or("–".to_owned(), |tax| format!("{:.0} %", tax * 100.0));
    let hit = if replayed.is_hit() { "yes" } else { "no" };
    let chains = if replayed.has_chains { "" } else { ", no chains" };
    let day = replayed.taken_at.split('T').next().unwrap_or_default();
    format!(
        "| `{}` | {rank} | {tax} | {} | {} | {hit} | {} | {day}{chains} |\n",
        replayed.case.id,
        gain(replayed.predicted),
        gain(replayed.measured),
        gain(replayed.latency),
    )
}
