//! What programs share that kill `untax` again and again: their command line, a line for each kill, and how
//! long what was killed leaves anything behind.

use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// From so many kills on, one of them must have met something to take away.
const ENOUGH: u64 = 5;

pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// One kill.
pub struct Kill {
    /// What was killed, and when.
    pub what: String,
    /// How many things there were to be taken away.
    pub there: usize,
    /// After how long all were gone, or what was left.
    pub left: Result<Duration, Vec<String>>,
}

/// Kills as often as the first number on the command line says, with the second one as seed. Without a
/// number it says how to run `test`, and does nothing.
pub fn main<T>(
    test: &str,
    begin: impl FnOnce() -> Outcome<T>,
    kill: impl FnMut(&T, &mut fastrand::Rng) -> Outcome<Kill>,
) -> ExitCode {
    let numbers: Vec<u64> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let Some(times) = numbers.first() else {
        println!("not run: cargo test -p untax --test {test} -- TIMES");
        return ExitCode::SUCCESS;
    };
    if !rustix::process::geteuid().is_root() {
        println!("not run: needs root");
        return ExitCode::FAILURE;
    }
    let rng = fastrand::Rng::with_seed(numbers.get(1).copied().unwrap_or(1));
    match begin().and_then(|begun| run(*times, rng, &begun, kill)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run<T>(
    times: u64,
    mut rng: fastrand::Rng,
    begun: &T,
    mut kill: impl FnMut(&T, &mut fastrand::Rng) -> Outcome<Kill>,
) -> Outcome<bool> {
    let (mut failed, mut caught) = (0, 0);
    for time in 1..=times {
        let Kill { what, there, left } = kill(begun, &mut rng)?;
        caught += u32::from(there > 0);
        failed += u32::from(left.is_err());
        let verdict = match left {
            Ok(took) => format!("gone after {:.1} s", took.as_secs_f64()),
            Err(left) => format!("LEFT: {}", left.join(", ")),
        };
        println!("{time:>3}: {what} with {there} things: {verdict}");
    }
    println!("{times} kills, {caught} with something there, {failed} that left something");
    Ok(failed == 0 && (caught > 0 || times < ENOUGH))
}

/// Starts the program, which says nothing, with a state directory.
pub fn start(state: &Path, words: &[&str]) -> Outcome<Child> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_untax"));
    command.arg("--state-dir").arg(state).args(words);
    Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

/// How long after a moment nothing is left any more; what is, when that takes longer than `within`.
pub fn gone(
    since: Instant,
    within: Duration,
    left: impl Fn() -> Vec<String>,
) -> Result<Duration, Vec<String>> {
    loop {
        let left = left();
        if left.is_empty() {
            return Ok(since.elapsed());
        }
        if since.elapsed() > within {
            return Err(left);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
