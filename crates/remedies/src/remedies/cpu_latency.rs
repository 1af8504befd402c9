//! `cpu-latency`: idle CPUs sleep in no state that takes long to leave, by a limit on their latency (`PM QoS`).
//!
//! Where the databases may use some CPUs alone, each of these has a limit of its own. Otherwise a unit of
//! systemd holds the limit of all CPUs: it ends when the unit is stopped. In a guest with the haltpoll governor
//! a limit of nothing at all (`n/a`) is the one that counts: such a CPU never halts (`haltpoll_select` of
//! drivers/cpuidle/governors/haltpoll.c). Sources: kernel.org, `power/pm_qos_interface` and
//! admin-guide/pm/cpuidle; `cpu_latency_qos_write` of kernel/power/qos.c takes hexadecimal digits.

use crate::case::Case;
use crate::managed;
use crate::own_cpus::{self, Setting};
use crate::remedy::{Draft, Remedy};
use std::collections::BTreeSet;
use untax_core::idle::SHALLOW_US;
use untax_core::plan::{Effect, Step, Target, Task, Warning};

pub const REMEDY: Remedy = Remedy {
    id: "cpu-latency",
    summary: "how long idle CPUs may take to wake up: of the databases' CPUs where they are pinned",
    answers: &["cpu-latency", "halt-poll"],
    plan,
};

/// No latency at all, in the file of one CPU.
const NONE_AT_ALL: &str = "n/a";

/// The unit that holds the limit of all CPUs.
pub const UNIT: &str = "untax-cpu-latency.service";

fn plan(case: &Case) -> Draft {
    if keeps_own_awake(case) {
        return for_own(case, NONE_AT_ALL);
    }
    if polls(case) {
        return Draft::default();
    }
    if own(case).is_some() {
        return for_own(case, &SHALLOW_US.to_string());
    }
    for_all(case)
}

/// Whether the finding is about a guest that could poll.
fn polls(case: &Case) -> bool {
    case.findings.iter().any(|(_, finding)| finding.remedy.as_deref() == Some("halt-poll"))
}

/// Whether this remedy keeps the databases' own CPUs of a guest from halting: they have some, and a limit of
/// their own can be set.
pub fn keeps_own_awake(case: &Case) -> bool {
    polls(case) && own(case).is_some()
}

/// The databases' own CPUs, where each can have a limit.
fn own(case: &Case) -> Option<BTreeSet<u32>> {
    let limits = case.snapshot.host.power_limits.value()?;
    limits.of_cpus.value()?;
    own_cpus::pinned(&case.snapshot.host, case.concerned())
}

/// A limit of `0` is none; `n/a` is the strictest.
fn is_looser(limit: &str, wanted: &str) -> bool {
    let number = |limit: &str| match limit {
        NONE_AT_ALL => Some(0),
        "0" => Some(u64::MAX),
        us => us.parse().ok(),
    };
    number(limit).zip(number(wanted)).is_some_and(|(now, wanted)| now > wanted)
}

fn for_own(case: &Case, to: &str) -> Draft {
    let limits = case.snapshot.host.power_limits.value();
    let (Some(cpus), Some(limits)) = (own(case), limits) else { return Draft::default() };
    let setting = |cpu: &u32| {
        let from = limits.of_cpu(*cpu).filter(|now| is_looser(now, to))?;
        Some(Setting {
            id: format!("{}-{cpu}", REMEDY.id),
            what: format!("longest latency of CPU {cpu}, us (0: any)"),
            file: format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us"),
            from: from.to_owned(),
            to: to.to_owned(),
        })
    };
    let settings: Vec<Setting> = cpus.iter().filter_map(setting).collect();
    if settings.is_empty() {
        return Draft::default();
    }
    let databases = case.databases();
    let mut steps: Vec<Step> = settings.iter().map(|s| s.step(REMEDY.id, &databases)).collect();
    steps.push(own_cpus::at_boot(&settings, REMEDY.id, &databases));
    let warning =
        if to == NONE_AT_ALL { never_halt(settings.len()) } else { price(settings.len()) };
    Draft { steps, warnings: vec![warning], ..Draft::default() }
}

