//! What threads did, as runs of older versions have it.

use super::causes::Cause;
use super::kinds::{Doing, Polling};
use super::slice::Spent;
use crate::Seconds;
use serde::{Deserialize, Deserializer};

/// [`Spent`] in a file.
#[derive(Deserialize)]
struct Written {
    polling: Polling,
    doing: Way,
    #[serde(default)]
    behind: Option<Cause>,
    time_s: Seconds,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Way {
    Today(Doing),
    Older(OlderFutex),
}

/// Waits in a futex, by what any other thread of the database waited for meanwhile.
#[derive(Deserialize)]
enum OlderFutex {
    #[serde(rename = "futex-disk")]
    Disk,
    #[serde(rename = "futex-filesystem")]
    Filesystem,
    #[serde(rename = "futex-dirty-throttled")]
    DirtyThrottled,
    #[serde(rename = "futex-reclaim")]
    Reclaim,
    #[serde(rename = "futex-idle")]
    Idle,
}

impl OlderFutex {
    fn behind(&self) -> Cause {
        match self {
            Self::Disk => Cause::Disk,
            Self::Filesystem => Cause::Kernel,
            Self::DirtyThrottled => Cause::DirtyPages,
            Self::Reclaim => Cause::Memory,
            Self::Idle => Cause::Idle,
        }
    }
}

impl<'de> Deserialize<'de> for Spent {
    fn deserialize<D: Deserializer<'de>>(file: D) -> Result<Self, D::Error> {
        let Written { polling, doing, behind, time_s } = Written::deserialize(file)?;
        Ok(match doing {
            Way::Today(doing) => Self { polling, doing, behind, time_s },
            Way::Older(of) => {
                Self { polling, doing: Doing::Futex, behind: Some(of.behind()), time_s }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_behind_others_means_the_same_in_older_runs() {
        let read = |doing: &str| {
            let text = format!(r#"{{"polling":"forever","doing":"{doing}","time_s":2.0}}"#);
            serde_json::from_str::<Spent>(&text)
        };
        let behind_disk = read("futex-disk").unwrap();
        let own = Spent::own(Polling::Forever, Doing::Futex, Seconds(2.0));
        assert_eq!(behind_disk, Spent { behind: Some(Cause::Disk), ..own });
        assert_eq!(read("futex").unwrap(), own);
        let today = serde_json::to_string(&behind_disk).unwrap();
        assert_eq!(serde_json::from_str::<Spent>(&today).unwrap(), behind_disk);
        assert!(read("futex-network").is_err(), "no version wrote it");
    }
}
