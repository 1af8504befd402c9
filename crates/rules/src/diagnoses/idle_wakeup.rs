//! `idle-wakeup`: CPUs sleep between requests, and each request waits until one is awake.

use crate::evidence;
use crate::model::idle_cpus::Idle;
use crate::model::laws::fitted::COLD_CPU;
use crate::model::stall::{self, Stall, WORTH, Words, percent};
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::activity::Cause;
use untax_core::finding::Says;
use untax_core::window::Pair;
use untax_core::{Activity, Diagnosis, Evidence, Finding, Interval, Reading, Severity, Window};

pub const RULE: Rule = Rule {
    id: "idle-wakeup",
    summary: "CPUs sleep between requests, and each request waits until one is awake",
    what: "A thread that is woken on an idle CPU waits until that CPU is awake. A halted virtual \
           CPU needs an interrupt through the hypervisor, which takes tens of microseconds. A \
           processor in a deep C-state takes 100 to 200 microseconds. The thread that wakes the \
           CPU pays for sending the interrupt. Sleeping CPUs affect databases that look unloaded: \
           few clients send short requests, one after the other.",
    method: "The tax is the traced time from a wake-up until an idle CPU runs the thread, divided \
             by the sum of active time and these waits.",
    measured: "The scheduler's events show how long a thread waited from its wake-up until the \
               idle task left the CPU to it. An awake CPU also takes 1.9 us for each wake-up; this \
               time is left out. Samples of stacks show the CPU time that threads spent to send \
               interrupts. Interrupts are off meanwhile, so these samples fall on the function \
               that enables interrupts again, below a function that wakes threads. Samples count \
               for the part of wake-ups that met a sleeping CPU; the lower bound leaves the \
               samples out. The gain assumes a closed loop: clients on this machine are woken as \
               often as the server. After a virtual CPU halted, threads compute twice as long, as \
               measured on one machine; the gain includes this too. The tax and the gain's lower \
               bound leave this slowdown out. An open loop gains at most the same factor in \
               latency, and no throughput. Where CPUs are busy anyway, nothing is gained, and the \
               finding is info.",
    fix: "In guests with the haltpoll governor, set guest_halt_poll_ns = 200000. On hardware, \
          forbid deep C-states on the database's CPUs (PM QoS). Elsewhere, use halt polling by the \
          hypervisor (kvm.halt_poll_ns). Each of these burns power or the host's CPU while there \
          is no work, and busy cores may lose turbo. So change only the database's CPUs, and \
          measure.",
    sources: &[
        "kernel.org: virt/guest-halt-polling",
        "kernel.org: admin-guide/pm/cpuidle, power/pm_qos_interface",
        "ceph/ceph#5013, scylladb/scylladb#1895, redhat-performance/tuned#808",
    ],
    privilege: "root (CAP_BPF and CAP_PERFMON)",
    minimum_kernel: "5.15 (bpf_task_pt_regs)",
    cost: "part of the tracing of threads, which aims at 0.5 % of one CPU, 1 % in windows of 5 s",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

/// What passes between waking a thread and its first instruction on a CPU that is awake and idle.
/// PostgreSQL with one client and `guest_halt_poll_ns` = 200000 on a KVM guest (kernel 6.18): 8 % of
/// active time of 23 us a request.
const AWAKE_S: f64 = 1.9e-6;

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    stall::per_database(window, RULE.id, |pair| evaluate_one(window, pair))
}

