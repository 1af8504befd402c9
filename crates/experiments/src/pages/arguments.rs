//! The arguments of `untax bench pages`.

use super::engine;
use super::options::{Access, Model, Page, Request};
use crate::platform;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::time::Duration;
use untax_core::Bytes;
use untax_scenes::{Engine, RELEASES, Release};

/// Trials from which an interval is worth the name.
const TRIALS: &str = "7";

/// What is measured where nothing else is asked for.
struct Scope {
    row_bytes: &'static [u64],
    most_table: Bytes,
    /// None: by the number of CPUs.
    connections: &'static [u32],
    trial: Duration,
}

/// Tables that no TLB covers; rows of two lines of a cache, of two base pages and of four.
const USUAL: Scope = Scope {
    row_bytes: &[128, 8192, 16384],
    most_table: Bytes(8 << 30),
    connections: &[],
    trial: Duration::from_secs(1),
};

/// With `--quick`: the rows that page size matters most for, in a table that no TLB covers either.
const QUICK: Scope = Scope {
    row_bytes: &[128],
    // Not one that is warned of as small.
    most_table: Bytes::from_mib(1280),
    connections: &[1, 2],
    trial: Duration::from_millis(250),
};

/// Measure what page size is worth: a table read by primary key, on each page size in turn
///
/// The table is in shared memory, and all its data is warm. Keys are uniform, and every read loads
/// and verifies its whole row. The bench reserves huge pages as needed, and restores the previous
/// pools as soon as it ends, however it ends. The host is busy meanwhile: do not run the bench next
/// to a database that matters.
#[derive(Debug, clap::Parser)]
#[command(
    after_help = "Examples:\n  untax bench pages                              4k against 2m, some minutes\n  \
                  untax bench pages --quick                      the same in about a minute\n  \
                  untax bench pages --pages 4k,2m,1g,thp --html pages.html\n  \
                  untax bench pages --rows 100000000 --row-bytes 128 --access direct\n  \
                  untax bench pages --engine postgres --pages 4k,thp,2m,1g --connections 1,8,32,128"
)]
pub(super) struct Arguments {
    /// Take about a minute: rows of 128 B in a table of 1.25 GiB, 1 and 2 connections, trials of
    /// 0.25 s, unless asked otherwise
    #[arg(long)]
    quick: bool,
    /// Rows of each table [default: as many of each width as fit a quarter of the available
    /// memory, at most 8 GiB]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rows: Option<u64>,
    /// Widths of rows in bytes; one table each [default: 128,8192,16384]
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    row_bytes: Vec<u64>,
    /// Page sizes to compare; each is compared with the smallest
    #[arg(long, value_name = "PAGE,…", value_delimiter = ',', default_value = "4k,2m")]
    #[arg(value_parser = page())]
    pages: Vec<Page>,
    /// Numbers of readers at once [default: 1, 2, 4, … up to twice the CPUs]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: Vec<u32>,
    /// What a connection is: a process with its own page tables, or a thread
    #[arg(long, default_value = "process", value_parser = model())]
    model: Model,
    /// How a row is found: by a hash index as a database would, or by its number
    #[arg(long, default_value = "hash", value_parser = access())]
    access: Access,
    /// Trials of every combination
    #[arg(long, value_name = "N", default_value = TRIALS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    trials: u32,
    /// Length of one trial in seconds [default: 1]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    trial_seconds: Option<Duration>,
    /// The seed of the keys and of the order of trials [default: from the clock; printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Read a table of a real server instead, which is started anew on each page size: postgres, mysql …
    /// with --rows of its usual table, 5,000,000 by default
    #[arg(long, value_name = "SERVER", value_parser = release())]
    #[arg(conflicts_with_all = ["row_bytes", "model", "access"])]
    engine: Option<Release>,
    /// With --engine: run beside busy databases and other programs; the result notes this
    #[arg(long, requires = "engine")]
    beside: bool,
}

/// Time that trials of a server may take: their number ends the bench.
const SERVER_BUDGET: Duration = Duration::from_secs(4 * 3600);

fn release() -> impl TypedValueParser<Value = Release> {
    let has_table = |release: &&Release| release.engine != Engine::Redis;
    let releases = RELEASES.iter().filter(has_table);
    let names: Vec<&str> = releases.flat_map(|r| [Some(r.id), r.alias]).flatten().collect();
    PossibleValuesParser::new(names).try_map(|id| Release::find(&id).ok_or("no such server"))
}

fn page() -> impl TypedValueParser<Value = Page> {
    let names = Page::ALL.map(Page::id);
    PossibleValuesParser::new(names).try_map(|id| Page::from_id(&id).ok_or("no such page"))
}

fn model() -> impl TypedValueParser<Value = Model> {
    PossibleValuesParser::new([Model::Process.id(), Model::Thread.id()])
        .map(|id| if id == Model::Thread.id() { Model::Thread } else { Model::Process })
}

fn access() -> impl TypedValueParser<Value = Access> {
    PossibleValuesParser::new([Access::Hash.id(), Access::Direct.id()])
        .map(|id| if id == Access::Direct.id() { Access::Direct } else { Access::Hash })
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text} is not a number of seconds"))?;
    if (0.01..=3600.0).contains(&number) {
        Ok(Duration::from_secs_f64(number))
    } else {
        Err("a trial takes between 0.01 and 3600 seconds".to_owned())
    }
}

