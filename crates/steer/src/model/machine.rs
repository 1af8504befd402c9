//! The machine: CPUs with a queue each, tasks that compute and pause, and a way to choose a CPU.

use crate::policy::{Instance, Policy, Rule, Sample, Seen, Tunables, Work};
use crate::topology::Topology;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;
use untax_core::Reading;
use untax_core::cpus::Cpus;

/// The time after which a task gives its CPU to the next, µs: the base slice of the kernel's fair scheduler.
const SLICE_US: u64 = 3_000;

/// Between two samples of the policy, µs.
const PERIOD_US: u64 = 100_000;

/// Nodes and CPUs of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Nodes, each with an instance at home.
    pub nodes: u32,
    /// CPUs of a node.
    pub cores: u32,
}

/// What each task of an instance does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Tasks of each instance.
    pub tasks: usize,
    /// Mean time on a CPU for one piece of work, µs, where all tasks of the instance share a node.
    pub work_us: f64,
    /// Mean pause behind it, µs.
    pub pause_us: f64,
    /// By how much longer a piece of work takes when all other tasks of the instance are on other nodes.
    pub coherence: f64,
}

/// How tasks are placed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// On any CPU.
    None,
    /// On preferred CPUs alone.
    Hard,
    /// On wake-up an idle preferred CPU, then any idle one; by this rule the other way round.
    Wake(Rule),
    /// By the policy, which changes masks.
    Policy(Tunables),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Pieces of work each second, of all instances.
    pub work_per_s: f64,
    /// How often the policy changed the CPUs of an instance.
    pub changes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Wake(usize),
    Slice(u32),
    Look,
}

struct Task {
    instance: usize,
    left_us: f64,
    cpu: u32,
}

#[derive(Default)]
struct Cpu {
    running: Option<(usize, u64, f64)>,
    queue: VecDeque<usize>,
    busy_us: f64,
}

/// Simulates so many instances for a time.
pub fn simulate(
    machine: Machine,
    load: Load,
    instances: usize,
    mode: Mode,
    length: Duration,
) -> Outcome {
    let mut world = World::new(machine, load, instances, mode);
    world.run(length.as_micros() as u64)
}

struct World {
    load: Load,
    mode: Mode,
    topology: Topology,
    homes: Vec<Cpus>,
    masks: Vec<Cpus>,
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    policy: Option<Policy>,
    /// Running tasks of each instance on each node.
    running: Vec<Vec<u32>>,
    done: Vec<f64>,
    used_us: Vec<f64>,
    seen_busy_us: Vec<f64>,
    busy: BTreeMap<u32, f64>,
    changes: usize,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    rng: u64,
}

impl World {
    fn new(machine: Machine, load: Load, instances: usize, mode: Mode) -> Self {
        let topology = Topology::uniform(machine.nodes, machine.cores);
        let homes: Vec<Cpus> =
            (0..instances).map(|place| topology.of_node(place as u32 % machine.nodes)).collect();
        let policy = match mode {
            Mode::Policy(tunables) => {
                let instance = |(place, home): (usize, &Cpus)| Instance {
                    name: place.to_string(),
                    preferred: home.clone(),
                    tunables,
                };
                let all = homes.iter().enumerate().map(instance).collect();
                Some(Policy::new(all, topology.clone()))
            }
            _ => None,
        };
        let masks = match mode {
            Mode::None | Mode::Wake(_) => vec![topology.cpus(); instances],
            Mode::Hard | Mode::Policy(_) => homes.clone(),
        };
        let all = machine.nodes * machine.cores;
        let mut world = Self {
            load,
            mode,
            homes,
            masks,
            tasks: Vec::new(),
            cpus: (0..all).map(|_| Cpu::default()).collect(),
            policy,
            running: vec![vec![0; machine.nodes as usize]; instances],
            done: vec![0.0; instances],
            used_us: vec![0.0; instances],
            seen_busy_us: vec![0.0; all as usize],
            busy: BTreeMap::new(),
            changes: 0,
            events: BinaryHeap::new(),
            rng: 0x9e37_79b9_7f4a_7c15,
            topology,
        };
        for number in 0..instances * load.tasks {
            let cpu = (world.random() * f64::from(all)) as u32 % all;
            world.tasks.push(Task { instance: number % instances, left_us: 0.0, cpu });
            let at_us = (world.random() * load.pause_us) as u64;
            world.events.push(Reverse((at_us, Event::Wake(number))));
        }
        world.events.push(Reverse((PERIOD_US, Event::Look)));
        world
    }

