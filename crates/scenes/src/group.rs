//! Control groups for a scratch server and for its neighbours.

use crate::SceneError;
use crate::program::host_text;
use crate::program::words;
use crate::setting::{Override, Setting};
use crate::shell::Shell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use untax_core::host::CgroupMount;
use untax_host::{Host, facts};

/// The controllers that scenes limit, and that of version 2, which has the pressure files.
const USED_CONTROLLERS: [&str; 5] = ["cpu", "cpuacct", "memory", "blkio", "unified"];

/// The controllers of version 2 that scenes limit.
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "io"];

/// How many tenths of a second the server in a group has to end by itself before the group's
/// cleanup ends it: longer than the shell that runs it gives it.
const END_TIMEOUT: &str = "700";

/// Makes the groups `$2…` up to `--`. What follows is only removed: a container's runtime makes groups of
/// these names in other hierarchies.
const MAKE: &str = r#"
patience=$1 made=made
shift
for directory in "$@"; do
    [ "$directory" = -- ] && break
    mkdir "$directory" || made=
done
echo "$made"
"#;

/// Removes them once they are empty; after `$1` tenths of a second it kills the processes that are left.
const REMOVE: &str = r#"
ticks=0
for directory in "$@"; do
    while [ -d "$directory" ] && [ "$ticks" -lt 1200 ]; do
        rmdir "$directory" 2>/dev/null && break
        if [ "$ticks" -ge "$patience" ]; then
            while read -r process; do kill -s KILL "$process"; done <"$directory/cgroup.procs"
        fi
        sleep 0.1
        ticks=$((ticks + 1))
    done
done 2>/dev/null
"#;

/// Puts a program into the groups `$1…` up to `--`, and becomes it.
const ENTER: &str = r#"
while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs" || exit 126; shift; done
shift
exec "$@"
"#;

/// A control group in every hierarchy that matters; removed when dropped.
pub struct Group {
    _guard: Shell,
    members: Vec<Member>,
    path: String,
}

/// The group in one hierarchy.
struct Member {
    controllers: Vec<String>,
    directory: String,
}

impl Group {
    /// A group for a server, which ends in good order before the group goes.
    pub fn for_server() -> Result<Self, SceneError> {
        Self::make("server", END_TIMEOUT, None)
    }

    /// A group for neighbours, which are killed at once.
    pub fn for_neighbours() -> Result<Self, SceneError> {
        Self::make("neighbour", "0", None)
    }

    /// The same for a server, below this one.
    pub fn server_below(&self) -> Result<Self, SceneError> {
        Self::make("server", END_TIMEOUT, Some(self))
    }

    /// The same for neighbours, below this one.
    pub fn neighbours_below(&self) -> Result<Self, SceneError> {
        Self::make("neighbour", "0", Some(self))
    }

    /// A group for both of them.
    pub fn for_all() -> Result<Self, SceneError> {
        Self::make("pod", END_TIMEOUT, None)
    }

    /// A group of version 2 alone for clients, which are killed at once: no controller of version 1 tells
    /// them from programs outside.
    pub(crate) fn for_clients() -> Result<Self, SceneError> {
        let is_unified = |mount: &CgroupMount| mount.controllers == ["unified"];
        let mounts: Vec<CgroupMount> = mounts()?.into_iter().filter(is_unified).collect();
        if mounts.is_empty() {
            let (what, why) = ("control groups of version 2", "none are mounted");
            return Err(SceneError::Lacking { what: what.to_owned(), why: why.to_owned() });
        }
        let directory = |mount: &CgroupMount, name: &str| Member {
            controllers: mount.controllers.clone(),
            directory: format!("{}/{name}", mount.path.trim_end_matches('/')),
        };
        Self::make_in("clients", "0", "", |name| {
            Ok(mounts.iter().map(|mount| directory(mount, name)).collect())
        })
    }

    /// Its directory in the hierarchy of version 2.
    pub(crate) fn unified(&self) -> Result<&str, SceneError> {
        let mut members = self.members.iter();
        let member = members.find(|member| member.controllers == ["unified"]);
        let why = || "no control groups of version 2 are mounted here".to_owned();
        member.map(|m| m.directory.as_str()).ok_or_else(|| SceneError::Host { why: why() })
    }

    fn make(role: &str, patience: &str, above: Option<&Self>) -> Result<Self, SceneError> {
        let path = above.map_or("", |above| above.path.as_str());
        Self::make_in(role, patience, path, |name| match above {
            None => members(&mounts()?, name),
            Some(above) => above.members.iter().map(|member| member.below(name)).collect(),
        })
    }

