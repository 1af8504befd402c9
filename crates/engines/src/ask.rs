//! Asking a server from the main process: a child does it, under a deadline.

use crate::answer::Answer;
use crate::cpu_queue;
use crate::endpoint::Hints;
use crate::engine::{Asking, Engine, Identity};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use untax_core::Reading::{self, Absent, Denied, Failed, Present};
use untax_host::{Host, nothing};

/// An idle server answers within some 20 ms.
const DEADLINE: Duration = Duration::from_secs(2);

/// The argument of the child that is to time something.
pub(crate) const TIMING: &str = "timing";

/// What the argument begins with that gives the hints of the last answer.
pub(crate) const HINTS: &str = "hints=";

/// By how much longer a server may take that is to time something: the time that takes, and one
/// statement at its own time-out.
const TIMED: Duration = Duration::from_secs(8);

/// The largest answer that is read. An honest one has about 2 KiB.
const MOST_BYTES: u64 = 1 << 20;

/// What is said of a child without a word. It has a bound on its memory, and servers do not kill it.
const DIED: &str =
    "the process that asks the server died; a server that answers without end ends it so";

/// The program that asks servers: one whose `main` calls [`answer_main`](crate::answer_main).
#[derive(Debug, Clone)]
pub struct Asker {
    /// The program.
    pub program: PathBuf,
    /// Arguments before the three of `answer_main`.
    pub arguments: Vec<OsString>,
    /// The longest that a server may take to answer on a free CPU: a hung server must not hang a check.
    pub deadline: Duration,
    /// What the last answer of each server told for the next question, by its pid.
    hints: RefCell<BTreeMap<u32, Hints>>,
    /// What servers answered beforehand, by their pids, until it is used.
    answers: RefCell<BTreeMap<u32, Reading<Answer>>>,
}

impl Asker {
    /// A program that is given these arguments and may take so long.
    pub fn new(program: impl Into<PathBuf>, arguments: Vec<OsString>, deadline: Duration) -> Self {
        let (hints, answers) = (RefCell::default(), RefCell::default());
        Self { program: program.into(), arguments, deadline, hints, answers }
    }

    /// This very program, which knows the hidden subcommand `__ask`. Works also when its file
    /// was replaced since it was started.
    pub fn this_program() -> Self {
        Self::new("/proc/self/exe", vec!["__ask".into()], DEADLINE)
    }

    /// The same, which also has servers time what only asking again and again shows: that takes 0.6 s
    /// and more for each that has something to time, so it is for the end of a window and not for
    /// every look.
    #[must_use]
    pub fn with_timing(mut self) -> Self {
        self.arguments.push(TIMING.into());
        self.deadline += TIMED;
        self
    }

    /// Keeps what a server answers for the next time that it is to be asked.
    pub(crate) fn keep(&self, pid: u32, question: Question) {
        let answer = question.finish();
        self.answers.borrow_mut().insert(pid, answer);
    }

    /// Starts asking a server, unless it has answered beforehand; `None` for an engine that is not asked, or a captured host.
    pub(crate) fn start<'a>(
        &'a self,
        host: &Host,
        engine: &'static Engine,
        pid: u32,
    ) -> Option<Question<'a>> {
        let asking = engine.asking.as_ref().filter(|_| host.is_live())?;
        let patience = self.deadline + cpu_queue::answer_waits(host);
        let mut question = Question {
            asker: self,
            patience,
            engine,
            asking,
            pid,
            next: 0,
            child: None,
            known: None,
        };
        question.known = self.answers.borrow_mut().remove(&pid);
        if question.known.is_none() {
            question.child = question.spawn();
        }
        Some(question)
    }
}

/// A question that is being asked.
pub(crate) struct Question<'a> {
    asker: &'a Asker,
    patience: Duration,
    engine: &'static Engine,
    asking: &'static Asking,
    pid: u32,
    next: usize,
    child: Option<Reading<Asked>>,
    /// The answer, where it was given beforehand.
    known: Option<Reading<Answer>>,
}

struct Asked {
    child: Child,
    started: Instant,
    patience: Duration,
}

