//! Plans that keep CPUs awake or fast: whose CPUs, at what price, and where nothing is done.

#![expect(clippy::unwrap_used, reason = "a test's helpers panic as the test does")]

mod support;

use support::{check, gap, host, postgres, snapshot};
use untax_core::Reading::{Absent, Present};
use untax_core::database::Cgroup;
use untax_core::host::{CpuTime, HostFacts};
use untax_core::idle::{CpuFreq, FrequencyPolicy, HaltPoll, NO_LIMIT, PowerLimits};
use untax_core::plan::{Effect, Plan, Step, Target};
use untax_core::{Bytes, Database, Reading, Seconds, Snapshot};
use untax_remedies::{Wish, harms};

/// A host with four CPUs.
fn four_cpus(cmdline: &str) -> HostFacts {
    let time = CpuTime {
        busy_s: Seconds(1.0),
        interrupts_s: None,
        idle_s: Seconds(1.0),
        steal_s: Seconds(0.0),
    };
    HostFacts {
        each_cpu_time: Present((0..4).map(|cpu| (cpu, time)).collect()),
        ..host("debian", "12", Absent("not looked for".to_owned()), cmdline)
    }
}

/// A guest that halts at once.
fn guest(cmdline: &str, of_cpus: Reading<Vec<(u32, String)>>) -> HostFacts {
    HostFacts {
        haltpoll: Present(HaltPoll { poll_ns: 0, grow_start_ns: gap(), allow_shrink: gap() }),
        power_limits: limits(of_cpus),
        ..four_cpus(cmdline)
    }
}

fn limits(of_cpus: Reading<Vec<(u32, String)>>) -> Reading<PowerLimits> {
    let latency_us = Reading::absent(NO_LIMIT);
    Present(PowerLimits { latency_us, holders: Vec::new(), of_cpus })
}

/// A database in a unit of systemd that may use these CPUs.
fn on(cpus: &str) -> Database {
    let path = "/system.slice/postgresql.service".to_owned();
    Database {
        allowed_cpus: Present(cpus.to_owned()),
        cgroup: Present(Cgroup::unknown([("unified".to_owned(), path)].into(), "not read")),
        ..postgres(Bytes::from_mib(512))
    }
}

fn planned(host: HostFacts, cpus: &str, remedy: &str) -> (Snapshot, Plan) {
    let snapshot = snapshot(host, vec![on(cpus)]);
    let check = check(&snapshot, "a-rule", remedy);
    let plan = untax_remedies::plan("a-plan".to_owned(), &check, &snapshot, &Wish::default());
    (snapshot, plan.unwrap())
}

/// What a plan sets at once: the last parts of the file, from what to what.
fn writes(plan: &Plan) -> Vec<String> {
    let write = |step: &Step| {
        let Target::Value { file } = &step.target else { return None };
        let name: Vec<&str> = file.rsplit('/').take(3).collect();
        let name = format!("{}/{}/{}", name[2], name[1], name[0]);
        Some(format!("{name}: {} -> {}", step.from.as_deref()?, step.to.as_deref()?))
    };
    plan.steps.iter().filter_map(write).collect()
}

fn boot(plan: &Plan) -> Vec<&str> {
    let at_boot = plan.steps.iter().filter(|step| step.effect == Effect::Reboot);
    at_boot.flat_map(|step| step.to.as_deref().unwrap().lines().skip(1)).collect()
}

fn warned(plan: &Plan, id: &str) -> String {
    let mut warnings = plan.warnings.iter().filter(|warning| warning.id == id);
    warnings.next().map(|warning| warning.text.clone()).unwrap_or_default()
}

#[test]
fn a_guest_polls_now_and_after_a_boot_and_the_price_is_named() {
    let (_, plan) = planned(guest("quiet", gap()), "0-3", "halt-poll");
    assert_eq!(writes(&plan), ["haltpoll/parameters/guest_halt_poll_ns: 0 -> 200000"]);
    let file = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";
    assert_eq!(boot(&plan), [format!("w {file} - - - - 200000")]);
    assert!(warned(&plan, "halt-poll-price").contains("200 us of the host's CPU"), "{plan:#?}");
    assert!(plan.tasks.is_empty(), "{:?}", plan.tasks);
}