    fn make_in(
        role: &str,
        patience: &str,
        above: &str,
        members: impl FnOnce(&str) -> Result<Vec<Member>, SceneError>,
    ) -> Result<Self, SceneError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if !crate::account::is_root() {
            return Err(SceneError::NeedsRoot { what: "a control group" });
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("untax-lab-{}-{number}-{role}", std::process::id());
        let (members, path) = (members(&name)?, format!("{above}/{name}"));
        let mounts = mounts()?;
        let everywhere = mounts.iter().map(|m| format!("{}{path}", m.path.trim_end_matches('/')));
        let arguments: Vec<String> = std::iter::once(patience.to_owned())
            .chain(members.iter().map(|member| member.directory.clone()))
            .chain(["--".to_owned()])
            .chain(everywhere)
            .collect();
        let guard = Shell::guard(MAKE, REMOVE, &arguments)?;
        if guard.first_line != "made" {
            let why = format!("no control group {name} could be made");
            return Err(SceneError::Host { why });
        }
        Ok(Self { _guard: guard, members, path })
    }

    /// Its path in every hierarchy.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Its directory in every hierarchy that it is in.
    pub fn directories(&self) -> Vec<String> {
        self.members.iter().map(|member| member.directory.clone()).collect()
    }

    /// The words that go before a command so that it runs in this group.
    pub(crate) fn enter_command(&self) -> Vec<String> {
        let mut line = words(["/bin/sh", "-c", ENTER, "untax-lab"]);
        line.extend(self.members.iter().map(|member| member.directory.clone()));
        line.push("--".to_owned());
        line
    }

    /// Moves a process into it, all its threads with it.
    pub fn admit(&self, pid: u32) -> Result<(), SceneError> {
        for member in &self.members {
            let file = format!("{}/cgroup.procs", member.directory);
            std::fs::write(&file, pid.to_string()).map_err(crate::error::at(&file))?;
        }
        Ok(())
    }

    /// The directory with this controller: the first name is that of version 1, the other that of
    /// version 2. Says which it is.
    pub fn directory(&self, v1: &str, v2: &str) -> Result<(Version, &str), SceneError> {
        let find = |wanted: &str| {
            let mut members = self.members.iter();
            members.find(|member| member.controllers.iter().any(|controller| controller == wanted))
        };
        if let Some(member) = find(v1) {
            return Ok((Version::V1, &member.directory));
        }
        let why = format!("no control groups with the controller {v1} here");
        let member = find("unified").ok_or_else(|| SceneError::Host { why: why.clone() })?;
        let has = host_text(&format!("{}/cgroup.controllers", member.directory))?;
        if has.split_whitespace().any(|controller| controller == v2) {
            return Ok((Version::V2, &member.directory));
        }
        Err(SceneError::Host { why })
    }

    /// Limits its processor time to so many CPUs.
    pub fn limit_cpus(&self, cpus: f64) -> Result<Setting, SceneError> {
        let (version, directory) = self.directory("cpu", "cpu")?;
        let (file, none) = match version {
            Version::V1 => ("cpu.cfs_quota_us", "-1".to_owned()),
            Version::V2 => ("cpu.max", format!("max {PERIOD_US}")),
        };
        Setting::set(&format!("{directory}/{file}"), &none, &quota(version, cpus))
    }

    /// Gives its limit of processor time another value, until that is dropped.
    pub fn change_cpus(&self, limit: &Setting, cpus: f64) -> Result<Override, SceneError> {
        let (version, _) = self.directory("cpu", "cpu")?;
        limit.replace_value(|_| quota(version, cpus))
    }

    /// Processor time that it has used, seconds.
    pub fn cpu_s(&self) -> Result<f64, SceneError> {
        let (version, directory) = self.directory("cpuacct", "cpu")?;
        let (file, name, units_per_s) = match version {
            Version::V1 => ("cpuacct.usage", "", 1e9),
            Version::V2 => ("cpu.stat", "usage_usec ", 1e6),
        };
        let text = host_text(&format!("{directory}/{file}"))?;
        let value =
            text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        let why = || format!("{directory}/{file} has no processor time");
        value.map(|value| value / units_per_s).ok_or_else(|| SceneError::Host { why: why() })
    }

    /// Limits its memory, page cache included.
    pub fn limit_memory(&self, bytes: u64) -> Result<Setting, SceneError> {
        let (file, none) = match self.directory("memory", "memory")? {
            (Version::V1, directory) => (format!("{directory}/memory.limit_in_bytes"), "-1"),
            (Version::V2, directory) => (format!("{directory}/memory.max"), "max"),
        };
        Setting::set(&file, none, &bytes.to_string())
    }

    /// Processes in it that the kernel killed for going over its memory limit.
    pub fn oom_kills(&self) -> Result<u64, SceneError> {
        let file = match self.directory("memory", "memory")? {
            (Version::V1, directory) => format!("{directory}/memory.oom_control"),
            (Version::V2, directory) => format!("{directory}/memory.events"),
        };
        let text = host_text(&file)?;
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        Ok(count.and_then(|count| count.trim().parse().ok()).unwrap_or(0))
    }

