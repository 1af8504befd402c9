//! `postgres-full-page-writes`: most of the log is images of whole pages.

use crate::evidence;
use crate::model::accounting::factor;
use crate::model::disk_charges;
use crate::model::disk_limit;
use crate::model::full_page_images;
use crate::model::stall::{self, Words, percent};
use crate::model::without_tax;
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::database::{IoLimit, Limited};
use untax_core::finding::Says;
use untax_core::io::{Direction, Role};
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, Finding, Reading, Severity, Window};

pub const RULE: Rule = Rule {
    id: "postgres-full-page-writes",
    summary: "most of the write-ahead log is images of whole pages",
    what: "After each checkpoint, the first change of a page writes all 8 KiB of it into the log, \
           so that a torn page can be repaired. When checkpoints follow each other closely, nearly \
           every change writes such an image. The log grows tenfold, and commits wait for it.",
    method: "The tax is the share of the log that is whole pages, as the server counts it, \
             multiplied by the waits for the log.",
    measured: "The rule reads wal_fpi x 8 KiB over wal_bytes (pg_stat_wal, PostgreSQL 14 and \
               newer), checkpoints of the window, and the settings. The tax is the waiting for \
               disks times three parts. The first part is the log's share of the database's device \
               time. The second part is the images' share of what is written to the log (a flush \
               writes its last page again). The third part is the share of the waiting in which \
               bytes were moved (at the pace of the log's busiest quarter of a second). Where the \
               part above 0.5 ms for a request is less, this smaller part counts instead. The \
               lower bound is zero, because the log would be flushed as often without images; the \
               upper bound is all of this. For compressed images only their maximum size is known, \
               so nothing is charged for them. Where the database reached four fifths of a control \
               group's limit on bytes, the charge is the images' part of the bytes, applied to all \
               waiting for disks. Pages that the next checkpoint writes with them count too; the \
               gain is then the bytes written, divided by the bytes that are left.",
    fix: "Set wal_compression = lz4 (or on). Make max_wal_size and checkpoint_timeout large enough \
          for a checkpoint every 30 minutes. Set full_page_writes = off only on a filesystem that \
          cannot tear pages (ZFS).",
    sources: &[
        "postgresql.org: 20.5.1 full_page_writes, wal_compression; 30.5 WAL configuration",
        "postgresql.org: 28.2.25 pg_stat_wal",
    ],
    privilege: "a server that lets itself be asked; root for the tax",
    minimum_kernel: "5.15 (bpf_task_pt_regs) for the tax",
    cost: "two queries",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Database,
    evaluate,
};

/// Images are a fifth or less of the log of a busy server whose checkpoints are half an hour
/// apart; beyond half, the log is mostly images.
const MOSTLY: f64 = 0.5;

/// Less log than this in a second is written in some hundred microseconds.
const WORTH_BYTES_S: f64 = 1e6;

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let found = stall::per_database(window, RULE.id, |pair| {
        if !pair.end.traits.logs_whole_pages {
            return Reading::Present(None);
        }
        let off = pair.end.setting("full_page_writes").value().is_some_and(|v| v == "off");
        if off {
            return Reading::Present(None);
        }
        pair.told_growth("wal_bytes").map(|bytes| {
            let images = full_page_images::share_of_log(pair)?;
            let rate = bytes / pair.seconds;
            (images >= MOSTLY && rate >= WORTH_BYTES_S).then(|| finding(window, pair, images, rate))
        })
    });
    without_tax::with_reasons(window, found, |pair| why_unpriced(window, pair))
}

/// Why nothing is charged, where so much of the log is images.
fn why_unpriced(window: &Window, pair: &Pair) -> String {
    let why = full_page_images::are_compressed(pair).then(|| COMPRESSED.to_owned());
    why.or_else(|| disk_charges::why_unknown(window, pair)).unwrap_or_else(|| LITTLE.to_owned())
}

const COMPRESSED: &str = "images are compressed, and the server does not say how much";

const LITTLE: &str = "waiting for them takes less than 2 % of its time";

