//! Whether a database does so little that it has no time to lose.

use crate::model::accounting::counted_active_s;
use untax_core::activity::{Part, Spent};
use untax_core::database::Model;
use untax_core::window::Pair;
use untax_core::{Activity, Reading};

/// A database that works for less of the window than this, all threads together, has no time to lose.
pub const IDLE_SHARE: f64 = 0.05;

/// As many requests of a window may be untax's own: an older Redis is asked for each of 15 settings by
/// itself, at both ends.
const OWN_REQUESTS: f64 = 40.0;

/// Beside these, what monitors ask of a database that nobody else uses.
const MONITORS_PER_S: f64 = 1.0;

/// How long the threads of a database worked, s: active time, but for threads that no client waits for
/// without their waits for CPUs.
///
/// Timers wake threads of an idle database several times a second. On a machine whose CPUs are full each
/// of them then waits for a CPU far longer than it works, and nobody waits for it.
pub fn worked_s(pair: &Pair) -> Reading<f64> {
    match pair.activity.value() {
        Some(activity) => Reading::Present(traced_work_s(pair, activity)),
        // Without tracing, what the kernel counts anyway: time on CPU and runnable. The answers that untax
        // asks for are most of that in a database that nobody else asks.
        None => counted_active_s(pair),
    }
}

/// Whether it hardly worked at all.
pub fn is_idle(pair: &Pair) -> Reading<bool> {
    worked_s(pair).map(|worked_s| worked_s < IDLE_SHARE * pair.seconds)
}

fn traced_work_s(pair: &Pair, activity: &Activity) -> f64 {
    let model = pair.end.model;
    let asked = is_asked(pair);
    let is_awaited = |spent: &Spent| match model {
        // Nobody knows for whom they work.
        Model::Unknown => true,
        _ => asked && spent.serves(model),
    };
    let works = |spent: &Spent| match spent.part(model) {
        Part::Contended | Part::Throttled | Part::WakeUp => is_awaited(spent),
        part => part.is_active(),
    };
    activity.sum(works).0
}

/// Whether anybody but untax asked it for something. Only threads and processes that a client spoke to
/// are told from others by how they wait; a loop waits for timers and clients in one call.
fn is_asked(pair: &Pair) -> bool {
    let requests = pair.end.traits.requests_counter.as_deref().map(|name| pair.told_growth(name));
    match requests {
        Some(Reading::Present(requests)) if pair.end.model == Model::Loop => {
            requests > OWN_REQUESTS + MONITORS_PER_S * pair.seconds
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::{self, make};
    use untax_core::Seconds;
    use untax_core::activity::{Doing, Polling};
    use untax_core::window::{Other, Window};

    /// An engine whose threads did this in ten seconds, on a machine that a neighbour fills.
    fn beside_a_batch(engine: &str, model: Model, times: &[(Polling, Doing, f64)]) -> Window {
        let mut window = test_window::postgres();
        for snapshot in [&mut window.start, &mut window.end] {
            make(&mut snapshot.databases[0], engine);
            snapshot.databases[0].model = model;
        }
        test_window::trace(&mut window, &[]);
        if let Reading::Present(activities) = &mut window.activity {
            activities[0].slices[0].spent = times
                .iter()
                .map(|(polling, doing, s)| Spent::own(*polling, *doing, Seconds(*s)))
                .collect();
        }
        window.others = vec![Other::unknown(50, "batch", Seconds(19.5), "not read")];
        window
    }

    fn is_idle(window: &Window) -> bool {
        super::is_idle(&window.databases().next().unwrap()).into_value().unwrap()
    }

    /// Its tax for contention, and whether a reader hears why there is none.
    fn judged(window: &Window) -> (Option<f64>, bool) {
        let checked = crate::check(window, String::new(), Reading::absent("a test"));
        let database = &checked.databases[0];
        let found = database.findings.iter().find(|finding| finding.rule == "cpu-contended");
        let tax = found.and_then(|finding| finding.tax.as_ref()).map(|tax| tax.share);
        (tax, database.unmeasured.iter().any(|gap| gap.why.contains("tax: idle")))
    }

    #[test]
    fn timers_of_an_idle_mysql_that_queue_for_a_full_cpu_are_no_tax() {
        let background = [
            (Polling::Never, Doing::OnCpu, 0.12),
            (Polling::Never, Doing::Contended, 6.0),
            (Polling::Never, Doing::WakeUp, 0.2),
        ];
        let idle = beside_a_batch("mysql", Model::Thread, &background);
        assert!(is_idle(&idle));
        assert_eq!(judged(&idle), (None, true));
        // One client that waits for a CPU as long as that is work of which time is lost.
        let client =
            [(Polling::Forever, Doing::OnCpu, 0.1), (Polling::Forever, Doing::Contended, 5.0)];
        let served = [&background[..], &client].concat();
        let served = beside_a_batch("mysql", Model::Thread, &served);
        assert!(!is_idle(&served));
        assert!(judged(&served).0.is_some_and(|share| share > 0.5));
    }

    #[test]
    fn a_loop_that_nobody_asks_is_idle_however_long_its_timer_waits_for_a_cpu() {
        let loops = [(Polling::Timed, Doing::OnCpu, 0.1), (Polling::Timed, Doing::Contended, 4.0)];
        let asked = |requests: u64| {
            let mut window = beside_a_batch("redis", Model::Loop, &loops);
            for (snapshot, count) in [(&mut window.start, 0), (&mut window.end, requests)] {
                let told = [("total_commands_processed".to_owned(), count)].into();
                snapshot.databases[0].counters.told = Reading::Present(told);
            }
            is_idle(&window)
        };
        assert!(asked(3), "untax's own");
        assert!(!asked(1_000));
        let silent = beside_a_batch("redis", Model::Loop, &loops);
        assert!(!is_idle(&silent), "nobody knows what it was asked");
    }

    #[test]
    fn background_work_itself_counts_and_so_does_all_of_an_unknown_program() {
        let flusher = [(Polling::Never, Doing::Disk, 6.0), (Polling::Never, Doing::OnCpu, 0.1)];
        assert!(!is_idle(&beside_a_batch("mysql", Model::Thread, &flusher)));
        let batch = [(Polling::Never, Doing::Contended, 9.0), (Polling::Never, Doing::OnCpu, 0.1)];
        assert!(!is_idle(&beside_a_batch("generic", Model::Unknown, &batch)));
        assert!(is_idle(&beside_a_batch("postgres", Model::Process, &batch)));
    }
}
