//! A limit for the neighbour that floods a disk, and for nobody else.

#![expect(clippy::unwrap_used, reason = "a test's helpers panic as the test does")]

mod support;

use support::{check, host, postgres, snapshot};
use untax_core::Reading::{Absent, Present};
use untax_core::database::Cgroup;
use untax_core::host::{CgroupLayout, CgroupMount};
use untax_core::plan::{Plan, Step, Target};
use untax_core::{Bytes, Database, Evidence, EvidenceKind};
use untax_remedies::Wish;

/// The plan for a database in this group, where 100 MiB a second are written and this neighbour writes most
/// of it; with the controllers of these mounts.
fn plan(own: &str, neighbour: &str, mounts: &[&str]) -> Plan {
    let mut host = host("debian", "12", Absent("not looked for".to_owned()), "");
    let mount = |controller: &&str| CgroupMount {
        controllers: vec![(*controller).to_owned()],
        path: "/sys/fs/cgroup".to_owned(),
        root: "/".to_owned(),
    };
    let mounts = mounts.iter().map(mount).collect();
    host.cgroup = Present(CgroupLayout { mounts, memory_hugetlb_accounting: false });
    let database = Database {
        cgroup: Present(Cgroup::unknown([("unified".to_owned(), own.to_owned())].into(), "x")),
        ..postgres(Bytes::from_mib(512))
    };
    let snapshot = snapshot(host, vec![database]);
    let mut check = check(&snapshot, "shared-filesystem", "io-limit");
    let kind = |id| EvidenceKind { id, name: id, unit: "", meaning: "" };
    let rate = 100.0 * f64::from(1 << 20);
    check.databases[0].findings[0].evidence = vec![
        Evidence::new(&kind("flood-group"), neighbour, "test"),
        Evidence::new(&kind("flood-device"), "254:16", "test").of("vdb"),
        Evidence::new(&kind("flood-rate"), rate, "test").of("vdb"),
    ];
    untax_remedies::plan("a-plan".to_owned(), &check, &snapshot, &Wish::default()).unwrap()
}

fn limited(plan: &Plan) -> Vec<(&str, &str)> {
    plan.steps.iter().filter_map(limit_of).collect()
}

fn limit_of(step: &Step) -> Option<(&str, &str)> {
    let Target::DeviceLimit { file, device } = &step.target else { return None };
    assert_eq!((device.as_str(), &step.from), ("254:16", &None));
    Some((file, step.to.as_deref()?))
}

#[test]
fn the_neighbour_is_limited_to_half_of_what_is_written() {
    let plan = plan("/db.slice/pg.service", "/batch.slice/dump.service", &["unified"]);
    assert_eq!(
        limited(&plan),
        [(
            "/sys/fs/cgroup/batch.slice/dump.service/io.max",
            "rbps=max wbps=52428800 riops=max wiops=max"
        )]
    );
    let unit = plan.steps.iter().find_map(|step| match &step.target {
        Target::File { file } => Some((file.as_str(), step.to.as_deref().unwrap())),
        _ => None,
    });
    let (file, text) = unit.unwrap();
    assert!(file.ends_with("/dump.service.d/90-untax-IOWriteBandwidthMax.conf"), "{file}");
    assert!(text.contains("[Service]\nIOWriteBandwidthMax=/dev/vdb 52428800\n"), "{text}");
    assert!(plan.warnings.iter().any(|warning| warning.id == "io-limit-journal"));
}

#[test]
fn no_group_that_a_database_is_in_is_ever_limited() {
    for (own, neighbour) in
        [("/apps/pg", "/apps/pg"), ("/apps/pg", "/apps"), ("/apps", "/apps/dump")]
    {
        let plan = plan(own, neighbour, &["unified"]);
        assert!(limited(&plan).is_empty(), "{own} beside {neighbour}");
        assert!(plan.tasks.iter().any(|task| task.remedy == "by-hand"), "a person is told");
    }
    assert!(!limited(&plan("/apps/pg", "/apps/pg2", &["unified"])).is_empty(), "another name");
}

#[test]
fn version_1_has_no_such_limit() {
    let plan = plan("/pg", "/dump", &["blkio", "unified"]);
    assert!(limited(&plan).is_empty());
    assert!(plan.tasks.iter().any(|task| task.summary.contains("version 1")), "{:?}", plan.tasks);
}
