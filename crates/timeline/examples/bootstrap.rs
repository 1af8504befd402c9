//! Says how often a load without a change is told to have one: `cargo run -p untax-timeline --example bootstrap --
//! FILE [SERIES] [WINDOWS]`.
//!
//! FILE is a recording of one database under a steady load. Series are made of it by drawing blocks of twelve
//! windows (moving-block bootstrap), which keeps the correlation of neighbours, and each is looked at as `untax
//! timeline` does.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use untax_core::stats::changes::changes;
use untax_timeline::{read, timeline};

/// Windows of a block: as far as the estimate of noise looks.
const BLOCK: usize = 12;

/// The least change that is told.
const LEAST: f64 = 0.05;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let path = arguments.get(1).ok_or("which recording?")?;
    let number = |at: usize, otherwise: usize| {
        arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let (count, length) = (number(2, 100), number(3, 180));
    let told = timeline(&read(Path::new(path))?, path);
    let database = told.databases.first().ok_or("it has no database")?;
    let rates: Vec<f64> = database.series.per_s.iter().flatten().copied().collect();
    let starts = rates.len().checked_sub(BLOCK).ok_or("it has too few windows")?;
    let mut rng = fastrand::Rng::with_seed(1);
    let mut changed = 0;
    for _ in 0..count {
        let mut series = Vec::new();
        while series.len() < length {
            let start = rng.usize(..=starts);
            series.extend_from_slice(&rates[start..start + BLOCK]);
        }
        series.truncate(length);
        changed += usize::from(!changes(&series, LEAST).is_empty());
    }
    let windows = rates.len();
    let own = database.changes.len();
    writeln!(
        std::io::stdout(),
        "{}: {own} changes in {windows} windows; {changed} of {count} series of {length} windows have one",
        database.name
    )?;
    Ok(())
}
