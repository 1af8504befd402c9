//! Steering: samples go into the policy, and what it says is done to threads, until it is to end.

use crate::event::{Begun, Event, Line, OwnCost, SCHEMA, Standing};
use crate::ext::Ext;
use crate::order::{Backend, Chosen, Order, SteerError};
use crate::pace::{Pace, thread_s};
use crate::policy::{Instance, Policy, Sample, Seen, Verdict};
use crate::published::Publisher;
use crate::resolve::{Candidate, memory_warning};
use crate::threads::{Machine, Threads};
use crate::topology::Topology;
use crate::usage::{MachineTime, Usage};
use crate::work::{Question, Worker};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use untax_changes::{Lock, Program, Temporary, TemporaryError, Tree, recover};
use untax_core::Reading;
use untax_core::cpus::Cpus;
use untax_core::host::HostFacts;
use untax_host::facts;
use untax_trials::Interrupt;

/// How often it is told how things stand.
const TELL: Duration = Duration::from_secs(1);

/// Where the journal of steering lies in a state directory.
pub fn folder(state: &Path) -> PathBuf {
    state.join("steer")
}

/// Puts back what an earlier steering left that was killed together with its guard: what was put back.
pub fn put_back_rest(state: &Path) -> Result<Vec<String>, TemporaryError> {
    recover(&folder(state), &Tree::live())
}

/// Steers until interrupted, or until no instance runs any more. When this returns, all threads have all CPUs
/// of their cpuset again, whatever it returns.
pub fn steer(
    order: &Order,
    program: &Program,
    state: &Path,
    lock: &Lock,
    interrupt: &Interrupt,
    tell: &mut dyn FnMut(Line),
) -> Result<(), SteerError> {
    put_back_rest(state)?;
    let mut machine = Machine::live();
    let mut parts: Vec<Part> = order
        .instances
        .iter()
        .map(|chosen| Part::of(&mut machine, chosen))
        .collect::<Result<_, _>>()?;
    let mut journal =
        Temporary::begin(program, &folder(state), Some(lock), &Tree::live(), &order.run)?;
    let ext = extend(order, &machine, &mut parts, &mut journal)?;
    let facts = facts::read_all(&machine.host);
    let mut publisher = Publisher::new(state);
    let mut tell = |line: Line| {
        publisher.hear(&line);
        tell(line);
    };
    let mut steering = Steering::new(order, &facts, machine, parts, journal, &mut tell);
    steering.ext = ext;
    steering.tell_begin(order, &facts);
    let steered = steering.run(program, lock, interrupt);
    steering.end(steered)
}

/// Starts the program of the `sched_ext` backend, where that is asked for. Its class is in the journal before any
/// thread has it.
fn extend(
    order: &Order,
    machine: &Machine,
    parts: &mut [Part],
    journal: &mut Temporary,
) -> Result<Option<Ext>, SteerError> {
    if order.backend == Backend::User {
        return Ok(None);
    }
    if let Some(part) = parts.iter().find(|part| part.threads.roots().count() > 1) {
        return Err(SteerError::Along { name: part.name.clone() });
    }
    let roots: Vec<u32> = parts.iter().map(|part| part.threads.root()).collect();
    let preferred = parts.iter().map(|part| part.preferred.clone()).collect();
    let ext = Ext::start(&machine.host, machine.layout.as_ref(), preferred, &roots)?;
    for part in parts {
        part.threads.use_class(journal)?;
    }
    Ok(Some(ext))
}

/// One instance that is steered.
struct Part {
    name: String,
    engine: String,
    preferred: Cpus,
    threads: Threads,
    usage: Usage,
    used_cpus: f64,
    allowed: Cpus,
    verdict: Option<Verdict>,
    is_gone: bool,
}

impl Part {
    fn of(machine: &mut Machine, chosen: &Chosen) -> Result<Self, SteerError> {
        let Candidate { name, engine, pid, .. } = chosen.candidate.clone();
        let (preferred, ended) =
            (chosen.preferred.clone(), SteerError::Ended { name: name.clone(), pid });
        let mut whole = Threads::of(&machine.host, pid);
        for root in &chosen.along {
            whole = whole.and_then(|threads| threads.along(&machine.host, *root));
        }
        let Some(mut threads) = whole.into_value() else { return Err(ended) };
        let looked = threads.look(machine, &[]);
        looked.map_err(|source| SteerError::Unread { name: name.clone(), source })?;
        let Some(allowed) = machine.allowed(pid) else { return Err(ended) };
        if preferred.is_empty() || !preferred.is_within(&allowed) {
            return Err(SteerError::Outside { name, preferred, allowed });
        }
        if threads.seen().own_masks.contains(&preferred) {
            return Err(SteerError::Own { name, preferred });
        }
        let usage = Usage::default();
        let (used_cpus, verdict, is_gone) = (0.0, None, false);
        Ok(Self { name, engine, preferred, threads, usage, used_cpus, allowed, verdict, is_gone })
    }
}

