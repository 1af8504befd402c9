//! Plans for transparent huge pages, by engine, version, sizes, and what sets them at boot.

#![expect(clippy::unwrap_used, reason = "a test's helpers panic as the test does")]

mod support;

use support::{check, host, postgres, snapshot};
use untax_core::Reading::{Absent, Present};
use untax_core::host::{Thp, ThpSetter, ThpSize};
use untax_core::plan::{Plan, Target};
use untax_core::{Bytes, Database, Reading};
use untax_remedies::Wish;

/// The plan for one database that wants another mode of THP.
fn plan(engine: &str, version: &str, thp: Thp, setter: Option<ThpSetter>) -> Plan {
    let mut host = host("rhel", "9.4", Absent("not looked for".to_owned()), "");
    host.thp = Present(thp);
    host.thp_set_by = match setter {
        Some(setter) => Present(setter),
        None => Absent("tuned is not in use here".to_owned()),
    };
    let database = Database {
        engine: engine.to_owned(),
        traits: untax_engines::traits(engine).unwrap(),
        version: Present(version.to_owned()),
        ..postgres(Bytes::from_mib(512))
    };
    let snapshot = snapshot(host, vec![database]);
    let check = check(&snapshot, "thp-mode", "thp");
    let wish = Wish { configure: true, ..Wish::default() };
    untax_remedies::plan("a-plan".to_owned(), &check, &snapshot, &wish).unwrap()
}

/// What the plan writes to files of the kernel: their names and from what to what.
fn writes(plan: &Plan) -> Vec<String> {
    let write = |step: &untax_core::plan::Step| match &step.target {
        Target::Word { file } | Target::Value { file } => {
            let name = file.strip_prefix("/sys/kernel/mm/transparent_hugepage/").unwrap();
            let [from, to] = [&step.from, &step.to].map(|value| value.clone().unwrap());
            Some(format!("{name}: {from} -> {to}"))
        }
        _ => None,
    };
    plan.steps.iter().filter_map(write).collect()
}

fn at_boot(plan: &Plan) -> Option<&str> {
    let step = plan.steps.iter().find(|step| step.id == "thp-boot")?;
    step.to.as_deref()
}

fn said(plan: &Plan) -> String {
    serde_json::to_string(plan).unwrap()
}

#[test]
fn mongodb_8_gets_all_that_it_wants_now_and_at_boot() {
    let thp = Thp {
        defrag: Present("madvise".to_owned()),
        khugepaged_max_ptes_none: Present(511),
        ..Thp::unknown("madvise", "not read")
    };
    let plan = plan("mongodb", "8.0.4", thp.clone(), None);
    assert_eq!(
        writes(&plan),
        [
            "enabled: madvise -> always",
            "defrag: madvise -> defer+madvise",
            "khugepaged/max_ptes_none: 511 -> 0"
        ]
    );
    let boot = at_boot(&plan).unwrap();
    assert_eq!(boot.lines().count(), 4, "{boot}");
    assert!(boot.contains("khugepaged/max_ptes_none - - - - 0\n"), "{boot}");
    let older = self::plan("mongodb", "7.0.2", Thp { enabled: "always".to_owned(), ..thp }, None);
    assert_eq!(writes(&older), ["enabled: always -> never"]);
}

#[test]
fn a_directive_is_for_versions_that_have_it() {
    let always = || Thp::unknown("always", "not read");
    let new = said(&plan("redis", "6.2.7", always(), None));
    assert!(new.contains("disable-thp yes"), "{new}");
    for version in ["6.0.16", "5.0.6", "unknown"] {
        let plan = plan("redis", version, always(), None);
        assert!(!said(&plan).contains("disable-thp"), "{version}: {}", said(&plan));
        assert_eq!(writes(&plan), ["enabled: always -> madvise"], "{version}");
    }
}

#[test]
fn sizes_with_a_mode_of_their_own_are_told_to_follow() {
    let size = |size_bytes, enabled: &str| ThpSize { size_bytes, enabled: enabled.to_owned() };
    let sizes = |kib_64: &str, pmd: &str| {
        let sizes = [size(Bytes::from_kib(64), kib_64), size(Bytes::MIB_2, pmd)];
        let sizes: Reading<Vec<ThpSize>> = Present(sizes.into());
        Thp { sizes, pmd_bytes: Present(Bytes::MIB_2), ..Thp::unknown("never", "not read") }
    };
    let redis = plan("redis", "7.0.15", sizes("always", "inherit"), None);
    assert_eq!(
        writes(&redis),
        ["enabled: never -> madvise", "hugepages-64kB/enabled: always -> inherit"]
    );
    let mongodb = plan("mongodb", "8.0.4", sizes("never", "madvise"), None);
    assert_eq!(
        writes(&mongodb),
        ["enabled: never -> always", "hugepages-2048kB/enabled: madvise -> inherit"]
    );
}

#[test]
fn what_a_profile_sets_at_boot_is_changed_in_a_profile() {
    let setter = |program: &str, mode: &str| ThpSetter {
        program: program.to_owned(),
        active: "throughput-performance".to_owned(),
        file: "/usr/lib/tuned/throughput-performance/tuned.conf".to_owned(),
        mode: mode.to_owned(),
    };
    let always = || Thp::unknown("always", "not read");
    let by_tuned = plan("redis", "7.0.15", always(), Some(setter("tuned", "always")));
    assert_eq!(writes(&by_tuned), ["enabled: always -> madvise"], "now, until the next boot");
    assert_eq!(at_boot(&by_tuned), None, "tuned would set it again after the drop-in");
    let task = by_tuned.tasks.iter().find(|task| task.remedy == "thp").unwrap();
    let (name, text) = task.file.as_ref().unwrap();
    assert_eq!(name, "untax-thp.conf");
    assert!(text.contains("include=throughput-performance\n[sysfs]\n/sys/kernel/mm/"), "{text}");
    assert!(task.summary.contains("tuned-adm profile untax-thp"), "{}", task.summary);
    let by_operator =
        plan("redis", "7.0.15", always(), Some(setter("Node Tuning Operator", "always")));
    let task = by_operator.tasks.iter().find(|task| task.remedy == "thp").unwrap();
    assert!(task.file.as_ref().unwrap().1.contains("kind: Tuned"), "{task:?}");
    let content = plan("redis", "7.0.15", always(), Some(setter("tuned", "madvise")));
    assert!(at_boot(&content).is_some(), "they agree");
}
