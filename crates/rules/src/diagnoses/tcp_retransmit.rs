//! `tcp-retransmit`: the network loses what the database or its clients send.

use crate::evidence;
use crate::model::held_up;
use crate::model::stall::{self, Stall, percent};
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::activity::Doing;
use untax_core::database::{Model, TcpCounts};
use untax_core::finding::Says;
use untax_core::window::Pair;
use untax_core::{
    Activity, Ceiling, Database, Diagnosis, Evidence, Finding, Gain, Interval, Reading, Severity,
    Tax, Window, stats,
};

pub const RULE: Rule = Rule {
    id: "tcp-retransmit",
    summary: "segments are lost on the way and sent again after a wait",
    what: "TCP sends a lost segment again after the receiver acknowledged three later ones. At the \
           end of a request or an answer nothing follows, so TCP waits for a time-out of at least \
           200 ms. A transaction of one millisecond then takes two hundred milliseconds. The \
           causes are overrun queues, policers, bad links and full conntrack tables.",
    method: "The tax is the number of TCP time-outs times the least that each takes, divided by \
             active time plus these waits.",
    measured: "Segments sent again, segments sent and time-outs (RetransSegs, OutSegs, TCPTimeouts \
               of /proc/PID/net/snmp and netstat) count for a whole network namespace. The \
               kernel's tracepoint shows which segments sent again belong to ports that the \
               database listens on. The database is charged with the same part of the time-outs. \
               Without the tracepoint, the database is charged with all time-outs. Each time-out \
               counts as the least that it can take: 200 ms, or less where a route sets less. The \
               tax is these waits, divided by the sum of active time and the waits. The lower \
               bound counts the time-outs that no other program of the namespace can have had. The \
               upper bound counts twice those that the database can have had. A proxy in the \
               namespace also loses segments on the way to its clients. Such losses are shown \
               without a tax, since the server waits for none of them. The gain assumes that the \
               waits end. The gain is higher where no other program loses much, and the window has \
               five moments of at least 50 ms in which no client stands still. The gain is then \
               the rate of these moments over the mean rate. The higher gain is bounded by waits \
               of twice the length, since the link may allow no more and each client starts slowly \
               after a wait.",
    fix: "Find the link or queue that drops (ethtool -S, tc -s qdisc, nstat). Raise the limit on \
          the rate, or shape instead of policing. Check conntrack and MTU.",
    sources: &[
        "kernel.org: networking/snmp_counter, TcpRetransSegs, TCPTimeouts",
        "include/net/tcp.h, TCP_RTO_MIN: HZ / 5",
        "M. Mathis and others: The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm",
        "include/trace/events/tcp.h: tcp_retransmit_skb",
        "RFC 6298: computing TCP's retransmission timer",
    ],
    privilege: "none for one's own processes; root for others' network namespaces, and to tell its \
                connections from others",
    minimum_kernel: "2.6; 5.15 to tell its connections from others (bpf_task_pt_regs)",
    cost: "two files for each database, one every 50 ms or more, and where anything was sent again \
           the list of sockets that listen",
    tax_base: TaxBase::ActiveTimeAnd(stalled_s),
    scope: Scope::Platform,
    evaluate,
};

/// `TCP_RTO_MIN` of include/net/tcp.h.
const LEAST_TIMEOUT_S: f64 = 0.2;

/// On a sound network of a data centre fewer than one in a thousand is lost.
const WORTH_LOST: f64 = 0.001;

/// So much slows TCP down without any time-out: its rate falls with the square root of the loss.
const MUCH_LOST: f64 = 0.05;

/// With fewer segments a second (1.2 Mbit/s of full ones) no client waits for bandwidth.
const MUCH_SENT_PER_S: f64 = 100.0;

/// Segments sent again, a second: fewer are chance on any network. One in two seconds at 200 ms each is a
/// tenth of one client's time.
const WORTH_RESENT_PER_S: f64 = 0.5;

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let found = stall::per_database(window, RULE.id, |pair| {
        if pair.start.is_none() {
            return Reading::Present(None);
        }
        growth(pair).map(|counts| finding(window, pair, &counts))
    });
    held_up::with_reasons(window, found)
}

