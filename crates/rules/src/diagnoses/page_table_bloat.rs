//! `page-table-bloat`: page tables of many connections take memory.

use crate::evidence;
use crate::model::huge_pages::on_base_pages;
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::database::Model;
use untax_core::finding::Says;
use untax_core::window::Pair;
use untax_core::{Bytes, Database, Diagnosis, Evidence, Finding, Severity, Unmeasured, Window};

pub const RULE: Rule = Rule {
    id: "page-table-bloat",
    summary: "the page tables of many server processes take a noticeable part of the memory",
    what: "Each server process has its own page tables: 8 bytes for every base page of shared \
           memory that it has touched, or 2 MiB for every GiB. With hundreds of connections the \
           page tables grow to GiB. Page tables hold no data and cannot be swapped, and no setting \
           of the database covers them.",
    method: "The rule adds up the page tables of all server processes (VmPTE) and reports them \
             from 64 MiB and 1 % of the shared memory on. It has no tax.",
    measured: "The rule adds up VmPTE over all processes of the database. The rule reports a sum \
               of at least 64 MiB and 1 % of the shared memory. The time to fill these tables is \
               the minor-fault part of small-pages and is not counted again here.",
    fix: "Use huge pages: one entry maps 2 MiB, and page tables of 2 MiB mappings are tiny. As an \
          alternative, run fewer server processes behind a connection pooler such as PgBouncer.",
    sources: &[
        "kernel.org: filesystems/proc, VmPTE",
        "postgresql.org: 19.4.5 Linux Huge Pages",
        "pgbouncer.org: pool_mode",
    ],
    privilege: "none: status of every process is readable by all",
    minimum_kernel: "2.6.10 (VmPTE)",
    cost: "one status per process",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

/// Less than this is not worth a person's time.
const WORTH_BYTES: Bytes = Bytes::from_mib(64);

/// Page tables of one process that maps everything are 0.2 % of the memory mapped; from five
/// times that on, the number of processes is what makes them large.
const WORTH_SHARE: f64 = 0.01;

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    window
        .databases()
        .filter(|pair| pair.end.model == Model::Process)
        .filter_map(|pair| evaluate_one(window, &pair))
        .collect()
}

fn evaluate_one(window: &Window, pair: &Pair) -> Option<Diagnosis> {
    let database = pair.end;
    let says = |says| Some(Diagnosis { database: Some(database.id.clone()), says });
    let memory = &database.memory;
    // Few page tables are few, whatever they map.
    if memory.page_table_bytes.value().is_some_and(|tables| *tables < WORTH_BYTES) {
        return None;
    }
    let (Some(&tables), Some(&shared)) =
        (memory.page_table_bytes.value(), memory.shared_bytes.value())
    else {
        let why = memory.page_table_bytes.why().or(memory.shared_bytes.why()).unwrap_or_default();
        return says(Says::Unmeasured(Unmeasured::new(RULE.id, why)));
    };
    if (tables.0 as f64) < shared.0 as f64 * WORTH_SHARE {
        return None;
    }
    let base = on_base_pages(&window.end.host, database).unwrap_or(true);
    let total = window.end.host.memory.value().map(|memory| memory.total_bytes);
    let of_memory = total.map(|total| tables.0 as f64 / total.0.max(1) as f64);
    let processes = database.processes();
    let mut evidence = vec![
        Evidence::new(&evidence::PAGE_TABLES, tables.0, "sum of VmPTE, /proc/PID/status"),
        Evidence::new(&evidence::SERVER_PROCESSES, u64::from(processes), "/proc"),
        Evidence::new(&evidence::DATA_BYTES, shared.0, "/proc/PID/maps"),
    ];
    evidence.extend(
        of_memory.map(|share| Evidence::new(&evidence::PAGE_TABLE_SHARE, share, "/proc/meminfo")),
    );
    let severity = match of_memory {
        Some(share) if share >= 0.1 => Severity::High,
        Some(share) if share >= 0.02 => Severity::Medium,
        _ => Severity::Low,
    };
    let fix = if base {
        "use huge pages, which need almost no page tables, or fewer connections through a pooler"
    } else {
        "use fewer connections through a pooler: the data is on huge pages already"
    };
    says(Says::Found(Finding {
        evidence,
        remedy: Some(if base { "hugepage-pool" } else { "connection-pooler" }.to_owned()),
        ..Finding::new(
            RULE.id,
            severity,
            format!(
                "{tables} of page tables in {processes} processes for {shared} of data{}",
                to_come(database, tables)
            ),
            fix,
        )
    }))
}

/// What page tables grow to when there are as many connections as are allowed, each like one of today's; nothing
/// where that is hardly more.
fn to_come(database: &Database, tables: Bytes) -> String {
    let settings = database.settings.value();
    let most = settings.and_then(|settings| settings.values.get("max_connections")?.parse().ok());
    let (Some(most), processes) = (most, database.processes().max(1)) else {
        return String::new();
    };
    let more: u32 = u32::saturating_sub(most, processes);
    let all = tables.0 as f64 * (1.0 + f64::from(more) / f64::from(processes));
    if more < processes / 4 {
        return String::new();
    }
    format!("; {} at max_connections = {most}", Bytes(all as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{found, postgres};
    use untax_core::Reading;
    use untax_core::database::Settings;

    #[test]
    fn many_processes_are_found_and_few_are_not() {
        let findings = found(evaluate(&postgres()));
        assert_eq!(findings[0].severity, Severity::Medium);
        assert!(findings[0].summary.contains("522 MiB"));
        let mut window = postgres();
        // One process that maps all of 64 GiB: 0.2 %, as it must be.
        window.end.databases[0].memory.shared_bytes = Reading::Present(Bytes(64 << 30));
        window.end.databases[0].memory.page_table_bytes = Reading::Present(Bytes::from_mib(128));
        assert!(evaluate(&window).is_empty());
    }

    #[test]
    fn an_unread_sum_is_unmeasured() {
        let mut window = postgres();
        window.end.databases[0].memory.page_table_bytes = Reading::Denied("status".to_owned());
        let diagnoses = evaluate(&window);
        assert!(matches!(diagnoses[0].says, Says::Unmeasured(_)));
    }

    #[test]
    fn what_more_connections_would_take_is_said() {
        let mut window = postgres();
        let database = &mut window.end.databases[0];
        database.pids = (1..=100).collect();
        database.settings = Reading::Present(Settings {
            source: "files".to_owned(),
            instead_of: String::new(),
            values: [("max_connections".to_owned(), "500".to_owned())].into(),
        });
        let findings = found(evaluate(&window));
        assert!(
            findings[0].summary.ends_with("; 2.5 GiB at max_connections = 500"),
            "{}",
            findings[0].summary
        );
    }
}
