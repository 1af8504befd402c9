//! `mysql-temp-files`: queries of MySQL or MariaDB spill to temporary files.

use crate::evidence;
use crate::model::disk_charges;
use crate::model::disk_charges::Charged;
use crate::model::memory_shortage;
use crate::model::stall::{self, Stall, WORTH, Words, percent};
use crate::model::without_tax;
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::activity::{Call, Part};
use untax_core::finding::Says;
use untax_core::io::Role;
use untax_core::window::Pair;
use untax_core::{Bytes, Diagnosis, Evidence, Finding, Interval, Reading, Severity, Window};

pub const RULE: Rule = Rule {
    id: "mysql-temp-files",
    summary: "queries spill temporary tables and sorts to files",
    what: "A temporary table that outgrows tmp_table_size, or a sort that outgrows \
           sort_buffer_size, goes to files in tmpdir through the page cache. The writes come in \
           bursts, evict pages that others read, and flood the disk that the log needs.",
    method: "The rule takes the server's count of temporary tables on disk, and traces the waits \
             for requests to these files.",
    measured: "The rule reads Created_tmp_disk_tables over the window. The rule reads the pages \
               that Aria, which holds MariaDB's temporary tables, read and wrote \
               (Aria_pagecache_*). The pages of Aria count only on a server that ever made such a \
               table, because one query may work longer than a window. The rule also traces block \
               requests for files in tmpdir or with InnoDB's temporary names. The tax has two \
               parts. The first part is waiting for disks, multiplied by the temporary files' part \
               of the database's device time. The second part is time on CPU in system calls that \
               read and write files (at most 997 samples per second on each CPU), multiplied by \
               Aria's part of all pages (Innodb_data_*). The server's own computing for a table in \
               a file cannot be separated. The rule assumes that this computing takes as long as \
               the charged time on CPU; in the lab it took 1.3 times as long. The upper bound is \
               all of the database's time on CPU and waiting for one. The lower bound is zero: \
               pages need not cost the same, and some of Aria's tables may be your own. The CPU \
               that MySQL's own temporary tables cost is not charged.",
    fix: "Find the queries (sys.statements_with_temp_tables). Raise tmp_table_size and \
          max_heap_table_size (MariaDB) or temptable_max_ram (MySQL 8). Use an index instead of a \
          sort, or put tmpdir on a disk of its own.",
    sources: &[
        "dev.mysql.com: 10.4.4 Internal Temporary Table Use in MySQL",
        "mariadb.com: Server Status Variables, Created_tmp_disk_tables",
    ],
    privilege: "root (CAP_BPF and CAP_PERFMON), and a server that lets itself be asked",
    minimum_kernel: "5.15 (bpf_task_pt_regs)",
    cost: "one query; about a microsecond for each block request",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Database,
    evaluate,
};

/// What the server calls the temporary tables that it made on disk.
const MADE: &str = "Created_tmp_disk_tables";

/// Fewer tables on disk than this in a second are what any server makes, unless they are large.
const WORTH_TABLES: f64 = 1.0;

/// Fewer pages of such tables a second than this are soon read and written: [`WORTH_BYTES_PER_S`] in
/// pages of 8 KiB, the default of `aria_block_size`.
const WORTH_PAGES_PER_S: f64 = WORTH_BYTES_PER_S / 8192.0;

/// What the server takes for a table in a file, over what its system calls on files take: it packs
/// rows into pages, searches and sums them up. Groups of 10 MiB in the lab had 2.3.
const OVER_CALLS: f64 = 2.0;

