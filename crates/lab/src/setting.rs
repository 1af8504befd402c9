//! Settings of the host, put back whatever happens.

use crate::program::host_text;
use crate::shell::{Shell, TICK};
use crate::{LabError, error::at};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

const SETTINGS: &str = "/sys/kernel/mm";
const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// The longest that is waited for the kernel to find huge pages: it compacts memory for them.
const RESERVING: Duration = Duration::from_secs(60);

/// The turn to change this machine's settings, or to measure while nobody else does: one program
/// or test at a time has it, until dropped.
pub struct Turn {
    _locked: OwnedFd,
}

impl Turn {
    /// Waits for the turn, however long another has it.
    pub fn wait() -> Result<Self, LabError> {
        // The directory of the settings itself is locked, which takes no privilege and no file.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let failed = |errno: Errno| at(SETTINGS)(errno.into());
        let directory = rustix::fs::open(SETTINGS, flags, Mode::empty()).map_err(failed)?;
        rustix::fs::flock(&directory, FlockOperation::LockExclusive).map_err(failed)?;
        Ok(Self { _locked: directory })
    }
}

/// One file of the kernel's settings; holds its prior value until dropped.
struct Setting {
    _guard: Shell,
}

impl Setting {
    fn set(path: &str, prior: &str, value: &str) -> Result<Self, LabError> {
        let restore = r#"printf %s "$2" >"$1""#;
        let guard = Shell::guard("echo", restore, &[path, prior])?;
        std::fs::write(path, value).map_err(at(path))?;
        Ok(Self { _guard: guard })
    }
}

/// A pool of huge pages of 2 MiB, given back when dropped.
///
/// Two at the same time would put back each other's numbers: take a [`Turn`] first.
pub struct HugePages {
    _setting: Setting,
}

impl HugePages {
    /// Grows the pool by `pages`. Fails, and gives all back, when the kernel finds fewer within a
    /// minute.
    pub fn reserve(pages: u64) -> Result<Self, LabError> {
        let prior = read_pool()?;
        let wanted = (prior + pages).to_string();
        let setting = Setting::set(POOL, &prior.to_string(), &wanted)?;
        let since = Instant::now();
        loop {
            let got = read_pool()?.saturating_sub(prior);
            if got >= pages {
                return Ok(Self { _setting: setting });
            }
            if since.elapsed() > RESERVING {
                return Err(LabError::Pool { wanted: pages, got });
            }
            std::thread::sleep(TICK);
            // Writing the same number again makes the kernel compact memory again.
            std::fs::write(POOL, &wanted).map_err(at(POOL))?;
        }
    }
}

fn read_pool() -> Result<u64, LabError> {
    let text = host_text(POOL)?;
    text.trim().parse().map_err(|_| LabError::Host { why: format!("{POOL} says '{text}'") })
}

/// The mode of transparent huge pages, put back when dropped. Take a [`Turn`] first.
pub struct Thp {
    _setting: Setting,
}

impl Thp {
    /// Sets `always`, `madvise` or `never`.
    pub fn set(mode: &str) -> Result<Self, LabError> {
        let prior = in_brackets(&host_text(THP)?)?;
        Ok(Self { _setting: Setting::set(THP, &prior, mode)? })
    }
}

/// The chosen word of a list such as `always [madvise] never`.
fn in_brackets(text: &str) -> Result<String, LabError> {
    text.split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(word, _)| word.to_owned())
        .ok_or_else(|| LabError::Host { why: format!("{THP} says '{text}'") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_mode_is_in_brackets() {
        assert_eq!(in_brackets("always [madvise] never").unwrap(), "madvise");
        assert!(in_brackets("always madvise never").is_err());
    }
}
