//! Causes that a changed fact tells.

use super::kind::{Kind, Parts, Sign};
use crate::scene::Scene;
use untax_core::timeline::FactChange;

const DISK: &[&str] = &["disk", "kernel", "dirty-pages"];

pub(super) const CPU_LIMIT: Kind = Kind {
    id: "cpu-limit",
    parts: Parts::These(&["throttled", "run-queue", "wake-up"]),
    look: |scene| sign(scene, &["cpu-limit"], "the CPU limit"),
};

pub(super) const CPUS: Kind = Kind {
    id: "cpus",
    parts: Parts::These(&["run-queue", "throttled", "wake-up", "cpu"]),
    look: |scene| sign(scene, &["allowed-cpus", "cpus"], "the CPUs that the database may use"),
};

pub(super) const MEMORY_LIMIT: Kind = Kind {
    id: "memory-limit",
    parts: Parts::These(&["memory", "disk", "kernel", "dirty-pages"]),
    look: |scene| sign(scene, &["memory-limit"], "the memory limit"),
};

pub(super) const IO_LIMIT: Kind = Kind {
    id: "io-limit",
    parts: Parts::These(DISK),
    look: |scene| sign(scene, &["io-limit"], "the I/O limit"),
};

pub(super) const STORAGE: Kind = Kind {
    id: "storage",
    parts: Parts::These(DISK),
    look: |scene| sign(scene, &["place."], "the place of files"),
};

pub(super) const PAGES: Kind = Kind {
    id: "pages",
    parts: Parts::These(&["cpu", "memory", "kernel"]),
    look: |scene| sign(scene, &["page-size", "huge-pages", "thp", "pool."], "memory pages"),
};

pub(super) const ROLE: Kind = Kind {
    id: "role",
    parts: Parts::All,
    look: |scene| sign(scene, &["role"], "the role of the server"),
};

pub(super) const VERSION: Kind = Kind {
    id: "version",
    parts: Parts::All,
    look: |scene| sign(scene, &["version", "product", "kernel"], "the version"),
};

pub(super) const SETTINGS: Kind = Kind {
    id: "settings",
    parts: Parts::All,
    look: |scene| sign(scene, &["setting.", "sysctl."], "a setting"),
};

pub(super) const RESTART: Kind = Kind {
    id: "restart",
    parts: Parts::All,
    look: |scene| {
        let facts = scene.facts_of(&["instance", "container", "pod"]);
        let text = "the server was started again".to_owned();
        (!facts.is_empty()).then_some(Sign { text, facts, shortens: None })
    },
};

fn sign(scene: &Scene, ids: &[&str], what: &str) -> Option<Sign> {
    let facts = scene.facts_of(ids);
    let (first, rest) = facts.split_first()?;
    let also = match rest.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    Some(Sign { text: format!("{what} changed: {}{also}", changed(first)), facts, shortens: None })
}

/// A fact in words: without its name where that is what the sentence is about.
fn changed(fact: &FactChange) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not there".to_owned());
    let name = fact.id.split_once('.').map_or("", |(_, name)| name);
    let name = if name.is_empty() { String::new() } else { format!("{name} ") };
    format!("{name}from {} to {}", value(&fact.before), value(&fact.after))
}