/// Fewer bytes a second than this take a disk of 1 GiB/s less than two milliseconds of each second.
const WORTH_BYTES_PER_S: f64 = 1.6 * 1024.0 * 1024.0;

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let found = stall::per_database(window, RULE.id, |pair| {
        if !pair.end.traits.has_temporary_tables {
            return Reading::Present(None);
        }
        let tables = pair.told_growth(MADE);
        let traced = window.io.as_ref().and_then(|io| io.flows.as_ref().map(|_| io));
        let bytes: Option<Bytes> = traced.value().map(|io| {
            let own = io.flows_of(&pair.end.id).filter(|flow| flow.role == Role::Temp);
            own.map(|flow| flow.bytes).sum()
        });
        let rate = tables.value().map(|tables| tables / pair.seconds);
        let io_s = window.io.value().map_or(pair.seconds, |io| io.window_s.0);
        let seen = Seen { rate, pages: pages(pair), bytes, seconds: pair.seconds, io_s };
        if let (Some(why), false) = (tables.why(), seen.transfers()) {
            return Reading::Absent(why);
        }
        Reading::Present(seen.spills().then(|| finding(window, pair, &seen)))
    });
    let why = |pair: &Pair| why_unknown(window, pair).unwrap_or_else(|| LITTLE.to_owned());
    without_tax::with_reasons(window, found, why)
}

const LITTLE: &str = "what they cost it is less than 2 % of its time";

/// What tells of temporary files.
struct Seen {
    /// Tables made on disk in a second.
    rate: Option<f64>,
    /// Pages of such tables that were read and written, MariaDB.
    pages: Option<f64>,
    /// What block devices transferred for temporary files.
    bytes: Option<Bytes>,
    /// How long pages were counted.
    seconds: f64,
    /// How long bytes were counted.
    io_s: f64,
}

impl Seen {
    fn spills(&self) -> bool {
        self.rate.is_some_and(|rate| rate >= WORTH_TABLES) || self.moves() || self.transfers()
    }

    fn moves(&self) -> bool {
        self.pages.is_some_and(|pages| pages >= WORTH_PAGES_PER_S * self.seconds)
    }

    fn transfers(&self) -> bool {
        self.bytes.is_some_and(|bytes| bytes.0 as f64 >= WORTH_BYTES_PER_S * self.io_s)
    }

    fn summary(&self) -> String {
        match *self {
            Self { bytes: Some(bytes), .. } if self.transfers() => {
                format!("{bytes} of temporary files")
            }
            Self { rate: Some(rate), .. } if rate >= WORTH_TABLES => {
                format!("{rate:.0} temporary tables on disk each second")
            }
            _ => "temporary tables on disk".to_owned(),
        }
    }
}

/// How many pages of temporary tables were read and written: MariaDB, once it has made such a table.
fn pages(pair: &Pair) -> Option<f64> {
    let made = pair.end.counters.told(MADE).into_value()?;
    let pages = growth(pair, ["Aria_pagecache_reads", "Aria_pagecache_writes"]).into_value()?;
    Some(pages).filter(|pages| made > 0.0 && *pages > 0.0)
}

/// By how much two counts of the server grew together.
fn growth(pair: &Pair, [one, other]: [&str; 2]) -> Reading<f64> {
    pair.told_growth(one).and_then(|one| pair.told_growth(other).map(|other| one + other))
}

/// Waiting for temporary files, and computing for them, when it is worth a finding.
fn charged_stall(window: &Window, pair: &Pair) -> Option<Stall> {
    let waiting = disk_charges::charged_stall(window, pair, |charged| charged.temporary);
    let computing = cpu_stall(window, pair).into_value().flatten();
    let stall = match (computing, waiting) {
        (Some(computing), Some(waiting)) => computing.plus_share(waiting.share),
        (one, other) => one.or(other)?,
    };
    Some(stall).filter(|stall| stall.share.mid >= WORTH)
}

/// Why it is not known what they cost; `None` where it is.
fn why_unknown(window: &Window, pair: &Pair) -> Option<String> {
    disk_charges::why_unknown(window, pair).or_else(|| cpu_stall(window, pair).why())
}