/// The price of CPUs that never halt.
fn never_halt(cpus: usize) -> Warning {
    Warning {
        id: "cpu-latency-price".to_owned(),
        refuses: false,
        text: format!(
            "the databases' own CPUs ({cpus}) then never halt: each takes a whole CPU of the host, busy \
             or not. Other CPUs are left as they are. guest_halt_poll_ns is cheaper where all CPUs of \
             this guest may poll"
        ),
    }
}

fn price(cpus: usize) -> Warning {
    Warning {
        id: "cpu-latency-price".to_owned(),
        refuses: false,
        text: format!(
            "idle CPUs ({cpus}) then stay in light sleep: it takes more power, and busy cores beside \
             them may lose turbo. Compare with untax verify before you keep it"
        ),
    }
}

/// The limit of all CPUs, held by a unit.
fn for_all(case: &Case) -> Draft {
    let host = &case.snapshot.host;
    let Some(limits) = host.power_limits.value().filter(|limits| limits.is_limitable()) else {
        return Draft::default();
    };
    if limits.latency_us.value().is_some_and(|limit| *limit <= SHALLOW_US) {
        return Draft::default();
    }
    let databases = case.databases();
    let cpus = own_cpus::online(host).map_or(0, |cpus| cpus.len());
    let warnings = vec![price(cpus)];
    if managed::of(case.snapshot).is_some() || !has_systemd(case) {
        let task = Task {
            remedy: REMEDY.id.to_owned(),
            summary: format!(
                "have a process hold a limit of {SHALLOW_US} us on the latency of all CPUs \
                 (/dev/cpu_dma_latency), as this unit of systemd would"
            ),
            databases,
            file: Some((UNIT.to_owned(), unit())),
        };
        return Draft { tasks: vec![task], warnings, ..Draft::default() };
    }
    Draft { steps: steps(&databases), warnings, ..Draft::default() }
}

/// Whether control groups are made by systemd.
fn has_systemd(case: &Case) -> bool {
    let groups = case.concerned().filter_map(|database| database.cgroup.value());
    let mut paths = groups.flat_map(|cgroup| cgroup.paths.values());
    let endings = [".slice", ".service", ".scope"];
    paths.any(|path| path.split('/').any(|part| endings.iter().any(|end| part.ends_with(end))))
}

fn unit() -> String {
    format!(
        "# Made by untax.\n[Unit]\nDescription=Limit of {SHALLOW_US} us on the latency of all CPUs\n\
         [Service]\n\
         ExecStart=/bin/sh -c 'exec 3>/dev/cpu_dma_latency; printf 0x{SHALLOW_US:x} >&3; exec sleep infinity'\n"
    )
}

fn steps(databases: &[String]) -> Vec<Step> {
    let step = |id: String, summary: String, target, to: String, effect| Step {
        id,
        remedy: REMEDY.id.to_owned(),
        summary,
        databases: databases.to_vec(),
        target,
        from: None,
        to: Some(to),
        refresh: Vec::new(),
        effect,
    };
    let file = format!("/etc/systemd/system/{UNIT}");
    let wants = "/etc/systemd/system/multi-user.target.d/90-untax-cpu-latency.conf";
    let reload = ["systemctl", "daemon-reload"].map(str::to_owned).to_vec();
    let define = step(
        format!("{}-unit", REMEDY.id),
        format!("{file}: a unit that holds the limit"),
        Target::File { file },
        unit(),
        Effect::Now,
    );
    vec![
        Step { refresh: reload, ..define },
        step(
            REMEDY.id.to_owned(),
            format!("longest latency of all CPUs: {SHALLOW_US} us while {UNIT} runs"),
            Target::Service { unit: UNIT.to_owned() },
            "active".to_owned(),
            Effect::Now,
        ),
        step(
            format!("{}-boot", REMEDY.id),
            format!("{wants}: the same after every boot"),
            Target::File { file: wants.to_owned() },
            format!("# Made by untax.\n[Unit]\nWants={UNIT}\n"),
            Effect::Reboot,
        ),
    ]
}
