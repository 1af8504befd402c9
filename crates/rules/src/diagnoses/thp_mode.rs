//! `thp-mode`: transparent huge pages set against what the engine wants.

use crate::evidence;
use crate::rule::{Rule, TaxBase};
use untax_core::finding::Says;
use untax_core::host::Thp;
use untax_core::{Database, Diagnosis, Evidence, Finding, Reading, Severity, Unmeasured, Window};

pub const RULE: Rule = Rule {
    id: "thp-mode",
    summary: "transparent huge pages are set against what the engine wants",
    what: "With THP always, the kernel backs private memory with 2 MiB pages on its own. Redis \
           forks to save: every first write to a page then copies 2 MiB instead of 4 KiB, some \
           0.25 ms each, and the memory doubles fast. MongoDB up to 7 suffers from sparse memory; \
           MongoDB 8 was rebuilt to want THP always. Oracle asks for it to be off. Others are \
           best served by madvise: who wants huge pages asks for them.",
    measured: "The mode in /sys/kernel/mm/transparent_hugepage against a table of engines and \
               versions; a process that switched THP off for itself (THP_enabled in \
               /proc/PID/status, Redis's disable-thp) is not affected. The tax arises in bursts, \
               while a child saves, and is not measured.",
    fix: "In most cases: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled. For MongoDB \
          up to 7 and Oracle write never instead; for MongoDB 8 write always, with defrag \
          defer+madvise. For Redis set disable-thp yes. Engines that want opposite modes belong on \
          different hosts.",
    sources: &[
        "redis.io: Diagnosing latency issues, transparent huge pages; redis#7381",
        "mongodb.com: production notes, transparent huge pages",
        "Oracle Database Installation Guide: disabling transparent huge pages",
        "ClickHouse#22841",
    ],
    privilege: "none",
    minimum_kernel: "2.6.38; 5.0 for THP_enabled",
    cost: "a few small files",
    tax_base: TaxBase::ActiveTime,
    evaluate,
};

/// What an engine wants of THP.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// `always`, as MongoDB 8.
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
    let databases = &window.end.databases;
    let mut diagnoses: Vec<Diagnosis> =
        databases.iter().filter_map(|database| evaluate_one(thp, database)).collect();
    diagnoses.extend(conflict(thp, databases));
    diagnoses
}

fn evaluate_one(thp: &Thp, database: &Database) -> Option<Diagnosis> {
    let says = |says| Some(Diagnosis { database: Some(database.id.clone()), says });
    let wish = match wish(database) {
        Reading::Present(wish) => wish,
        Reading::Absent(_) => return None,
        gap => {
            let why = gap.why().unwrap_or_default();
            return says(Says::Unmeasured(Unmeasured::new(RULE.id, why)));
        }
    };
    let always = thp.enabled == "always";
    let finding = match wish {
        Wish::Always if !always => finding(
            thp,
            database,
            Severity::Low,
            "always, with defrag defer+madvise",
            "echo always > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        Wish::NotAlways(severity)
            if always && database.memory.thp_allowed.value() != Some(&false) =>
        {
            finding(thp, database, severity, "madvise or never", fix(database))
        }
        Wish::Always | Wish::NotAlways(_) => return None,
    };
    says(Says::Found(finding))
}

fn wish(database: &Database) -> Reading<Wish> {
    Reading::Present(match database.engine.as_str() {
        "redis" | "oracle" => Wish::NotAlways(Severity::Medium),
        "mongodb" => return mongodb_wish(database),
        "postgres" | "mysql" => Wish::NotAlways(Severity::Info),
        other => return Reading::Absent(format!("{other} has no known wish")),
    })
}

fn mongodb_wish(database: &Database) -> Reading<Wish> {
    let major = |version: &String| version.split('.').next()?.parse::<u32>().ok();
    match database.version.value().and_then(major) {
        Some(8..) => Reading::Present(Wish::Always),
        Some(_) => Reading::Present(Wish::NotAlways(Severity::Medium)),
        None => Reading::Failed(
            "MongoDB wants THP off up to version 7 and on from 8; its version is not known".into(),
        ),
    }
}

fn fix(database: &Database) -> &'static str {
    match database.engine.as_str() {
        "redis" => "set disable-thp yes in redis.conf and restart, or THP to madvise",
        "oracle" | "mongodb" => "echo never > /sys/kernel/mm/transparent_hugepage/enabled",
        _ => "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
    }
}

fn finding(thp: &Thp, database: &Database, severity: Severity, wanted: &str, fix: &str) -> Finding {
    let mode = "/sys/kernel/mm/transparent_hugepage/enabled";
    let mut evidence = vec![
        Evidence::new(&evidence::THP_MODE, thp.enabled.clone(), mode),
        Evidence::new(&evidence::THP_WANTED, wanted, RULE.sources.join("; ")),
    ];
    evidence.extend(thp.defrag.value().map(|defrag| {
        Evidence::new(
            &evidence::THP_DEFRAG,
            defrag.clone(),
            "/sys/kernel/mm/transparent_hugepage/defrag",
        )
    }));
    evidence.extend(
        database
            .memory
            .anon_huge_bytes
            .value()
            .map(|bytes| Evidence::new(&evidence::THP_BYTES, bytes.0, "AnonHugePages")),
    );
    let version = database.version.value().map_or(String::new(), |v| format!(" {v}"));
    Finding {
        evidence,
        remedy: Some("thp".to_owned()),
        ..Finding::new(
            RULE.id,
            severity,
            format!("THP is {}; {}{version} wants {wanted}", thp.enabled, database.product),
            fix,
        )
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

    fn with(mode: &str, engine: &str, version: &str) -> Window {
        let mut window = postgres();
        if let Reading::Present(thp) = &mut window.end.host.thp {
            thp.enabled = mode.to_owned();
        }
        let database = &mut window.end.databases[0];
        database.engine = engine.to_owned();
        database.version = Reading::Present(version.to_owned());
        window
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
        other.engine = "mongodb".to_owned();
        other.id = "mongodb:9".to_owned();
        other.version = Reading::Present("8.0.4".to_owned());
        window.end.databases.push(other);
        let diagnoses = evaluate(&window);
        assert!(diagnoses.iter().any(|d| d.database.is_none()));
    }
}
