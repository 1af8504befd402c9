//! `untax watch` on a terminal of its own and as a stream, over databases that come and go.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use support::tty::{Ended, HUNG, Tty, end_of, on_terminal};
use support::{Bystander, Untax, unmeasured};
use untax_scenes::{Load, Pgbench, Postgres, Runtime, SceneError};

/// Whatever pool of huge pages this machine has, something is found.
const BUFFERS: [(&str, &str); 2] = [("shared_buffers", "256MB"), ("huge_pages", "off")];
const LOAD: Pgbench =
    Pgbench { clients: 4, seconds: 180, writes: false, without_hot_rows: false, reconnect: false };

/// Watches one process, window by short window.
fn quick(pid: &str) -> [&str; 6] {
    ["watch", "--pid", pid, "--window", "1s", "--no-calibration"]
}

#[test]
fn a_database_is_shown_opened_and_left() {
    support::real(|| {
        let (postgres, _load) = loaded(10)?;
        let pid = postgres.pid().unwrap().to_string();
        let untax = Untax::new();
        let options = quick(&pid);
        let mut tty = Tty::start(&untax, &options, 100, 30);
        let screen = tty.shows("threads active");
        assert!(
            screen.contains("PostgreSQL") && screen.contains(&format!("pid {pid}")),
            "{screen}"
        );
        assert!(screen.contains("█") || screen.contains("▓"), "its time: {screen}");
        assert!(screen.contains("own cost"), "{screen}");
        let raw = tcgetattr(&tty.slave).unwrap();
        assert!(!raw.local_modes.contains(LocalModes::ICANON), "the test would see nothing");
        tty.resize(40, 10);
        let small = tty.until("screen of 40 columns", |screen| {
            screen
                .lines()
                .nth(9)
                .is_some_and(|last| last.starts_with("q p s") && last.contains("own"))
        });
        assert!(small.contains("PostgreSQL"), "{small}");
        tty.resize(100, 30);
        tty.shows("q quit");
        tty.press("\r");
        tty.shows("Where its time went");
        tty.press("\u{1b}");
        tty.until("list", |screen| !screen.contains("Where its time went"));
        tty.press("j\r");
        tty.shows("untax explain ");
        tty.press("\r");
        tty.until("list", |screen| !screen.contains("untax explain "));
        tty.press("p");
        tty.shows("PAUSED");
        tty.press("?");
        tty.shows("any key closes this");
        tty.press("xp");
        tty.until("clock", |screen| !screen.contains("PAUSED") && screen.contains("own cost"));
        tty.press("q");
        assert!(tty.ended().success());
        Ok(())
    });
}

#[test]
fn databases_that_come_end_and_come_again_are_shown() {
    support::real(|| {
        let untax = Untax::new();
        let options = ["watch", "--window", "1s", "--no-calibration"];
        let mut tty = Tty::start(&untax, &options, 100, 40);
        tty.until("first window", |screen| screen.contains("own cost"));
        let mut postgres = Postgres::start(Runtime::Host, &BUFFERS)?;
        let first = postgres.pid().unwrap();
        tty.shows(&format!("pid {first}"));
        postgres.stop();
        tty.shows("ended, seen at");
        postgres.restart(&BUFFERS)?;
        let second = postgres.pid().unwrap();
        let screen = tty.shows(&format!("was pid {first}"));
        assert!(screen.contains(&format!("pid {second}")), "{screen}");
        tty.press("q");
        assert!(tty.ended().success());
        Ok(())
    });
}

#[test]
fn signals_leave_the_terminal_as_it_was() {
    support::real(|| {
        let sleeper = Bystander::sleeping();
        let pid = sleeper.id().to_string();
        let untax = Untax::new();
        let options = quick(&pid);
        for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
            let tty = Tty::start(&untax, &options, 80, 24);
            tty.shows("untax watch");
            tty.signal(signal);
            assert!(tty.ended().success(), "{signal:?}");
        }
        let mut tty = Tty::start(&untax, &options, 80, 24);
        tty.shows("untax watch");
        tty.press("\u{3}");
        assert!(tty.ended().success(), "Ctrl-C");
        Ok(())
    });
}