fn finding(window: &Window, pair: &Pair, images: f64, rate: f64) -> Says {
    let mut evidence = evidence(window, pair);
    evidence.insert(0, Evidence::new(&evidence::LOG_RATE, rate, "pg_stat_wal.wal_bytes"));
    evidence.insert(0, Evidence::new(&evidence::LOG_IMAGES, images, "pg_stat_wal.wal_fpi"));
    let fix = "raise max_wal_size and checkpoint_timeout";
    let what = format!("{} of the log is images of whole pages", percent(images));
    let (what, fix) = if full_page_images::are_compressed(pair) {
        (format!("at most {what}, which are compressed"), fix.to_owned())
    } else {
        (what, format!("set wal_compression = lz4; {fix}"))
    };
    match disk_charges::charged_stall(window, pair, |charged| charged.images) {
        Some(stall) => {
            let limited = limited_log(window, pair);
            let stall = match limited {
                Some(Held { limit, factor, waiting }) => {
                    evidence.push(disk_limit::evidence(limit));
                    stall.with_limit(factor, waiting)
                }
                None => stall,
            };
            let words = Words {
                summary: format!("{what}: {} of its time", percent(stall.share.mid)),
                fix,
                evidence,
                method: "time waiting for block devices, traced, x the log's part of its device \
                         time x the images' part of what is written to it x the part spent moving \
                         bytes, divided by active time"
                    .to_owned(),
                remedy: None,
            };
            stall::finding(RULE.id, &stall, words)
        }
        None => {
            Says::Found(Finding { evidence, ..Finding::new(RULE.id, Severity::Info, what, fix) })
        }
    }
}

/// A limit on written bytes that the database reached.
struct Held<'a> {
    limit: &'a IoLimit,
    /// How many times as many transactions there is room for below it without images.
    factor: f64,
    /// The share of active time that ends then at most.
    waiting: f64,
}

/// The limit, if one was reached, and what there is below it without images.
fn limited_log<'a>(window: &'a Window, pair: &'a Pair) -> Option<Held<'a>> {
    let (io, limit) =
        window.io.value().zip(disk_limit::reached_limit(window, pair, Limited::WrittenBytes))?;
    let freed = full_page_images::freed_share(io, pair, limit);
    let held = 1.0 - full_page_images::device_part(io, pair, limit);
    let waiting = disk_limit::waiting(window, pair) * held;
    (freed > 0.0).then(|| Held { limit, factor: factor(freed), waiting })
}

