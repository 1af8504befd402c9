//! `thp-mode`: transparent huge pages set against what the engine wants.

use crate::evidence;
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::database::ThpWish;
use untax_core::finding::Says;
use untax_core::host::{HostFacts, INHERIT, Thp, ThpSize};
use untax_core::{Database, Diagnosis, Evidence, Finding, Reading, Severity, Unmeasured, Window};

pub const RULE: Rule = Rule {
    id: "thp-mode",
    summary: "transparent huge pages are set against what the engine wants",
    what: "With THP always, the kernel backs private memory with 2 MiB pages on its own. Redis \
           forks to save. Every first write to a page then copies 2 MiB instead of 4 KiB, some \
           0.25 ms each, and memory use doubles fast. MongoDB up to 7 suffers from sparse memory; \
           MongoDB 8 was rebuilt to want THP always. Oracle wants THP to be off. The mode madvise \
           suits other engines best: a program that wants huge pages asks for them.",
    method: "The rule compares the modes in /sys/kernel/mm/transparent_hugepage with a table of \
             engines and versions. It has no tax.",
    measured: "The rule compares the mode in /sys/kernel/mm/transparent_hugepage with a table of \
               engines and versions. Where a page size has its own mode, the rule compares that \
               one. For MongoDB 8 it also compares defrag and khugepaged's max_ptes_none. The rule \
               names a profile of tuned or of the Node Tuning Operator that sets the mode. A \
               process that switched THP off for itself is not affected (THP_enabled in \
               /proc/PID/status, Redis's disable-thp). THP costs time in bursts, while a child \
               process saves; this time is not measured.",
    fix: "In most cases, run: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled. For \
          MongoDB up to 7 and Oracle, write never instead. For MongoDB 8, write always, with \
          defrag defer+madvise and khugepaged/max_ptes_none 0. For Redis 6.2 and newer, set \
          disable-thp yes. Where tuned sets the mode, change its profile, because tuned writes the \
          mode again at the next boot. Run engines that want opposite modes on different hosts.",
    sources: &[
        "redis.io: Diagnosing latency issues, transparent huge pages; redis#7381",
        "mongodb.com: production notes, transparent huge pages; tcmalloc performance",
        "redis.io: redis.conf of 6.2, disable-thp",
        "kernel.org: admin-guide/mm/transhuge, settings of each size; tuned.conf(5)",
        "Oracle Database Installation Guide: disabling transparent huge pages",
        "ClickHouse#22841",
    ],
    privilege: "none",
    minimum_kernel: "2.6.38; 5.0 for THP_enabled",
    cost: "a few small files",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

/// What an engine wants of THP.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// `always`.
    Always,
    /// Anything but `always`, which hurts it this much.
    NotAlways(Severity),
}

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let thp = match &window.end.host.thp {
        Reading::Present(thp) => thp,
        // A kernel without THP cannot set it wrongly.
        Reading::Absent(_) => return Vec::new(),
        gap => {
            let why = gap.why().unwrap_or_default();
            let says = Says::Unmeasured(Unmeasured::new(RULE.id, why));
            return vec![Diagnosis { database: None, says }];
        }
    };
    let (host, databases) = (&window.end.host, &window.end.databases);
    let mut diagnoses: Vec<Diagnosis> =
        databases.iter().filter_map(|database| evaluate_one(host, thp, database)).collect();
    diagnoses.extend(conflict(thp, databases));
    diagnoses
}

fn evaluate_one(host: &HostFacts, thp: &Thp, database: &Database) -> Option<Diagnosis> {
    let says = |says| Some(Diagnosis { database: Some(database.id.clone()), says });
    let wish = match wish(database) {
        Reading::Present(wish) => wish,
        Reading::Absent(_) => return None,
        gap => {
            let why = gap.why().unwrap_or_default();
            return says(Says::Unmeasured(Unmeasured::new(RULE.id, why)));
        }
    };
    let finding = match wish {
        Wish::Always => unlike_always(thp, database)?,
        Wish::NotAlways(severity)
            if thp.is_always() && database.memory.thp_allowed.value() != Some(&false) =>
        {
            let summary = summary(database, &state(thp), "madvise or never");
            finding(thp, database, severity, summary, "madvise or never", &fix(thp, database))
        }
        Wish::NotAlways(_) => return None,
    };
    says(Says::Found(by_setter(finding, host)))
}

