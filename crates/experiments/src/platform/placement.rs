//! Which CPUs servers and clients run on: a factor that outweighs most platforms, so it is never left to
//! chance. A round trip takes 7 µs on one CPU and 75 µs across two whose idle one must be woken first.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use untax_core::host::cpus;
use untax_host::Host;

/// Where servers and clients run.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Both on one CPU: no idle CPU has to be woken.
    OneCpu,
    /// On two CPUs of one core.
    OneCore,
    /// On two cores.
    TwoCores,
    /// Wherever the scheduler puts them.
    None,
}

impl Placement {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::OneCpu, Self::OneCore, Self::TwoCores, Self::None];

    /// Its name on the command line and in results.
    pub const fn id(self) -> &'static str {
        match self {
            Self::OneCpu => "one-cpu",
            Self::OneCore => "one-core",
            Self::TwoCores => "two-cores",
            Self::None => "none",
        }
    }

    /// The placement of a name.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|placement| placement.id() == id)
    }

    /// Its CPUs, given those of each core; the reason where this machine has none such.
    pub(crate) fn cpus(self, cores: &[BTreeSet<u32>]) -> Result<Cpus, String> {
        let first = cores.first().and_then(|core| core.first()).copied();
        let first = first.ok_or("the CPUs of this machine are not known")?;
        let pinned =
            |server: u32, client: u32| Ok(Cpus { server: vec![server], client: vec![client] });
        match self {
            Self::None => Ok(Cpus::default()),
            Self::OneCpu => pinned(first, first),
            Self::OneCore => {
                let two = cores.iter().find(|core| core.len() > 1);
                let two = two.ok_or("no core of this machine has two CPUs")?;
                let mut two = two.iter().copied();
                let pair = two.next().zip(two.next());
                pair.map_or_else(|| Err("no core has two CPUs".to_owned()), |(a, b)| pinned(a, b))
            }
            Self::TwoCores => {
                let other = cores.get(1).and_then(|core| core.first()).copied();
                pinned(first, other.ok_or("this machine has one core")?)
            }
        }
    }
}

/// The CPUs of one cell; none: all that there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cpus {
    /// Of servers, and of work that has no clients.
    pub server: Vec<u32>,
    /// Of clients.
    pub client: Vec<u32>,
}

impl Cpus {
    /// The words that go before a server's command so that it runs there.
    pub fn server_words(&self) -> Vec<String> {
        taskset(&self.server)
    }

    /// The words that go before a client's command.
    pub fn client_words(&self) -> Vec<String> {
        taskset(&self.client)
    }
}

fn taskset(cpus: &[u32]) -> Vec<String> {
    if cpus.is_empty() {
        return Vec::new();
    }
    ["taskset", "--cpu-list", &list(cpus)].map(str::to_owned).to_vec()
}

/// `0,2`.
pub(crate) fn list(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// The CPUs of each core that this process may use.
pub(crate) fn cores(host: &Host) -> Vec<BTreeSet<u32>> {
    let status = host.text("/proc/self/status").into_value().unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let numbers = |text: &str| cpus(text.trim()).collect::<BTreeSet<u32>>();
    let allowed = numbers(allowed.unwrap_or("0"));
    let mut cores: Vec<BTreeSet<u32>> = Vec::new();
    for cpu in &allowed {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list");
        let core =
            host.text(&file).into_value().map_or_else(|| [*cpu].into(), |text| numbers(&text));
        let core: BTreeSet<u32> = core.intersection(&allowed).copied().collect();
        if !core.is_empty() && !cores.contains(&core) {
            cores.push(core);
        }
    }
    cores
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_host::Record;

    #[test]
    fn each_placement_has_the_cpus_it_is_named_after() {
        let cores = [BTreeSet::from([0, 4]), BTreeSet::from([1, 5])];
        let of = |placement: Placement| placement.cpus(&cores).map(|c| (c.server, c.client));
        assert_eq!(of(Placement::OneCpu), Ok((vec![0], vec![0])));
        assert_eq!(of(Placement::OneCore), Ok((vec![0], vec![4])));
        assert_eq!(of(Placement::TwoCores), Ok((vec![0], vec![1])));
        assert_eq!(of(Placement::None), Ok((vec![], vec![])));
    }

    #[test]
    fn what_a_machine_lacks_is_said() {
        let one = [BTreeSet::from([3])];
        assert!(Placement::OneCore.cpus(&one).unwrap_err().contains("two CPUs"));
        assert!(Placement::TwoCores.cpus(&one).unwrap_err().contains("one core"));
        assert!(Placement::OneCpu.cpus(&[]).is_err());
    }

    #[test]
    fn only_cpus_that_this_process_may_use_count() {
        let topology = "/sys/devices/system/cpu/cpu2/topology/core_cpus_list";
        let record = Record::default()
            .with_file("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t2-3,7\n")
            .with_file(topology, "2,6\n");
        let cores = cores(&Host::from_record(record));
        assert_eq!(cores, [BTreeSet::from([2]), BTreeSet::from([3]), BTreeSet::from([7])]);
    }

    #[test]
    fn a_command_is_pinned_by_the_words_before_it() {
        let cpus = Cpus { server: vec![0, 2], client: Vec::new() };
        assert_eq!(cpus.server_words(), ["taskset", "--cpu-list", "0,2"]);
        assert!(cpus.client_words().is_empty());
    }
}
