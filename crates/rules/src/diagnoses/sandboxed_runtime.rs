//! `sandboxed-runtime`: the database runs on another kernel than the machine's.

use crate::evidence;
use crate::model::accounting::{self, Demand, factor};
use crate::model::idleness::IDLE_SHARE;
use crate::model::sandbox::is_sandbox;
use crate::model::stall::gain::gains_of_share;
use crate::model::stall::{self, percent};
use crate::model::without_tax::{self, Words};
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::finding::Says;
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, Finding, Interval, Severity, Snapshot, Tax, Window};

pub const RULE: Rule = Rule {
    id: "sandboxed-runtime",
    summary: "the database runs in a sandbox with a kernel of its own: gVisor or Kata Containers",
    what: "gVisor answers system calls in its own program, with its own network stack and \
           filesystem. Kata Containers starts a small virtual machine for each pod. A database \
           makes system calls for each request, so a sandbox costs it more than most programs. \
           Published figures are from one desktop. Redis pipelined made 2.21 M GET/s in runc, \
           0.083 in gVisor with ptrace, 0.89 with KVM, 2.18 in Kata. SQLite inserts took 501, 1149 \
           and 586 s. A system call took 239 ns natively, and some 1000 ns with gVisor's newer \
           systrap. On shared files Kata made 3,600 operations a second with virtiofs where runc \
           made 45,000.",
    method: "The rule reads which kernel the database sees. For gVisor it measures the CPU time of \
             the sandbox process.",
    measured: "From inside, the rule reads the kernel's name in /proc/version and the boot options \
               of the guest. From the host, the rule looks for the process of the sandbox. For \
               gVisor, seen from the host, the tax is the time on CPU of its processes, less two \
               parts. One part is the time of the database's own program (user time of the \
               processes below the sandbox). The other part is the time that a kernel would take. \
               The kernel's part is assumed to be as long as the program's, and twice as long for \
               the lower bound (a Redis that answers requests one by one). The kernel's part is at \
               most a tenth of the sandbox's time, and a quarter for the lower bound. The upper \
               bound is all of the time: threads of gVisor that wait for their next call spin as \
               if they were the program. Otherwise the tax is unmeasured: only the same load \
               outside of the sandbox would show it. From the host, a program in a sandbox cannot \
               be recognised as a database: run untax inside of the sandbox.",
    fix: "If you trust the program, give the database a runtime class without a sandbox (runc, \
          crun) on nodes of its own. Otherwise use gVisor with the systrap or KVM platform and \
          files on a local disk, or Kata with block devices rather than shared directories.",
    sources: &[
        "gvisor.dev: Performance Guide, Platforms",
        "katacontainers.io: architecture, storage",
        "blog: container runtimes on a 4-core desktop, Ubuntu 18.04 (figures read off charts)",
    ],
    privilege: "none from inside; root from the host",
    minimum_kernel: "any",
    cost: "one small file",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let mut all: Vec<Diagnosis> = Vec::new();
    for pair in window.databases() {
        if let Some((runtime, source)) = sandbox(window, &pair) {
            all.extend(diagnose(window, &pair, runtime, &source));
        }
    }
    all.extend(unchecked_sandboxes(window));
    all
}

/// The sandbox that a database is in, or is, and what tells.
fn sandbox<'a>(window: &'a Window, pair: &Pair) -> Option<(&'a str, String)> {
    let around = window.end.host.sandbox.value().map(String::as_str).filter(|name| *name != "none");
    if let Some(around) = around {
        return Some((around, "/proc/version and the boot parameters".to_owned()));
    }
    is_sandbox(pair).then(|| ("gvisor", format!("/proc/{}/exe", pair.end.pid)))
}

/// What a kernel takes for a database, over what the database's own program takes: as is likely, and
/// at most.
const KERNEL: [f64; 2] = [1.0, 2.0];

/// The most of what a sandbox takes that a kernel would take for the same: as is likely, and at all. A
/// trivial system call has a quarter (239 of some 1000 ns); a Redis in the lab had 1/25.
const OF_SANDBOX: [f64; 2] = [0.1, 0.25];

/// Time is counted in ticks of 10 ms: of less than ten of them no share can be told.
const LEAST_S: f64 = 0.1;

/// What a sandbox took of the time on CPU, seen from the host: its share, that of the database's own
/// program, and the part (0..1) of both that was not stolen. `None` where that is not known.
fn tax_parts(window: &Window, pair: &Pair) -> Option<(Interval, f64, f64)> {
    let programs_s = |snapshot: &Snapshot| {
        snapshot.sandboxes.iter().find(|sandbox| sandbox.pid == pair.end.pid)?.programs_s
    };
    let own_s = (programs_s(&window.end)? - programs_s(&window.start)?).0;
    let demand = Demand::of(window, pair).into_value()?;
    let all_s = accounting::on_cpu(pair).into_value().unwrap_or(demand.on_cpu_s);
    let own = own_s / all_s;
    let sandbox = (1.0 - own).max(0.0);
    let taken = |n: usize| sandbox - (own * KERNEL[n]).min(sandbox * OF_SANDBOX[n]);
    let [mid, low] = [taken(0), taken(1)];
    let active = all_s >= IDLE_SHARE * pair.seconds && own_s >= LEAST_S;
    active.then_some((Interval::new(low, mid, 1.0), own, demand.unstolen_part()))
}

