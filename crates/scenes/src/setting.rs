//! Settings of the host, put back whatever happens.

use crate::program::host_text;
use crate::shell::{Shell, TICK};
use crate::{SceneError, error::at};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use untax_core::Bytes;

const SETTINGS: &str = "/sys/kernel/mm";
const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

const FREE: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
const RESERVED: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages";
const SURPLUS: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/surplus_hugepages";

/// Writes `$2` pages into the pool `$1` until no more than `$4` are surplus by `$3`: pages that a
/// server still has when its pool shrinks become surplus. They stay so though nobody has them any
/// more when the server ends while the pool shrinks; the kernel gives such pages back only after
/// they have become ordinary ones, which those of a pool do when all its pages are asked for.
const SHRINK: &str = r#"
printf %s "$2" >"$1"
ticks=900
while [ "$(cat "$3")" -gt "$4" ] && [ "$ticks" -gt 0 ]; do
    sleep 0.1
    printf %s "$(cat "$1")" >"$1"
    printf %s "$2" >"$1"
    ticks=$((ticks - 1))
done
"#;

/// The longest that is waited for the kernel to find huge pages: it compacts memory for them.
const RESERVING: Duration = Duration::from_secs(60);

/// The turn to change this machine's settings, or to measure while nobody else does: one program
/// or test at a time has it, until dropped. After an abrupt end it lasts until all that was started
/// meanwhile has ended and cleaned up.
pub struct Turn {
    locked: OwnedFd,
}

impl Turn {
    /// Waits for the turn, however long another has it.
    pub fn wait() -> Result<Self, SceneError> {
        // The directory of the settings itself is locked, which takes no privilege and no file.
        // Children inherit it: when this process is killed, the shells that put things back keep
        // others from measuring until they are done.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let failed = |errno: Errno| at(SETTINGS)(errno.into());
        let directory = rustix::fs::open(SETTINGS, flags, Mode::empty()).map_err(failed)?;
        rustix::fs::flock(&directory, FlockOperation::LockExclusive).map_err(failed)?;
        Ok(Self { locked: directory })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Not by closing it alone: a child that outlives this, such as another test's, has it too.
        let _ = rustix::fs::flock(&self.locked, FlockOperation::Unlock);
    }
}

/// One file of the kernel's settings; its prior value comes back when this is dropped.
pub struct Setting {
    _guard: Shell,
    path: String,
    value: String,
}

/// Another value of a setting; the first one comes back when this is dropped. Whoever is killed
/// meanwhile leaves the prior value of the setting itself.
pub struct Instead {
    path: String,
    value: String,
}

impl Drop for Instead {
    fn drop(&mut self) {
        // What the setting belongs to may be gone by now.
        let _ = std::fs::write(&self.path, &self.value);
    }
}

impl Setting {
    pub(crate) fn set(path: &str, prior: &str, value: &str) -> Result<Self, SceneError> {
        // What the setting belongs to, such as a control group, may be gone by then.
        let restore = r#"{ printf %s "$2" >"$1"; } 2>/dev/null"#;
        let guard = Shell::guard("echo", restore, &[path, prior])?;
        std::fs::write(path, value).map_err(at(path))?;
        Ok(Self { _guard: guard, path: path.to_owned(), value: value.to_owned() })
    }

    /// Writes what this makes of its value until that is dropped.
    pub(crate) fn instead(&self, other: impl Fn(&str) -> String) -> Result<Instead, SceneError> {
        let instead = Instead { path: self.path.clone(), value: self.value.clone() };
        std::fs::write(&self.path, other(&self.value)).map_err(at(&self.path))?;
        Ok(instead)
    }
}

/// A pool of huge pages of 2 MiB, given back when dropped.
///
/// Two at the same time would put back each other's numbers: take a [`Turn`] first.
pub struct HugePages {
    _guard: Shell,
    prior: Pool,
}

/// Pages of a pool. Those that are surplus are not among them: who writes the pool's number sets
/// that of the others.
#[derive(Clone, Copy)]
struct Pool {
    pages: u64,
    /// How many of them nobody has taken or reserved.
    idle: u64,
}

impl Pool {
    fn read() -> Result<Self, SceneError> {
        let pages = read_number(POOL)?.saturating_sub(read_number(SURPLUS)?);
        let idle = read_number(FREE)?.saturating_sub(read_number(RESERVED)?);
        Ok(Self { pages, idle })
    }

