//! What was before: written down and on disk before anything is changed.

use super::tree::Tree;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The schema's name and version.
const SCHEMA: &str = "untax.guard/1";
/// The file's name in the state directory.
const NAME: &str = "bench-guard.json";
/// Between two attempts to restore.
const PAUSE: Duration = Duration::from_millis(10);

/// One setting and its prior value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Setting {
    /// A pool of huge pages on one node.
    Pool {
        /// Its directory.
        directory: String,
        /// Pages that were configured.
        persistent: u64,
        /// Pages beyond those, which vanish when they become free.
        surplus: u64,
    },
    /// A file that holds one of several words.
    Word {
        /// The file.
        file: String,
        /// The word that was valid.
        word: String,
    },
}

impl Setting {
    /// A pool as it is now.
    pub fn pool(tree: &Tree, directory: &str) -> io::Result<Self> {
        Ok(Self::Pool {
            directory: directory.to_owned(),
            persistent: persistent(tree, directory)?,
            surplus: tree.number(&format!("{directory}/surplus_hugepages"))?,
        })
    }

    /// The file that is written.
    pub fn file(&self) -> String {
        match self {
            Self::Pool { directory, .. } => format!("{directory}/nr_hugepages"),
            Self::Word { file, .. } => file.clone(),
        }
    }

    /// The value before, as it is written.
    pub fn prior(&self) -> String {
        match self {
            Self::Pool { persistent, .. } => persistent.to_string(),
            Self::Word { word, .. } => word.clone(),
        }
    }

    /// Whether the value is what it was before. A pool that still has more surplus than before
    /// is not: pages of it are in use and not given back yet.
    fn is_restored(&self, tree: &Tree) -> io::Result<bool> {
        match self {
            Self::Pool { directory, persistent: before, surplus } => {
                let now = tree.number(&format!("{directory}/surplus_hugepages"))?;
                Ok(persistent(tree, directory)? == *before && now <= *surplus)
            }
            Self::Word { file, word } => Ok(tree.word(file)? == *word),
        }
    }

    /// Writes the prior value unless it is there; `true` when it is.
    pub fn restore(&self, tree: &Tree) -> io::Result<bool> {
        if self.is_restored(tree)? {
            return Ok(true);
        }
        if let Self::Pool { .. } = self {
            // Pages whose user ended while their pool shrank are free and stay surplus: the kernel gives
            // them back only after they have become ordinary ones, as all that are asked for are.
            let total = tree.number(&self.file())?;
            tree.write(&self.file(), &total.to_string())?;
        }
        tree.write(&self.file(), &self.prior())?;
        self.is_restored(tree)
    }
}

/// Pages of a pool that were configured: `nr_hugepages` counts surplus ones, too.
pub(super) fn persistent(tree: &Tree, directory: &str) -> io::Result<u64> {
    let total = tree.number(&format!("{directory}/nr_hugepages"))?;
    Ok(total.saturating_sub(tree.number(&format!("{directory}/surplus_hugepages"))?))
}

/// All settings that a bench may change, with their prior values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    schema: String,
    /// Prior values hold until the machine boots anew.
    boot: String,
    root: PathBuf,
    settings: Vec<Setting>,
}

impl Journal {
    /// A journal of these settings.
    pub fn new(tree: &Tree, settings: Vec<Setting>) -> Self {
        let root = tree.root().to_owned();
        Self { schema: SCHEMA.to_owned(), boot: boot_id(), root, settings }
    }

    /// The settings.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Where the journal of a state directory is.
    pub fn path(state: &Path) -> PathBuf {
        state.join(NAME)
    }

    /// Writes it so that it is on disk, whole or not at all, when this returns.
    pub fn save(&self, state: &Path) -> io::Result<PathBuf> {
        let (path, draft) = (Self::path(state), state.join(format!("{NAME}.new")));
        let mut file = File::create(&draft)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.sync_all()?;
        fs::rename(&draft, &path)?;
        File::open(state)?.sync_all()?;
        Ok(path)
    }

    /// Reads the journal at a path; `None` when there is none, or it is from before this boot.
    pub fn load(path: &Path) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let journal: Self = serde_json::from_reader(file)?;
        Ok((journal.boot == boot_id()).then_some(journal))
    }

    /// Puts every prior value back, trying again until `patience` ends: pages that a dying
    /// process still holds come back only when it is gone. Gives back what could not be restored.
    pub fn restore(&self, patience: Duration) -> Vec<(&Setting, String)> {
        let (tree, began) = (Tree::at(&self.root), Instant::now());
        loop {
            let left: Vec<(&Setting, String)> = self
                .settings
                .iter()
                .filter_map(|setting| match setting.restore(&tree) {
                    Ok(true) => None,
                    Ok(false) => Some((setting, "still in use".to_owned())),
                    Err(error) => Some((setting, error.to_string())),
                })
                .collect();
            if left.is_empty() || began.elapsed() >= patience {
                return left;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// The kernel's name for this boot; empty where it has none, so that a journal then always holds.
fn boot_id() -> String {
    Tree::live().text("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}
