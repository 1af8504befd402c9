//! Prints the databases of this host, and what it took to find them.
//!
//! `ask [all | pid N | container ID | replay CAPTURE]`; it starts itself as the child that asks
//! servers.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use untax_engines::{Asker, Selection, answer_main, discover};
use untax_host::{Capture, Host, facts};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let selection = match words.as_slice() {
        ["__ask", ..] => return answer_main(),
        [] | ["all"] | ["replay", _] => Selection::All,
        ["pid", pid] => match pid.parse() {
            Ok(pid) => Selection::Pid(pid),
            Err(_) => return ExitCode::from(3),
        },
        ["container", id] => Selection::Container((*id).to_owned()),
        _ => return ExitCode::from(3),
    };
    let host = match words.as_slice() {
        ["replay", capture] => match Capture::open(Path::new(capture)) {
            Ok(capture) => capture.start,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        },
        _ => Host::live(),
    };
    let started = Instant::now();
    let facts = facts::read_all(&host);
    let facts_took = started.elapsed();
    let asker = Asker::this_program();
    let started = Instant::now();
    let databases = discover(&host, &facts, &selection, &asker).map(|found| found.databases);
    let took = started.elapsed();
    let shown = serde_json::to_string_pretty(&databases).unwrap_or_default();
    println(&shown);
    let own = untax_host::process::status(&Host::live(), std::process::id()).into_value();
    let peak = own.and_then(|status| status.peak_resident);
    eprintln!("facts {facts_took:?}, databases {took:?}, most resident {peak:?}");
    ExitCode::SUCCESS
}

fn println(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{text}");
}
