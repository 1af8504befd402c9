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
use untax_core::plan::Plan;
use untax_core::receipt::{Header, SCHEMA};
use untax_core::{Bytes, Database, Seconds};
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
        let method = "traced".to_owned();
        checked.findings[0].tax = Some(Tax { share: *share, low: 0.2, high: 0.3, method });
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
    assert!(differing.warnings.iter().any(|w| w.refuses && w.text.contains("--pid")));
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