/// What was counted in the window in a database's network.
struct Counts {
    /// By all there; nothing when a namespace of the same name is new.
    all: TcpCounts,
    /// What the database sent again, where that is known: segments.
    own: Option<u64>,
}

impl Counts {
    /// What the database sent again, segments; all, where it is not known who did.
    fn resent(&self) -> f64 {
        let all = self.all.retransmitted_segments;
        self.own.map_or(all, |own| own.min(all)) as f64
    }

    /// So many over all segments: `OutSegs` leaves out those that are sent again.
    fn part_of_all(&self, again: f64) -> f64 {
        let sent = self.all.sent_segments + self.all.retransmitted_segments;
        again / (sent as f64).max(1.0)
    }

    fn lost_share(&self) -> f64 {
        self.part_of_all(self.resent())
    }

    /// The database's part of the segments that were sent again.
    fn own_part(&self) -> f64 {
        self.resent() / (self.all.retransmitted_segments as f64).max(1.0)
    }

    /// Whether others lost much there too.
    fn is_shared(&self) -> bool {
        self.own.is_some() && self.own_part() < MOSTLY
    }

    /// How often its timer ran out: the same part of all time-outs as of all segments sent again. Each
    /// time-out sends a segment again, so the segments of others bound it below, and its own above.
    fn timeouts(&self) -> Interval {
        let all = self.all.timeouts as f64;
        let of_others = match self.own {
            Some(_) => self.all.retransmitted_segments as f64 - self.resent(),
            None => all,
        };
        let likely = all * self.own_part();
        Interval::new((all - of_others).max(0.0).min(likely), likely, all.min(self.resent()))
    }
}

/// What is most of something: who opens connections is none of them, but is counted.
const MOSTLY: f64 = 0.95;

fn growth(pair: &Pair) -> Reading<Counts> {
    let Some(start) = pair.start else {
        return Reading::Absent("the database was started during the window".to_owned());
    };
    let own = pair.activity.value().and_then(|activity| activity.retransmits);
    start.counters.tcp.as_ref().and_then(|start| {
        pair.end.counters.tcp.as_ref().map(|end| {
            let grown = |read: fn(&TcpCounts) -> u64| read(end).saturating_sub(read(start));
            let all = TcpCounts {
                sent_segments: grown(|counts| counts.sent_segments),
                retransmitted_segments: grown(|counts| counts.retransmitted_segments),
                timeouts: grown(|counts| counts.timeouts),
                listen_overflows: grown(|counts| counts.listen_overflows),
            };
            Counts { all, own }
        })
    })
}

fn finding(window: &Window, pair: &Pair, counts: &Counts) -> Option<Says> {
    let all = counts.all.retransmitted_segments as f64;
    let is_often = |again: f64| again >= WORTH_RESENT_PER_S * pair.seconds;
    let is_notable = |again| is_often(again) && counts.part_of_all(again) >= WORTH_LOST;
    let priced = tax_and_gain(window, pair, counts).filter(|_| is_often(counts.resent()));
    let tax = priced.as_ref().map_or(0.0, |(tax, _)| tax.share);
    // Few among many of others may be all of the few that it sends.
    let is_own = is_notable(counts.resent()) || counts.own.is_some() && tax >= stall::WORTH;
    match (is_own, is_notable(all - counts.resent())) {
        (true, _) => Some(own_losses(pair, counts, priced)),
        (false, true) => Some(others_losses(counts)),
        (false, false) => None,
    }
}