/// In what THP differs from what an engine wants that wants it always, and maybe more than the mode.
fn unlike_always(thp: &Thp, database: &Database) -> Option<Finding> {
    let wish = database.thp_wish().into_value()?;
    let text = |pages: &u64| pages.to_string();
    let none = thp.khugepaged_max_ptes_none.value().map(text);
    let most = wish.max_ptes_none.as_ref().map(text);
    let defrag = thp.defrag.value().map(String::as_str);
    let settings = [
        ("THP", Some(thp.mode()), Some(wish.mode.as_str()), "enabled"),
        ("defrag", defrag, wish.defrag.as_deref(), "defrag"),
        ("max_ptes_none", none.as_deref(), most.as_deref(), "khugepaged/max_ptes_none"),
    ];
    let (mut is, mut wanted, mut fixes) = (Vec::new(), Vec::new(), Vec::new());
    for (name, now, wish, file) in settings {
        if let Some((now, wish)) = now.zip(wish).filter(|(now, wish)| now != wish) {
            is.push(format!("{name} is {now}"));
            wanted.push(wish);
            fixes.push(format!("echo {wish} > {DIRECTORY}/{file}"));
        }
    }
    (!is.is_empty()).then(|| {
        let summary = summary(database, &is.join(", "), &wanted.join(", "));
        finding(thp, database, Severity::Low, summary, &whole_wish(wish), &fixes.join("; "))
    })
}

/// All that is wanted of THP: the mode, and what else.
fn whole_wish(wish: &ThpWish) -> String {
    let defrag = wish.defrag.as_ref().map(|defrag| format!("defrag {defrag}"));
    let none = wish.max_ptes_none.map(|pages| format!("max_ptes_none {pages}"));
    let more: Vec<String> = defrag.into_iter().chain(none).collect();
    if more.is_empty() {
        return wish.mode.clone();
    }
    format!("{}, with {}", wish.mode, more.join(" and "))
}

const DIRECTORY: &str = "/sys/kernel/mm/transparent_hugepage";

fn summary(database: &Database, state: &str, wanted: &str) -> String {
    let version = database.version.value().map_or(String::new(), |v| format!(" {v}"));
    format!("{state}; {}{version} wants {wanted}", database.product)
}

/// How huge pages come to be given to all: by the mode, or by that of a size.
fn state(thp: &Thp) -> String {
    let sizes = thp.sizes.value().into_iter().flatten();
    let mut sizes = sizes.filter(|size| thp.mode_of(size) == "always");
    match sizes.next().filter(|_| thp.mode() != "always") {
        Some(size) => format!("THP of {} is always", size.size_bytes),
        None => format!("THP is {}", thp.mode()),
    }
}

/// The finding, with the profile that sets the mode: what it sets comes back.
fn by_setter(finding: Finding, host: &HostFacts) -> Finding {
    let Some(setter) = host.thp_set_by.value() else { return finding };
    let mut evidence = finding.evidence;
    let profile = format!("{}, profile {}: {}", setter.program, setter.active, setter.mode);
    evidence.push(Evidence::new(&evidence::THP_SET_BY, profile, setter.file.clone()));
    let fix = format!(
        "change profile {} of {}, which sets {} at every boot; then {}",
        setter.active, setter.program, setter.mode, finding.fix
    );
    Finding { evidence, fix, ..finding }
}

fn wish(database: &Database) -> Reading<Wish> {
    database.thp_wish().map(|wish| match (wish.mode.as_str(), wish.suffers) {
        ("always", _) => Wish::Always,
        (_, true) => Wish::NotAlways(Severity::Medium),
        (_, false) => Wish::NotAlways(Severity::Info),
    })
}

fn fix(thp: &Thp, database: &Database) -> String {
    let mut sizes = thp.sizes.value().into_iter().flatten();
    let own = sizes.find(|size| size.enabled == "always" && thp.enabled != "always");
    if let Some(size) = own {
        return format!("echo {INHERIT} > {}", size.file());
    }
    let mode = database.thp_wish().value().map_or("madvise", |wish| wish.mode.as_str());
    match &database.traits.thp_off {
        Some((major, minor, directive)) if database.is_at_least(*major, *minor) == Some(true) => {
            format!("set {directive} and restart, or THP to {mode}")
        }
        _ => format!("echo {mode} > /sys/kernel/mm/transparent_hugepage/enabled"),
    }
}

