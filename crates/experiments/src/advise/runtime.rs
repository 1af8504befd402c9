//! What runs a database, and which cell of `bench runtime` is like it.

use super::basis::Basis;
use super::kept::Kept;
use super::nearest::{Nearest, nearest};
use untax_core::advice::Needs;
use untax_core::window::Pair;
use untax_core::{Database, Reading, Window};

/// The arm of a database that is in no container.
const HOST: &str = "host";

/// What starts the containers of those that make them, unless they are told otherwise. The files of a
/// container's control group name the latter alone.
const STARTED_BY: [(&str, &str); 6] = [
    ("runc", "runc"),
    ("docker", "runc"),
    ("containerd", "runc"),
    ("cri-o", "runc"),
    ("crun", "crun"),
    ("podman", "crun"),
];

/// The arm that is like what runs a database.
pub(super) fn now(window: &Window, database: &Database) -> Reading<String> {
    let around = window.end.host.sandbox.value().filter(|name| *name != "none");
    let is_sandbox = window.end.sandboxes.iter().any(|sandbox| sandbox.pid == database.pid);
    if is_sandbox || around.is_some() {
        let why = "it is in a sandbox, and which platform that uses is not known";
        return Reading::absent(why);
    }
    let Some(container) = &database.container else { return Reading::Present(HOST.to_owned()) };
    let started = STARTED_BY.iter().find(|(maker, _)| *maker == container.runtime);
    started.map_or_else(
        || Reading::Absent(format!("no runtime of the bench is like {}", container.runtime)),
        |(_, arm)| Reading::Present((*arm).to_owned()),
    )
}

/// What the prices of runtimes stand on.
pub(super) fn basis(kept: &Kept, pair: &Pair, needs: &Needs) -> Basis {
    if let Some(Nearest { key, note }) = nearest(kept, pair.end, needs) {
        return Basis::Cell { key, note };
    }
    Basis::Unknown(format!(
        "no {} was measured in runtimes here: untax bench runtime --list names the work there is, and \
         --workload measures a command of yours",
        pair.end.product
    ))
}