fn own_losses(pair: &Pair, counts: &Counts, priced: Option<(Tax, Gain)>) -> Says {
    let (again, lost) = (counts.resent(), counts.lost_share());
    let per_s = again / pair.seconds.max(f64::EPSILON);
    let by_tax = priced.as_ref().map_or(Severity::Info, |(tax, _)| stall::severity(tax.interval()));
    let is_much_sent = counts.all.sent_segments as f64 >= MUCH_SENT_PER_S * pair.seconds;
    let by_loss = match lost {
        lost if lost >= MUCH_LOST && is_much_sent => Severity::Medium,
        _ => Severity::Info,
    };
    let of =
        if counts.is_shared() { "its network's segments are its own and" } else { "its segments" };
    Says::Found(Finding {
        evidence: evidence(counts, per_s),
        tax: priced.as_ref().map(|(tax, _)| tax.clone()),
        gain: priced.map(|(_, gain)| gain),
        ..Finding::new(
            RULE.id,
            by_tax.max(by_loss),
            format!("{} of {of} sent again, {per_s:.0} each second", percent(lost)),
            "find the queue or link that drops: ethtool -S, tc -s qdisc, nstat",
        )
    })
}

/// Worth knowing: they may be those of a proxy between it and its clients.
fn others_losses(counts: &Counts) -> Says {
    let lost = counts.part_of_all(counts.all.retransmitted_segments as f64);
    Says::Found(Finding {
        evidence: vec![
            Evidence::new(
                &evidence::RETRANSMIT_SHARE_OF_ALL,
                lost,
                "RetransSegs over OutSegs + RetransSegs",
            ),
            Evidence::new(&evidence::RETRANSMIT_OWN, counts.own_part(), OF_PORTS),
        ],
        ..Finding::new(
            RULE.id,
            Severity::Info,
            format!(
                "{} of its network's segments sent again, but not on its own connections",
                percent(lost)
            ),
            "nothing for this server; its clients wait if a proxy there sends them, or while they connect",
        )
    })
}

const OF_PORTS: &str = "connections with its ports, tcp_retransmit_skb";

fn evidence(counts: &Counts, per_s: f64) -> Vec<Evidence> {
    let all = &counts.all;
    let source = counts.own.map_or("RetransSegs, /proc/PID/net/snmp", |_| OF_PORTS);
    let part =
        counts.own.map(|_| Evidence::new(&evidence::RETRANSMIT_OWN, counts.own_part(), OF_PORTS));
    let counted = [
        Evidence::new(&evidence::RETRANSMITS, per_s, source),
        Evidence::new(&evidence::TCP_TIMEOUTS, all.timeouts, "TCPTimeouts of its network, netstat"),
        Evidence::new(
            &evidence::RETRANSMIT_SHARE,
            counts.lost_share(),
            "sent again over OutSegs + RetransSegs",
        ),
        Evidence::new(
            &evidence::LISTEN_OVERFLOWS,
            all.listen_overflows,
            "ListenOverflows of its network, netstat",
        ),
    ];
    counted.into_iter().chain(part).collect()
}

/// How long a server's threads waited for what was lost while they seemed idle, s.
fn stalled_s(pair: &Pair) -> Option<f64> {
    Some(Waits::of(pair)?.idle_stalled_s())
}

/// How long threads waited for their clients, in seconds: no wait of theirs for what was lost is longer.
struct Waits {
    /// The least that time-outs together can have taken, as many as they are likely, and can be.
    timeouts: Interval,
    /// Until a client sent something. Those that nobody asks for long may wait for what was lost, for as
    /// long as time-outs can explain.
    idle: f64,
    /// Until a client took something: active time.
    sending: f64,
}

impl Waits {
    fn of(pair: &Pair) -> Option<Self> {
        let activity = pair.activity.value()?;
        let timeouts = growth(pair).value()?.timeouts().scale(LEAST_TIMEOUT_S);
        let serving = |doings: &[Doing]| {
            activity.sum(|s| s.serves(pair.end.model) && doings.contains(&s.doing)).0
        };
        let dormant_s = serving(&[Doing::Dormant]).min(timeouts.mid);
        let idle = serving(&[Doing::Poll, Doing::Receive]) + dormant_s;
        Some(Self { timeouts, idle, sending: serving(&[Doing::Send]) })
    }

    fn all_s(&self) -> f64 {
        self.idle + self.sending
    }

    fn stalled_s(&self) -> f64 {
        self.timeouts.mid.min(self.all_s())
    }