struct Steering<'a> {
    machine: Machine,
    parts: Vec<Part>,
    /// The main processes of all instances, and those that are steered along with them.
    roots: Vec<u32>,
    policy: Policy,
    /// The program of that backend.
    ext: Option<Ext>,
    /// `None` once everything is put back.
    journal: Option<Temporary>,
    worker: Worker,
    began: Instant,
    began_s: f64,
    pace: Pace,
    last: Option<(Instant, MachineTime)>,
    last_busy: Sample,
    tell: &'a mut dyn FnMut(Line),
}

impl<'a> Steering<'a> {
    fn new(
        order: &Order,
        facts: &HostFacts,
        machine: Machine,
        parts: Vec<Part>,
        journal: Temporary,
        tell: &'a mut dyn FnMut(Line),
    ) -> Self {
        let topology = Topology::read(&machine.host, facts);
        let instance = |chosen: &Chosen| Instance {
            name: chosen.candidate.name.clone(),
            preferred: chosen.preferred.clone(),
            tunables: chosen.tunables,
        };
        let policy = Policy::new(order.instances.iter().map(instance).collect(), topology);
        let began = Instant::now();
        Self {
            roots: parts.iter().flat_map(|part| part.threads.roots()).collect(),
            worker: Worker::start(parts.len(), began),
            machine,
            parts,
            policy,
            ext: None,
            journal: Some(journal),
            began,
            began_s: thread_s(),
            pace: Pace::of(order.period),
            last: None,
            last_busy: Sample::default(),
            tell,
        }
    }

    fn say(&mut self, event: Event) {
        let at_s = self.began.elapsed().as_secs_f64();
        (self.tell)(Line { schema: SCHEMA.to_owned(), at_s, event });
    }

    fn tell_begin(&mut self, order: &Order, facts: &HostFacts) {
        let warn = |chosen: &Chosen| memory_warning(&chosen.candidate, &chosen.preferred, facts);
        let warnings = order.instances.iter().filter_map(warn).collect();
        for part in &mut self.parts {
            part.threads.find(&self.machine, &self.roots);
            let (root, pids) = (part.threads.root(), part.threads.pids());
            part.usage.choose(&self.machine.host, self.machine.layout.as_ref(), root, pids);
        }
        let begun = |part: &Part| Begun {
            name: part.name.clone(),
            pid: part.threads.root(),
            preferred: part.preferred.clone(),
            allowed: part.allowed.clone(),
            own_threads: part.threads.seen().own,
            usage: if part.usage.is_by_group() { "cgroup" } else { "threads" }.to_owned(),
        };
        let instances = self.parts.iter().map(begun).collect();
        let guard_pid = self.journal.as_ref().and_then(Temporary::guard_pid);
        let (run, backend) = (order.run.clone(), order.backend.name().to_owned());
        self.say(Event::Started { run, backend, guard_pid, instances, warnings });
    }

    fn run(
        &mut self,
        program: &Program,
        lock: &Lock,
        interrupt: &Interrupt,
    ) -> Result<(), SteerError> {
        let (mut looked, mut told) = (Instant::now(), Instant::now());
        let mut spent_s = thread_s();
        while !self.parts.iter().all(|part| part.is_gone) {
            let began = Instant::now();
            self.sample()?;
            let took_s = began.elapsed().as_secs_f64();
            let mut look_s = 0.0;
            if looked.elapsed() >= self.pace.look_period() {
                looked = Instant::now();
                look_s = self.look(program, lock)?;
            }
            if told.elapsed() >= TELL {
                told = Instant::now();
                self.tell_state();
            }
            if interrupt.sleep(self.pace.period()).is_err() {
                break;
            }
            // All of a round but the look, which has a pace of its own: telling and waking up too.
            let round_s = thread_s() - spent_s;
            spent_s += round_s;
            self.pace.sampled(round_s - look_s, took_s);
        }
        Ok(())
    }

    /// One sample, and what the policy makes of it.
    fn sample(&mut self) -> Result<(), SteerError> {
        self.ext.as_ref().map_or(Ok(()), Ext::check)?;
        let time = match MachineTime::read(&self.machine.host) {
            Reading::Present(time) => time,
            gap => return Err(SteerError::NoTime(gap.why().unwrap_or_default())),
        };
        let now = Instant::now();
        let Some((then, before)) = self.last.replace((now, time.clone())) else {
            self.spend(Duration::ZERO);
            return Ok(());
        };
        self.spend(now - then);
        let now_s = (now - self.began).as_secs_f64();
        let seen = |(place, part): (usize, &Part)| Seen {
            allowed: if part.is_gone { Cpus::default() } else { part.allowed.clone() },
            used_cpus: part.used_cpus,
            work: self.worker.reading(place),
        };
        let instances = self.parts.iter().enumerate().map(seen).collect();
        let sample = Sample { now_s, busy: time.busy_since(&before), instances };
        let step = self.policy.step(&sample);
        for action in step.actions {
            self.give(action.instance, &action.cpus, action.why)?;
        }
        for place in step.ask {
            let part = &self.parts[place];
            let (engine, root) = (part.engine.clone(), part.threads.root());
            self.worker.ask(Question { place, engine, root, pids: part.threads.pids().to_vec() });
        }
        self.last_busy = sample;
        self.tell_verdicts();
        Ok(())
    }

