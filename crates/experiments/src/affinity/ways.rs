//! The arms: how threads and memory are placed.

use crate::platform::Arm;
use untax_core::cpus::Cpus;
use untax_steer::policy::{Ratio, Rule};

/// How an arm is placed.
pub(super) struct Way {
    pub(super) id: &'static str,
    summary: &'static str,
    /// How it is steered; none without affinity.
    pub(super) rule: Option<Rule>,
    /// What `kernel.numa_balancing` is set to; as it is where none.
    pub(super) balancing: Option<bool>,
    pub(super) memory: Memory,
}

/// Where the memory of servers is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Memory {
    /// Where the kernel puts it.
    Default,
    /// On the nodes of the preferred CPUs.
    Local,
    /// On all nodes by turns.
    Interleaved,
}

const PLAIN: Way =
    Way { id: "", summary: "", rule: None, balancing: None, memory: Memory::Default };

const SOFT: Option<Rule> = Some(Rule::Full);

pub(super) const WAYS: [Way; 8] = [
    Way { id: "none", summary: "every instance may use all CPUs", ..PLAIN },
    Way {
        id: "hard",
        summary: "every instance has its preferred CPUs alone",
        rule: Some(Rule::Never),
        ..PLAIN
    },
    Way {
        id: "soft",
        summary: "untax steer: others too, while its own are 85 % busy and that pays",
        rule: SOFT,
        ..PLAIN
    },
    Way {
        id: "soft-5-4",
        summary: "untax steer by the ratio 5:4",
        rule: Some(Rule::Above(Ratio { preferred: 5, allowed: 4 })),
        ..PLAIN
    },
    Way {
        id: "autonuma",
        summary: "all CPUs, kernel.numa_balancing 1",
        balancing: Some(true),
        ..PLAIN
    },
    Way {
        id: "no-autonuma",
        summary: "all CPUs, kernel.numa_balancing 0",
        balancing: Some(false),
        ..PLAIN
    },
    Way {
        id: "soft-local",
        summary: "untax steer, memory of a server on the node that it prefers",
        rule: SOFT,
        balancing: Some(false),
        memory: Memory::Local,
    },
    Way {
        id: "soft-interleaved",
        summary: "untax steer, memory on all nodes by turns",
        rule: SOFT,
        balancing: Some(false),
        memory: Memory::Interleaved,
    },
];

impl Way {
    pub(super) fn find(id: &str) -> Option<&'static Self> {
        WAYS.iter().find(|way| way.id == id)
    }

    fn needs_nodes(&self) -> bool {
        self.balancing.is_some() || self.memory != Memory::Default
    }

    /// The arm on a machine with so many nodes.
    pub(super) fn arm(&self, preferred: &Result<Vec<Cpus>, String>, nodes: usize) -> Arm {
        let machine = format!("{nodes} NUMA node{}", if nodes == 1 { "" } else { "s" });
        let arm = Arm::new(self.id, self.summary).with("machine", machine);
        let arm = match self.balancing {
            Some(on) => arm.with("kernel.numa_balancing", u8::from(on).to_string()),
            None => arm,
        };
        match preferred {
            Err(why) => arm.cannot(why.clone()),
            Ok(_) if self.needs_nodes() && nodes < 2 => {
                arm.cannot("this machine has one NUMA node: all memory is equally near")
            }
            Ok(preferred) => {
                let lists: Vec<String> = preferred.iter().map(ToString::to_string).collect();
                arm.with("preferred", lists.join(" and "))
            }
        }
    }

    /// The words before the command of a server whose memory is to be on these nodes.
    pub(super) fn words(&self, nodes: &[u32]) -> Vec<String> {
        let list = nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let policy = match self.memory {
            Memory::Default => return Vec::new(),
            Memory::Local => format!("--membind={list}"),
            Memory::Interleaved => "--interleave=all".to_owned(),
        };
        vec!["numactl".to_owned(), policy]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_several_nodes_says_so_on_one() {
        let preferred = Ok(vec![(0..1).collect(), (1..2).collect()]);
        let cannot = |nodes: usize| {
            let arms = WAYS.iter().map(|way| way.arm(&preferred, nodes));
            arms.filter(|arm| arm.cannot.is_some()).map(|arm| arm.id).collect::<Vec<_>>()
        };
        assert_eq!(cannot(1), ["autonuma", "no-autonuma", "soft-local", "soft-interleaved"]);
        assert!(cannot(2).is_empty());
    }

    #[test]
    fn memory_is_where_its_arm_says() {
        let words = |id: &str| Way::find(id).map(|way| way.words(&[1]).join(" "));
        assert_eq!(words("soft").as_deref(), Some(""));
        assert_eq!(words("soft-local").as_deref(), Some("numactl --membind=1"));
        assert_eq!(words("soft-interleaved").as_deref(), Some("numactl --interleave=all"));
    }
}
