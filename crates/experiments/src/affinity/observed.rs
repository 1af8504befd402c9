//! Where the threads of an instance run, and how often they moved.

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
}

impl Observed {
    /// Of trees with their preferred CPUs.
    pub(super) fn of(trees: Vec<(u32, Cpus)>) -> Self {
        Self { trees, running: 0, at_home: 0, numa: numa(&Host::live()) }
    }

    /// Looks again and again for so long.
    pub(super) fn watch(
        &mut self,
        length: Duration,
        interrupt: &Interrupt,
    ) -> Result<(), Interrupted> {
        let began = Instant::now();
        while began.elapsed() < length {
            self.look();
            interrupt.sleep(LOOK.min(length.saturating_sub(began.elapsed())))?;
        }
        Ok(())
    }

    fn look(&mut self) {
        let host = Host::live();
        let mut processes = Processes::default();
        processes.look(&host);
        for (root, preferred) in &self.trees {
            let Some(family) = affinity::family(&host, *root).into_value() else { continue };
            for pid in processes.descendants(&family, |_| false) {
                for thread in affinity::threads(&host, pid) {
                    let path = format!("/proc/{pid}/task/{thread}/stat");
                    let stat = host.text(&path).parse(&path, |text| process::parse_stat(text));
                    let Some(stat) = stat.into_value().filter(|stat| stat.state == 'R') else {
                        continue;
                    };
                    let Some(cpu) = stat.cpu else { continue };
                    self.running += 1;
                    self.at_home += u64::from(preferred.has(cpu));
                }
            }
        }
    }

    /// The share of looks at running threads in which these were on preferred CPUs; none where none ran.
    pub(super) fn home_share(&self) -> Option<f64> {
        (self.running > 0).then(|| self.at_home as f64 / self.running as f64)
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