    /// How many pages are left when those are given back that have become idle since `prior`: what
    /// was there and idle before is meant for others, such as a database that is to start.
    fn trimmed(self, prior: Self) -> u64 {
        self.pages.saturating_sub(self.idle.saturating_sub(prior.idle)).max(prior.pages)
    }
}

impl HugePages {
    /// Grows the pool by `pages`. Fails, and gives all back, when the kernel finds fewer within a
    /// minute.
    pub fn reserve(pages: u64) -> Result<Self, SceneError> {
        // Those that are surplus become ordinary ones before the pool grows.
        let (prior, total) = (Pool::read()?, read_number(POOL)?);
        let wanted = (total + pages).to_string();
        let surplus = host_text(SURPLUS)?;
        let arguments = [POOL, &prior.pages.to_string(), SURPLUS, surplus.trim()];
        let guard = Shell::guard("echo", SHRINK, &arguments)?;
        std::fs::write(POOL, &wanted).map_err(at(POOL))?;
        let since = Instant::now();
        loop {
            let got = read_number(POOL)?.saturating_sub(total);
            if got >= pages {
                return Ok(Self { _guard: guard, prior });
            }
            if since.elapsed() > RESERVING {
                return Err(SceneError::Pool { wanted: pages, got });
            }
            std::thread::sleep(TICK);
            // Writing the same number again makes the kernel compact memory again.
            std::fs::write(POOL, &wanted).map_err(at(POOL))?;
        }
    }

    /// Gives back what nobody has taken or reserved of it.
    pub fn trim(&self) -> Result<(), SceneError> {
        let kept = Pool::read()?.trimmed(self.prior);
        std::fs::write(POOL, kept.to_string()).map_err(at(POOL))
    }
}

fn read_number(path: &str) -> Result<u64, SceneError> {
    let text = host_text(path)?;
    text.trim().parse().map_err(|_| SceneError::Host { why: format!("{path} says '{text}'") })
}

/// The mode of transparent huge pages, put back when dropped. Take a [`Turn`] first.
pub struct Thp {
    _setting: Setting,
}

impl Thp {
    /// Sets `always`, `madvise` or `never`.
    pub fn set(mode: &str) -> Result<Self, SceneError> {
        let prior = in_brackets(&host_text(THP)?)?;
        Ok(Self { _setting: Setting::set(THP, &prior, mode)? })
    }
}

/// How much of memory changed pages may fill, put back when dropped. Take a [`Turn`] first.
pub struct DirtyLimits {
    _guards: [Shell; 2],
}

impl DirtyLimits {
    /// Sets from how many bytes on the kernel writes in the background, and from how many it holds
    /// writers back.
    pub fn set(background: Bytes, foreground: Bytes) -> Result<Self, SceneError> {
        let limit = |name: &str, wanted: Bytes| {
            let [bytes, ratio] =
                ["bytes", "ratio"].map(|unit| format!("/proc/sys/vm/dirty_{name}{unit}"));
            // Setting the one clears the other.
            let prior = match read_number(&bytes)? {
                0 => (&ratio, read_number(&ratio)?),
                limit => (&bytes, limit),
            };
            let restore = r#"printf %s "$2" >"$1""#;
            let guard = Shell::guard("echo", restore, &[prior.0, &prior.1.to_string()])?;
            std::fs::write(&bytes, wanted.0.to_string()).map_err(at(&bytes))?;
            Ok(guard)
        };
        Ok(Self { _guards: [limit("background_", background)?, limit("", foreground)?] })
    }
}

/// The chosen word of a list such as `always [madvise] never`.
fn in_brackets(text: &str) -> Result<String, SceneError> {
    text.split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(word, _)| word.to_owned())
        .ok_or_else(|| SceneError::Host { why: format!("{THP} says '{text}'") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_were_idle_before_stay() {
        let pool = |pages, idle| Pool { pages, idle };
        assert_eq!(pool(160, 30).trimmed(pool(0, 0)), 130);
        assert_eq!(pool(260, 130).trimmed(pool(100, 100)), 230, "100 are idle as before");
        assert_eq!(pool(260, 200).trimmed(pool(100, 0)), 100, "others gave some back meanwhile");
        assert_eq!(pool(260, 20).trimmed(pool(100, 50)), 260, "others took some meanwhile");
    }

    #[test]
    fn the_chosen_mode_is_in_brackets() {
        assert_eq!(in_brackets("always [madvise] never").unwrap(), "madvise");
        assert!(in_brackets("always madvise never").is_err());
    }
}