#[test]
fn a_terminal_that_goes_away_ends_it() {
    support::real(|| {
        let sleeper = Bystander::sleeping();
        let pid = sleeper.id().to_string();
        let untax = Untax::new();
        let options = quick(&pid);
        let (child, mut master, slave, _) = on_terminal(&untax, &options, (80, 24));
        let mut program = Ended(child);
        drop(slave);
        let (mut shown, mut bytes) = (vt100::Parser::new(24, 80, 0), [0; 4096]);
        let since = Instant::now();
        // With the first window the keys are told in full, and it waits for them.
        while !shown.screen().contents().contains("q quit") {
            assert!(since.elapsed() < HUNG, "{}", shown.screen().contents());
            let count = master.read(&mut bytes).unwrap();
            shown.process(&bytes[..count]);
        }
        drop(master);
        assert!(end_of(&mut program.0).success());

        Ok(())
    });
}

#[test]
fn without_a_process_the_terminal_is_not_even_taken() {
    support::real(|| {
        let untax = Untax::new();
        let tty = Tty::start(&untax, &["watch", "--pid", "4194305"], 80, 24);
        let shown = tty.shows("4194305");
        assert!(shown.contains("untax: "), "{shown}");
        assert_eq!(tty.ended().code(), Some(2));
        Ok(())
    });
}

/// The stream of results of a run.
struct Stream {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Stream {
    fn start(untax: &Untax, arguments: &[&str]) -> Self {
        let words = ["watch", "--json", "--window", "1s", "--no-calibration"];
        let mut command = untax.command(&[&words, arguments].concat());
        // In a group that this process looks after: where nobody does, nothing can be stopped.
        Self::of(command.process_group(0).stdout(Stdio::piped()).spawn().unwrap())
    }

