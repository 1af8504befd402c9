//! How much work each instance did, read in a thread of its own: an owner that wakes must not wait until a
//! server has answered.

use crate::pace::{ended_children_s, thread_s};
use crate::policy::Work;
use crate::usage::calls;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;
use untax_core::Reading::{self, Absent, Present};
use untax_engines::{Asker, count_work};
use untax_host::Host;

/// Whose work is to be read.
#[derive(Debug, Clone)]
pub struct Question {
    pub place: usize,
    pub engine: String,
    pub root: u32,
    pub pids: Vec<u32>,
}

/// Reads work on demand.
#[derive(Debug)]
pub struct Worker {
    questions: Sender<Question>,
    answers: Receiver<(usize, Reading<Work>, f64)>,
    readings: Vec<Reading<Option<Work>>>,
    asked: Vec<bool>,
    /// CPU time that asking took so far.
    cost_s: f64,
}

impl Worker {
    /// A worker for so many instances; moments are seconds since `start`.
    pub fn start(instances: usize, start: Instant) -> Self {
        let (questions, waiting) = channel::<Question>();
        let (answer, answers) = channel();
        std::thread::spawn(move || {
            let (host, asker) = (Host::live(), Asker::this_program());
            for question in waiting {
                let before_s = thread_s() + ended_children_s(&host);
                let work = read(&host, &asker, &question)
                    .map(|count| Work { count: count as f64, at_s: start.elapsed().as_secs_f64() });
                let cost_s = thread_s() + ended_children_s(&host) - before_s;
                if answer.send((question.place, work, cost_s)).is_err() {
                    break;
                }
            }
        });
        let readings = vec![Present(None); instances];
        Self { questions, answers, readings, asked: vec![false; instances], cost_s: 0.0 }
    }

    /// Asks, unless the last question has no answer yet.
    pub fn ask(&mut self, question: Question) {
        let place = question.place;
        if !std::mem::replace(&mut self.asked[place], true)
            && self.questions.send(question).is_err()
        {
            self.readings[place] = Absent("the thread that reads work has ended".to_owned());
        }
    }

    /// What is known of the work of an instance.
    pub fn reading(&mut self, place: usize) -> Reading<Option<Work>> {
        for (place, work, cost_s) in self.answers.try_iter() {
            self.asked[place] = false;
            self.readings[place] = work.map(Some);
            self.cost_s += cost_s;
        }
        self.readings[place].clone()
    }

    /// CPU time that asking took so far.
    pub fn cost_s(&self) -> f64 {
        self.cost_s
    }
}

/// The server's own count, or how often its processes read and wrote, where the server is silent.
fn read(host: &Host, asker: &Asker, question: &Question) -> Reading<u64> {
    count_work(host, asker, &question.engine, question.root).or_else(|| calls(host, &question.pids))
}
