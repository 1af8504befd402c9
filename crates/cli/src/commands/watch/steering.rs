//! How databases are steered meanwhile, by what `untax steer` writes.

use std::path::Path;
use std::time::Duration;
use untax_report::watch::Steered;
use untax_steer::steered_now;
use untax_trials::Interrupt;

/// How often steering tells how things stand.
const LOOK: Duration = Duration::from_secs(1);

/// Gives what is steered whenever that changed, until interrupted or until nobody takes it.
pub fn follow(state: &Path, interrupt: &Interrupt, mut give: impl FnMut(Vec<Steered>) -> bool) {
    let mut last = Vec::new();
    loop {
        let now: Vec<Steered> = steered_now(state).into_iter().map(shown).collect();
        if now != last {
            last.clone_from(&now);
            if !give(now) {
                return;
            }
        }
        if interrupt.sleep(LOOK).is_err() {
            return;
        }
    }
}

fn shown(steered: untax_steer::Steered) -> Steered {
    let standing = steered.standing;
    Steered {
        pid: steered.pid,
        cpus: standing.cpus,
        preferred: standing.preferred,
        used_cpus: standing.used_cpus,
        preferred_busy_share: standing.preferred_busy_share,
        threads: standing.threads,
        own_threads: standing.own_threads,
        verdict: standing.verdict.map(|verdict| (verdict.gain, verdict.is_worth)),
    }
}