    /// As large a part of that as of all waits.
    fn idle_stalled_s(&self) -> f64 {
        self.stalled_s() * self.idle / self.all_s().max(f64::MIN_POSITIVE)
    }
}

/// How many clients a thread serves: a loop has one for all of them.
fn clients_of_thread(pair: &Pair) -> f64 {
    match pair.end.connections.value() {
        Some(clients) if pair.end.model == Model::Loop => f64::from(*clients).max(1.0),
        _ => 1.0,
    }
}

/// The tax and the gain of waiting for what was lost, which is that part of what was sent.
fn tax_and_gain(window: &Window, pair: &Pair, counts: &Counts) -> Option<(Tax, Gain)> {
    let (activity, waits) = (pair.activity.value()?, Waits::of(pair)?);
    let active_s = activity.active(pair.end.model).0;
    if waits.stalled_s() <= 0.0 {
        return None;
    }
    let share = waits.stalled_s() / (active_s + waits.idle_stalled_s());
    let whose = match counts.own {
        Some(_) => "charged with the same part of the time-outs as of the segments sent again",
        None => "those of other programs in its network namespace among them",
    };
    let method = format!(
        "time-outs x 200 ms, the least that each takes, over active time and these waits; {whose}"
    );
    // Each may have taken longer, and more of them, or fewer, may be its own.
    let part = waits.timeouts.scale(share / waits.timeouts.mid.max(f64::MIN_POSITIVE));
    let unknown = activity.unknown_part(pair.end.model);
    let bounds = Interval::new(part.low * (1.0 - unknown), share, (2.0 * part.high).min(1.0));
    let tax = Tax::new(bounds, method).with_model(true);
    let still_s = waits.timeouts.mid.min(waits.all_s() * clients_of_thread(pair));
    let clients_s =
        clients_s(pair, activity, (active_s + waits.idle) * clients_of_thread(pair), still_s);
    let in_loop = |still_s: f64| clients_s / (clients_s - still_s).max(f64::EPSILON);
    let stall = Stall::of(window, pair, |_| false).into_value().flatten();
    let room = stall.map_or(Ceiling::of_share(1.0), |stall| stall.room());
    // Without losses the link carries others in place of what is sent again then.
    // What others send beside it tells nothing of that.
    let free = unstalled_factor(window, pair, still_s / clients_s, clients_s / pair.seconds)
        .filter(|_| !counts.is_shared())
        .map(|free| free / (1.0 - counts.lost_share().min(MOST_LOST)));
    // After each, what may be on the way grows again from one segment: that may cost as much once more.
    let without = free.map_or(in_loop(still_s), |free| free.min(in_loop(2.0 * still_s)));
    let twice = if free.is_some() { (2.0 * share).min(1.0) } else { share };
    let most = Ceiling::of_share(twice);
    let mid = without.min(room.and(most).factor());
    Some((tax, Gain::predicted(Interval::new(1.0, mid, most.factor()), most)))
}

/// The time of all clients, s: as much as threads had for them, but no more than those connected have where
/// none came or went. Who only takes connections, in a thread of its own, stands still for nobody.
fn clients_s(pair: &Pair, activity: &Activity, threads_s: f64, still_s: f64) -> f64 {
    let at = |database: &Database| database.connections.value().copied();
    let connected = pair.start.and_then(at).max(at(pair.end)).filter(|_| activity.started == 0);
    match connected.map(|connected| f64::from(connected) * pair.seconds) {
        Some(connected_s) if connected_s > still_s => threads_s.min(connected_s),
        _ => threads_s,
    }
}

/// How many times as much as on average is sent while none of so many clients stands still, each of
/// which does so for that part of its time: the link, and all else that is left, allows it.
fn unstalled_factor(window: &Window, pair: &Pair, stalled: f64, clients: f64) -> Option<f64> {
    let sent = window.sent.iter().find(|sent| sent.database == pair.end.id)?;
    let moments = &sent.segments_per_s;
    // The median of the moments in which none does.
    let none = (1.0 - stalled.clamp(0.0, 1.0)).powf(clients);
    let busy = stats::quantile(moments, 1.0 - none / 2.0)?;
    let mean = stats::mean(moments).filter(|mean| *mean > 0.0)?;
    (none * moments.len() as f64 >= FEWEST_MOMENTS).then(|| (busy / mean).max(1.0))
}

