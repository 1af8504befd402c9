//! Limits of control groups, and of the systemd units that some of them are: golden steps, and the
//! files as they were afterwards, byte for byte.

#![expect(clippy::unwrap_used, reason = "a test's helpers panic as the test does")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use support::{check, gap, host, postgres, shown, snapshot};
use untax_changes::{ExecutorError, Tree, apply, undo};
use untax_core::Reading::{Absent, Present};
use untax_core::database::{Cgroup, CpuLimit, MemoryGroup};
use untax_core::finding::Tax;
use untax_core::host::{CgroupLayout, CgroupMount, Cpu};
use untax_core::plan::{Plan, Step, Target};
use untax_core::receipt::{Header, SCHEMA};
use untax_core::{Bytes, Database, Interval, Seconds};
use untax_remedies::Wish;

const UNIT: &str = "/system.slice/system-postgresql.slice/postgresql@15-main.service";

/// The plan for a database in this group of cgroup v2, which may use 1.5 CPUs and 1 GiB and loses
/// a quarter of its time.
fn plan_for(cgroup: &str, rule: &str, remedy: &str) -> Plan {
    plan_where_losing(&[0.25], cgroup, rule, remedy)
}

/// The same for databases that share it and lose so much of their time each.
fn plan_where_losing(shares: &[f64], cgroup: &str, rule: &str, remedy: &str) -> Plan {
    let mut host = host("debian", "12", Absent("not looked for".to_owned()), "");
    let mount = CgroupMount {
        controllers: vec!["unified".to_owned()],
        path: "/sys/fs/cgroup".to_owned(),
        root: "/".to_owned(),
    };
    host.cgroup = Present(CgroupLayout { mounts: vec![mount], memory_hugetlb_accounting: false });
    host.cpu = Present(Cpu::unknown(8, "not read"));
    let mut database = postgres(Bytes::from_mib(512));
    database.cgroup = Present(Cgroup {
        memory_limit_bytes: Present(Bytes(1 << 30)),
        cpu: Present(vec![CpuLimit {
            cgroup: cgroup.to_owned(),
            cpus: 1.5,
            period_s: Seconds(0.1),
            periods: gap(),
            throttled_periods: gap(),
        }]),
        memory: Present(vec![MemoryGroup {
            high_bytes: Present(Bytes(1 << 30)),
            ..MemoryGroup::unknown(cgroup, "not read")
        }]),
        ..Cgroup::unknown([("unified".to_owned(), cgroup.to_owned())].into(), "not read")
    });
    let each = (4012..).zip(shares);
    let each =
        each.map(|(pid, _)| Database { pid, id: format!("postgres:{pid}"), ..database.clone() });
    let snapshot = snapshot(host, each.collect());
    let mut check = check(&snapshot, rule, remedy);
    for (checked, share) in check.databases.iter_mut().zip(shares) {
        let share = Interval { low: 0.2, mid: *share, high: 0.3 };
        checked.findings[0].tax = Some(Tax::new(share, "traced"));
    }
    untax_remedies::plan("a-plan".to_owned(), &check, &snapshot, &Wish::default()).unwrap()
}

fn cpu(cgroup: &str) -> Plan {
    plan_for(cgroup, "cpu-throttled", "cpu-limit")
}

#[test]
fn a_unit_is_told_what_its_group_is_told() {
    insta::with_settings!({
        snapshot_path => "limits",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!("cpu", shown(&cpu(UNIT), "cpu-limit"));
        let memory = plan_for(UNIT, "reclaim-stall", "memory-limit");
        insta::assert_snapshot!("memory", shown(&memory, "memory-limit"));
        insta::assert_snapshot!("slice", shown(&cpu("/databases.slice"), "cpu-limit"));
        insta::assert_snapshot!("plain", shown(&cpu("/databases/one"), "cpu-limit"));
    });
}

#[test]
fn databases_that_share_a_limit_share_its_step() {
    let plan = |shares: &[f64]| plan_where_losing(shares, UNIT, "cpu-throttled", "cpu-limit");
    let both = plan(&[0.25, 0.25]);
    assert_eq!(both.steps.len(), cpu(UNIT).steps.len());
    assert!(both.steps.iter().all(|s| s.databases == ["postgres:4012", "postgres:4013"]));
    assert!(both.warnings.is_empty(), "{:?}", both.warnings);
    let differing = plan(&[0.25, 0.5]);
    assert!(differing.warnings.is_empty(), "{:?}", differing.warnings);
    assert_eq!(
        differing.steps[0].to.as_deref(),
        Some("450000 100000"),
        "what the one wants that lost most"
    );
}