/// 1, 2, 4, … up to twice the CPUs.
fn default_connections() -> Vec<u32> {
    let most = std::thread::available_parallelism().map_or(2, |cpus| 2 * cpus.get() as u32);
    std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|n| *n <= most).collect()
}

impl Arguments {
    /// The bench of a server that these arguments ask for; none where they ask for a table of our own.
    pub(super) fn servers(&self) -> Option<(engine::Request, platform::Arguments)> {
        let request = self.request();
        let servers = engine::Request {
            release: self.engine?,
            rows: self.rows,
            pages: self.pages.clone(),
            clients: request.connections,
            trial: request.trial,
        };
        let common = platform::Arguments {
            quick: false,
            budget: Some(SERVER_BUDGET),
            workloads: Vec::new(),
            arms: Vec::new(),
            pin: Vec::new(),
            trial: None,
            blocks: Some(self.trials),
            fail_if: Vec::new(),
            junit: None,
            format: "screen".to_owned(),
            resume: false,
            beside: self.beside,
            list: false,
            seed: Some(request.seed),
        };
        Some((servers, common))
    }

    /// The bench that these arguments ask for.
    pub(super) fn request(&self) -> Request {
        let usual = if self.quick { QUICK } else { USUAL };
        let connections = match (self.connections.as_slice(), usual.connections) {
            ([], []) => default_connections(),
            ([], usual) => usual.to_vec(),
            (given, _) => given.to_vec(),
        };
        let row_bytes = match self.row_bytes.as_slice() {
            [] => usual.row_bytes,
            given => given,
        };
        Request {
            rows: self.rows,
            most_table: usual.most_table,
            row_bytes: row_bytes.to_vec(),
            pages: self.pages.clone(),
            connections,
            model: self.model,
            access: self.access,
            trials: self.trials,
            trial: self.trial_seconds.unwrap_or(usual.trial),
            seed: self.seed.unwrap_or_else(seed_from_clock),
        }
    }
}

/// A seed short enough to be typed again.
fn seed_from_clock() -> u64 {
    u64::from(jiff::Timestamp::now().subsec_nanosecond().unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn request(line: &str) -> Result<Request, String> {
        let words = std::iter::once("untax").chain(line.split_whitespace());
        Arguments::try_parse_from(words).map(|line| line.request()).map_err(|e| e.to_string())
    }

    #[test]
    fn what_is_not_said_has_a_sensible_value() {
        let request = request("").unwrap();
        assert_eq!(request.rows, None);
        assert_eq!(request.row_bytes, [128, 8192, 16384]);
        assert_eq!(request.pages, [Page::Small, Page::Huge]);
        assert_eq!(request.connections[0], 1);
        assert_eq!((request.model, request.access), (Model::Process, Access::Hash));
        assert_eq!((request.trials, request.trial), (7, Duration::from_secs(1)));
    }

    #[test]
    fn a_quick_bench_does_less_and_all_that_is_asked_for() {
        let quick = request("--quick").unwrap();
        assert_eq!((quick.row_bytes, quick.connections), (vec![128], vec![1, 2]));
        assert_eq!((quick.rows, quick.most_table), (None, Bytes::from_mib(1280)));
        assert_eq!((quick.trials, quick.trial), (7, Duration::from_millis(250)));
        let asked = request("--quick --row-bytes 8192 --connections 3 --trial-seconds 2").unwrap();
        assert_eq!((asked.row_bytes, asked.connections), (vec![8192], vec![3]));
        assert_eq!(asked.trial, Duration::from_secs(2));
    }

    #[test]
    fn a_server_takes_the_pages_and_connections_and_as_many_blocks_as_trials() {
        let line = "untax --engine mysql --rows 7 --pages 4k,2m --connections 3 --trials 2";
        let line = Arguments::try_parse_from(line.split(' ')).unwrap();
        let (servers, common) = line.servers().unwrap();
        assert_eq!((servers.release.engine, servers.rows), (Engine::Mysql, Some(7)));
        assert_eq!((servers.clients, common.blocks), (vec![3], Some(2)));
        assert!(Arguments::try_parse_from(["untax"]).unwrap().servers().is_none());
    }

    #[test]
    fn lists_and_names_are_understood() {
        let line = "--rows 5 --row-bytes 100,7 --pages 1g,thp,4k --connections 3,64 --seed 9 \
                    --model thread --access direct --trials 2 --trial-seconds 0.25";
        let request = request(line).unwrap();
        assert_eq!((request.rows, request.row_bytes), (Some(5), vec![100, 7]));
        assert_eq!(request.pages, [Page::Gigantic, Page::Transparent, Page::Small]);
        assert_eq!((request.connections, request.seed), (vec![3, 64], 9));
        assert_eq!((request.model, request.access), (Model::Thread, Access::Direct));
        assert_eq!((request.trials, request.trial), (2, Duration::from_millis(250)));
    }

    #[test]
    fn nonsense_is_refused() {
        for line in [
            "--pages 5k",
            "--rows 0",
            "--row-bytes 0",
            "--connections 0",
            "--trials 0",
            "--trial-seconds 0",
            "--trial-seconds NaN",
            "--model fork",
            "--access index",
            "--engine redis",
            "--engine postgres --access hash",
            "--beside",
        ] {
            assert!(request(line).is_err(), "{line}");
        }
    }
}
