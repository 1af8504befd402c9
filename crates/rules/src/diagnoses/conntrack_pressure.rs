//! `conntrack-pressure`: the table of tracked connections is full, or nearly.

use crate::evidence;
use crate::model::accounting::factor;
use crate::model::stall::{Stall, percent};
use crate::model::without_tax::{self, Words};
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::network::{Conntrack, Refused};
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, Gain, Interval, Reading, Severity, Window};

pub const RULE: Rule = Rule {
    id: "conntrack-pressure",
    summary: "the kernel's table of connections is nearly full, or drops new ones",
    what: "For firewalls, port forwarding and Kubernetes services, the kernel keeps each \
           connection in a table of fixed size. An entry stays for two minutes after the \
           connection ends. When the table is full, the kernel silently drops the first packet of \
           a new connection. The client sends the packet again after one second, four times (older \
           kernels than 6.5: then two, then four). Short connections fill the table; established \
           connections go on as before.",
    method: "The rule compares the entries of the conntrack table with its limit, and counts the \
             packets dropped in the window. It has no tax.",
    measured: "The rule takes the entries of the table of the database's network namespace, or of \
               the host's, at the fuller end of the window. The rule compares the entries with \
               nf_conntrack_max and finds a table that is 80 % full or more. The rule also reads \
               how much drop and early_drop of /proc/PID/net/stat/nf_conntrack grew in the window. \
               Kernels without that file show only the entries of the host's table. Drops from a \
               table with room, where no entry was evicted for another, are clashes of packets of \
               the same connection (requests over UDP, in parallel). Such clashes are info. The \
               client waits before the database knows of it. The database loses no time, so the \
               tax is unmeasured. The gain adds the clients' waiting to the database's active \
               time: one second for each first packet that was dropped, as far as CPUs have room. \
               The upper bound takes two seconds, because some packets are dropped again. The \
               lower bound is zero, because the packets may belong to others.",
    fix: "Use fewer and longer connections (a pool). As an alternative, enlarge the table (sysctl \
          net.netfilter.nf_conntrack_max and nf_conntrack_buckets), shorten \
          nf_conntrack_tcp_timeout_time_wait, or stop tracking the database's port (NOTRACK).",
    sources: &[
        "kernel.org: networking/nf_conntrack-sysctl",
        "conntrack-tools: conntrack(8), --stats: drop, early_drop, insert_failed",
        "RFC 6298: the first retransmission of SYN after one second",
    ],
    privilege: "none for the host's table; root for those of other users' namespaces",
    minimum_kernel: "2.6.20",
    cost: "one small file for each database in a namespace of its own",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

/// From here on a burst may fill the rest.
const NEARLY_FULL: f64 = 0.8;

/// Connections refused, a second: fewer are chance. One in two seconds makes one client in two wait for a
/// second, the first time-out of TCP (RFC 6298).
const WORTH_REFUSED_PER_S: f64 = 0.5;

/// Whether the table refused so many in a window that it is no chance.
fn is_often(refused: u64, window: &Window) -> bool {
    refused > 0 && refused as f64 >= WORTH_REFUSED_PER_S * window.seconds()
}

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let tables = |snapshot: &untax_core::Snapshot| {
        snapshot.host.conntrack.value().map(|conntrack| conntrack.table)
    };
    let most = match &window.end.host.conntrack {
        Reading::Present(conntrack) => conntrack.most,
        // A kernel, or a machine, that tracks nothing.
        Reading::Absent(_) => return Vec::new(),
        gap => return without_tax::unmeasured(RULE.id, None, gap.why().unwrap_or_default()),
    };
    let mut all = Vec::new();
    let host = tables(&window.end);
    if let Some(end) = host {
        all.extend(diagnose(window, None, most, tables(&window.start), end));
    }
    let untold = host.is_some_and(|table| table.refused.is_none());
    if untold {
        all.extend(without_tax::unmeasured(RULE.id, None, UNTOLD.to_owned()));
    }
    for pair in window.databases() {
        let of = |database: &untax_core::Database| {
            database.network.as_ref().and_then(|network| network.conntrack.clone())
        };
        let id = Some(pair.end.id.as_str());
        match of(pair.end) {
            Reading::Present(end) => {
                let start = pair.start.and_then(|start| of(start).into_value());
                all.extend(diagnose(window, Some(&pair), most, start, end));
            }
            Reading::Absent(_) if untold && is_apart(pair.end) => {
                all.extend(without_tax::unmeasured(RULE.id, id, UNTOLD.to_owned()));
            }
            // It shares the host's table, or its namespace has none.
            Reading::Absent(_) => {}
            gap => all.extend(without_tax::unmeasured(RULE.id, id, gap.why().unwrap_or_default())),
        }
    }
    all
}