    fn run(&mut self, length_us: u64) -> Outcome {
        while let Some(Reverse((now_us, event))) = self.events.pop() {
            if now_us > length_us {
                break;
            }
            match event {
                Event::Wake(task) => self.wake(task, now_us),
                Event::Slice(cpu) => self.end_slice(cpu, now_us),
                Event::Look => self.look(now_us),
            }
        }
        let work_per_s = self.done.iter().sum::<f64>() / (length_us as f64 / 1e6);
        Outcome { work_per_s, changes: self.changes }
    }

    /// Uniform in 0..1, by xorshift: the same each time.
    fn random(&mut self) -> f64 {
        self.rng ^= self.rng << 13;
        self.rng ^= self.rng >> 7;
        self.rng ^= self.rng << 17;
        (self.rng >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.random()).ln()
    }

    fn wake(&mut self, task: usize, now_us: u64) {
        self.tasks[task].left_us = self.exponential(self.load.work_us).max(1.0);
        let cpu = self.choose(task);
        self.tasks[task].cpu = cpu;
        self.cpus[cpu as usize].queue.push_back(task);
        self.start(cpu, now_us);
    }

    fn is_idle(&self, cpu: u32) -> bool {
        let cpu = &self.cpus[cpu as usize];
        cpu.running.is_none() && cpu.queue.is_empty()
    }

    /// The CPU for a task that wakes: an idle one of its node, any idle one, or the shortest queue.
    fn choose(&mut self, task: usize) -> u32 {
        let (instance, last) = (self.tasks[task].instance, self.tasks[task].cpu);
        let mask = self.masks[instance].clone();
        let sets = match self.mode {
            Mode::Wake(rule) => {
                let mean = |cpus: &Cpus| {
                    cpus.iter().filter_map(|cpu| self.busy.get(&cpu)).sum::<f64>()
                        / cpus.len() as f64
                };
                let home = self.homes[instance].clone();
                let leaves = rule.spills(mean(&home), mean(&mask), 1.0);
                if leaves { vec![mask.clone()] } else { vec![home, mask.clone()] }
            }
            _ => vec![mask.clone()],
        };
        let node = self.topology.place(last).map(|place| place.node);
        for set in &sets {
            let idle: Vec<u32> = set.iter().filter(|cpu| self.is_idle(*cpu)).collect();
            let near = |cpu: &&u32| self.topology.place(**cpu).map(|place| place.node) == node;
            let near: Vec<u32> = idle.iter().filter(near).copied().collect();
            let pick = if near.is_empty() { idle } else { near };
            if !pick.is_empty() {
                return pick[(self.random() * pick.len() as f64) as usize % pick.len()];
            }
        }
        let shortest = sets[0].iter().min_by_key(|cpu| self.cpus[*cpu as usize].queue.len());
        shortest.unwrap_or(last)
    }