/// Time on CPU for pages of temporary tables, when there are such pages.
fn cpu_stall(window: &Window, pair: &Pair) -> Reading<Option<Stall>> {
    let Some(temporary) = pages(pair) else { return Reading::Present(None) };
    pair.activity.clone().and_then(|activity| {
        let Some(calls) = activity.share_calling(Call::Pages) else {
            return Reading::Absent(NOT_SAMPLED.to_owned());
        };
        // What a memory limit makes it read again is charged to that.
        let charged = Charged::of(window, pair).into_value();
        let again = charged.map(|charged| memory_shortage::reread_share(pair, charged.again));
        let calls = calls.minus(again.unwrap_or(Interval::exact(0.0))).clamp(0.0, 1.0);
        let other = growth(pair, ["Innodb_data_reads", "Innodb_data_writes"]);
        let computes = |part| matches!(part, Part::OnCpu | Part::Contended);
        other.and_then(|other| {
            Stall::of_calls(window, pair, Some(calls)).map(|stall| {
                let stall = stall?.times(OVER_CALLS * temporary / (temporary + other));
                let model = pair.end.model;
                let all = activity.share(model, |spent| computes(spent.part(model)))?;
                Some(stall.with_bounds(0.0, all.high))
            })
        })
    })
}

const NOT_SAMPLED: &str = "its system calls were not sampled, or too few of them";

