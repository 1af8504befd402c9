//! Writes facts of the node to a file. Node Feature Discovery turns these into labels of the node. Taxes are in no
//! label: they change with each window, and each change of a label is a write to the API server.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use untax_core::{Check, page_size};

/// The features are gone from the node so long after an agent wrote them last.
const KEPT: Duration = Duration::from_secs(3600);

/// The longest value of a label, and its letters.
const LONGEST: usize = 63;

/// The features that a check gives, by name. A fact that is not known gives none.
pub(crate) fn features(check: &Check) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let host = &check.host;
    for pool in host.hugepages.value().into_iter().flatten().filter(|pool| pool.node.is_none()) {
        if let Some(pages) = pool.total.value() {
            let size = page_size::kubernetes_word(pool.size_bytes);
            all.insert(format!("untax-hugepages-{size}"), pages.to_string());
        }
    }
    if let Some(thp) = host.thp.value() {
        all.insert("untax-thp".to_owned(), label(thp.mode()));
    }
    all
}

/// A text as the value of a label.
fn label(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let text: String = text.chars().map(plain).take(LONGEST).collect();
    text.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

/// The file. Node Feature Discovery drops it once it expires, so that nodes lose the labels of an agent that is gone.
fn text(features: &BTreeMap<String, String>, check: &Check) -> String {
    let until = check.taken_at + KEPT;
    let lines: String = features.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    format!(
        "# Facts of this node, by untax agent.\n# +expiry-time={}\n{lines}",
        until.strftime("%Y-%m-%dT%H:%M:%SZ")
    )
}

/// Where the features go.
#[derive(Debug, Clone)]
pub(crate) struct FeaturesFile(pub PathBuf);

impl FeaturesFile {
    /// Writes the features of a check. Whoever reads the directory sees the old file or the new one.
    pub fn write(&self, check: &Check) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.0.display());
        let folder = self.0.parent().filter(|folder| !folder.as_os_str().is_empty());
        // Node Feature Discovery leaves hidden files alone.
        let mut hidden = tempfile::Builder::new();
        let file = hidden.prefix(".untax-").tempfile_in(folder.unwrap_or(Path::new(".")));
        let mut file = file.map_err(failed)?;
        file.write_all(text(&features(check), check).as_bytes()).map_err(failed)?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        file.as_file().set_permissions(mode).map_err(failed)?;
        file.persist(&self.0).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::Reading::{self, Present};
    use untax_core::host::{HostFacts, Pool};
    use untax_core::{Bytes, Snapshot};

    fn check() -> Check {
        let pool = |node| Pool {
            size_bytes: Bytes::MIB_2,
            node,
            total: Present(64),
            free: Reading::absent("a test"),
            reserved: Reading::absent("a test"),
            surplus: Reading::absent("a test"),
        };
        let facts = HostFacts {
            hugepages: Present(vec![pool(None), pool(Some(0))]),
            ..HostFacts::unknown("a test")
        };
        let taken_at = jiff::Timestamp::UNIX_EPOCH;
        Check::of(&Snapshot::of_host(taken_at, 1.0, facts), "a-run", "a test")
    }

    #[test]
    fn facts_that_are_known_are_features_and_others_are_none() {
        let all = features(&check());
        assert_eq!(all, BTreeMap::from([("untax-hugepages-2Mi".to_owned(), "64".to_owned())]));
        assert_eq!(label("[always] madvise\n"), "always--madvise");
    }

    #[test]
    fn the_file_expires_and_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = FeaturesFile(folder.path().join("untax"));
        for _ in 0..2 {
            file.write(&check()).unwrap();
        }
        #[expect(clippy::disallowed_methods, reason = "what the test wrote")]
        let text = std::fs::read_to_string(folder.path().join("untax")).unwrap();
        assert_eq!(
            text,
            "# Facts of this node, by untax agent.\n# +expiry-time=1970-01-01T01:00:00Z\nuntax-hugepages-2Mi=64\n"
        );
        assert_eq!(folder.path().read_dir().unwrap().count(), 1, "nothing is left beside it");
        let nowhere = FeaturesFile(folder.path().join("none/untax"));
        assert!(nowhere.write(&check()).unwrap_err().contains("none/untax"));
    }
}