impl Question<'_> {
    /// Asks as the next of the engine's identities; `None` when there is none left.
    fn spawn(&mut self) -> Option<Reading<Asked>> {
        let identity = *self.asking.identities.get(self.next)?;
        self.next += 1;
        // Only root can be root.
        let possible = identity != Identity::Root || rustix::process::geteuid().is_root();
        possible.then(|| self.spawn_as(identity))
    }

    fn spawn_as(&self, identity: Identity) -> Reading<Asked> {
        let hints = self.asker.hints.borrow();
        let hints = hints.get(&self.pid).and_then(|hints| serde_json::to_string(hints).ok());
        let child = Command::new(&self.asker.program)
            .args(&self.asker.arguments)
            .args(hints.map(|json| format!("{HINTS}{json}")))
            .args([self.engine.id, &self.pid.to_string(), identity.name()])
            .env_clear()
            .stdin(nothing())
            .stdout(Stdio::piped())
            .stderr(nothing())
            .spawn();
        match child {
            Ok(child) => Present(Asked { child, started: Instant::now(), patience: self.patience }),
            Err(error) => Failed(format!("{}: {error}", self.asker.program.display())),
        }
    }

    /// Waits for the answer, asking as someone else when the server refuses the first. When all
    /// are refused the first reason stays.
    pub fn finish(mut self) -> Reading<Answer> {
        if let Some(known) = self.known.take() {
            return known;
        }
        let mut refused: Option<Reading<Answer>> = None;
        while let Some(asked) = self.child.take() {
            match asked.and_then(Asked::finish) {
                answer @ Denied(_) => {
                    refused.get_or_insert(answer);
                    self.child = self.spawn();
                }
                mut answer => {
                    // They are in no capture.
                    let hints = answer.as_mut().into_value().map(|a| std::mem::take(&mut a.hints));
                    self.asker.hints.borrow_mut().extend(hints.map(|hints| (self.pid, hints)));
                    return match refused {
                        Some(refused) => refused.or_else(|| answer),
                        None => answer,
                    };
                }
            }
        }
        refused.unwrap_or_else(|| Absent("the server was not asked".to_owned()))
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if let Some(Present(asked)) = &mut self.child {
            asked.end();
        }
    }
}

impl Asked {
    fn finish(mut self) -> Reading<Answer> {
        let json = self.read();
        self.end();
        json.and_then(|json| match serde_json::from_slice(&json) {
            Ok(answer) => answer,
            Err(_) if json.is_empty() => Failed(DIED.to_owned()),
            Err(error) => Failed(format!("what the server answered: {error}")),
        })
    }