const UNTOLD: &str = "this kernel tells netlink alone how many connections its tables refuse (it \
                      was built without CONFIG_NF_CONNTRACK_PROCFS): run conntrack -S";

/// Whether a database is in a network namespace of its own.
fn is_apart(database: &untax_core::Database) -> bool {
    database.network.value().is_some_and(|network| network.own_namespace)
}

/// What a client of the database waits for a first packet that was dropped: until it sends it again
/// (RFC 6298), or for twice as long when that is dropped too; nothing if it is another's.
const WAIT_S: Interval = Interval { low: 0.0, mid: 1.0, high: 2.0 };

/// What it would bring if none of these were dropped: no more than CPUs have room for.
fn gain(window: &Window, pair: &Pair, dropped: u64) -> Option<Gain> {
    let active_s = pair.activity.value()?.active(pair.end.model).0;
    let room = Stall::of(window, pair, |_| false).into_value()??.room();
    let waited_s = WAIT_S.scale(dropped as f64);
    let factors = waited_s.map(|s| factor(s / (s + active_s)));
    is_often(dropped, window).then(|| Gain::predicted(factors, room))
}

const FIX: &str = "use a pool of connections, a larger nf_conntrack_max, or no tracking of its \
                   port";

const FIX_OF_CLASHES: &str = "send one request after the other from a socket (resolv.conf: \
                              single-request), or do not track that port; a larger table changes \
                              nothing";