    /// Memory charged to it, bytes.
    pub fn charged_bytes(&self) -> Result<u64, SceneError> {
        let (version, directory) = self.directory("memory", "memory")?;
        let usage = match version {
            Version::V1 => "memory.usage_in_bytes",
            Version::V2 => "memory.current",
        };
        Ok(host_text(&format!("{directory}/{usage}"))?.trim().parse().unwrap_or(0))
    }

    /// How much of that is not page cache, bytes. Waits until the kernel has updated `memory.stat`.
    pub fn unreclaimable_bytes(&self) -> Result<u64, SceneError> {
        std::thread::sleep(STAT_AGE);
        let (version, directory) = self.directory("memory", "memory")?;
        let stat = host_text(&format!("{directory}/memory.stat"))?;
        let counter = |name: &str| {
            let mut fields = stat.lines().filter_map(|line| line.split_once(' '));
            fields.find(|(field, _)| *field == name)?.1.parse::<u64>().ok()
        };
        // What can be dropped at once; memory shared between processes cannot be without swap.
        let evictable = match version {
            Version::V1 => ["total_inactive_file", "total_active_file"],
            Version::V2 => ["inactive_file", "active_file"],
        };
        let evictable: u64 = evictable.iter().filter_map(|name| counter(name)).sum();
        Ok(self.charged_bytes()?.saturating_sub(evictable))
    }
}

/// The period of a limit of processor time, the kernel's default.
const PERIOD_US: u32 = 100_000;

/// A limit of so many CPUs, as the kernel takes it.
fn quota(version: Version, cpus: f64) -> String {
    let quota_us = (f64::from(PERIOD_US) * cpus) as u64;
    match version {
        Version::V1 => quota_us.to_string(),
        Version::V2 => format!("{quota_us} {PERIOD_US}"),
    }
}

/// The oldest that `memory.stat` can be: the kernel updates it every two seconds (`FLUSH_TIME` of
/// mm/memcontrol.c), or when it is read after many changes. The usage is always up to date.
const STAT_AGE: Duration = Duration::from_millis(2500);

/// Which version of control groups a controller is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// One hierarchy for each controller.
    V1,
    /// One hierarchy for all.
    V2,
}

impl Member {
    fn below(&self, name: &str) -> Result<Self, SceneError> {
        if self.controllers == ["unified"] {
            enable_controllers(&self.directory)?;
        }
        let directory = format!("{}/{name}", self.directory);
        Ok(Self { controllers: self.controllers.clone(), directory })
    }
}

fn mounts() -> Result<Vec<CgroupMount>, SceneError> {
    let layout = facts::read_all(&Host::live()).cgroup;
    let why = layout.why();
    match layout.into_value() {
        Some(layout) => Ok(layout.mounts),
        None => Err(SceneError::Host { why: why.unwrap_or_default() }),
    }
}

fn members(mounts: &[CgroupMount], name: &str) -> Result<Vec<Member>, SceneError> {
    let is_used = |mount: &&CgroupMount| {
        mount.controllers.iter().any(|controller| USED_CONTROLLERS.contains(&controller.as_str()))
    };
    let mut members = Vec::new();
    for mount in mounts.iter().filter(is_used) {
        if mount.controllers == ["unified"] {
            enable_controllers(&mount.path)?;
        }
        let directory = format!("{}/{name}", mount.path.trim_end_matches('/'));
        members.push(Member { controllers: mount.controllers.clone(), directory });
    }
    Ok(members)
}

/// Enables the controllers of the root for the groups below it. That limits no group, and is not put
/// back: other programs may rely on it before the scene ends.
fn enable_controllers(root: &str) -> Result<(), SceneError> {
    let has = host_text(&format!("{root}/cgroup.controllers"))?;
    let file = format!("{root}/cgroup.subtree_control");
    let enabled = host_text(&file)?;
    let listed = |list: &str, name: &str| list.split_whitespace().any(|word| word == name);
    for name in CONTROLLERS.iter().filter(|name| listed(&has, name) && !listed(&enabled, name)) {
        std::fs::write(&file, format!("+{name}")).map_err(crate::error::at(&file))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(controllers: &[&str], path: &str) -> CgroupMount {
        let controllers = controllers.iter().map(|name| (*name).to_owned()).collect();
        CgroupMount { controllers, path: path.to_owned(), root: "/".to_owned() }
    }

    #[test]
    fn one_group_for_each_hierarchy_that_matters() {
        let mounts = [
            mount(&["cpu", "cpuacct"], "/sys/fs/cgroup/cpu,cpuacct"),
            mount(&["pids"], "/sys/fs/cgroup/pids"),
            mount(&["memory"], "/sys/fs/cgroup/memory"),
        ];
        let members = members(&mounts, "untax-lab-1").unwrap();
        let directories: Vec<&str> = members.iter().map(|m| m.directory.as_str()).collect();
        let expected =
            ["/sys/fs/cgroup/cpu,cpuacct/untax-lab-1", "/sys/fs/cgroup/memory/untax-lab-1"];
        assert_eq!(directories, expected);
    }
}
