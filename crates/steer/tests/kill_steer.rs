//! SIGKILL to what steers threads, to its guard, or to both, in a storm of threads and processes: after the
//! next start no thread is narrowed.
//!
//! `cargo test -p untax-steer --test kill_steer -- TIMES [SEED]`. Without TIMES it says how to run it and does
//! nothing.

#![expect(clippy::print_stdout, reason = "it is run by hand and says how it went")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use untax_changes::{Lock, Receipt, affinity};
use untax_core::cpus::Cpus;
use untax_host::{Host, process};
use untax_steer::{folder, put_back_rest};

const PROGRAM: &str = env!("CARGO_BIN_EXE_untax-steer-test");

/// The latest moment of a kill.
const LATEST_MS: u64 = 250;

/// Threads of the storm that make threads and processes.
const MAKERS: u32 = 6;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == "storm") {
        storm();
    }
    let numbers: Vec<u64> = arguments.iter().filter_map(|a| a.parse().ok()).collect();
    let Some(times) = numbers.first() else {
        println!("not run: cargo test -p untax-steer --test kill_steer -- TIMES");
        return ExitCode::SUCCESS;
    };
    let all = affinity::of_thread(std::process::id()).ok().flatten().unwrap_or_default();
    if all.len() < 2 {
        println!("SKIPPED: one CPU has no part");
        return ExitCode::SUCCESS;
    }
    let mut rng = fastrand::Rng::with_seed(numbers.get(1).copied().unwrap_or(1));
    match run(*times, &all, &mut rng) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Makes threads, children, and grandchildren that outlive their parents, until it is killed.
fn storm() -> ! {
    let _ = rustix::process::setsid();
    let maker = |_| {
        std::thread::spawn(|| {
            loop {
                let threads: Vec<_> = (0..4)
                    .map(|_| std::thread::spawn(|| std::thread::sleep(Duration::from_millis(3))))
                    .collect();
                let orphans = ["-c", "(sleep 0.2 &) ; sleep 0.01"];
                let child = Command::new("sh").args(orphans).stdin(Stdio::null()).spawn();
                let _ = child.and_then(|mut child| child.wait());
                for thread in threads {
                    let _ = thread.join();
                }
                std::thread::sleep(Duration::from_millis(30));
            }
        })
    };
    for maker in (0..MAKERS).map(maker).collect::<Vec<_>>() {
        let _ = maker.join();
    }
    std::process::exit(0)
}

/// A storm; its whole session ends with this value.
struct Storm(Child);

impl Storm {
    fn start() -> Outcome<Self> {
        let child =
            Command::new(std::env::current_exe()?).arg("storm").stdin(Stdio::null()).spawn()?;
        let storm = Self(child);
        while storm.processes().len() < 2 {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(storm)
    }

    /// All processes of its session, whoever their parent is by now.
    fn processes(&self) -> Vec<u32> {
        let all = process::all(&Host::live()).into_value().unwrap_or_default();
        // One that ended and was not waited for runs nowhere.
        let is_own = |stat: &process::Stat| {
            stat.session == Some(self.0.id()) && !matches!(stat.state, 'Z' | 'X')
        };
        all.into_iter().filter(is_own).map(|stat| stat.pid).collect()
    }

    /// Its threads, and those of them that do not have all CPUs.
    fn narrowed(&self, all: &Cpus) -> (usize, usize) {
        let host = Host::live();
        let threads = self.processes().into_iter().flat_map(|pid| affinity::threads(&host, pid));
        let masks: Vec<Cpus> =
            threads.filter_map(|thread| affinity::of_thread(thread).ok().flatten()).collect();
        (masks.len(), masks.iter().filter(|mask| *mask != all).count())
    }
}

impl Storm {
    /// Prints the threads that do not have all CPUs.
    fn describe(&self, all: &Cpus) {
        let host = Host::live();
        for pid in self.processes() {
            for thread in affinity::threads(&host, pid) {
                let mask = affinity::of_thread(thread).ok().flatten();
                if let Some(mask) = mask.filter(|mask| mask != all) {
                    let stat = process::stat(&host, pid).into_value();
                    let told = stat.map(|s| (s.comm, s.state, s.parent, s.started_ticks));
                    println!("      {pid}/{thread} has {mask}: {told:?}");
                }
            }
        }
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        for pid in self.processes() {
            kill(pid);
        }
    }
}

fn kill(pid: u32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid.cast_signed()) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

fn run(times: u64, all: &Cpus, rng: &mut fastrand::Rng) -> Outcome<bool> {
    let (storm, state) = (Storm::start()?, tempfile::tempdir()?);
    let (mut failed, mut caught, mut slowest) = (0, 0, Duration::ZERO);
    for time in 1..=times {
        let after = Duration::from_millis(rng.u64(..LATEST_MS));
        let how = ["steerer", "guard, then steerer", "steerer, then guard"][(time % 3) as usize];
        let (threads, during) = kill_once(&storm, state.path(), all, after, how)?;
        let killed = Instant::now();
        // The next start: it waits for a guard that is at work, and puts back what is left.
        drop(Lock::to_steer(state.path())?);
        put_back_rest(state.path())?;
        let took = killed.elapsed();
        let journals = Receipt::all(&folder(state.path())).0.len();
        let left = storm.narrowed(all).1 + journals;
        if left > 0 {
            storm.describe(all);
        }
        caught += u32::from(during > 0);
        failed += u32::from(left > 0);
        slowest = slowest.max(took);
        println!(
            "{time:>4}: {how} killed after {after:.1?}: {during} of {threads} threads narrowed, \
             {left} left after {took:.1?}"
        );
    }
    println!(
        "{times} kills, {caught} with narrowed threads, {failed} that left something, slowest {slowest:.1?}"
    );
    Ok(failed == 0 && (caught > 0 || times < 5))
}

/// Kills once: threads of the storm, and those that were narrowed when the kill came.
fn kill_once(
    storm: &Storm,
    state: &Path,
    all: &Cpus,
    after: Duration,
    how: &str,
) -> Outcome<(usize, usize)> {
    let one = |skip: usize| all.iter().skip(skip).take(1).collect::<Cpus>().to_string();
    let mut steerer = Command::new(PROGRAM)
        .arg(state)
        .arg(storm.0.id().to_string())
        .args([one(0), one(1), all.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let said = steerer.stderr.take().ok_or("no stderr")?;
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line)?;
    let guard: u32 = line.trim().parse().map_err(|_| format!("no guard: {line}"))?;
    std::thread::sleep(after);
    let seen = storm.narrowed(all);
    if how.starts_with("guard") {
        kill(guard);
    }
    steerer.kill()?;
    if how.ends_with("guard") {
        kill(guard);
    }
    steerer.wait()?;
    Ok(seen)
}