/// More than this is not sent again on any connection that lives.
const MOST_LOST: f64 = 0.5;

/// Half of fewer moments than so many may be chance.
const FEWEST_MOMENTS: f64 = 5.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window;
    use untax_core::window::Sent;

    fn lossy(retransmitted: u64, timeouts: u64) -> Vec<Finding> {
        test_window::found(evaluate(&losing(retransmitted, timeouts)))
    }

    fn losing(retransmitted: u64, timeouts: u64) -> Window {
        let mut window = test_window::postgres();
        let counts = |by: u64| TcpCounts {
            sent_segments: 100 + by * 10_000,
            retransmitted_segments: 7 + by * retransmitted,
            timeouts: 3 + by * timeouts,
            listen_overflows: 0,
        };
        window.start.databases[0].counters.tcp = Reading::Present(counts(0));
        window.end.databases[0].counters.tcp = Reading::Present(counts(1));
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::Poll, 75.0)]);
        window
    }

    #[test]
    fn what_is_sent_while_nothing_is_lost_bounds_the_gain() {
        let mut window = losing(200, 100);
        let gain = |window: &Window| test_window::found(evaluate(window))[0].gain.unwrap().factor;
        let of_waits = gain(&window);
        // A client stands still for a quarter of its time, of eight none for a tenth.
        let rates = [[900.0; 45].to_vec(), [1100.0; 55].to_vec()].concat();
        let sent = |segments_per_s| Sent { database: "postgres:7".to_owned(), segments_per_s };
        window.sent = vec![sent(rates.clone())];
        // Beside fifty segments one was sent again.
        assert!((gain(&window) - 1100.0 / 1010.0 * 1.02).abs() < 1e-9);
        window.sent = vec![sent(rates[40..50].to_vec())];
        assert!((gain(&window) - of_waits).abs() < 1e-9, "too few to say");
        window.sent = vec![sent(vec![0.0; 100])];
        assert!((gain(&window) - of_waits).abs() < 1e-9, "it was another network");
    }

    #[test]
    fn a_client_is_slow_again_after_each_wait() {
        let mut window = losing(200, 100);
        let rates = [[500.0; 80].to_vec(), [1500.0; 20].to_vec()].concat();
        window.sent = vec![Sent { database: "postgres:7".to_owned(), segments_per_s: rates }];
        let gain = |window: &Window| test_window::found(evaluate(window))[0].gain.unwrap().factor;
        // More than the waits of 20 of 80 s leave room for, which alone are 80 / 60; twice at most.
        assert!((gain(&window) - 80.0 / 40.0).abs() < 1e-9);
        // Five are connected: a thread that takes connections is no client.
        window.end.databases[0].connections = Reading::Present(5);
        assert!((gain(&window) - 1500.0 / 700.0 * 1.02).abs() < 1e-9);
    }

    #[test]
    fn clients_of_a_loop_stand_still_one_by_one() {
        let mut window = losing(200, 100);
        test_window::trace(&mut window, &[(Doing::OnCpu, 2.0), (Doing::Poll, 8.0)]);
        let gain = |window: &Window| test_window::found(evaluate(window))[0].gain.unwrap().factor;
        window.end.databases[0].model = Model::Loop;
        window.end.databases[0].connections = Reading::Present(4);
        // Longer together than the loop itself waited: 20 of 40 s.
        assert!((gain(&window) - 40.0 / 20.0).abs() < 1e-9);
        window.end.databases[0].connections = Reading::Present(1);
        assert!(gain(&window) > 4.0);
    }

    #[test]
    fn time_outs_are_charged_with_the_least_they_take() {
        let findings = lossy(200, 100);
        // 20 s beside 5 s of active time.
        let tax = findings[0].tax.clone().unwrap();
        assert!((tax.share - 0.8).abs() < 1e-9 && tax.is_unknown_in_size(), "{tax:?}");
        assert_eq!(findings[0].severity, Severity::Info, "all of them may be others'");
        let mut window = losing(200, 100);
        window.activity.as_mut().into_value().unwrap()[0].retransmits = Some(150);
        let own = test_window::found(evaluate(&window)).remove(0);
        // Of 100 time-outs others had 50 at most, so that 10 s of 20 are known to be its own.
        let tax = own.tax.unwrap();
        assert!((tax.low - tax.share * 50.0 / 75.0).abs() < 1e-9, "{tax:?}");
        assert_eq!((own.severity, tax.modelled), (Severity::High, true));
        assert!((findings[0].gain.unwrap().factor - 80.0 / 60.0).abs() < 1e-9);
        assert!(findings[0].summary.starts_with("2.0 % of its segments"));
    }

    #[test]
    fn who_waits_in_a_send_is_active_already() {
        let mut window = losing(200, 40);
        test_window::trace(&mut window, &[(Doing::OnCpu, 2.0), (Doing::Send, 8.0)]);
        let finding = test_window::found(evaluate(&window)).remove(0);
        assert!((finding.tax.unwrap().share - 0.8).abs() < 1e-9, "8 of 10 s");
        assert!((finding.gain.unwrap().factor - 5.0).abs() < 1e-9);
        // 20 of 80 s: as much again at most, if that much more is sent while nobody waits.
        let mut window = losing(200, 100);
        test_window::trace(&mut window, &[(Doing::OnCpu, 2.0), (Doing::Send, 78.0)]);
        let rates = [[500.0; 80].to_vec(), [1500.0; 20].to_vec()].concat();
        window.sent = vec![Sent { database: "postgres:7".to_owned(), segments_per_s: rates }];
        let gain = test_window::found(evaluate(&window)).remove(0).gain.unwrap();
        assert!((gain.factor - 2.0).abs() < 1e-9 && (gain.high - 2.0).abs() < 1e-9, "{gain:?}");
    }

    #[test]
    fn others_in_the_same_network_are_charged_with_their_own() {
        let mut window = losing(200, 100);
        let mut own = |own| {
            let activity = window.activity.as_mut().into_value().unwrap();
            activity[0].retransmits = Some(own);
            test_window::found(evaluate(&window)).remove(0)
        };
        for few in [0, 4] {
            let others = own(few);
            assert_eq!((others.severity, others.tax), (Severity::Info, None));
            assert!(others.summary.contains("not on its own"), "{}", others.summary);
        }
        // 10 s beside 5 s of active time, of at most as many time-outs as there were.
        let half = own(100);
        let tax = half.tax.unwrap();
        assert!((tax.share - 2.0 / 3.0).abs() < 1e-9 && (tax.high - 1.0).abs() < 1e-9);
        assert!(half.summary.starts_with("1.0 % of its network's segments"), "{}", half.summary);
        // Less than one in a thousand of all, but a second and more.
        let few = own(9);
        assert!((few.tax.as_ref().unwrap().share - 0.9 / 5.9).abs() < 1e-9, "{few:?}");
        let all = own(300);
        let alone = lossy(200, 100)[0].tax.as_ref().unwrap().share;
        assert!((all.tax.unwrap().share - alone).abs() < 1e-9);
        assert!(all.summary.starts_with("2.0 % of its segments"));
    }

    #[test]
    fn a_few_are_chance_and_no_more_is_charged_than_was_waited() {
        assert!(lossy(4, 4).is_empty());
        assert!(lossy(9, 4).is_empty(), "less than one in a thousand");
        assert!(lossy(200, 10_000)[0].tax.as_ref().unwrap().share < 0.95);
        assert_eq!(lossy(200, 0)[0].severity, Severity::Info);
        assert_eq!(lossy(600, 0)[0].severity, Severity::Medium);
        assert!(lossy(40_000, 0)[0].summary.starts_with("80 %"), "never more than all");
    }
}
