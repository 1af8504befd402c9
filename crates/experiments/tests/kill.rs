//! SIGKILL at random moments of a bench: pools and transparent huge pages are as before within
//! two seconds, no reader lives on, and no receipt is left.
//!
//! `cargo test -p untax-experiments --test kill -- TIMES [SEED [ROWS]]` as root. Without TIMES it says
//! how to run it and does nothing: it changes settings of the whole machine.

#![expect(clippy::print_stdout, reason = "it is run by hand and says how it went")]

use std::io::Write;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use untax_changes::{Pool, Receipt, Tree, target, temporary};
use untax_core::plan::Target;
use untax_experiments::pages::{Access, Model, Page, Request};
use untax_host::{Host, command_line, process};
use untax_scenes::Turn;

const SHMEM: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
const PROGRAM: &str = env!("CARGO_BIN_EXE_untax-experiments");

/// How soon everything must be as before.
const WITHIN: Duration = Duration::from_secs(2);

/// With the default rows the bench takes about as long as the latest kill.
const LATEST_MS: u64 = 4000;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let Some(times) = numbers.first() else {
        println!("not run: cargo test -p untax-experiments --test kill -- TIMES");
        return ExitCode::SUCCESS;
    };
    if !rustix::process::geteuid().is_root() {
        println!("not run: needs root");
        return ExitCode::FAILURE;
    }
    let mut rng = fastrand::Rng::with_seed(numbers.get(1).copied().unwrap_or(1));
    let rows = numbers.get(2).copied().unwrap_or(1_000_000);
    match run(*times, &mut rng, rows) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("{error}");
            ExitCode::from(2)
        }
    }
}

/// What must be as before.
#[derive(Debug, PartialEq, Eq)]
struct State {
    pools: Vec<String>,
    shmem: String,
    readers: usize,
    receipts: usize,
}

fn state(tree: &Tree, directory: &std::path::Path, bench: u32) -> Outcome<State> {
    let mut pools = Vec::new();
    for page in [Page::Huge, Page::Gigantic] {
        for pool in Pool::find(tree, page.bytes()).iter().flat_map(Pool::targets) {
            let Target::Pool { directory } = &pool else { continue };
            let surplus = tree.number(&format!("{directory}/surplus_hugepages"))?;
            pools.push(format!("{pool:?} {:?} {surplus}", target::read(tree, &pool)?));
        }
    }
    let host = Host::live();
    let live = process::all(&host).into_value().ok_or("no /proc")?;
    let ours = [bench.to_string(), temporary::folder(directory).display().to_string()];
    let children = live.iter().filter(|stat| {
        let arguments = command_line::arguments(&host, stat.pid).into_value().unwrap_or_default();
        arguments.iter().any(|argument| ours.contains(argument))
    });
    Ok(State {
        pools,
        shmem: tree.word(SHMEM)?,
        readers: children.count(),
        receipts: Receipt::all(&temporary::folder(directory)).0.len(),
    })
}

fn run(times: u64, rng: &mut fastrand::Rng, rows: u64) -> Outcome<bool> {
    let (_turn, tree, directory) = (Turn::wait()?, Tree::live(), tempfile::tempdir()?);
    let shmem = tree.word(SHMEM)?;
    // What the bench must change, so that there is something to restore.
    tree.write(SHMEM, "never")?;
    let before = state(&tree, directory.path(), u32::MAX)?;
    let (mut failed, mut slowest, mut changed) = (0, Duration::ZERO, 0);
    for time in 1..=times {
        let after = Duration::from_millis(rng.u64(..LATEST_MS));
        let (during, took) = kill_once(&tree, directory.path(), after, &before, rows)?;
        changed += u32::from(during.pools != before.pools || during.shmem != before.shmem);
        slowest = slowest.max(took.unwrap_or(WITHIN));
        failed += u32::from(took.is_none());
        let verdict =
            took.map_or("NOT RESTORED".to_owned(), |took| format!("restored in {took:.3?}"));
        println!("{time:>3}: killed after {after:>6.2?}, {} processes: {verdict}", during.readers);
    }
    tree.write(SHMEM, &shmem)?;
    println!(
        "{times} kills, {changed} with settings changed, {failed} not restored, slowest {slowest:.3?}"
    );
    Ok(failed == 0 && (changed > 0 || times < 10))
}

/// Kills one bench; gives back how things stood then, and how long until all was as before.
fn kill_once(
    tree: &Tree,
    directory: &std::path::Path,
    after: Duration,
    before: &State,
    rows: u64,
) -> Outcome<(State, Option<Duration>)> {
    let request = Request {
        rows: Some(rows),
        most_table: untax_core::Bytes::GIB_1,
        row_bytes: vec![128],
        pages: vec![Page::Small, Page::Huge, Page::Transparent],
        connections: vec![1, 4],
        model: Model::Process,
        access: Access::Hash,
        trials: 3,
        trial: Duration::from_millis(200),
        seed: 1,
    };
    let mut bench = Command::new(PROGRAM)
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut stdin = bench.stdin.take().ok_or("no stdin")?;
    stdin.write_all(&serde_json::to_vec(&request)?)?;
    drop(stdin);
    std::thread::sleep(after);
    let during = state(tree, directory, bench.id())?;
    bench.kill()?;
    let killed = Instant::now();
    bench.wait()?;
    while killed.elapsed() < WITHIN {
        if state(tree, directory, bench.id())? == *before {
            return Ok((during, Some(killed.elapsed())));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("{:#?}", state(tree, directory, bench.id())?);
    // Do not let one failure spoil the next attempt.
    std::thread::sleep(Duration::from_secs(10));
    Ok((during, None))
}