fn finding(
    thp: &Thp,
    database: &Database,
    severity: Severity,
    summary: String,
    wanted: &str,
    fix: &str,
) -> Finding {
    let place = |file: &str| format!("{DIRECTORY}/{file}");
    let mut evidence = vec![
        Evidence::new(&evidence::THP_MODE, thp.enabled.clone(), place("enabled")),
        Evidence::new(&evidence::THP_WANTED, wanted, RULE.sources.join("; ")),
    ];
    let sizes = thp.sizes.value().into_iter().flatten();
    let own = |size: &&ThpSize| {
        size.enabled != INHERIT && (size.enabled == "always" || thp.pmd_size() == Some(*size))
    };
    evidence.extend(sizes.filter(own).map(|size| {
        let name = size.size_bytes.to_string();
        Evidence::new(&evidence::THP_SIZE, size.enabled.clone(), size.file()).of(&name)
    }));
    let defrag = thp.defrag.value();
    evidence
        .extend(defrag.map(|d| Evidence::new(&evidence::THP_DEFRAG, d.clone(), place("defrag"))));
    let none = thp.khugepaged_max_ptes_none.value();
    evidence.extend(none.map(|pages| {
        Evidence::new(&evidence::THP_MAX_PTES_NONE, *pages, place("khugepaged/max_ptes_none"))
    }));
    let bytes = database.memory.anon_huge_bytes.value();
    evidence.extend(bytes.map(|b| Evidence::new(&evidence::THP_BYTES, b.0, "AnonHugePages")));
    Finding {
        evidence,
        remedy: Some("thp".to_owned()),
        ..Finding::new(RULE.id, severity, summary, fix)
    }
}

