//! Settings of the kernel that remedies change.

use super::Fact;
use crate::Host;
use std::collections::BTreeMap;
use untax_core::Reading::{Absent, Present};
use untax_core::host::HostFacts;

pub(super) const FACT: Fact = Fact {
    id: "sysctls",
    summary: "settings of the kernel that remedies change",
    source: "/proc/sys",
    privilege: "none",
    minimum_kernel: "2.6.29; a setting that is not there is left out",
    cost: "a small file each",
    read,
};

const NAMES: &[&str] = &[
    "kernel.numa_balancing",
    "vm.dirty_background_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_bytes",
    "vm.dirty_ratio",
    "vm.hugetlb_shm_group",
    "vm.overcommit_memory",
    "vm.swappiness",
];

fn read(host: &Host, facts: &mut HostFacts) {
    let value = |name: &&str| {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        let text = host.text(&path).into_value()?;
        Some(((*name).to_owned(), text.trim().to_owned()))
    };
    let values: BTreeMap<String, String> = NAMES.iter().filter_map(value).collect();
    facts.sysctls = if values.is_empty() {
        Absent("none of them can be read here: /proc/sys".to_owned())
    } else {
        Present(values)
    };
}