    fn of(mut child: Child) -> Self {
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The program itself, not what ends it should it hang.
    fn program(&self) -> Pid {
        let pid = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        Pid::from_raw(children.trim().parse().unwrap()).unwrap()
    }

    /// The next result.
    fn next(&mut self) -> Value {
        let line = self.lines.next().expect("a line for every window").unwrap();
        serde_json::from_str(&line).expect("every line is JSON and whole")
    }

    /// The first result that is as it should be; the program's own deadline ends the search.
    fn until(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let check = self.next();
            if is(&check) {
                return check;
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Not SIGKILL, which would be the end of `timeout` alone and not of what it runs.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// A server under load, so many times pgbench's smallest.
fn loaded(scale: u32) -> Result<(Postgres, Load), SceneError> {
    let postgres = Postgres::start(Runtime::Host, &BUFFERS)?;
    postgres.pgbench_fill(scale, 100)?;
    let load = postgres.pgbench(&LOAD)?;
    Ok((postgres, load))
}

fn database(check: &Value, pid: u32) -> Option<&Value> {
    check["databases"].as_array().unwrap().iter().find(|database| database["pid"] == pid)
}

#[test]
fn each_window_is_a_line_and_costs_less_than_the_first() {
    support::real(|| {
        let (postgres, _load) = loaded(10)?;
        let pid = postgres.pid().unwrap();
        let untax = Untax::new();
        let text = pid.to_string();
        let mut stream = Stream::start(&untax, &["--pid", &text, "--count", "4"]);
        let checks: Vec<Value> = (0..4).map(|_| stream.next()).collect();
        assert!(stream.lines.next().is_none());
        assert!([0, 1].contains(&end_of(&mut stream.child).code().unwrap()));
        for check in &checks {
            assert_eq!(check["schema"], "untax.check/1");
            let (found, window_s) = (database(check, pid).unwrap(), check["window_s"].as_f64());
            assert!(window_s.unwrap() >= 1.0, "{check}");
            assert!(found["time"]["active_s"].as_f64().unwrap() > 0.1, "{:#}", found["time"]);
        }
        let number = |check: &Value, name: &str| check["self"][name].as_f64().unwrap();
        let cpu_s: Vec<f64> = checks.iter().map(|check| number(check, "cpu_s")).collect();
        // Programs are loaded once, and every window has only its own cost.
        assert!(cpu_s[1..].iter().all(|cost| *cost < cpu_s[0]), "{cpu_s:?}");
        assert!(checks.iter().all(|check| number(check, "tracing_s") > 0.0));
        Ok(())
    });
}

#[test]
fn a_database_found_later_is_traced_and_its_end_is_said() {
    support::real(|| {
        let untax = Untax::new();
        let mut stream = Stream::start(&untax, &[]);
        stream.next();
        let (postgres, load) = loaded(1)?;
        let pid = postgres.pid().unwrap();
        stream.until(|check| {
            let active_s = database(check, pid).map(|found| &found["time"]["active_s"]);
            active_s.and_then(Value::as_f64).is_some_and(|active_s| active_s > 0.1)
        });
        drop(load);
        drop(postgres);
        let id = format!("postgres:{pid}");
        let last = stream.until(|check| {
            let gone = |(_, why): &(&str, &str)| why.contains(&id) && why.contains("ended");
            unmeasured(check).iter().any(gone)
        });
        assert!(database(&last, pid).is_none(), "{last:#}");
        stream.next();
        Ok(())
    });
}

#[test]
fn a_stream_ends_when_interrupted_or_read_no_more() {
    support::real(|| {
        let untax = Untax::new();
        let mut stream = Stream::start(&untax, &[]);
        stream.next();
        kill_process(Pid::from_child(&stream.child), Signal::INT).unwrap();
        let end = end_of(&mut stream.child);
        assert!([0, 1].contains(&end.code().unwrap_or(-1)), "{end}");
        let untax = Untax::new();
        let mut command = untax.command(&["watch", "--json", "--window", "1s"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert!([0, 1].contains(&end_of(&mut child).code().unwrap()));
        Ok(())
    });
}

#[test]
fn one_that_is_to_outlive_its_terminal_does() {
    support::real(|| {
        let untax = Untax::new();
        let mut command = Command::new("nohup");
        command.args([env!("CARGO_BIN_EXE_untax"), "--state-dir"]).arg(untax.path("state"));
        command.args(["watch", "--json", "--window", "1s"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut stream = Stream::of(child.spawn().unwrap());
        stream.next();
        kill_process(Pid::from_child(&stream.child), Signal::HUP).unwrap();
        for _ in 0..2 {
            stream.next();
        }
        Ok(())
    });
}

#[test]
fn one_that_is_stopped_traces_no_switches_and_goes_on() {
    support::real(|| {
        let (postgres, _load) = loaded(10)?;
        let pid = postgres.pid().unwrap();
        let (untax, text) = (Untax::new(), pid.to_string());
        let mut stream = Stream::start(&untax, &["--pid", &text]);
        stream.next();
        let watch = stream.program();
        // It does at times, or this test sees nothing.
        until(|| traces_switches(watch));
        for _ in 0..3 {
            kill_process(watch, Signal::TSTP).unwrap();
            until(|| is_stopped(watch));
            assert!(!traces_switches(watch));
            kill_process(watch, Signal::CONT).unwrap();
            until(|| traces_switches(watch));
        }
        stream.until(|check| {
            let active_s = database(check, pid).map(|found| &found["time"]["active_s"]);
            active_s.and_then(Value::as_f64).is_some_and(|active_s| active_s > 0.1)
        });
        Ok(())
    });
}

fn until(is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < HUNG);
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn is_stopped(pid: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap();
    status.contains("State:\tT")
}

/// Whether a program in the kernel that is attached to the scheduler's switches is this process's.
fn traces_switches(pid: Pid) -> bool {
    let files = std::fs::read_dir(format!("/proc/{}/fdinfo", pid.as_raw_nonzero())).unwrap();
    // It may close one meanwhile.
    let texts = files.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok());
    texts.into_iter().any(|text| text.contains("tp_name:\tsched_switch"))
}

#[test]
fn without_privilege_the_stream_says_why() {
    support::real(|| {
        let postgres = Postgres::start(Runtime::Host, &BUFFERS)?;
        let pid = postgres.pid().unwrap();
        let text = pid.to_string();
        let untax = Untax::as_nobody();
        let mut stream = Stream::start(&untax, &["--pid", &text, "--count", "2"]);
        for _ in 0..2 {
            let check = stream.next();
            let active = &database(&check, pid).unwrap()["time"]["active_s"];
            assert!(active["denied"].as_str().is_some_and(|why| why.contains("root")), "{active}");
        }
        Ok(())
    });
}
