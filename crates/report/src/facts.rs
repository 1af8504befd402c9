//! Facts of the host and of a database in words: one place for both kinds of report.

use crate::format::{THIN, bytes, count, count_of, seconds, value_or_why};
use untax_core::check::{Checked, TimeShares};
use untax_core::database::{HugePageUse, Model, Settings};
use untax_core::host::{
    Cpu, Distribution, HostFacts, Kernel, Memory, NumaNode, Pool, Thp, Tlb, tlb_reach,
};
use untax_core::io::{Behind, Device};
use untax_core::network::ClientNetwork;
use untax_core::{Calibration, Interval, Io, Reading, Seconds};

/// A fact with its name, or why it is not known.
pub struct Fact {
    /// What it is.
    pub name: &'static str,
    /// What is known of it.
    pub value: Reading<String>,
}

fn fact(name: &'static str, value: Reading<String>) -> Fact {
    Fact { name, value }
}

fn map_text<T>(reading: &Reading<T>, f: impl FnOnce(&T) -> String) -> Reading<String> {
    reading.as_ref().map(f)
}

/// Everything known of the host, for a table.
pub fn host(host: &HostFacts) -> Vec<Fact> {
    vec![
        fact("Processor", map_text(&host.cpu, cpu_in_full)),
        fact("Hardware counters", host.cpu.as_ref().and_then(|cpu| cpu.pmu.clone())),
        fact("TLB", map_text(&host.tlb, |tlb| join(tlb.iter().map(tlb_line)))),
        fact("TLB reach", reach_of_all(host)),
        fact("Base page", map_text(&host.base_page_bytes, |b| bytes(*b))),
        fact(
            "Page sizes",
            map_text(&host.page_sizes_bytes, |all| join(all.iter().map(|b| bytes(*b)))),
        ),
        fact("Huge-page pools", map_text(&host.hugepages, |pools| pools_in_full(pools))),
        fact("Transparent huge pages", map_text(&host.thp, thp_in_full)),
        fact(
            "They are set by",
            map_text(&host.thp_set_by, |by| {
                format!("{}, profile {}: {} ({})", by.program, by.active, by.mode, by.file)
            }),
        ),
        fact("Memory", map_text(&host.memory, memory_in_full)),
        fact("NUMA", map_text(&host.numa, |nodes| join(nodes.iter().map(node)))),
        fact("Kernel", map_text(&host.kernel, |k| format!("{} ({})", k.release, k.arch))),
        fact("Boot parameters", host.kernel.as_ref().and_then(parameters)),
        fact("Distribution", map_text(&host.distribution, distribution)),
        fact("Virtualisation", host.virtualization.clone()),
        fact(
            "Control groups",
            host.cgroup_version.as_ref().and_then(|version| {
                map_text(&host.cgroup, |c| {
                    let counted =
                        if c.memory_hugetlb_accounting { "count" } else { "do not count" };
                    format!("{version}; huge pages {counted} in memory limits")
                })
            }),
        ),
    ]
}

/// The host in one line's worth of segments.
pub fn host_line(host: &HostFacts) -> Vec<String> {
    let name = host.hostname.value().filter(|name| !name.is_empty());
    let mut line: Vec<String> = name.cloned().into_iter().collect();
    line.extend([
        value_or_why(&host.cpu, |c| short_model(&c.model)),
        value_or_why(&host.cpu, |c| count_of(c.logical.into(), "CPU")),
        value_or_why(&host.memory, |m| bytes(m.total_bytes)),
        format!("kernel{THIN}{}", value_or_why(&host.kernel, |k| k.release.clone())),
    ]);
    line.extend(host.virtualization.value().filter(|v| *v != "none").cloned());
    line.dedup();
    let reach = reach_of_all(host);
    line.push(format!("TLB reach {}", value_or_why(&reach, Clone::clone)));
    match &host.hugepages {
        Reading::Present(pools) => {
            line.extend(pools.iter().filter(|p| p.node.is_none()).map(pool_in_short));
        }
        _ => line.push("huge-page pools not known".to_owned()),
    }
    line.push(format!("THP {}", value_or_why(&host.thp, |t| t.enabled.clone())));
    line
}