fn evaluate_one(window: &Window, pair: &Pair) -> Reading<Option<Says>> {
    let model = pair.end.model;
    let waits = Stall::of(window, pair, |spent| spent.goes_to(Cause::WakeUp, model));
    let activity = pair.activity.clone();
    waits.and_then(|stall| {
        let Some(stall) = stall else { return Reading::Present(None) };
        activity.and_then(|activity| {
            if activity.wake_ups.is_none() {
                let why = "the version that made this capture did not separate sleeping CPUs from \
                           busy ones";
                return Reading::Absent(why.to_owned());
            }
            let Some(seen) = Seen::of(activity) else { return Reading::Present(None) };
            let waiting = stall.share.scale(seen.asleep_time);
            let sending = seen.sending.map_or(Interval::exact(0.0), |share| {
                let share = share.scale(seen.part_asleep * seen.asleep_time);
                Interval::new(0.0, share.mid, share.high)
            });
            stall.with_share(waiting).with_cpu_share(sending).map(|stall| {
                let stall =
                    stall.with_clients_woken(waiting.mid).with_cheaper_work(seen.colder(window));
                (stall.share.mid >= WORTH).then(|| finding(&stall, &seen, window))
            })
        })
    })
}

/// What was seen of wake-ups on idle CPUs.
struct Seen {
    /// The part (0..1) of all wake-ups.
    part_asleep: f64,
    /// How long each took, s.
    mean_s: f64,
    /// The part (0..1) of that which an awake CPU does not take.
    asleep_time: f64,
    /// The share of time on CPU in which threads woke others, where that was sampled.
    sending: Option<Interval>,
}

impl Seen {
    fn of(activity: &Activity) -> Option<Self> {
        let part_asleep = activity.wake_ups?.part_asleep()?;
        let mean_s = activity.mean_wake_up()?.0;
        let asleep_time = (1.0 - AWAKE_S / mean_s).max(0.0);
        Some(Self { part_asleep, mean_s, asleep_time, sending: activity.share_waking() })
    }

    /// The part (0..1) of computing that is there only because CPUs had slept.
    fn colder(&self, window: &Window) -> Interval {
        let part = |factor: f64| self.part_asleep * self.asleep_time * (1.0 - 1.0 / factor);
        let virtualization = window.end.host.virtualization.value();
        let is_guest = virtualization.is_some_and(|kind| kind != "none");
        let mid = if is_guest { part(COLD_CPU[0]) } else { 0.0 };
        Interval::new(0.0, mid, part(COLD_CPU[1]))
    }
}

fn finding(stall: &Stall, seen: &Seen, window: &Window) -> Says {
    let idle = Idle::of(&window.end.host);
    let words = Words {
        summary: format!(
            "{} of its time went into waking idle CPUs, {:.0} us each",
            percent(stall.share.mid),
            seen.mean_s * 1e6
        ),
        fix: idle
            .map_or("keep idle CPUs awake, or send more requests at once", Idle::fix)
            .to_owned(),
        evidence: evidence(seen, window, idle),
        method:
            "time from waking a thread to its first run on a CPU that slept, traced, and samples \
                 of sending interrupts, over active time"
                .to_owned(),
        remedy: idle.and_then(Idle::remedy),
    };
    match stall::finding(RULE.id, stall, words) {
        // Busy CPUs: there is work for them whenever one would have slept.
        Says::Found(found)
            if [found.gain, found.latency_gain]
                .iter()
                .all(|gain| gain.is_some_and(|gain| gain.factor < 1.0 / (1.0 - WORTH))) =>
        {
            Says::Found(Finding { severity: Severity::Info, remedy: None, ..found })
        }
        says => says,
    }
}

