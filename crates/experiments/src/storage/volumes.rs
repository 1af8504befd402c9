//! The arms: directories that a user names, or scratch volumes of each kind.

use super::arguments::Request;
use super::device::{Way, way};
use super::files;
use super::paths::Given;
use super::spec::{Job, Work};
use super::trial::{answer, spawn};
use crate::platform::{Arm, Trouble};
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use untax_changes::Program;
use untax_core::Bytes;
use untax_host::Host;
use untax_scenes::{Filesystem, Postgres, Volume};
use untax_trials::Interrupt;

/// Room for a scratch PostgreSQL, its log, files that grow, and the filesystem itself.
const ROOM: Bytes = Bytes(512 << 20);

/// All that is written below a directory.
pub(crate) fn need(data: Bytes) -> Bytes {
    data + files::LOG + ROOM
}

/// What the configuration of an arm calls the directory that it is.
pub(crate) const PATH: &str = "path";

/// Where an arm's files go.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) arm: String,
    filesystem: Filesystem,
    base: PathBuf,
}

/// A volume that is made and filled. It lasts for the whole run: its files are written once, and each trial
/// of each cell finds the same.
pub(crate) struct Made {
    // In this order: the server ends before its files go.
    pub(crate) postgres: Option<Rc<RefCell<Postgres>>>,
    /// Commits a second of that server when it flushes nothing.
    pub(crate) unflushed: Option<f64>,
    volume: Volume,
    pub(crate) way: Way,
}

impl Made {
    pub(crate) fn directory(&self) -> PathBuf {
        self.volume.path()
    }
}

/// The places of a request.
pub(crate) fn places(request: &Request, given: &[Given]) -> Vec<Place> {
    if given.is_empty() {
        let scratch = |filesystem: &Filesystem| Place {
            arm: filesystem.id().to_owned(),
            filesystem: *filesystem,
            base: request.base.clone(),
        };
        return Filesystem::ALL.iter().map(scratch).collect();
    }
    let place = |given: &Given| Place {
        arm: given.id.clone(),
        filesystem: Filesystem::Directory,
        base: given.path.clone(),
    };
    given.iter().map(place).collect()
}

/// Arms that no machine makes from nothing: a user names a directory on one.
const NEVER: [(&str, &str, &str); 3] = [
    ("dm-crypt", "an encrypted volume", "needs a device of its own and its key"),
    (
        "virtiofs",
        "a directory of the host, in a guest",
        "needs a guest whose hypervisor shares one",
    ),
    ("9p", "a directory of the host, in a guest", "needs a guest whose hypervisor shares one"),
];

/// The arms of all places, and with scratch volumes those that only a user can provide.
pub(crate) fn arms(places: &[Place], is_scratch: bool) -> Vec<Arm> {
    let mut arms: Vec<Arm> = places.iter().map(Place::arm).collect();
    if is_scratch {
        let never = |(id, summary, why): &(&str, &str, &str)| {
            Arm::new(id, summary).cannot(format!("{why}; mount it and pass --path"))
        };
        arms.extend(NEVER.iter().map(never));
    }
    arms
}

impl Place {
    fn arm(&self) -> Arm {
        let host = Host::live();
        let base = self.base.display();
        let below = way(&host, &self.base.to_string_lossy());
        let summary = match self.filesystem {
            Filesystem::Directory => format!("files below {base}, on {}", below.filesystem),
            Filesystem::Overlay => format!("a layer over {base}, as containers have it"),
            Filesystem::Tmpfs => {
                "memory: what all but the disk costs; lost when power is".to_owned()
            }
            other => format!("{} in a full image below {base}, on a loop device", other.id()),
        };
        let mut arm = Arm::new(&self.arm, &summary);
        if self.filesystem == Filesystem::Directory {
            arm = arm.with(PATH, base.to_string());
        }
        if self.filesystem != Filesystem::Tmpfs {
            for (name, value) in facts(&host, &below) {
                arm = arm.with(&name, value);
            }
        }
        match self.filesystem.obstacle(&self.base) {
            Some(why) => arm.cannot(why),
            None => arm,
        }
    }

    /// Makes it and writes its files.
    pub(crate) fn make(
        &self,
        program: &Program,
        data: Bytes,
        interrupt: &Interrupt,
    ) -> Result<Made, Trouble> {
        let mebibytes = need(data).0 >> 20;
        let volume = Volume::make(self.filesystem, &self.base, mebibytes);
        let volume = volume.map_err(|error| Trouble::of(&error))?;
        let directory = volume.path();
        let way = way(&Host::live(), &directory.to_string_lossy());
        let job = Job {
            directory,
            work: Work::Fill,
            length: Duration::ZERO,
            data,
            seed: 1,
            devices: Vec::new(),
            cpus: [Vec::new(), Vec::new()],
        };
        answer(spawn(program, &job)?, interrupt)?;
        Ok(Made { postgres: None, unflushed: None, volume, way })
    }
}

/// The word in brackets, of several that may be chosen.
fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(word, _)| word)
}

/// What is in force on the way down.
fn facts(host: &Host, way: &Way) -> Vec<(String, String)> {
    let names: Vec<&str> = way.devices.iter().map(|device| device.name.as_str()).collect();
    let mut facts = vec![("devices".to_owned(), names.join(" on "))];
    let whole = way.devices.last().map(|device| device.whole.as_str());
    for (name, file) in [("write-cache", "write_cache"), ("scheduler", "scheduler")] {
        let Some(whole) = whole else { continue };
        let text = host.text(&format!("/sys/dev/block/{whole}/queue/{file}")).into_value();
        facts.extend(text.map(|text| (name.to_owned(), chosen(text.trim()).to_owned())));
    }
    facts.extend(way.gap.clone().map(|gap| ("unknown".to_owned(), gap)));
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_in_force_is_the_one_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("write back"), "write back");
    }

    #[test]
    fn named_directories_replace_scratch_volumes_and_what_cannot_be_made_is_listed() {
        let request = Request { base: PathBuf::from("/tmp"), ..Request::example() };
        let scratch = places(&request, &[]);
        let names: Vec<String> = arms(&scratch, true).into_iter().map(|arm| arm.id).collect();
        let expected = ["directory", "overlayfs", "ext4", "xfs", "btrfs", "tmpfs"];
        assert_eq!(names, [&expected[..], &["dm-crypt", "virtiofs", "9p"]].concat());
        let crypt = arms(&scratch, true).into_iter().find(|arm| arm.id == "dm-crypt").unwrap();
        assert!(crypt.cannot.unwrap().contains("pass --path"));
        let given = [Given { id: "data".to_owned(), path: PathBuf::from("/") }];
        let arms = arms(&places(&request, &given), false);
        assert_eq!(arms.len(), 1);
        assert_eq!((arms[0].id.as_str(), arms[0].cannot.as_ref()), ("data", None));
    }
}
