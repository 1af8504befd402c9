//! Trials in a file, so that a run that was killed goes on.

use crate::{Design, Trial};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// A file of trials. Each is saved as it ends: the whole file is written beside it and takes its place.
#[derive(Debug)]
pub struct Saved {
    path: PathBuf,
    header: Header,
}

/// What must be the same for trials to stand beside each other. The number of blocks is not in it: more may
/// be asked for later, and the same seed orders the first ones alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    seed: u64,
    arms: Vec<[String; 2]>,
    cells: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Content<H, T> {
    #[serde(flatten)]
    header: H,
    trials: T,
}

/// Why trials are not read or saved.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// The file cannot be read or written.
    #[error("{}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{} holds no trials; move it away", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The trials were made in another way.
    #[error(
        "the trials in {} were made with {differs}; ask for the same to go on with them, or move the \
         file away to begin anew",
        path.display()
    )]
    Differs {
        /// The file.
        path: PathBuf,
        /// The first difference, for a person.
        differs: String,
    },
}

impl Saved {
    /// The file of a design, and the trials that an earlier run saved there: none when there is no file.
    /// Refuses trials of another design.
    pub fn open<T: for<'de> Deserialize<'de>>(
        path: &Path,
        design: &Design,
    ) -> Result<(Self, Vec<Trial<T>>), SavedError> {
        let header = Header {
            seed: design.seed,
            arms: design
                .arms
                .iter()
                .map(|arm| [arm.name.clone(), arm.configuration.clone()])
                .collect(),
            cells: design.cells.iter().map(|cell| cell.name.clone()).collect(),
        };
        let path = path.to_owned();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((Self { path, header }, Vec::new()));
            }
            Err(source) => return Err(SavedError::Io { path, source }),
        };
        let content: Content<Header, Vec<Trial<T>>> =
            serde_json::from_reader(io::BufReader::new(file))
                .map_err(|source| SavedError::Content { path: path.clone(), source })?;
        if let Some(differs) = content.header.difference(&header) {
            return Err(SavedError::Differs { path, differs });
        }
        Ok((Self { path, header }, content.trials))
    }

    /// What the order of the trials in a file was drawn from, to go on in that order; `None` where there is
    /// no such file. One that cannot be read is refused when it is opened.
    pub fn seed(path: &Path) -> Option<u64> {
        let file = File::open(path).ok()?;
        let content: Content<Header, serde_json::Value> =
            serde_json::from_reader(io::BufReader::new(file)).ok()?;
        Some(content.header.seed)
    }

    /// Saves all trials so far.
    pub fn save<T: Serialize>(&self, trials: &[Trial<T>]) -> Result<(), SavedError> {
        let failed = |source| SavedError::Io { path: self.path.clone(), source };
        let content = Content { header: &self.header, trials };
        let text = serde_json::to_string_pretty(&content).map_err(|e| failed(e.into()))?;
        let new = self.path.with_extension("json.new");
        fs::write(&new, text + "\n").map_err(failed)?;
        fs::rename(&new, &self.path).map_err(failed)
    }

    /// Removes the file, when its trials stand somewhere else.
    pub fn remove(self) -> Result<(), SavedError> {
        fs::remove_file(&self.path).map_err(|source| SavedError::Io { path: self.path, source })
    }
}

impl Header {
    /// The first thing of these that is not as in another, in words.
    fn difference(&self, other: &Self) -> Option<String> {
        if self.seed != other.seed {
            return Some(format!("seed {}, not {}", self.seed, other.seed));
        }
        let arm = |header: &Self| {
            let text = |[name, set]: &[String; 2]| format!("{name} ({set})");
            header.arms.iter().map(text).collect::<Vec<_>>().join(", ")
        };
        if self.arms != other.arms {
            return Some(format!("arms {}, not {}", arm(self), arm(other)));
        }
        let cells = |header: &Self| header.cells.join(", ");
        (self.cells != other.cells).then(|| format!("{}, not {}", cells(self), cells(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arm, Cell, Slot};

    fn design() -> Design {
        let arm = Arm { configuration: "huge_pages = off".to_owned(), ..Arm::new("4k") };
        let cells = vec![Cell { name: "-c 2".to_owned(), length: None }];
        Design::of_visits(7, vec![arm, Arm::new("2m")], cells, 3)
    }

    #[test]
    fn trials_of_another_design_are_refused_and_the_difference_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trials.json");
        let (saved, none) = Saved::open::<f64>(&path, &design()).unwrap();
        assert!(none.is_empty());
        let slot = Slot { block: 0, arm: 1, cell: 0, repeat: false };
        let made = [Trial { slot, outcome: 0.1, took_s: 2.0, guards: Vec::new(), sleeps: None }];
        saved.save(&made).unwrap();
        assert_eq!((Saved::seed(&path), Saved::seed(folder.path())), (Some(7), None));
        let more = Design::of_visits(7, design().arms, design().cells, 9);
        assert_eq!(Saved::open::<f64>(&path, &more).unwrap().1, made);
        let refused = |other: Design| Saved::open::<f64>(&path, &other).unwrap_err().to_string();
        let seed = refused(Design { seed: 8, ..design() });
        assert!(seed.contains("seed 7, not 8"), "{seed}");
        let mut on = design();
        on.arms[0].configuration = "huge_pages = on".to_owned();
        assert!(refused(on).contains("huge_pages = off"));
        let mut cells = design();
        cells.cells[0].name = "-c 64".to_owned();
        assert!(refused(cells).contains("-c 2, not -c 64"));
        fs::write(&path, "{").unwrap();
        assert!(refused(design()).contains("holds no trials"));
    }
}