/// Everything known of a database, for a table.
pub fn database(db: &Checked) -> Vec<Fact> {
    let memory = &db.memory;
    let mut facts = vec![
        fact("Main process", Reading::Present(format!("pid {}", db.pid))),
        fact("Data directory", db.data_directory.clone()),
        fact("Serves clients by", Reading::Present(model(db.model).to_owned())),
        fact("Processes", Reading::Present(count(db.processes.into()))),
        fact("Connections", map_text(&db.connections, |n| count((*n).into()))),
        fact("Clients over TCP", clients(&db.network)),
        fact("Between two requests", between_requests(&db.network)),
        fact("Shared memory", map_text(&memory.shared_bytes, |b| bytes(*b))),
        fact("On pages of", map_text(&memory.page_size_bytes, |b| bytes(*b))),
        fact("Page tables", map_text(&memory.page_table_bytes, |b| bytes(*b))),
        fact("Resident", map_text(&memory.resident_bytes, |b| bytes(*b))),
        fact("From a huge-page pool", map_text(&memory.hugetlb_bytes, |b| bytes(*b))),
        fact("Transparent huge pages", map_text(&memory.anon_huge_bytes, |b| bytes(*b))),
        fact("Huge pages asked for", map_text(&db.huge_pages, huge_pages)),
        fact("Settings read from", map_text(&db.settings, settings_source)),
    ];
    if let Some(unit) = &db.unit {
        facts.insert(1, fact("Unit", Reading::Present(unit.clone())));
    }
    if let Some(container) = &db.container {
        let named = format!("{} ({})", container.id, container.runtime);
        facts.insert(1, fact("Container", Reading::Present(named)));
    }
    if let Some(pod) = &db.pod {
        facts.insert(1, fact("Pod", Reading::Present(format!("{} ({})", pod.uid, pod.qos))));
    }
    if !db.name.is_empty() {
        facts.insert(0, fact("Name", Reading::Present(db.name.clone())));
    }
    facts
}

/// Its clients' connections and their round trips.
fn clients(network: &ClientNetwork) -> Reading<String> {
    let rtt = |us: &Reading<f64>| value_or_why(us, |us| seconds(Seconds(us * 1e-6)));
    map_text(&network.client_connections, |connections| {
        let (p50, p99) = (rtt(&network.client_rtt_us_p50), rtt(&network.client_rtt_us_p99));
        let again = value_or_why(&network.client_retransmits, |n| count(*n));
        let all = count_of((*connections).into(), "connection");
        format!("{all}, round trip {p50} (99 %: {p99}), {again} segments sent again")
    })
}

/// What the time between an answer and the next request is made of.
fn between_requests(network: &ClientNetwork) -> Reading<String> {
    let part = |us: &Interval| {
        let [mid, low, high] = [us.mid, us.low, us.high].map(|us| seconds(Seconds(us * 1e-6)));
        format!("{mid} ({low}–{high}, modelled)")
    };
    network.idle_per_request_us.as_ref().and_then(|idle| {
        network.client_per_request_us.as_ref().and_then(|client| {
            map_text(&network.network_per_request_us, |on_the_way| {
                let idle = seconds(Seconds(idle * 1e-6));
                format!("{idle}: network {}, client {}", part(on_the_way), part(client))
            })
        })
    })
}

/// What names a database: product, version and process.
pub fn name(db: &Checked) -> String {
    db.version.value().map_or_else(|| db.product.clone(), |v| format!("{} {v}", db.product))
}