fn finding(window: &Window, pair: &Pair, seen: &Seen) -> Says {
    let Seen { rate, pages, bytes, .. } = *seen;
    let mut evidence = Vec::new();
    let status = "SHOW GLOBAL STATUS, Created_tmp_disk_tables";
    evidence.extend(rate.map(|r| Evidence::new(&evidence::TEMPORARY_TABLES, r, status)));
    let status = "SHOW GLOBAL STATUS, Aria_pagecache_*";
    evidence.extend(pages.map(|p| Evidence::new(&evidence::TEMPORARY_PAGES, p, status)));
    let source = "block requests, traced";
    evidence.extend(bytes.map(|b| Evidence::new(&evidence::TEMPORARY_BYTES, b.0, source)));
    for name in ["tmp_table_size", "max_heap_table_size", "tmpdir"] {
        let setting = pair.end.setting(name).into_value();
        let shown = |value| Evidence::new(&evidence::SETTING, value, "SHOW VARIABLES").of(name);
        evidence.extend(setting.map(shown));
    }
    let amount = seen.summary();
    let fix = "raise tmp_table_size, give the queries an index, or move tmpdir to another disk";
    match charged_stall(window, pair) {
        Some(stall) => {
            let words = Words {
                summary: format!("{amount}: {} of its time", percent(stall.share.mid)),
                fix: fix.to_owned(),
                evidence,
                method: "time waiting for block devices, traced, x temporary files' part of its \
                         device time, and twice the time on CPU in system calls on files, sampled, \
                         x Aria's part of its pages, divided by active time"
                    .to_owned(),
                remedy: None,
            };
            stall::finding(RULE.id, &stall, words)
        }
        None => Says::Found(Finding {
            evidence,
            ..Finding::new(
                RULE.id,
                Severity::Info,
                match why_unknown(window, pair) {
                    Some(_) => format!("{amount}; what they cost is not measured"),
                    None => format!("{amount}; hardly any waiting for them"),
                },
                fix,
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_io::{flow, io};
    use crate::test_window::{self, found as findings, gaps};
    use untax_core::activity::Doing;
    use untax_core::io::Direction;

    fn window(temp: u64, tables: u64) -> Window {
        let mut window = test_window::postgres();
        for (snapshot, tables) in [(&mut window.start, 0), (&mut window.end, tables)] {
            let database = &mut snapshot.databases[0];
            test_window::make(database, "mysql");
            let told = [("Created_tmp_disk_tables".to_owned(), tables)].into();
            database.counters.told = Reading::Present(told);
        }
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::Disk, 5.0)]);
        let id = Some("postgres:7");
        let temp = flow(id, Role::Temp, Direction::Read, temp, 0.001);
        let data = flow(id, Role::Data, Direction::Read, 9000, 0.001);
        window.io = io(vec![temp, data]);
        window
    }

    #[test]
    fn temporary_files_take_their_part_of_the_waiting() {
        let found = findings(evaluate(&window(3000, 0)));
        assert!((found[0].tax.as_ref().unwrap().share - 0.5 * 0.25).abs() < 1e-9);
    }

    #[test]
    fn pages_that_system_calls_move_cost_time_on_cpu() {
        let mut window = window(0, 500);
        test_window::trace(&mut window, &[(Doing::OnCpu, 10.0)]);
        test_window::sample(&mut window, Call::Pages, 400);
        for (snapshot, by) in [(&mut window.start, 0), (&mut window.end, 1)] {
            let Reading::Present(told) = &mut snapshot.databases[0].counters.told else {
                panic!("it tells")
            };
            let counts = [("Aria_pagecache_reads", 50), ("Aria_pagecache_writes", 25)];
            let others = [("Innodb_data_reads", 20), ("Innodb_data_writes", 5)];
            told.extend(counts.into_iter().chain(others).map(|(n, c)| (n.to_owned(), by * c)));
        }
        let tax = findings(evaluate(&window)).remove(0).tax.unwrap();
        // Of twice the time in calls, as much as Aria's pages are of all.
        assert!((tax.share - 2.0 * 0.4 * 0.75).abs() < 1e-9, "{}", tax.share);
        assert!(tax.low == 0.0 && (tax.high - 1.0).abs() < 1e-9, "{} {}", tax.low, tax.high);
    }

    #[test]
    fn a_query_that_works_longer_than_the_window_is_seen_by_its_pages() {
        let spills = |made, pages| {
            let mut window = window(0, 0);
            for (snapshot, pages) in [(&mut window.start, 0), (&mut window.end, pages)] {
                let counts = [
                    ("Created_tmp_disk_tables", made),
                    ("Aria_pagecache_reads", pages),
                    ("Aria_pagecache_writes", pages),
                ];
                let told = counts.map(|(name, count)| (name.to_owned(), count)).into();
                snapshot.databases[0].counters.told = Reading::Present(told);
            }
            !findings(evaluate(&window)).is_empty()
        };
        assert!(spills(1, 1024));
        assert!(!spills(1, 100));
        // Tables of one's own may be Aria's.
        assert!(!spills(0, 1024));
    }

    #[test]
    fn a_server_that_cannot_be_asked_is_a_gap_unless_the_disk_tells() {
        let silent = |temp| {
            let mut window = window(temp, 0);
            window.end.databases[0].counters.told = Reading::Failed("it is silent".to_owned());
            evaluate(&window)
        };
        let says = |diagnoses: Vec<Diagnosis>| diagnoses.into_iter().next().map(|d| d.says);
        assert!(matches!(says(silent(0)), Some(Says::Unmeasured(_))));
        assert!(matches!(says(silent(3000)), Some(Says::Found(_))));
    }

    #[test]
    fn what_is_not_measured_is_not_hardly_any() {
        let mut window = window(3000, 500);
        window.activity = Reading::Denied("BPF".to_owned());
        let found = findings(evaluate(&window));
        assert!(found[0].tax.is_none() && found[0].summary.ends_with("is not measured"));
        assert_eq!(gaps(evaluate(&window)), ["tax: permission denied: BPF"]);
    }

    #[test]
    fn pages_whose_calls_nobody_sampled_are_a_gap() {
        let mut window = window(0, 500);
        for (snapshot, by) in [(&mut window.start, 0), (&mut window.end, 1)] {
            let counts = ["Aria_pagecache_reads", "Aria_pagecache_writes"];
            let Reading::Present(told) = &mut snapshot.databases[0].counters.told else {
                panic!("it tells")
            };
            told.extend(counts.map(|name| (name.to_owned(), by * 50)));
        }
        assert!(findings(evaluate(&window))[0].summary.ends_with("is not measured"));
        assert!(gaps(evaluate(&window))[0].contains("not sampled"));
    }

    #[test]
    fn tables_that_never_reach_the_disk_cost_no_waiting() {
        let found = findings(evaluate(&window(0, 500)));
        assert!(found[0].tax.is_none() && found[0].severity == Severity::Info);
        assert!(found[0].summary.ends_with("hardly any waiting for them"));
        assert!(gaps(evaluate(&window(0, 500)))[0].contains("less than 2 %"));
        assert!(findings(evaluate(&window(0, 3))).is_empty());
    }
}