#[test]
fn a_command_line_that_decided_is_not_gone_against() {
    let word = "haltpoll.guest-halt-poll_ns=0";
    let (_, plan) = planned(guest(word, gap()), "0-3", "halt-poll");
    assert_eq!(writes(&plan).len(), 1);
    assert!(boot(&plan).is_empty(), "{plan:#?}");
    let text = warned(&plan, "halt-poll-decided");
    assert!(text.contains(word) && text.contains("Ask the owner of the host"), "{text}");
    assert!(plan.tasks[0].summary.contains("guest_halt_poll_ns=200000"), "{:?}", plan.tasks);
}

#[test]
fn a_parameter_that_is_high_enough_or_gone_leaves_nothing_to_set() {
    let polls = HaltPoll { poll_ns: 200_000, grow_start_ns: gap(), allow_shrink: gap() };
    for haltpoll in [Present(polls), gap()] {
        let host = HostFacts { haltpoll, ..guest("", gap()) };
        let (_, plan) = planned(host, "0-3", "halt-poll");
        assert!(plan.steps.is_empty(), "{plan:#?}");
        assert!(plan.tasks[0].summary.contains("a fix"), "a person is told: {:?}", plan.tasks);
    }
}

#[test]
fn a_pinned_database_of_a_guest_changes_its_own_cpus_alone() {
    let set = Present(vec![(2, "n/a".to_owned())]);
    let (_, plan) = planned(guest("", set), "1-2", "halt-poll");
    let expected = "cpu1/power/pm_qos_resume_latency_us: 0 -> n/a";
    assert_eq!(writes(&plan), [expected], "CPU 2 has it already");
    assert!(warned(&plan, "cpu-latency-price").contains("whole CPU of the host"), "{plan:#?}");
    // A kernel without limits for each CPU.
    let (_, plan) = planned(guest("", gap()), "1-2", "halt-poll");
    assert_eq!(writes(&plan), ["haltpoll/parameters/guest_halt_poll_ns: 0 -> 200000"]);
}

#[test]
fn deep_sleep_is_forbidden_on_the_cpus_of_a_pinned_database() {
    let set = Present(vec![(0, "3".to_owned()), (1, "50".to_owned())]);
    let host = HostFacts { power_limits: limits(set), ..four_cpus("") };
    let (_, plan) = planned(host, "0-2", "cpu-latency");
    let file = |cpu| format!("cpu{cpu}/power/pm_qos_resume_latency_us");
    let expected = [format!("{}: 50 -> 10", file(1)), format!("{}: 0 -> 10", file(2))];
    assert_eq!(writes(&plan), expected, "somebody asked for less on CPU 0");
    assert_eq!(boot(&plan).len(), 2);
    assert!(warned(&plan, "cpu-latency-price").contains("lose turbo"), "{plan:#?}");
}

#[test]
fn a_unit_that_can_be_stopped_holds_the_limit_of_all_cpus() {
    let host = || HostFacts { power_limits: limits(Present(Vec::new())), ..four_cpus("") };
    let (_, plan) = planned(host(), "0-3", "cpu-latency");
    let [define, start, wants] = &plan.steps[..] else { panic!("{plan:#?}") };
    let text = define.to.as_deref().unwrap();
    assert!(text.contains("printf 0xa >&3; exec sleep infinity"), "{text}");
    assert_eq!(define.refresh, ["systemctl", "daemon-reload"]);
    let unit = "untax-cpu-latency.service".to_owned();
    assert_eq!(start.target, Target::Service { unit: unit.clone() });
    assert_eq!((start.to.as_deref(), start.effect), (Some("active"), Effect::Now));
    assert_eq!(boot(&plan), ["[Unit]".to_owned(), format!("Wants={unit}")]);
    assert_eq!(wants.effect, Effect::Reboot);
    // Somebody holds a stricter one.
    let mut strict = host();
    if let Present(limits) = &mut strict.power_limits {
        limits.latency_us = Present(3);
    }
    assert!(planned(strict, "0-3", "cpu-latency").1.steps.is_empty());
    // No device, no limits at all, an API that keeps settings.
    let mut none = host();
    if let Present(limits) = &mut none.power_limits {
        limits.latency_us = Reading::absent("this kernel has no /dev/cpu_dma_latency");
    }
    for host in [none, four_cpus("")] {
        assert!(planned(host, "0-3", "cpu-latency").1.steps.is_empty());
    }
    let mut talos = host();
    if let Present(distribution) = &mut talos.distribution {
        "talos".clone_into(&mut distribution.id);
    }
    let (_, plan) = planned(talos, "0-3", "cpu-latency");
    assert!(plan.steps.is_empty() && plan.tasks[0].file.is_some(), "{plan:#?}");
}