/// What a database is, in one line's worth of segments, its name left out.
pub fn database_line(db: &Checked) -> Vec<String> {
    let mut line: Vec<String> =
        Some(db.name.clone()).filter(|name| !name.is_empty()).into_iter().collect();
    line.push(format!("pid{THIN}{}", db.pid));
    line.extend(db.unit.clone());
    if let Some(container) = &db.container {
        let id: String = container.id.chars().take(12).collect();
        line.push(format!("container {id}"));
    }
    line.push(match &db.connections {
        Reading::Present(n) => count_of((*n).into(), "connection"),
        _ => "connections not known".to_owned(),
    });
    if db.processes > 1 {
        line.push(format!("{}{THIN}processes", count(db.processes.into())));
    }
    let memory = &db.memory;
    let kind = if db.model == Model::Process { "shared" } else { "cached" };
    line.push(match (&memory.shared_bytes, &memory.page_size_bytes) {
        (Reading::Present(size), Reading::Present(page)) => {
            format!("{} {kind} on {} pages", bytes(*size), bytes(*page))
        }
        (Reading::Present(size), _) => format!("{} {kind}", bytes(*size)),
        _ => "memory not known".to_owned(),
    });
    line.extend(memory.page_table_bytes.value().map(|b| format!("{} page tables", bytes(*b))));
    let place = db.data_directory.value().filter(|place| !db.name.ends_with(place.as_str()));
    line.extend(place.map(|place| format!("data in {place}")));
    line
}

/// Where the time went: name, and share of the active time once that is known.
pub fn time(time: &TimeShares) -> Vec<(&'static str, &Reading<Seconds>)> {
    vec![
        ("On a CPU", &time.on_cpu_s),
        ("Of it in page faults", &time.minor_faults_s),
        ("Waiting for a CPU", &time.runnable_s),
        ("Held back by a CPU limit", &time.throttled_s),
        ("Waiting for a CPU that slept", &time.wake_up_s),
        ("Disk", &time.disk_s),
        ("Reclaiming memory", &time.reclaim_s),
        ("Lock", &time.lock_s),
        ("Network", &time.network_s),
        ("Unknown, perhaps active", &time.unaccounted_s),
        ("Idle", &time.idle_s),
    ]
}

/// A time with its share of the active time.
pub fn time_share(part: Seconds, active: Option<Seconds>) -> String {
    match active {
        Some(Seconds(all)) if all > 0.0 => {
            format!("{} ({})", seconds(part), crate::format::percent(part.0 / all))
        }
        _ => seconds(part),
    }
}

fn model(model: Model) -> &'static str {
    match model {
        Model::Process => "a process for each connection",
        Model::Thread => "threads of one process",
        Model::Loop => "one loop for all connections",
        Model::Unknown => "not known",
    }
}

fn huge_pages(wish: &HugePageUse) -> String {
    let need = match (wish.needed_pages.value(), wish.size_bytes.value()) {
        (Some(n), Some(size)) => format!(", needs {} pages of {}", count(*n), bytes(*size)),
        (Some(n), None) => format!(", needs {} pages", count(*n)),
        _ => String::new(),
    };
    format!("{}{need} ({})", wish.asked, wish.source)
}

fn settings_source(settings: &Settings) -> String {
    match settings.instead_of.as_str() {
        "" => settings.source.clone(),
        why => format!("{} ({why})", settings.source),
    }
}

/// The processor's name without trademark signs and the word CPU.
pub fn short_model(model: &str) -> String {
    let plain = model.replace("(R)", "").replace("(TM)", "").replace("(tm)", "");
    plain.split_whitespace().filter(|w| *w != "CPU").collect::<Vec<_>>().join(" ")
}

fn cpu_in_full(cpu: &Cpu) -> String {
    let mut parts = vec![short_model(&cpu.model), count_of(cpu.logical.into(), "CPU")];
    parts.extend(cpu.cores.value().map(|n| count_of((*n).into(), "core")));
    parts.extend(cpu.sockets.value().map(|n| count_of((*n).into(), "socket")));
    let cache = cpu.last_level_cache_bytes.value();
    parts.extend(cache.map(|b| format!("{} last-level cache", bytes(*b))));
    parts.join(", ")
}

fn tlb_line(tlb: &Tlb) -> String {
    let sizes: Vec<_> = tlb.page_sizes_bytes.iter().map(|b| bytes(*b)).collect();
    format!("L{} {}: {} × {}", tlb.level, tlb.kind, count(tlb.entries.into()), sizes.join(" or "))
}

