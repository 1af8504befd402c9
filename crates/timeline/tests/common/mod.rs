//! Made-up windows of databases whose time is known.

use jiff::Timestamp;
use untax_timeline::{Moment, Values};

/// Noise of a window's rate: 3 %.
pub struct Noise(fastrand::Rng);

impl Noise {
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// A factor near 1.
    pub fn factor(&mut self) -> f64 {
        let normal = (0..12).map(|_| self.0.f64()).sum::<f64>() - 6.0;
        1.0 + 0.03 * normal
    }
}

/// Eight threads that are busy or wait for their clients: a request takes so many seconds of each part.
pub fn database(parts: &[(&str, f64)], factor: f64) -> Values {
    const THREADS: f64 = 8.0;
    const WINDOW_S: f64 = 10.0;
    let each_s: f64 = parts.iter().map(|(_, s)| s).sum::<f64>() / factor;
    let requests = (THREADS * WINDOW_S / each_s).round();
    let mut values = Values::default();
    values.number("window_s", WINDOW_S);
    values.number("requests", requests);
    values.number("cpu_s", requests * 0.0002);
    values.number("connections", THREADS);
    for (part, s) in parts {
        values.number(format!("time.{part}_s"), requests * s / factor);
    }
    values.fact("engine", Some("postgres"));
    values.fact("version", Some("17.2"));
    values.fact("instance", Some("4012:100"));
    values
}

/// Adds reads of data and writes of the log: so many reads of so many seconds for each request.
pub fn with_disks(mut values: Values, device: &str, reads: f64, every_s: f64) -> Values {
    let requests = values.numbers["requests"];
    for (flow, count, size, each_s) in [
        ("data.read", requests * reads, 8192.0, every_s),
        ("data.write", requests * 0.05, 8192.0, 0.001_5),
        ("log.write", requests * 0.2, 16_384.0, 0.000_4),
    ] {
        let begin = format!("disk.{device}.{flow}");
        values.number(format!("{begin}.requests"), count.round());
        values.number(format!("{begin}.bytes"), (count * size).round());
        values.number(format!("{begin}.sequential"), (count * 0.1).round());
        values.number(format!("{begin}.service_s"), count * each_s);
        values.number(format!("{begin}.queue_s"), count * each_s * 0.1);
        values.number(format!("{begin}.p99_s"), each_s * 4.0);
        values.number(format!("{begin}.second_peak_bytes"), count * size / 4.0);
        values.number(format!("{begin}.second_median_bytes"), count * size / 10.0);
    }
    values
}

/// The window with this number, of one database.
pub fn moment(number: u64, values: Values) -> Moment {
    let mut host = Values::default();
    host.number("busy_s", 12.0);
    host.number("idle_s", 8.0);
    host.number("steal_s", 0.0);
    host.fact("kernel", Some("6.12.0"));
    let at_s = 10 * (number.cast_signed() + 1);
    Moment {
        at: Timestamp::from_second(1_790_000_000 + at_s).unwrap_or_default(),
        up_s: 1000.0 + at_s as f64,
        window_s: 10.0,
        host,
        databases: [("postgres@5432".to_owned(), values)].into(),
    }
}
