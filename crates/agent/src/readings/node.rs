//! What is told of the node, and of the agent itself.

use super::database::float;
use super::taxes::severity;
use crate::catalogue::{
    BESIDE_TRIAL, NODE, NODE_CPU, NODE_FINDING, NODE_MEMORY, NODE_UNMEASURED, OWN_CPU, OWN_MEMORY,
    OWN_TRACING, POOL_PAGES, WINDOW, WINDOW_END, WINDOWS,
};
use crate::sample::{Sample, Samples};
use std::collections::BTreeSet;
use untax_core::host::{CpuTime, HostFacts};
use untax_core::{Check, Window};

/// The samples of the node.
pub(crate) fn of_node(window: &Window, check: &Check) -> Vec<Sample> {
    let mut samples = Samples::default();
    let host = &check.host;
    facts(&mut samples, host);
    cpus(&mut samples, &window.start.host, host);
    pools(&mut samples, host);
    if let Some(memory) = host.memory.value() {
        samples.add(&NODE_MEMORY, &["total"], memory.total_bytes.0 as f64);
        samples.add_reading(&NODE_MEMORY, &["available"], float(&memory.available_bytes));
        samples.add_reading(&NODE_MEMORY, &["page_tables"], float(&memory.page_table_bytes));
    }
    let findings = check.findings.iter().map(|found| (found.rule.as_str(), severity(found)));
    for (rule, severity) in findings.collect::<BTreeSet<_>>() {
        samples.add(&NODE_FINDING, &[rule, severity], 1.0);
    }
    let gaps = check.unmeasured.iter().map(|gap| (gap.rule.as_str(), gap.id.as_str()));
    for (rule, id) in gaps.collect::<BTreeSet<_>>() {
        samples.add(&NODE_UNMEASURED, &[rule, id], 1.0);
    }
    samples.0
}

/// The samples of the agent; `beside` are the commands whose trials overlap the window.
pub(crate) fn of_agent(check: &Check, beside: &BTreeSet<String>) -> Vec<Sample> {
    let mut samples = Samples::default();
    let result = if beside.is_empty() { "checked" } else { "beside-trial" };
    samples.add(&WINDOWS, &[result], 1.0);
    for command in beside {
        samples.add(&BESIDE_TRIAL, &[command], 1.0);
    }
    if let Some(own) = check.own.value() {
        samples.add(&OWN_CPU, &[], own.cpu_s.0);
        samples.add_reading(&OWN_TRACING, &[], own.tracing_s.clone().map(|spent_s| spent_s.0));
        samples.add(&OWN_MEMORY, &[], own.rss_bytes.0 as f64);
    }
    samples.add(&WINDOW, &[], check.window_s);
    samples.add(&WINDOW_END, &[], check.taken_at.as_millisecond() as f64 / 1e3);
    samples.0
}

fn facts(samples: &mut Samples, host: &HostFacts) {
    let kernel = host.kernel.value();
    let [release, arch] =
        kernel.map_or(["", ""], |kernel| [kernel.release.as_str(), kernel.arch.as_str()]);
    let distribution = host.distribution.value().map_or("", |it| it.name.as_str());
    let virtualization = host.virtualization.value().map_or("", String::as_str);
    let cpu = host.cpu.value().map_or("", |cpu| cpu.model.as_str());
    let thp = host.thp.value().map_or("", |thp| thp.mode());
    let machine_id = host.machine_id.value().map_or("", String::as_str);
    let labels = [release, arch, distribution, virtualization, cpu, thp, machine_id];
    samples.add(&NODE, &labels, 1.0);
}

fn cpus(samples: &mut Samples, start: &HostFacts, end: &HostFacts) {
    let Some((start, end)) = start.cpu_time.value().zip(end.cpu_time.value()) else { return };
    let modes = |time: &CpuTime| [time.busy_s, time.idle_s, time.steal_s];
    for ((mode, start_s), end_s) in
        ["busy", "idle", "steal"].iter().zip(modes(start)).zip(modes(end))
    {
        samples.add(&NODE_CPU, &[mode], (end_s - start_s).0);
    }
}

/// The pools of the whole host. A series for each of its NUMA nodes would be many.
fn pools(samples: &mut Samples, host: &HostFacts) {
    let pools = host.hugepages.value().into_iter().flatten();
    for pool in pools.filter(|pool| pool.node.is_none()) {
        let size = pool.size_bytes.0.to_string();
        let states = [
            ("total", &pool.total),
            ("free", &pool.free),
            ("reserved", &pool.reserved),
            ("surplus", &pool.surplus),
        ];
        for (state, pages) in states {
            let pages = pages.clone().map(|pages| pages as f64);
            samples.add_reading(&POOL_PAGES, &[&size, state], pages);
        }
    }
}