fn policy(cpu: u32, governor: &str, preference: Reading<String>, max_khz: u64) -> FrequencyPolicy {
    FrequencyPolicy {
        name: format!("policy{cpu}"),
        cpus: cpu.to_string(),
        governor: Present(governor.to_owned()),
        preference,
        min_khz: Present(800_000),
        max_khz: Present(max_khz),
        hardware_max_khz: Present(3_500_000),
        base_khz: gap(),
        time_at: gap(),
    }
}

#[test]
fn the_governor_of_the_databases_cpus_is_for_speed() {
    let saving = || Present("balance_power".to_owned());
    let policies = vec![
        policy(0, "powersave", saving(), 3_500_000),
        policy(1, "performance", Present("performance".to_owned()), 2_100_000),
        policy(2, "schedutil", gap(), 3_500_000),
        policy(3, "powersave", saving(), 3_500_000),
    ];
    let freq = CpuFreq { driver: "intel_pstate".to_owned(), policies, turbo: gap() };
    let host = HostFacts { cpufreq: Present(freq), ..four_cpus("") };
    let (_, plan) = planned(host, "0-2", "cpu-governor");
    assert_eq!(
        writes(&plan),
        [
            "cpufreq/policy0/energy_performance_preference: balance_power -> performance",
            "cpufreq/policy0/scaling_governor: powersave -> performance",
            "cpufreq/policy1/scaling_max_freq: 2100000 -> 3500000",
            "cpufreq/policy2/scaling_governor: schedutil -> performance",
        ]
    );
    assert_eq!(boot(&plan).len(), 4);
    assert!(warned(&plan, "cpu-limit-decided").contains("ask the owner"), "{plan:#?}");
    assert!(!warned(&plan, "cpu-governor-price").is_empty());
}

#[test]
fn the_lint_refuses_other_cpus_looser_limits_and_units_of_others() {
    let (snapshot, plan) = planned(guest("", Present(Vec::new())), "1", "halt-poll");
    assert!(harms(&plan, &snapshot).is_empty());
    let step = |target, from: &str, to: &str| Step {
        target,
        from: Some(from.to_owned()),
        to: Some(to.to_owned()),
        ..plan.steps[0].clone()
    };
    let value = |file: &str, from, to| step(Target::Value { file: file.to_owned() }, from, to);
    let qos = |cpu, from, to| {
        value(&format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us"), from, to)
    };
    let poll = |from, to| value("/sys/module/haltpoll/parameters/guest_halt_poll_ns", from, to);
    let most =
        |from, to| value("/sys/devices/system/cpu/cpufreq/policy1/scaling_max_freq", from, to);
    let others = Target::Service { unit: "tuned.service".to_owned() };
    for (step, harm) in [
        (qos(0, "0", "n/a"), "CPUs that no database of it may use"),
        (qos(1, "n/a", "10"), "a value that harms"),
        (qos(1, "3", "10"), "a value that harms"),
        (qos(1, "10", "0"), "a value that harms"),
        (poll("0", "10000000"), "a value that harms"),
        (poll("200000", "0"), "a value that harms"),
        (most("3500000", "2100000"), "a value that harms"),
        (step(others, "", "active"), "a unit of others"),
    ] {
        let plan = Plan { steps: vec![step], ..plan.clone() };
        let found = harms(&plan, &snapshot);
        assert!(found.iter().any(|found| found.contains(harm)), "{harm}: {found:?}");
    }
}