fn diagnose(
    window: &Window,
    pair: Option<&Pair>,
    most: u64,
    start: Option<Conntrack>,
    end: Conntrack,
) -> Vec<Diagnosis> {
    let ends = start.and_then(|start| start.refused).zip(end.refused);
    let grown = ends.map(|(start, end)| Refused {
        dropped: end.dropped.saturating_sub(start.dropped),
        dropped_early: end.dropped_early.saturating_sub(start.dropped_early),
        insert_failed: end.insert_failed.saturating_sub(start.insert_failed),
    });
    // What is not known makes no finding.
    let (dropped, early) = grown.map_or((0, 0), |grown| (grown.dropped, grown.dropped_early));
    // A full one may have been swept a moment ago.
    let entries = start.map_or(0, |start| start.entries).max(end.entries);
    // No limit is written as zero.
    let used = if most == 0 { 0.0 } else { entries as f64 / most as f64 };
    let lost = is_often(dropped.saturating_add(early), window);
    if used < NEARLY_FULL && !lost {
        return Vec::new();
    }
    let full = format!("the connection table is {} full", percent(used));
    let has_room = used < NEARLY_FULL && early == 0;
    let (severity, summary) = if has_room {
        let clashed = "packets of the same new connections came at once";
        (Severity::Info, format!("{dropped} packets were dropped as {clashed}, {full}"))
    } else if is_often(dropped, window) {
        (Severity::High, format!("{full}: {dropped} first packets of connections were dropped"))
    } else if lost {
        (Severity::Medium, format!("{full}: {early} connections were thrown out for new ones"))
    } else {
        (Severity::Medium, full)
    };
    let source = match end.refused {
        Some(_) => "/proc/PID/net/stat/nf_conntrack",
        None => "net.netfilter.nf_conntrack_count",
    };
    let mut evidence = vec![
        Evidence::new(&evidence::TRACKED, entries, source),
        Evidence::new(&evidence::TRACKED_LIMIT, most, "net.netfilter.nf_conntrack_max"),
    ];
    if let Some(grown) = grown {
        let counts = [
            (&evidence::TRACKED_DROPPED, grown.dropped, "drop"),
            (&evidence::TRACKED_EVICTED, grown.dropped_early, "early_drop"),
            (&evidence::TRACKED_CLASHES, grown.insert_failed, "insert_failed"),
        ];
        evidence.extend(counts.map(|(kind, count, column)| {
            Evidence::new(kind, count, format!("{source}, {column}"))
        }));
    }
    let words = Words {
        severity,
        summary,
        fix: if has_room { FIX_OF_CLASHES } else { FIX }.to_owned(),
        evidence,
        gain: pair.filter(|_| !has_room).and_then(|pair| gain(window, pair, dropped)),
        remedy: (!has_room).then_some("conntrack-max"),
        why: "the client waits for what is dropped, not the database: a second for each first \
              packet at least",
    };
    without_tax::finding_and_gap(RULE.id, pair.map(|pair| pair.end.id.as_str()), words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window;
    use untax_core::activity::Doing;
    use untax_core::finding::Says;
    use untax_core::network::{ConntrackLimit, DatabaseNetwork};

    fn table(entries: u64, dropped: u64, early: u64) -> Conntrack {
        let refused = Refused { dropped, dropped_early: early, insert_failed: 0 };
        Conntrack { entries, refused: Some(refused) }
    }

    /// A window over the host's table and one of the database's own, with a limit of 1000.
    fn window(host: Conntrack, own: Conntrack, most: u64) -> Window {
        let mut window = test_window::postgres();
        let zero = table(0, 0, 0);
        for (snapshot, host, own) in [(&mut window.start, zero, zero), (&mut window.end, host, own)]
        {
            snapshot.host.conntrack = Reading::Present(ConntrackLimit { most, table: host });
            snapshot.databases[0].network = Reading::Present(DatabaseNetwork {
                own_namespace: true,
                way: Reading::Absent(String::new()),
                conntrack: Reading::Present(own),
                clients: Reading::absent("not read"),
            });
        }
        window
    }

    fn found(host: Conntrack, own: Conntrack) -> Vec<(bool, Severity, String)> {
        let diagnoses = evaluate(&window(host, own, 1000));
        let finding = |diagnosis: Diagnosis| match diagnosis.says {
            Says::Found(f) => Some((diagnosis.database.is_some(), f.severity, f.summary)),
            Says::Unmeasured(_) => None,
        };
        diagnoses.into_iter().filter_map(finding).collect()
    }

    #[test]
    fn drops_are_worse_than_a_table_that_fills() {
        let calm = table(100, 0, 0);
        let filling = found(calm, table(850, 0, 0));
        assert_eq!((filling[0].0, filling[0].1), (true, Severity::Medium));
        let drops = found(calm, table(1000, 40, 3));
        assert_eq!(drops[0].1, Severity::High);
        assert!(drops[0].2.contains("100 % full: 40 first packets"), "{}", drops[0].2);
        let mut traced = window(calm, table(1000, 40, 0), 1000);
        let mut gain = |on_cpu_s| {
            let times = [(Doing::OnCpu, on_cpu_s), (Doing::Futex, 10.0 - on_cpu_s)];
            test_window::trace(&mut traced, &times);
            let gain = test_window::found(evaluate(&traced))[0].gain.unwrap();
            [gain.low, gain.factor, gain.high].map(f64::round)
        };
        assert_eq!(gain(2.0).as_slice(), [1.0, 5.0, 9.0]);
        assert_eq!(gain(10.0).as_slice(), [1.0, 2.0, 2.0], "two CPUs have no room for more");
        assert_eq!(found(calm, table(500, 0, 9))[0].1, Severity::Medium);
    }

    #[test]
    fn what_a_table_with_room_drops_clashed() {
        let clashed = found(table(0, 0, 0), table(300, 8, 0));
        assert_eq!((clashed.len(), clashed[0].1), (1, Severity::Info));
        assert!(clashed[0].2.starts_with("8 packets were dropped as"), "{}", clashed[0].2);
        let mut window = window(table(0, 0, 0), table(300, 8, 0), 1000);
        test_window::trace(&mut window, &[(Doing::OnCpu, 2.0)]);
        let finding = test_window::found(evaluate(&window)).remove(0);
        assert!(finding.remedy.is_none() && finding.gain.is_none());
        // One that was full when the window began has been swept.
        let network = window.start.databases[0].network.as_mut().into_value().unwrap();
        network.conntrack = Reading::Present(table(1000, 0, 0));
        assert_eq!(test_window::found(evaluate(&window))[0].severity, Severity::High);
    }

    #[test]
    fn what_a_kernel_does_not_tell_is_unmeasured() {
        let untold = |entries| Conntrack { entries, refused: None };
        let mut window = window(untold(100), untold(0), 1000);
        let network = window.end.databases[0].network.as_mut().into_value().unwrap();
        network.conntrack = Reading::Absent(String::new());
        let gaps = |window: &Window| test_window::gaps(evaluate(window));
        assert_eq!(gaps(&window).len(), 2, "the host's and the database's");
        assert!(test_window::found(evaluate(&window)).is_empty());
        if let Reading::Present(conntrack) = &mut window.end.host.conntrack {
            conntrack.table.entries = 900;
        }
        assert_eq!(test_window::found(evaluate(&window))[0].severity, Severity::Medium);
    }

    #[test]
    fn the_hosts_table_is_the_hosts() {
        let host = found(table(990, 0, 0), table(10, 0, 0));
        assert_eq!((host.len(), host[0].0), (1, false));
    }

    #[test]
    fn room_and_chance_are_nothing() {
        assert!(found(table(700, 0, 0), table(700, 2, 2)).is_empty());
        let unlimited = window(table(1 << 40, 0, 0), table(0, 0, 0), 0);
        assert!(evaluate(&unlimited).is_empty(), "0 is no limit");
    }
}