fn reach_of_all(host: &HostFacts) -> Reading<String> {
    let sizes = host.page_sizes_bytes.value().map(Vec::as_slice).unwrap_or_default();
    host.tlb.as_ref().and_then(|tlb| {
        let each: Vec<_> = sizes
            .iter()
            .filter_map(|page| Some((*page, tlb_reach(tlb, *page)?)))
            .map(|(page, reach)| format!("{} on {}", bytes(reach), bytes(page)))
            .collect();
        if each.is_empty() {
            Reading::Absent("the processor does not describe its data TLB".to_owned())
        } else {
            Reading::Present(format!("{} pages", each.join(", ")))
        }
    })
}

/// Every pool; those of a single node say nothing that the sums do not.
fn pools_in_full(pools: &[Pool]) -> String {
    let several = pools.iter().any(|p| p.node.is_some_and(|n| n > 0));
    join(pools.iter().filter(|p| several || p.node.is_none()).map(pool))
}

fn pool(pool: &Pool) -> String {
    let place = pool.node.map_or(String::new(), |n| format!(" on node {n}"));
    let counts = [("free", &pool.free), ("reserved", &pool.reserved), ("surplus", &pool.surplus)];
    let rest: Vec<_> =
        counts.iter().filter_map(|(w, n)| Some(format!("{} {w}", count(*n.value()?)))).collect();
    let size = bytes(pool.size_bytes);
    let total = value_or_why(&pool.total, |n| count_of(*n, "page"));
    format!("{size}{place}: {total} ({})", rest.join(", "))
}

fn pool_in_short(pool: &Pool) -> String {
    let size = bytes(pool.size_bytes);
    match (pool.total.value(), pool.free.value()) {
        (Some(0), _) => format!("{size} pool empty"),
        (Some(total), Some(free)) => {
            format!("{size} pool {}, {} free", count_of(*total, "page"), count(*free))
        }
        (Some(total), None) => format!("{size} pool {}", count_of(*total, "page")),
        _ => format!("{size} pool not known"),
    }
}

fn thp_in_full(thp: &Thp) -> String {
    let mut parts = vec![thp.enabled.clone()];
    parts.extend(thp.defrag.value().map(|v| format!("defrag {v}")));
    parts.extend(thp.shmem_enabled.value().map(|v| format!("shared memory {v}")));
    parts.extend(thp.pmd_bytes.value().map(|b| format!("page of {}", bytes(*b))));
    let by_size = thp.sizes.value().into_iter().flatten();
    parts.extend(by_size.map(|s| format!("{} {}", bytes(s.size_bytes), s.enabled)));
    let none = thp.khugepaged_max_ptes_none.value();
    parts.extend(none.map(|pages| format!("max_ptes_none {pages}")));
    parts.join(", ")
}

fn memory_in_full(memory: &Memory) -> String {
    let mut parts = vec![bytes(memory.total_bytes)];
    let readings = [
        ("available", &memory.available_bytes),
        ("page tables", &memory.page_table_bytes),
        ("in huge-page pools", &memory.hugetlb_bytes),
        ("anonymous on THP", &memory.anon_huge_bytes),
        ("shared on THP", &memory.shmem_huge_bytes),
        ("swap", &memory.swap_total_bytes),
    ];
    parts.extend(readings.iter().filter_map(|(n, b)| Some(format!("{} {n}", bytes(*b.value()?)))));
    parts.join(", ")
}

fn node(node: &NumaNode) -> String {
    let size = value_or_why(&node.total_bytes, |b| bytes(*b));
    format!("node {}: CPUs {}, {size}", node.node, value_or_why(&node.cpus, Clone::clone))
}

fn parameters(kernel: &Kernel) -> Reading<String> {
    map_text(&kernel.parameters, |all| {
        if all.is_empty() {
            "none about memory, CPUs or isolation".to_owned()
        } else {
            all.join(" ")
        }
    })
}

fn distribution(d: &Distribution) -> String {
    format!("{}, boot loader {}", d.name, value_or_why(&d.boot_loader, Clone::clone))
}