    fn read(&mut self) -> Reading<Vec<u8>> {
        let Some(mut pipe) = self.child.stdout.take() else {
            return Failed("the process that asks the server has no output".to_owned());
        };
        let (mut json, mut chunk) = (Vec::new(), [0; 4096]);
        let until = self.started + self.patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).ok();
            // What is there counts, also when others were waited for until after the deadline.
            match poll(&mut [PollFd::new(&pipe, PollFlags::IN)], timeout.as_ref()) {
                Ok(0) if left.is_zero() => {
                    return Failed(format!("the server gave no answer in {:?}", self.patience));
                }
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(errno) => return Failed(format!("waiting for the server: {errno}")),
            }
            match pipe.read(&mut chunk) {
                Ok(0) => return Present(json),
                Ok(count) => json.extend_from_slice(&chunk[..count]),
                Err(error) => return Failed(format!("waiting for the server: {error}")),
            }
            if json.len() as u64 > MOST_BYTES {
                return Failed("the answer is larger than any that makes sense".to_owned());
            }
        }
    }

    /// The child may have ended by itself, or hang: either way it is gone afterwards.
    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::by_id;

    /// Longer than any script here takes that answers.
    const PATIENT: Duration = Duration::from_secs(30);

    /// Asks a shell script instead of a server; `$2` is the identity.
    fn ask(engine: &str, script: &str) -> Reading<Answer> {
        ask_within(PATIENT, engine, script)
    }

    fn ask_within(deadline: Duration, engine: &str, script: &str) -> Reading<Answer> {
        let asker = Asker::new("/bin/sh", vec!["-c".into(), script.into()], deadline);
        let question = asker.start(&Host::live(), by_id(engine).unwrap(), 1).unwrap();
        question.finish()
    }

    fn port(answer: &Reading<Answer>) -> Option<&str> {
        answer.value()?.settings.get("port").map(String::as_str)
    }

    const ANSWER: &str = r#"{"version":"1","product":null,"connections":null,
                             "accesses":{"absent":"x"},"settings":{"port":"7"}}"#;

    #[test]
    fn an_answer_comes_through() {
        let answer = ask("redis", &format!("echo '{ANSWER}'"));
        assert_eq!(port(&answer), Some("7"), "{answer:?}");
    }

    #[test]
    fn an_answer_that_was_given_beforehand_is_used_once() {
        let script = format!("echo '{ANSWER}'");
        let asker = Asker::new("/bin/sh", vec!["-c".into(), script.into()], PATIENT);
        let start = || asker.start(&Host::live(), by_id("redis").unwrap(), 1).unwrap();
        asker.keep(1, start());
        let [known, anew] = [start(), start()];
        assert!(known.child.is_none() && anew.child.is_some(), "nobody is asked for the first");
        assert_eq!([port(&known.finish()), port(&anew.finish())], [Some("7"); 2]);
    }

    #[test]
    fn a_refusal_is_kept_when_nobody_else_can_ask() {
        let answer = ask("redis", r#"echo '{"denied":"the server wants a password"}'"#);
        assert_eq!(answer, Denied("the server wants a password".to_owned()));
    }

    #[test]
    fn another_identity_is_tried_after_a_refusal() {
        let script = format!(
            r#"if [ "$2" = root ]; then echo '{ANSWER}'; else echo '{{"denied":"no"}}'; fi"#
        );
        let answer = ask("mysql", &script);
        let root = rustix::process::geteuid().is_root();
        assert_eq!(port(&answer), root.then_some("7"), "{answer:?}");
        let failing = ask("mysql", r#"[ "$2" = root ] || echo '{"denied":"no"}'"#);
        assert_eq!(failing, Denied("no".to_owned()), "the first reason stays");
    }

    #[test]
    fn where_most_was_asked_is_said_the_next_time() {
        let script = r#"said=$(echo "$0" | tr -d '"')
            echo "{\"version\":\"$said\",\"product\":null,\"connections\":null,
            \"accesses\":{\"absent\":\"x\"},\"settings\":{},\"hints\":{\"busiest\":\"shop\"}}""#;
        let asker = Asker::new("/bin/sh", vec!["-c".into(), script.into()], PATIENT);
        let told = || {
            let question = asker.start(&Host::live(), by_id("redis").unwrap(), 1).unwrap();
            question.finish().into_value().unwrap().version.unwrap()
        };
        assert_eq!([told(), told()], ["redis", "hints={busiest:shop}"]);
    }

    #[test]
    fn one_that_is_silent_leaves_others_their_answers() {
        let script = format!(r#"[ "$1" = 1 ] && exec /bin/sleep 60; echo '{ANSWER}'"#);
        let asker = Asker::new("/bin/sh", vec!["-c".into(), script.into()], DEADLINE);
        let start = |pid| asker.start(&Host::live(), by_id("redis").unwrap(), pid).unwrap();
        let (other, silent) = (start(2), start(1));
        assert!(matches!(silent.finish(), Failed(_)));
        assert_eq!(port(&other.finish()), Some("7"));
    }

    #[test]
    fn silence_garbage_and_death_are_failures() {
        for script in ["exec /bin/sleep 60", "echo garbage", "kill -9 $$", "yes | head -c 3000000"]
        {
            let answer = ask_within(Duration::from_millis(500), "redis", script);
            assert!(matches!(answer, Failed(_)), "{script}");
        }
        let asker = Asker::new("/nowhere", Vec::new(), DEADLINE);
        let question = asker.start(&Host::live(), by_id("redis").unwrap(), 1).unwrap();
        assert!(matches!(question.finish(), Failed(_)));
    }
}