fn diagnose(window: &Window, pair: &Pair, runtime: &str, source: &str) -> Vec<Diagnosis> {
    let fix = "use a runtime without a sandbox if you trust the database; see untax explain";
    let sandbox = Evidence::new(&evidence::SANDBOX, runtime, source);
    if let Some((taken, own, had)) = tax_parts(window, pair) {
        let own = Evidence::new(&evidence::OWN_PROGRAM, own, "/proc/PID/stat");
        // What was stolen of it comes back with it, and is the tax of another rule.
        let (share, gains) =
            (taken.scale(had), gains_of_share(window, pair, taken, taken.map(factor)));
        let finding = Finding {
            evidence: vec![sandbox, own],
            tax: Some(Tax::new(share, METHOD)),
            gain: Some(gains.throughput),
            latency_gain: Some(gains.latency),
            remedy: Some("runtime-class".to_owned()),
            ..Finding::new(
                RULE.id,
                stall::severity(share),
                format!(
                    "it runs in a sandbox of {}, which takes {} of its time on CPU",
                    name(runtime),
                    percent(share.mid)
                ),
                fix,
            )
        };
        return vec![Diagnosis { database: Some(pair.end.id.clone()), says: Says::Found(finding) }];
    }
    let words = Words {
        severity: Severity::Low,
        summary: format!("it runs in a sandbox of {}", name(runtime)),
        fix: fix.to_owned(),
        evidence: vec![sandbox],
        gain: None,
        remedy: Some("runtime-class"),
        why: "only the same load outside of the sandbox shows what it costs here",
    };
    without_tax::finding_and_gap(RULE.id, Some(&pair.end.id), words)
}

const METHOD: &str = "time on CPU of the sandbox's processes that is neither the database's own \
    program nor what a kernel is supposed to take for it, over their time on CPU, less what was stolen";

/// Sandboxes of this host that were not checked themselves.
fn unchecked_sandboxes(window: &Window) -> Option<Diagnosis> {
    let checked = |pid: u32| window.end.databases.iter().any(|database| database.pid == pid);
    let unseen: Vec<_> = window.end.sandboxes.iter().filter(|s| !checked(s.pid)).collect();
    if unseen.is_empty() {
        return None;
    }
    let evidence = unseen.iter().map(|sandbox| {
        let pid = u64::from(sandbox.pid);
        Evidence::new(&evidence::SANDBOX_PID, pid, "/proc/PID/exe").of(name(&sandbox.runtime))
    });
    Some(Diagnosis {
        database: None,
        says: Says::Found(Finding {
            evidence: evidence.collect(),
            ..Finding::new(
                RULE.id,
                Severity::Info,
                format!(
                    "{} sandboxes with kernels of their own: their programs cannot be seen from \
                     here",
                    unseen.len()
                ),
                "if a database runs in one of them, run untax inside of it",
            )
        }),
    })
}

fn name(runtime: &str) -> &str {
    match runtime {
        "gvisor" => "gVisor",
        "kata" => "Kata Containers",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window;
    use untax_core::activity::Doing;
    use untax_core::snapshot::Sandbox;
    use untax_core::{Reading, Seconds};

    #[test]
    fn from_inside_every_database_is_in_it() {
        let mut window = test_window::postgres();
        let inside = |window: &mut Window, name: &str| {
            window.end.host.sandbox = Reading::Present(name.to_owned());
            test_window::found(evaluate(window))
        };
        assert!(inside(&mut window, "none").is_empty());
        assert!(inside(&mut window, "kata")[0].summary.contains("Kata Containers"));
        assert!(inside(&mut window, "gvisor")[0].tax.is_none());
    }

    #[test]
    fn what_was_stolen_is_not_charged_to_the_sandbox_too() {
        // 10 s by the clock on the wall; by that of user and kernel time all of it, or half.
        for counted in [1.0, 0.5] {
            let mut window = test_window::postgres();
            let sandbox = |programs_s| Sandbox {
                runtime: "gvisor".to_owned(),
                pid: 7,
                programs_s: Some(Seconds(programs_s)),
            };
            window.start.sandboxes = vec![sandbox(5.0)];
            window.end.sandboxes = vec![sandbox(5.0 + counted)];
            window.end.databases[0].executable = Reading::Present("/usr/bin/runsc".to_owned());
            test_window::trace(&mut window, &[(Doing::OnCpu, 10.0)]);
            for (snapshot, on_cpu_s) in
                [(&mut window.start, 0.0), (&mut window.end, 10.0 * counted)]
            {
                snapshot.databases[0].counters.on_cpu_s = Reading::Present(Seconds(on_cpu_s));
            }
            test_window::about([0.81, 0.405, 0.5], test_window::beside_steal(&RULE, window));
        }
    }

    #[test]
    fn from_the_host_its_process_tells() {
        let mut window = test_window::postgres();
        let sandbox = |programs_s| Sandbox {
            runtime: "gvisor".to_owned(),
            pid: 7,
            programs_s: Some(Seconds(programs_s)),
        };
        window.end.sandboxes = vec![sandbox(6.0)];
        window.end.databases[0].executable = Reading::Present("/usr/bin/runsc".to_owned());
        let diagnoses = evaluate(&window);
        assert!(diagnoses.iter().all(|d| d.database.as_deref() == Some("postgres:7")));
        let unpriced = &test_window::found(diagnoses)[0];
        assert!(unpriced.summary.contains("gVisor") && unpriced.tax.is_none());
        window.start.sandboxes = vec![sandbox(5.0)];
        test_window::trace(&mut window, &[(Doing::OnCpu, 10.0)]);
        let priced = &test_window::found(evaluate(&window))[0];
        let tax = priced.tax.as_ref().unwrap();
        let percent = [tax.low, tax.share, tax.high].map(|s| (s * 100.0).round() as u64);
        assert_eq!(percent, [70, 81, 100]);

        window.end.databases[0].executable = Reading::Present("/usr/bin/postgres".to_owned());
        window.end.sandboxes[0].pid = 8;
        let findings = test_window::found(evaluate(&window));
        assert_eq!((findings.len(), findings[0].severity), (1, Severity::Info));
    }
}