/// Two engines on one host that want opposite modes.
fn conflict(thp: &Thp, databases: &[Database]) -> Option<Diagnosis> {
    let wanting = |always: bool| {
        databases.iter().find(|database| match wish(database) {
            Reading::Present(Wish::Always) => always,
            // One that switched THP off for itself is content with any mode.
            Reading::Present(Wish::NotAlways(severity)) => {
                !always
                    && severity > Severity::Info
                    && database.memory.thp_allowed.value() != Some(&false)
            }
            _ => false,
        })
    };
    let (on, off) = (wanting(true)?, wanting(false)?);
    let finding = Finding {
        evidence: vec![
            Evidence::new(
                &evidence::THP_MODE,
                thp.enabled.clone(),
                "/sys/kernel/mm/transparent_hugepage/enabled",
            ),
            Evidence::new(&evidence::THP_WANTS_ON, on.id.clone(), "engine and version"),
            Evidence::new(&evidence::THP_WANTS_OFF, off.id.clone(), "engine and version"),
        ],
        remedy: Some("thp".to_owned()),
        ..Finding::new(
            RULE.id,
            Severity::Medium,
            format!("{} wants THP always, {} wants it off, on one host", on.id, off.id),
            format!("move one of them to another host, or switch THP off for {} alone", off.id),
        )
    };
    Some(Diagnosis { database: None, says: Says::Found(finding) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{found, postgres};
    use untax_core::Bytes;
    use untax_core::host::ThpSetter;

    fn with(mode: &str, engine: &str, version: &str) -> Window {
        let mut window = postgres();
        if let Reading::Present(thp) = &mut window.end.host.thp {
            thp.enabled = mode.to_owned();
        }
        let database = &mut window.end.databases[0];
        crate::test_window::make(database, engine);
        database.version = Reading::Present(version.to_owned());
        window
    }

    /// THP as MongoDB 8 wants it, with this changed.
    fn mongodb_8(change: impl FnOnce(&mut Thp)) -> Option<Finding> {
        let mut window = with("always", "mongodb", "8.0.4");
        let Reading::Present(thp) = &mut window.end.host.thp else { unreachable!() };
        thp.defrag = Reading::Present("defer+madvise".to_owned());
        thp.khugepaged_max_ptes_none = Reading::Present(0);
        change(thp);
        found(evaluate(&window)).pop()
    }

    #[test]
    fn mongodb_8_wants_more_than_the_mode() {
        assert!(mongodb_8(|_| {}).is_none(), "as it wants it");
        let defrag = mongodb_8(|thp| thp.defrag = Reading::Present("madvise".to_owned())).unwrap();
        assert_eq!(defrag.severity, Severity::Low);
        assert_eq!(defrag.summary, "defrag is madvise; PostgreSQL 8.0.4 wants defer+madvise");
        let none = mongodb_8(|thp| thp.khugepaged_max_ptes_none = Reading::Present(511)).unwrap();
        assert!(
            none.fix.contains("echo 0 >") && none.fix.contains("max_ptes_none"),
            "{}",
            none.fix
        );
        let unread = Reading::Denied("khugepaged".to_owned());
        assert!(mongodb_8(|thp| thp.khugepaged_max_ptes_none = unread).is_none());
    }

    fn sizes(pmd: &str, kib_64: &str) -> Reading<Vec<ThpSize>> {
        let size = |size_bytes, enabled: &str| ThpSize { size_bytes, enabled: enabled.to_owned() };
        let pmd = size(Bytes::MIB_2, pmd);
        Reading::Present(vec![size(Bytes::from_kib(64), kib_64), pmd])
    }

    #[test]
    fn a_size_with_a_mode_of_its_own_counts_as_such() {
        let of = |enabled: &str, sizes: Reading<Vec<ThpSize>>| {
            let mut window = with(enabled, "redis", "7.0.15");
            let Reading::Present(thp) = &mut window.end.host.thp else { unreachable!() };
            (thp.sizes, thp.pmd_bytes) = (sizes, Reading::Present(Bytes::MIB_2));
            found(evaluate(&window)).pop().map(|finding| finding.summary)
        };
        assert_eq!(of("always", sizes("never", "never")), None);
        let by_size = of("never", sizes("inherit", "always")).unwrap();
        assert!(by_size.starts_with("THP of 64 KiB is always;"), "{by_size}");
        assert!(of("always", sizes("inherit", "never")).is_some());
        let own = mongodb_8(|thp| {
            (thp.sizes, thp.pmd_bytes) = (sizes("never", "never"), Reading::Present(Bytes::MIB_2));
        });
        assert!(own.unwrap().summary.starts_with("THP is never;"));
    }

    #[test]
    fn the_profile_that_sets_it_is_named() {
        let mut window = with("always", "redis", "7.0.15");
        window.end.host.thp_set_by = Reading::Present(ThpSetter {
            program: "tuned".to_owned(),
            active: "throughput-performance".to_owned(),
            file: "/usr/lib/tuned/throughput-performance/tuned.conf".to_owned(),
            mode: "always".to_owned(),
        });
        let finding = found(evaluate(&window)).remove(0);
        assert!(finding.fix.starts_with("change profile throughput-performance of tuned"));
        assert!(finding.evidence.iter().any(|one| one.id == "thp-set-by"));
    }

    #[test]
    fn an_old_redis_is_told_of_no_directive_that_it_does_not_know() {
        let fix = |version| found(evaluate(&with("always", "redis", version))).remove(0).fix;
        assert!(fix("6.2.7").contains("disable-thp"));
        assert!(!fix("6.0.16").contains("disable-thp"), "{}", fix("6.0.16"));
    }

    #[test]
    fn each_engine_has_its_wish() {
        let cases = [
            ("always", "redis", "7.0.15", Some(Severity::Medium)),
            ("never", "redis", "7.0.15", None),
            ("always", "mongodb", "7.0.2", Some(Severity::Medium)),
            ("always", "mongodb", "8.0.0", None),
            ("never", "mongodb", "8.0.0", Some(Severity::Low)),
            ("always", "postgres", "15.1", Some(Severity::Info)),
            ("madvise", "oracle", "19", None),
            ("always", "generic", "", None),
        ];
        for (mode, engine, version, severity) in cases {
            let findings = found(evaluate(&with(mode, engine, version)));
            assert_eq!(findings.first().map(|f| f.severity), severity, "{engine} {version} {mode}");
        }
    }

    #[test]
    fn a_process_that_switched_thp_off_is_content() {
        let mut window = with("always", "redis", "7.0.15");
        window.end.databases[0].memory.thp_allowed = Reading::Present(false);
        assert!(evaluate(&window).is_empty());
    }

    #[test]
    fn opposite_wishes_on_one_host_conflict() {
        let mut window = with("always", "redis", "7.0.15");
        let mut other = window.end.databases[0].clone();
        crate::test_window::make(&mut other, "mongodb");
        other.id = "mongodb:9".to_owned();
        other.version = Reading::Present("8.0.4".to_owned());
        window.end.databases.push(other);
        let diagnoses = evaluate(&window);
        assert!(diagnoses.iter().any(|d| d.database.is_none()));
    }
}