fn join(parts: impl Iterator<Item = String>) -> String {
    let all = parts.collect::<Vec<_>>().join(" · ");
    if all.is_empty() { "none".to_owned() } else { all }
}

/// What faults and touches cost here: what, and how much with its interval.
pub fn penalties(calibration: &Calibration) -> Vec<(String, String)> {
    let mut costs = vec![("minor fault, read".to_owned(), nanoseconds(calibration.minor_fault_ns))];
    let write = calibration.write_fault_ns.map(nanoseconds);
    costs.extend(write.map(|cost| ("minor fault, write".to_owned(), cost)));
    let unmap = calibration.unmap_ns.map(nanoseconds);
    costs.extend(unmap.map(|cost| ("unmapping it".to_owned(), cost)));
    costs.extend(calibration.touches.iter().map(|t| {
        let turns = if t.taking_turns { ", taking turns" } else { "" };
        let what = format!("touch within {}{turns}, extra on 4k", bytes(t.working_set_bytes));
        (what, nanoseconds(t.extra_ns))
    }));
    let missing = calibration.touches_missing.clone();
    costs.extend(missing.map(|why| ("touch, extra on 4k".to_owned(), why)));
    costs
}

/// Nanoseconds with their interval, such as `620 ns (580–660)`.
fn nanoseconds(i: Interval) -> String {
    let decimals = usize::from(i.mid.abs() < 10.0);
    format!("{:.decimals$}{THIN}ns ({:.decimals$}–{:.decimals$})", i.mid, i.low, i.high)
}

/// What a device is, in short parts.
pub fn device_line(device: &Device) -> Vec<String> {
    let mut parts = vec![match &device.behind {
        Behind::Local => "local".to_owned(),
        Behind::Loop => "a file".to_owned(),
        Behind::Mapped => "made of other devices".to_owned(),
        Behind::Copied => "made of other devices, encrypted or with parity".to_owned(),
        Behind::Network(what) => format!("behind a network: {what}"),
        Behind::Memory => "memory".to_owned(),
    }];
    parts.extend(device.model.value().cloned());
    parts.extend(device.mounts.iter().map(|m| format!("{} on {}", m.filesystem, m.point)));
    parts.extend(device.scheduler.value().map(|name| format!("scheduler {name}")));
    parts.push(match &device.counted {
        Reading::Present(counted) => format!("busy {}", crate::format::percent(counted.busy)),
        gap => format!("busy {}: {}", crate::format::NOT_MEASURED, gap.why().unwrap_or_default()),
    });
    parts
}

/// The disks in a line each, those that did most for databases first: how busy, and what for.
pub fn disk_lines(io: &Io) -> Vec<Vec<String>> {
    let flows = || io.flows.value().into_iter().flatten().filter(|flow| flow.database.is_some());
    let of = |name: &str| {
        let mut own: Vec<_> = flows().filter(|flow| flow.device == name).collect();
        own.sort_by_key(|flow| std::cmp::Reverse(flow.requests));
        own
    };
    let mut devices: Vec<_> = io.devices.iter().filter(|d| !of(&d.name).is_empty()).collect();
    devices.sort_by_key(|device| {
        std::cmp::Reverse(of(&device.name).iter().map(|flow| flow.requests).sum::<u64>())
    });
    let line = |device: &&Device| {
        let busy = match &device.counted {
            Reading::Present(counted) => format!("busy {}", crate::format::percent(counted.busy)),
            gap => format!("({})", gap.why().unwrap_or_default()),
        };
        let mut line = vec![format!("{} {busy}", device.name)];
        line.extend(of(&device.name).into_iter().take(3).map(|flow| {
            let rate = flow.requests as f64 / io.window_s.0.max(f64::MIN_POSITIVE);
            let (rate, mean) = (crate::format::number(rate), seconds(flow.latency.mean_s));
            format!("{} {} {rate}/s {mean}", flow.role.name(), flow.direction.name())
        }));
        line
    };
    devices.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_lose_their_trademarks() {
        assert_eq!(short_model("Intel(R) Xeon(R) CPU @ 2.80GHz"), "Intel Xeon @ 2.80GHz");
    }
}
