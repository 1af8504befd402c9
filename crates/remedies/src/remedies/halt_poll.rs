//! `halt-poll`: idle virtual CPUs of a guest look for work for a while before they halt. Whoever wakes one
//! of them meanwhile sends no interrupt, and neither side leaves the guest. Source: kernel.org,
//! virt/guest-halt-polling.
//!
//! The setting is for all CPUs of the guest. Where the databases may use some of these alone,
//! [`super::cpu_latency`] keeps those awake instead.

use super::cpu_latency;
use crate::case::Case;
use crate::own_cpus::{self, Setting};
use crate::remedy::{Draft, Remedy};
use untax_core::idle::{HALT_POLL_NS, HALT_POLL_WORD};
use untax_core::plan::{Task, Warning};

pub const REMEDY: Remedy = Remedy {
    id: "halt-poll",
    summary: "for how long idle virtual CPUs of a guest look for work before they halt, now and after a boot",
    answers: &["halt-poll"],
    plan,
};

/// The file of the setting.
pub const FILE: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";

fn plan(case: &Case) -> Draft {
    let now = case.snapshot.host.haltpoll.value().map(|poll| poll.poll_ns);
    let Some(now) = now.filter(|now| *now < HALT_POLL_NS) else { return Draft::default() };
    if cpu_latency::keeps_own_awake(case) {
        return Draft::default();
    }
    let databases = case.databases();
    let setting = Setting {
        id: REMEDY.id.to_owned(),
        what: "idle virtual CPUs look for work before they halt, for ns".to_owned(),
        file: FILE.to_owned(),
        from: now.to_string(),
        to: HALT_POLL_NS.to_string(),
    };
    let mut draft = Draft { warnings: vec![price(case)], ..Draft::default() };
    draft.steps.push(setting.step(REMEDY.id, &databases));
    match word(case) {
        Some(word) => {
            draft.warnings.push(decided(word));
            draft.tasks.push(ask(word, databases));
        }
        None => draft.steps.push(own_cpus::at_boot(&[setting], REMEDY.id, &databases)),
    }
    draft
}

/// What the kernel's command line says of it, where it does: the kernel takes `-` and `_` for the same.
fn word<'a>(case: &Case<'a>) -> Option<&'a str> {
    let words = case.snapshot.host.kernel.value()?.parameters.value()?;
    let is_it = |word: &&str| {
        word.split_once('=').is_some_and(|(name, _)| name.replace('-', "_") == HALT_POLL_WORD)
    };
    // The last one counts.
    words.iter().map(String::as_str).rfind(is_it)
}

fn price(case: &Case) -> Warning {
    let cpus = case.snapshot.host.cpu.value().map(|cpu| cpu.logical);
    let cpus = cpus.map_or_else(|| "all".to_owned(), |cpus| format!("all {cpus}"));
    Warning {
        id: "halt-poll-price".to_owned(),
        refuses: false,
        text: format!(
            "{cpus} virtual CPUs of this guest then take up to {} us of the host's CPU each time \
             that they have nothing to do: it costs power, may be billed, and is missing to other \
             guests; busy CPUs take no more than now",
            HALT_POLL_NS / 1000
        ),
    }
}

fn decided(word: &str) -> Warning {
    Warning {
        id: "halt-poll-decided".to_owned(),
        refuses: false,
        text: format!(
            "the kernel's command line says {word}: somebody decided that, since it is the host's CPU \
             that is taken. Ask the owner of the host below this guest, or whoever makes its image, \
             before you apply this plan"
        ),
    }
}

/// After a boot the command line holds again, and no file of untax goes against it.
fn ask(word: &str, databases: Vec<String>) -> Task {
    Task {
        remedy: REMEDY.id.to_owned(),
        summary: format!(
            "after a boot {word} of the kernel's command line holds again: where the host's owner \
             agrees, make it {HALT_POLL_WORD}={HALT_POLL_NS}"
        ),
        databases,
        file: None,
    }
}