    /// Reads what each instance used since the last sample.
    fn spend(&mut self, elapsed: Duration) {
        if self.parts.iter().any(|part| !part.usage.is_by_group()) {
            // New connections may be new processes, and their time counts.
            self.machine.look();
        }
        for part in self.parts.iter_mut().filter(|part| !part.is_gone) {
            if !part.usage.is_by_group() {
                part.threads.find(&self.machine, &self.roots);
            }
            let spent_ns = part.usage.spend_ns(&self.machine.host, part.threads.pids());
            if !elapsed.is_zero() {
                part.used_cpus = spent_ns as f64 / elapsed.as_nanos() as f64;
            }
        }
    }

    fn give(
        &mut self,
        place: usize,
        cpus: &Cpus,
        why: crate::policy::Why,
    ) -> Result<(), SteerError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        if let Some(ext) = &mut self.ext {
            ext.give(place, cpus)?;
        }
        let part = &mut self.parts[place];
        let given = part.threads.give(&mut self.machine, &self.roots, journal, cpus);
        let threads =
            given.map_err(|source| SteerError::Refused { name: part.name.clone(), source })?;
        let (instance, cpus) = (part.name.clone(), cpus.clone());
        self.say(Event::Changed { instance, cpus, why, threads });
        Ok(())
    }

    fn tell_verdicts(&mut self) {
        for place in 0..self.parts.len() {
            let now = self.policy.states()[place].verdict;
            let before = std::mem::replace(&mut self.parts[place].verdict, now);
            if let Some(verdict) = now.filter(|_| now != before) {
                let instance = self.parts[place].name.clone();
                self.say(Event::Judged { instance, verdict });
            }
        }
    }

    /// Looks at all threads: new ones, cpusets that changed, instances that ended. And at the guard. Gives the CPU
    /// time that it took.
    fn look(&mut self, program: &Program, lock: &Lock) -> Result<f64, SteerError> {
        let began_s = thread_s();
        for place in 0..self.parts.len() {
            let part = &mut self.parts[place];
            if part.is_gone {
                continue;
            }
            let kept = part.threads.keep(&mut self.machine, &self.roots);
            kept.map_err(|source| SteerError::Unread { name: part.name.clone(), source })?;
            let root = part.threads.root();
            part.usage.choose(
                &self.machine.host,
                self.machine.layout.as_ref(),
                root,
                part.threads.pids(),
            );
            match self.machine.allowed(root) {
                Some(allowed) if !part.threads.pids().is_empty() => part.allowed = allowed,
                _ => {
                    part.is_gone = true;
                    let instance = part.name.clone();
                    self.say(Event::Gone { instance });
                }
            }
        }
        if let Some(journal) = &mut self.journal
            && journal.renew_guard(program, Some(lock))?
        {
            self.say(Event::GuardRenewed);
        }
        let look_s = thread_s() - began_s;
        self.pace.looked(look_s);
        Ok(look_s)
    }

    fn own_cost(&self) -> OwnCost {
        let cpu_s = thread_s() - self.began_s + self.worker.cost_s();
        OwnCost {
            cpu_s,
            share: cpu_s / self.began.elapsed().as_secs_f64().max(f64::MIN_POSITIVE),
            period_s: self.pace.period().as_secs_f64(),
            slowest_sample_s: self.pace.slowest_s,
        }
    }

    fn tell_state(&mut self) {
        let standing = |(part, state): (&Part, &crate::policy::State)| Standing {
            name: part.name.clone(),
            cpus: state.cpus.clone(),
            preferred: part.preferred.clone(),
            used_cpus: part.used_cpus,
            preferred_busy_share: self.last_busy.busy_share(&part.preferred),
            allowed_busy_share: self.last_busy.busy_share(&part.allowed),
            threads: part.threads.seen().steered,
            own_threads: part.threads.seen().own,
            verdict: part.verdict,
        };
        let living = self.parts.iter().zip(self.policy.states()).filter(|(part, _)| !part.is_gone);
        let instances = living.map(standing).collect();
        let own = self.own_cost();
        self.say(Event::State { instances, own });
    }

    /// Puts everything back. What went wrong before counts more than what goes wrong now.
    fn end(&mut self, steered: Result<(), SteerError>) -> Result<(), SteerError> {
        let released = self.journal.take().map_or(Ok(()), Temporary::release);
        self.ext = None;
        steered?;
        released?;
        let own = self.own_cost();
        self.say(Event::Ended { own });
        Ok(())
    }
}