fn evidence(window: &Window, pair: &Pair) -> Vec<Evidence> {
    let grown = |name: &str| pair.told_growth(name).into_value();
    let checkpoints = ["checkpoints_timed", "checkpoints_req"].map(grown);
    let mut evidence = Vec::new();
    if let [Some(timed), Some(asked)] = checkpoints {
        let source = "pg_stat_bgwriter or pg_stat_checkpointer";
        evidence.push(Evidence::new(&evidence::CHECKPOINTS, timed + asked, source));
    }
    for name in ["wal_compression", "max_wal_size", "checkpoint_timeout"] {
        let setting = pair.end.setting(name).into_value();
        let shown = |value| Evidence::new(&evidence::SETTING, value, "pg_settings").of(name);
        evidence.extend(setting.map(shown));
    }
    let writes = window.io.value().and_then(|io| {
        let mut own = io.flows_of(&pair.end.id);
        own.find(|flow| (flow.role, flow.direction) == (Role::Log, Direction::Write))
    });
    evidence.extend(writes.map(|log| {
        let source = format!("block requests on {}, traced", log.device);
        Evidence::new(&evidence::LOG_BURST, log.burst, source)
    }));
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_io::{flow, io};
    use crate::test_window::{self, found as findings, gaps};
    use untax_core::activity::Doing;
    use untax_core::database::Settings;
    use untax_core::{Bytes, Seconds};

    fn window(images: u64) -> Window {
        let mut window = test_window::postgres();
        for (snapshot, scale) in [(&mut window.start, 0), (&mut window.end, 1)] {
            let told = [("wal_fpi", images * scale), ("wal_bytes", (100 << 20) * scale)];
            let told = told.map(|(name, count)| (name.to_owned(), count)).into();
            snapshot.databases[0].counters.told = Reading::Present(told);
        }
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::Disk, 5.0)]);
        let mut log = flow(Some("postgres:7"), Role::Log, Direction::Write, 900, 0.001);
        log.burst = 4.0;
        window.io = io(vec![log]);
        window
    }

    #[test]
    fn images_are_charged_for_at_most_their_part_of_the_log() {
        let found = findings(evaluate(&window(10_240)));
        let tax = found[0].tax.as_ref().unwrap();
        assert!((tax.share - 0.5 * 0.8 / 2.0).abs() < 1e-9 && tax.low < 1e-9);
        assert!((tax.high - 0.5 * 0.8).abs() < 1e-9);
        assert!(findings(evaluate(&window(1024))).is_empty());
    }

    #[test]
    fn of_compressed_images_only_the_most_is_known() {
        let mut window = window(10_240);
        window.end.databases[0].settings = Reading::Present(Settings {
            source: String::new(),
            instead_of: String::new(),
            values: [("wal_compression".to_owned(), "lz4".to_owned())].into(),
        });
        let found = &findings(evaluate(&window))[0];
        assert_eq!((found.severity, &found.tax), (Severity::Info, &None));
        assert!(found.summary.starts_with("at most 80 % ") && !found.fix.contains("lz4"));
        assert!(gaps(evaluate(&window))[0].contains("compressed"));
    }

    #[test]
    fn without_a_tax_it_says_why() {
        let mut window = window(10_240);
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::Disk, 0.001)]);
        assert!(gaps(evaluate(&window))[0].contains("less than 2 %"));
        window.activity = Reading::Denied("root".to_owned());
        assert_eq!(gaps(evaluate(&window)), ["tax: permission denied: root"]);
    }

    #[test]
    fn below_a_limit_of_bytes_what_is_written_decides() {
        let mut window = window(10_240);
        let mut gain = |per_s| {
            let limit = test_window::io_limit(Limited::WrittenBytes, per_s);
            test_window::limit_io(&mut window, limit);
            findings(evaluate(&window))[0].gain.unwrap().factor
        };
        let waiting = gain(1_000_000_000);
        // 900 requests of 8 KiB: four fifths of their bytes go, and of 5 s of waiting all but the
        // device's own 0.9 s.
        let held = gain(800_000);
        assert!((held - 10.0 / 5.9).abs() < 1e-9 && waiting < held);
        // Three for each flush: one is left.
        let io = window.io.as_mut().into_value().unwrap();
        let flush = flow(None, Role::Other, Direction::Flush, 300, 0.001);
        io.flows.as_mut().into_value().unwrap().push(flush);
        let gain = findings(evaluate(&window))[0].gain.unwrap().factor;
        assert!((gain - 10.0 / 5.6).abs() < 1e-9, "{gain}");
        // Few flushes are slow: they are behind what goes.
        let io = window.io.as_mut().into_value().unwrap();
        io.flows.as_mut().into_value().unwrap()[1].latency.p50_s = Seconds(0.000_5);
        let gain = findings(evaluate(&window))[0].gain.unwrap().factor;
        assert!((gain - 10.0 / 5.45).abs() < 1e-9, "{gain}");
    }

    #[test]
    fn what_flushes_write_again_is_no_image() {
        let mut window = window(10_240);
        let io = window.io.as_mut().into_value().unwrap();
        // Twice as much as the 100 MiB that were logged: images are 80 of 200.
        io.flows.as_mut().into_value().unwrap()[0].bytes = Bytes(200 << 20);
        let tax = findings(evaluate(&window))[0].tax.clone().unwrap();
        assert!((tax.share - 0.5 * 0.4 / 2.0).abs() < 1e-9, "{tax:?}");
        let limit = test_window::io_limit(Limited::WrittenBytes, 20_000_000);
        test_window::limit_io(&mut window, limit);
        let found = findings(evaluate(&window));
        assert!((found[0].tax.as_ref().unwrap().share - 0.5 * 0.4).abs() < 1e-9);
    }

    #[test]
    fn an_old_server_does_not_say() {
        let mut window = window(10_240);
        window.end.databases[0].counters.told = Reading::Present([].into());
        assert_eq!(evaluate(&window).len(), 1, "unmeasured");
    }
}