/// The plan for databases in groups that are limited to so many CPUs, the nearest first, which lose three
/// quarters of their time each, on a machine with so many CPUs.
fn nested(databases: &[&[(&str, f64)]], logical: u32, v1: bool) -> Plan {
    let mut host = host("debian", "12", Absent("not looked for".to_owned()), "");
    let (controller, path) =
        if v1 { ("cpu", "/sys/fs/cgroup/cpu") } else { ("unified", "/sys/fs/cgroup") };
    let mount = CgroupMount {
        controllers: vec![controller.to_owned()],
        path: path.to_owned(),
        root: "/".to_owned(),
    };
    host.cgroup = Present(CgroupLayout { mounts: vec![mount], memory_hugetlb_accounting: false });
    host.cpu = Present(Cpu::unknown(logical, "not read"));
    let limit = |(cgroup, cpus): &(&str, f64)| CpuLimit {
        cgroup: (*cgroup).to_owned(),
        cpus: *cpus,
        period_s: Seconds(0.1),
        periods: gap(),
        throttled_periods: gap(),
    };
    let database = |(pid, limits): (u32, &&[(&str, f64)])| Database {
        pid,
        id: format!("postgres:{pid}"),
        cgroup: Present(Cgroup {
            cpu: Present(limits.iter().map(limit).collect()),
            ..Cgroup::unknown([(controller.to_owned(), limits[0].0.to_owned())].into(), "not read")
        }),
        ..postgres(Bytes::from_mib(512))
    };
    let snapshot = snapshot(host, (4012..).zip(databases).map(database).collect());
    let mut check = check(&snapshot, "cpu-throttled", "cpu-limit");
    for checked in &mut check.databases {
        checked.findings[0].tax = Some(Tax::new(Interval::new(0.7, 0.75, 0.8), "traced"));
    }
    untax_remedies::plan("a-plan".to_owned(), &check, &snapshot, &Wish::default()).unwrap()
}

fn limits_of(plan: &Plan) -> Vec<String> {
    let line = |step: &Step| match &step.target {
        Target::Value { file } => {
            let name = file.trim_start_matches("/sys/fs/cgroup");
            format!("{name}: {} -> {}", step.from.as_ref().unwrap(), step.to.as_ref().unwrap())
        }
        other => format!("{other:?}"),
    };
    plan.steps.iter().map(line).collect()
}

#[test]
fn every_limit_on_the_way_is_raised_the_outermost_first() {
    let way: &[(&str, f64)] = &[("/rep/pg", 0.6), ("/rep", 0.6)];
    assert_eq!(
        limits_of(&nested(&[way], 16, true)),
        [
            "/cpu/rep/cpu.cfs_quota_us: 60000 -> 400000",
            "/cpu/rep/pg/cpu.cfs_quota_us: 60000 -> 400000"
        ]
    );
    assert_eq!(
        limits_of(&nested(&[way], 2, true)),
        ["/cpu/rep/cpu.cfs_quota_us: 60000 -> -1", "/cpu/rep/pg/cpu.cfs_quota_us: 60000 -> -1"],
        "all that the machine has is no limit"
    );
    let far_above: &[(&str, f64)] = &[("/rep/pg", 0.6), ("/rep", 8.0)];
    assert_eq!(
        limits_of(&nested(&[far_above], 16, false)),
        ["/rep/pg/cpu.max: 60000 100000 -> 400000 100000"]
    );
    let loose_inside: &[(&str, f64)] = &[("/rep/pg", 2.0), ("/rep", 0.6)];
    assert_eq!(
        limits_of(&nested(&[loose_inside], 16, false)),
        [
            "/rep/cpu.max: 60000 100000 -> 400000 100000",
            "/rep/pg/cpu.max: 200000 100000 -> 400000 100000"
        ]
    );
}

#[test]
fn a_group_holds_what_all_below_it_want_together() {
    let (a, b): (&[_], &[_]) =
        (&[("/rep/a", 0.6), ("/rep", 1.0)], &[("/rep/b", 0.6), ("/rep", 1.0)]);
    let plan = nested(&[a, b], 16, false);
    assert_eq!(
        limits_of(&plan),
        [
            "/rep/cpu.max: 100000 100000 -> 800000 100000",
            "/rep/a/cpu.max: 60000 100000 -> 400000 100000",
            "/rep/b/cpu.max: 60000 100000 -> 400000 100000"
        ]
    );
    assert_eq!(plan.steps[0].databases, ["postgres:4012", "postgres:4013"]);
    assert_eq!(plan.steps[1].databases, ["postgres:4012"]);
    let ids: std::collections::BTreeSet<&str> = plan.steps.iter().map(|s| s.id.as_str()).collect();
    assert_eq!(ids.len(), plan.steps.len(), "steps are told apart by their ids");
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
}

/// A root with the files of the group, and a `systemctl` that notes that it was called.
fn machine(systemctl: bool) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let put = |file: &str, text: &str| {
        let place = root.path().join(file);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, text).unwrap();
        place
    };
    put(&format!("sys/fs/cgroup{UNIT}/cpu.max"), "150000 100000");
    put("etc/systemd/system/x", "");
    if systemctl {
        let program =
            put("usr/sbin/systemctl", "#!/bin/sh\necho \"$@\" >>\"$UNTAX_ROOT/called\"\n");
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    root
}