    /// Starts the next task of a CPU, or one that waits elsewhere.
    fn start(&mut self, cpu: u32, now_us: u64) {
        if self.cpus[cpu as usize].running.is_some() {
            return;
        }
        let next = self.cpus[cpu as usize].queue.pop_front().or_else(|| self.steal(cpu));
        let Some(task) = next else { return };
        let (instance, node) = (self.tasks[task].instance, self.node(cpu));
        self.tasks[task].cpu = cpu;
        self.running[instance][node] += 1;
        let all: u32 = self.running[instance].iter().sum();
        let far = if all > 1 {
            f64::from(all - self.running[instance][node]) / f64::from(all - 1)
        } else {
            0.0
        };
        let slow = 1.0 + self.load.coherence * far;
        let takes_us = (self.tasks[task].left_us * slow).clamp(1.0, SLICE_US as f64).ceil() as u64;
        self.cpus[cpu as usize].running = Some((task, now_us, slow));
        self.events.push(Reverse((now_us + takes_us, Event::Slice(cpu))));
    }

    fn node(&self, cpu: u32) -> usize {
        self.topology.place(cpu).map_or(0, |place| place.node as usize)
    }

    /// A task of the longest queue that may run here. Wake-up placement alone does not move tasks that wait.
    fn steal(&mut self, cpu: u32) -> Option<usize> {
        let may = |world: &Self, task: &usize| {
            let instance = world.tasks[*task].instance;
            match world.mode {
                Mode::Wake(_) => world.homes[instance].has(cpu),
                _ => world.masks[instance].has(cpu),
            }
        };
        let longest = (0..self.cpus.len())
            .filter(|other| self.cpus[*other].queue.iter().any(|task| may(self, task)));
        let from = longest.max_by_key(|other| self.cpus[*other].queue.len())?;
        let place = self.cpus[from].queue.iter().position(|task| may(self, task))?;
        self.cpus[from].queue.remove(place)
    }

    fn end_slice(&mut self, cpu: u32, now_us: u64) {
        let Some((task, since_us, slow)) = self.cpus[cpu as usize].running.take() else { return };
        let (instance, node) = (self.tasks[task].instance, self.node(cpu));
        self.running[instance][node] -= 1;
        let took_us = (now_us - since_us) as f64;
        self.cpus[cpu as usize].busy_us += took_us;
        self.used_us[instance] += took_us;
        self.tasks[task].left_us -= took_us / slow;
        if self.tasks[task].left_us <= 0.5 {
            self.done[instance] += 1.0;
            let pause_us = self.exponential(self.load.pause_us) as u64;
            self.events.push(Reverse((now_us + pause_us, Event::Wake(task))));
        } else if self.masks[instance].has(cpu) {
            self.cpus[cpu as usize].queue.push_back(task);
        } else {
            let other = self.choose(task);
            self.cpus[other as usize].queue.push_back(task);
            self.start(other, now_us);
        }
        self.start(cpu, now_us);
    }

    /// A sample, and what the policy does about it.
    fn look(&mut self, now_us: u64) {
        for (number, cpu) in self.cpus.iter().enumerate() {
            // What runs now counts when its slice ends.
            let share = (cpu.busy_us - self.seen_busy_us[number]) / PERIOD_US as f64;
            self.busy.insert(number as u32, share.clamp(0.0, 1.0));
            self.seen_busy_us[number] = cpu.busy_us;
        }
        let used: Vec<f64> = self.used_us.drain(..).map(|us| us / PERIOD_US as f64).collect();
        self.used_us = vec![0.0; used.len()];
        self.events.push(Reverse((now_us + PERIOD_US, Event::Look)));
        let Some(policy) = &mut self.policy else { return };
        let moment_s = now_us as f64 / 1e6;
        let seen = |(place, used_cpus): (usize, &f64)| Seen {
            allowed: self.topology.cpus(),
            used_cpus: *used_cpus,
            work: Reading::Present(Some(Work { count: self.done[place], at_s: moment_s })),
        };
        let instances = used.iter().enumerate().map(seen).collect();
        let next = policy.step(&Sample { now_s: moment_s, busy: self.busy.clone(), instances });
        for action in next.actions {
            self.changes += 1;
            self.masks[action.instance] = action.cpus;
        }
    }
}