fn evidence(seen: &Seen, window: &Window, idle: Option<Idle>) -> Vec<Evidence> {
    let events = "scheduler's events";
    let mut evidence = vec![
        Evidence::new(&evidence::WAKE_UPS_ASLEEP, seen.part_asleep, events),
        Evidence::new(&evidence::WAKE_UP_TIME, seen.mean_s, events),
    ];
    if let Some(share) = seen.sending {
        evidence.push(Evidence::new(&evidence::WAKING_SHARE, share.mid, "samples of stacks"));
    }
    let host = &window.end.host;
    if let Some(governor) = host.cpuidle.value().and_then(|idle| idle.governor.value()) {
        let source = "/sys/devices/system/cpu/cpuidle";
        evidence.push(Evidence::new(&evidence::IDLE_GOVERNOR, governor.clone(), source));
    }
    match idle {
        Some(Idle::HaltsThough(poll_ns)) => evidence.push(Evidence::new(
            &evidence::HALT_POLL,
            poll_ns as f64 / 1e9,
            "/sys/module/haltpoll/parameters/guest_halt_poll_ns",
        )),
        Some(Idle::SleepsIn(state)) => evidence.push(
            Evidence::new(
                &evidence::IDLE_STATE_LATENCY,
                state.latency_us as f64 / 1e6,
                "/sys/devices/system/cpu/cpu*/cpuidle",
            )
            .of(&state.name),
        ),
        _ => {}
    }
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{self, found, gaps};
    use untax_core::activity::{Doing, WakeUps};
    use untax_core::idle::{CpuIdle, HaltPoll, IdleState};
    use untax_core::window::Other;
    use untax_core::{Finding, Seconds};

    /// One client, who waits for the server while this waits for it; `each_us` for each wake-up.
    fn one_client(each_us: f64, on_cpu_s: f64, wake_up_s: f64, idle_s: f64) -> Window {
        let mut window = test_window::postgres();
        let times = [(Doing::OnCpu, on_cpu_s), (Doing::WakeUp, wake_up_s), (Doing::Poll, idle_s)];
        test_window::trace(&mut window, &times);
        let asleep = (wake_up_s / each_us * 1e6) as u64;
        if let Reading::Present(activities) = &mut window.activity {
            activities[0].clients = vec![77];
            activities[0].wake_ups = Some(WakeUps { all: asleep, asleep });
        }
        window.others = vec![Other::unknown(77, "pgbench", Seconds(1.5), "not read")];
        if let Reading::Present(time) = &mut window.end.host.cpu_time {
            time.idle_s = Seconds(50.0 + 10.0);
            time.busy_s = Seconds(10.0);
        }
        window
    }

    fn only(window: &Window) -> Finding {
        let mut findings = found(evaluate(window));
        assert_eq!(findings.len(), 1, "{findings:?}");
        findings.remove(0)
    }

    #[test]
    fn one_client_of_a_guest_that_halts_pays_most_of_its_time() {
        let mut window = one_client(30.0, 4.0, 3.0, 3.0);
        test_window::sample_waking(&mut window, 280);
        window.end.host.haltpoll = Reading::Present(HaltPoll {
            poll_ns: 0,
            grow_start_ns: Reading::absent("not read"),
            allow_shrink: Reading::absent("not read"),
        });
        window.end.host.cpuidle = Reading::Present(CpuIdle {
            driver: "haltpoll".to_owned(),
            governor: Reading::Present("haltpoll".to_owned()),
            states: Reading::absent("not read"),
        });
        let finding = only(&window);
        let tax = finding.tax.unwrap();
        // 28.1 us of 30 us of 3 s, and the same part of 28 % of 4 s, of 7 s.
        let part = 1.0 - 1.9 / 30.0;
        assert!((tax.low - 3.0 * part / 7.0).abs() < 1e-9, "{tax:?}");
        assert!((tax.share - (3.0 + 0.28 * 4.0) * part / 7.0).abs() < 1e-9, "{tax:?}");
        assert_eq!(
            (finding.severity, finding.remedy.as_deref()),
            (Severity::High, Some("halt-poll"))
        );
        let gain = finding.gain.unwrap();
        // Of 10 s remain those on CPU, and of the 3 s of the client what it computes.
        assert!(gain.factor > 1.5 && gain.factor < 3.0, "{gain:?}");
        assert!(finding.summary.contains("30 us each"), "{}", finding.summary);
    }

    #[test]
    fn cold_caches_of_virtual_cpus_raise_the_gain_and_not_the_tax() {
        let mut window = one_client(30.0, 4.0, 3.0, 3.0);
        window.end.host.virtualization = Reading::Present("none".to_owned());
        let metal = only(&window);
        window.end.host.virtualization = Reading::Present("kvm".to_owned());
        let guest = only(&window);
        assert_eq!(metal.tax, guest.tax);
        let [metal, guest] = [metal, guest].map(|finding| finding.gain.unwrap());
        assert!((metal.low - guest.low).abs() < 1e-9, "{guest:?} and {metal:?}");
        assert!(guest.factor > metal.factor * 1.2, "{guest:?} and {metal:?}");
    }

    #[test]
    fn what_an_awake_cpu_takes_is_no_tax() {
        assert!(found(evaluate(&one_client(1.9, 4.0, 0.4, 3.0))).is_empty());
        assert!(
            found(evaluate(&one_client(30.0, 4.0, 0.0, 3.0))).is_empty(),
            "nobody was woken so"
        );
    }

    #[test]
    fn deep_sleep_of_hardware_is_named() {
        let mut window = one_client(140.0, 4.0, 3.0, 3.0);
        window.end.host.virtualization = Reading::Present("none".to_owned());
        window.end.host.cpuidle = Reading::Present(CpuIdle {
            driver: "intel_idle".to_owned(),
            governor: Reading::Present("menu".to_owned()),
            states: Reading::Present(vec![IdleState {
                name: "C6".to_owned(),
                latency_us: 133,
                usage: Reading::Present(1),
                time_us: Reading::Present(1),
                disabled_on: Vec::new(),
            }]),
        });
        let finding = only(&window);
        assert_eq!(finding.remedy.as_deref(), Some("cpu-latency"));
        assert!(finding.evidence.iter().any(|e| e.name.contains("C6")), "{:?}", finding.evidence);
    }

    #[test]
    fn where_cpus_are_busy_nothing_is_gained_and_nothing_done() {
        let mut window = one_client(30.0, 10.0, 1.0, 30.0);
        window.others[0].cpu_s = Seconds(9.9);
        window.others[0].threads = 8;
        if let Reading::Present(time) = &mut window.end.host.cpu_time {
            time.idle_s = Seconds(50.1);
            time.busy_s = Seconds(19.9);
        }
        let finding = only(&window);
        assert_eq!((finding.severity, finding.remedy), (Severity::Info, None));
    }

    #[test]
    fn clients_that_think_gain_latency_and_no_throughput() {
        // Eight clients whose connections wait for 79 s of 80, and who compute for a tenth of a second.
        let mut window = one_client(30.0, 0.6, 0.4, 79.0);
        window.others[0].cpu_s = Seconds(0.1);
        window.others[0].waited_s = Some(Seconds(0.1));
        let thinking = only(&window);
        let latency = thinking.latency_gain.unwrap();
        let share = thinking.tax.unwrap().share;
        assert!(latency.factor > 1.3 && latency.high > 1.0 / (1.0 - share), "{latency:?}");
        assert!(
            (latency.low - 1.0).abs() < 1e-9,
            "clients see more than the database: {latency:?}"
        );
        assert!(thinking.gain.unwrap().factor < 1.02, "{:?}", thinking.gain);
        assert!(thinking.severity > Severity::Info);
        let mut closed = one_client(30.0, 4.0, 3.0, 3.0);
        closed.others[0].waited_s = Some(Seconds(0.5));
        let closed = only(&closed).gain.unwrap();
        assert!(closed.factor > 1.3, "who asks as fast as possible gains throughput: {closed:?}");
        // Clients elsewhere may ask as fast as they can, or not.
        window.others.clear();
        assert!((only(&window).gain.unwrap().low - 1.0).abs() < 1e-9);
    }

    #[test]
    fn an_older_capture_says_that_it_does_not_know() {
        let mut window = one_client(30.0, 4.0, 3.0, 3.0);
        if let Reading::Present(activities) = &mut window.activity {
            activities[0].wake_ups = None;
        }
        let why = gaps(evaluate(&window)).remove(0);
        assert!(why.contains("the version that made this capture"), "{why}");
    }
}
