//! `--access direct` against a plain C loop that does the same reads: at least 0.95 of it.
//!
//! `cargo bench -p untax-experiments --bench c_reference -- [PAIRS [SECONDS [MIB [READERS [CFLAGS…]]]]]`
//!
//! Needs root for the huge pages; without it, only small pages are compared. Exits with 1 when the
//! upper bound of a ratio is below 0.95.

#![expect(clippy::print_stdout, reason = "a bench prints its table")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::Duration;
use untax_changes::temporary::folder;
use untax_changes::{Lock, Pool, Program, Temporary, Tree};
use untax_core::{Bytes, stats};
use untax_experiments::pages::control::Work;
use untax_experiments::pages::job::Place;
use untax_experiments::pages::plan::pool_pages;
use untax_experiments::pages::readers::{Filled, Readers};
use untax_experiments::pages::table::Layout;
use untax_experiments::pages::{Access, Model, Page};
use untax_scenes::Turn;
use untax_trials::Interrupt;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/read.c");
const WIDTHS: [u64; 3] = [128, 8192, 16384];
const ENOUGH: f64 = 0.95;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

struct Settings {
    pairs: u32,
    trial: Duration,
    table: Bytes,
    readers: u32,
    cflags: Vec<String>,
}

/// The C program with its table filled.
struct Reference {
    process: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Reference {
    fn start(program: &Path, place: Place, readers: u32) -> Outcome<Self> {
        let Layout { rows, row_bytes, .. } = place.layout;
        let mut process = Command::new(program)
            .args([place.page.id().to_owned(), row_bytes.to_string(), rows.to_string()])
            .arg(readers.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let ask = process.stdin.take().ok_or("no stdin")?;
        let answers = BufReader::new(process.stdout.take().ok_or("no stdout")?);
        let mut reference = Self { process, ask, answers };
        match reference.line()?.as_str() {
            "ready" => Ok(reference),
            other => Err(format!("the reference said {other:?}").into()),
        }
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    fn trial(&mut self, length: Duration, seed: u32) -> Outcome<f64> {
        writeln!(self.ask, "{} {seed}", length.as_secs_f64())?;
        Ok(self.line()?.parse()?)
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn main() -> ExitCode {
    // Cargo adds this argument for its own harness.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let number = |n: usize, default: f64| {
        arguments.get(n).map_or(Ok(default), |a| a.parse::<f64>()).unwrap_or(default)
    };
    let settings = Settings {
        pairs: number(0, 11.0) as u32,
        trial: Duration::from_secs_f64(number(1, 0.5)),
        table: Bytes((number(2, 1024.0) as u64) << 20),
        readers: number(3, 1.0) as u32,
        cflags: arguments.get(4..).map_or_else(|| vec!["-O2".to_owned()], <[String]>::to_vec),
    };
    match run(&settings) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run(settings: &Settings) -> Outcome<bool> {
    let (_turn, scratch) = (Turn::wait()?, tempfile::tempdir()?);
    let reference = scratch.path().join("read");
    let mut cc = Command::new("cc");
    if !cc.args(&settings.cflags).arg("-o").arg(&reference).arg(SOURCE).status()?.success() {
        return Err("cc could not compile the reference".into());
    }
    println!("row bytes  page  Rust/C  95 % interval   Rust reads/s  C reads/s");
    let mut enough = true;
    for page in [Page::Small, Page::Huge] {
        if page == Page::Huge && !rustix::process::geteuid().is_root() {
            println!("2m pages need root: not compared");
            continue;
        }
        for row_bytes in WIDTHS {
            let rows = Layout::rows_in(settings.table, row_bytes, Access::Direct);
            let layout = Layout::new(rows, row_bytes, Access::Direct, 0).ok_or("too many rows")?;
            enough &= compare(&reference, Place { layout, page }, settings, scratch.path())?;
        }
    }
    Ok(enough)
}

fn compare(reference: &Path, place: Place, settings: &Settings, state: &Path) -> Outcome<bool> {
    // The guard is the last to be dropped: after both tables are gone.
    let _guard = pool(place, state)?;
    let program = Program::at(env!("CARGO_BIN_EXE_untax-experiments").into());
    let interrupt = Interrupt::default();
    let filled = Filled::make(&program, place, &interrupt, |_| ())?;
    let mut readers = Readers::start(&program, &filled, Model::Process, settings.readers, 1)?;
    readers.ready(&interrupt, |_| ())?;
    let mut c = Reference::start(reference, place, settings.readers)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for pair in 0..settings.pairs {
        let mut rust = || readers.trial(settings.readers, Work::Read, settings.trial, &interrupt);
        if pair % 2 == 0 {
            ours.push(rust()?);
            theirs.push(c.trial(settings.trial, pair)?);
        } else {
            theirs.push(c.trial(settings.trial, pair)?);
            ours.push(rust()?);
        }
    }
    let ratio = stats::paired_ratio(&ours, &theirs).ok_or("no pairs")?;
    let median = |rates: &[f64]| stats::median(rates).unwrap_or(f64::NAN);
    println!(
        "{:>9}  {:>4}  {:>6.3}  {:.3} to {:.3}  {:>12.0}  {:>9.0}",
        place.layout.row_bytes,
        place.page.id(),
        ratio.mid,
        ratio.low,
        ratio.high,
        median(&ours),
        median(&theirs)
    );
    Ok(ratio.high >= ENOUGH)
}

/// Pages for both tables, given back when this is dropped.
fn pool(place: Place, state: &Path) -> Outcome<Option<Temporary>> {
    let tree = Tree::live();
    let Some(pool) = place.page.pool().and_then(|size| Pool::find(&tree, size)) else {
        return Ok(None);
    };
    let lock = Lock::to_bench(state)?;
    let program = Program::at(env!("CARGO_BIN_EXE_untax-experiments").into());
    let mut changes =
        Temporary::begin(&program, &folder(state), Some(&lock), &tree, "c-reference")?;
    for target in pool.targets() {
        changes.hold(&target)?;
    }
    let need = 2 * pool_pages(place);
    let got = pool.obtain(&tree, need, |pause| {
        std::thread::sleep(pause);
        true
    })?;
    if got < need { Err(format!("{got} of {need} pages").into()) } else { Ok(Some(changes)) }
}
