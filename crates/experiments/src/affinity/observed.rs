//! Where the threads of an instance run, and how often they moved.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use untax_changes::affinity::{self, Processes};
use untax_core::cpus::Cpus;
use untax_host::{Host, process};
use untax_trials::{Interrupt, Interrupted};

/// Between two looks: threads of a busy instance run for a few ms at a time.
const LOOK: Duration = Duration::from_millis(100);

/// What a kernel with NUMA balancing counts for the whole machine.
pub(super) const NUMA: [&str; 3] =
    ["numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated"];

/// Looks at running threads.
pub(super) struct Observed {
    trees: Vec<(u32, Cpus)>,
    running: u64,
    at_home: u64,
    numa: Option<[f64; 3]>,
    /// Moves to another CPU a second, of threads that were there all the time; none where the kernel does not
    /// count them.
    moves_per_s: Option<f64>,
}

impl Observed {
    /// Of trees with their preferred CPUs.
    pub(super) fn of(trees: Vec<(u32, Cpus)>) -> Self {
        Self { trees, running: 0, at_home: 0, numa: numa(&Host::live()), moves_per_s: None }
    }

    /// Looks again and again for so long.
    pub(super) fn watch(
        &mut self,
        length: Duration,
        interrupt: &Interrupt,
    ) -> Result<(), Interrupted> {
        let (before, began) = (self.moves(), Instant::now());
        while began.elapsed() < length {
            self.look();
            interrupt.sleep(LOOK.min(length.saturating_sub(began.elapsed())))?;
        }
        let took_s = began.elapsed().as_secs_f64();
        let since = |(thread, now): (u32, u64)| now.checked_sub(*before.get(&thread)?);
        let moves: Vec<u64> = self.moves().into_iter().filter_map(since).collect();
        self.moves_per_s = (!moves.is_empty()).then(|| moves.iter().sum::<u64>() as f64 / took_s);
        Ok(())
    }

    /// How often each thread moved to another CPU so far.
    fn moves(&self) -> BTreeMap<u32, u64> {
        let host = Host::live();
        let threads = self.pids(&host).into_iter().flat_map(|(pid, _)| {
            affinity::threads(&host, pid).into_iter().map(move |thread| (pid, thread))
        });
        let count = |(pid, thread): (u32, u32)| {
            let text = host.text(&format!("/proc/{pid}/task/{thread}/sched")).into_value()?;
            let line = text.lines().find_map(|line| line.strip_prefix("se.nr_migrations"))?;
            Some((thread, line.split(':').nth(1)?.trim().parse().ok()?))
        };
        threads.filter_map(count).collect()
    }

    /// The processes of all trees, with the CPUs that each prefers.
    fn pids(&self, host: &Host) -> Vec<(u32, &Cpus)> {
        let mut processes = Processes::default();
        processes.look(host);
        let tree = |(root, preferred)| -> Vec<(u32, &Cpus)> {
            let family = affinity::family(host, root).into_value();
            let pids = family.map(|family| processes.descendants(&family, |_| false));
            pids.into_iter().flatten().map(|pid| (pid, preferred)).collect()
        };
        self.trees.iter().map(|(root, preferred)| (*root, preferred)).flat_map(tree).collect()
    }

    fn look(&mut self) {
        let host = Host::live();
        let (mut running, mut at_home) = (0, 0);
        for (pid, preferred) in self.pids(&host) {
            for thread in affinity::threads(&host, pid) {
                let path = format!("/proc/{pid}/task/{thread}/stat");
                let stat = host.text(&path).parse(&path, |text| process::parse_stat(text));
                let stat = stat.into_value().filter(|stat| stat.state == 'R');
                let Some(cpu) = stat.and_then(|stat| stat.cpu) else { continue };
                running += 1;
                at_home += u64::from(preferred.has(cpu));
            }
        }
        self.running += running;
        self.at_home += at_home;
    }

    /// The share of looks at running threads in which these were on preferred CPUs; none where none ran.
    pub(super) fn home_share(&self) -> Option<f64> {
        (self.running > 0).then(|| self.at_home as f64 / self.running as f64)
    }

    /// Moves of threads to another CPU in a second; none where the kernel does not count them.
    pub(super) fn moves_per_s(&self) -> Option<f64> {
        self.moves_per_s
    }

    /// What NUMA balancing counted since the start; none on a machine with one node.
    pub(super) fn numa(&self) -> Option<[f64; 3]> {
        let (before, after) = (self.numa?, numa(&Host::live())?);
        Some([0, 1, 2].map(|place| after[place] - before[place]))
    }
}

fn numa(host: &Host) -> Option<[f64; 3]> {
    let nodes = untax_host::facts::read_all(host).numa;
    if nodes.value().is_none_or(|nodes| nodes.len() < 2) {
        return None;
    }
    let text = host.text("/proc/vmstat").into_value()?;
    let count = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(field, _)| *field == name)?.1.trim().parse::<f64>().ok()
    };
    Some([count(NUMA[0])?, count(NUMA[1])?, count(NUMA[2])?])
}