fn header(plan: Plan) -> Header {
    Header {
        schema: SCHEMA.to_owned(),
        receipt: "a-receipt".to_owned(),
        plan: plan.plan,
        begun_at: jiff::Timestamp::UNIX_EPOCH,
        temporary: false,
        steps: plan.steps,
    }
}

#[expect(clippy::disallowed_methods, reason = "reads what the test made, not the host")]
fn text(root: &Path, file: &str) -> Option<String> {
    fs::read_to_string(root.join(file)).ok()
}

#[test]
fn a_unit_is_limited_and_freed_byte_for_byte() {
    let (root, receipts) = (machine(true), tempfile::tempdir().unwrap());
    let root = root.path();
    let limit = format!("sys/fs/cgroup{UNIT}/cpu.max");
    let drop_in = "etc/systemd/system/postgresql@15-main.service.d/90-untax-CPUQuota.conf";
    let on = AtomicBool::new(false);
    let made = apply(&Tree::at(root), receipts.path(), header(cpu(UNIT)), &on, |_| {}).unwrap();
    let mut receipt = made.unwrap();
    assert_eq!(text(root, &limit).unwrap(), "300000 100000");
    assert_eq!(text(root, drop_in).unwrap(), "# Made by untax.\n[Service]\nCPUQuota=300%\n");
    assert!(undo(&Tree::at(root), &mut receipt, false).unwrap().is_whole());
    assert_eq!(text(root, &limit).unwrap(), "150000 100000");
    assert!(!root.join(drop_in).parent().unwrap().exists());
    assert_eq!(text(root, "called").unwrap(), "daemon-reload\ndaemon-reload\n");
}

#[test]
fn without_systemctl_it_is_refused_before_anything_is_touched() {
    let (root, receipts) = (machine(false), tempfile::tempdir().unwrap());
    let on = AtomicBool::new(false);
    let refused =
        apply(&Tree::at(root.path()), receipts.path(), header(cpu(UNIT)), &on, |_| {}).unwrap_err();
    assert!(matches!(refused, ExecutorError::Refused { .. }), "{refused}");
    assert!(refused.to_string().contains("systemctl is not installed"), "{refused}");
    let limit = text(root.path(), &format!("sys/fs/cgroup{UNIT}/cpu.max"));
    assert_eq!(limit.unwrap(), "150000 100000");
}

/// A machine whose reload resets what containers are limited to, as some versions of systemd do.
#[test]
fn a_reload_runs_once_and_other_groups_keep_their_limits() {
    let (root, receipts) = (machine(true), tempfile::tempdir().unwrap());
    let root = root.path();
    let docker = "sys/fs/cgroup/system.slice/docker-1.scope/cpu.max";
    let outer = "sys/fs/cgroup/databases.slice/cpu.max";
    for (file, limit) in [(docker, "50000 100000"), (outer, "150000 100000")] {
        fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        fs::write(root.join(file), limit).unwrap();
    }
    let inner = "sys/fs/cgroup/databases.slice/pg.service/cpu.max";
    fs::create_dir_all(root.join(inner).parent().unwrap()).unwrap();
    fs::write(root.join(inner), "150000 100000").unwrap();
    let reset = format!(
        "#!/bin/sh\necho \"$@\" >>\"$UNTAX_ROOT/called\"\necho max 100000 >\"$UNTAX_ROOT/{docker}\"\n"
    );
    fs::write(root.join("usr/sbin/systemctl"), reset).unwrap();

    let way: &[(&str, f64)] = &[("/databases.slice/pg.service", 1.5), ("/databases.slice", 1.5)];
    let on = AtomicBool::new(false);
    let plan = nested(&[way], 16, false);
    assert_eq!(plan.steps.iter().filter(|step| !step.refresh.is_empty()).count(), 2);
    let made = apply(&Tree::at(root), receipts.path(), header(plan), &on, |_| {}).unwrap();
    let mut receipt = made.unwrap();
    assert_eq!(text(root, docker).unwrap(), "50000 100000", "it is none of the plan's");
    let told: Vec<String> = receipt.disturbances().map(ToString::to_string).collect();
    assert!(told.len() == 1 && told[0].contains("docker-1.scope/cpu.max"), "{told:?}");
    assert_eq!(text(root, "called").unwrap(), "daemon-reload\n", "once for both units");

    let undone = undo(&Tree::at(root), &mut receipt, false).unwrap();
    assert!(undone.is_whole() && undone.disturbed.len() == 1, "{undone:?}");
    assert_eq!(text(root, "called").unwrap(), "daemon-reload\ndaemon-reload\n");
    for (file, limit) in
        [(docker, "50000 100000"), (outer, "150000 100000"), (inner, "150000 100000")]
    {
        assert_eq!(text(root, file).unwrap().trim(), limit, "{file}");
    }
}
