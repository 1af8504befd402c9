//! The arguments of `untax bench storage`.

use crate::platform;
use std::path::PathBuf;
use untax_core::Bytes;

/// Measure storage: a log, reads and checkpoints as a database does them, on each volume in turn
///
/// Without --path, the bench makes scratch volumes below TMPDIR: a directory, overlayfs, ext4, xfs,
/// btrfs, tmpfs, each in an image that is written in full. Every read goes to the disk, as the
/// disk's own counters show. A read that came from a cache gives no figure. A guest cannot know
/// whether a flush reaches the media of a virtual disk.
#[derive(Debug, clap::Parser)]
#[command(
    after_help = "Examples:\n  untax bench storage                                    scratch volumes, ten minutes\n  \
                  untax bench storage --quick                            the same in three\n  \
                  untax bench storage --path /var/lib/postgresql --path /mnt/new\n  \
                  untax bench storage --path /data --workloads fio-log,fio-read,pg-test-fsync\n  \
                  untax bench storage --arms directory,xfs --fail-if 'log-8k:xfs/directory < 0.8'"
)]
pub(super) struct StorageArguments {
    /// Directories to compare, the first being the baseline; repeat it [default: scratch volumes]
    #[arg(long, value_name = "DIRECTORY")]
    path: Vec<PathBuf>,
    /// Size of the data file of each volume, MiB
    #[arg(long, value_name = "MIB", default_value = "256")]
    #[arg(value_parser = clap::value_parser!(u64).range(64..=1_048_576))]
    size: u64,
    /// How many reads are made at once by 'deep' and 'mixed' work
    #[arg(long, value_name = "N", default_value = "8")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    depth: u32,
    /// Writes a second where a group is limited
    #[arg(long, value_name = "N", default_value = "200")]
    #[arg(value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    limit: u64,
    #[command(flatten)]
    pub(super) common: platform::Arguments,
}

/// What is measured, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// Directories that are named; none: scratch volumes.
    pub(crate) paths: Vec<PathBuf>,
    /// What scratch volumes are made below.
    pub(crate) base: PathBuf,
    /// The size of each data file.
    pub(crate) data: Bytes,
    /// Reads at once.
    pub(crate) depth: u32,
    /// Writes a second where a group is limited.
    pub(crate) limit: u64,
}

impl StorageArguments {
    pub(super) fn request(&self) -> Request {
        Request {
            paths: self.path.clone(),
            base: std::env::temp_dir(),
            data: Bytes::from_mib(self.size),
            depth: self.depth,
            limit: self.limit,
        }
    }
}

#[cfg(test)]
impl Request {
    pub(crate) fn example() -> Self {
        Self {
            paths: Vec::new(),
            base: std::env::temp_dir(),
            data: Bytes::from_mib(64),
            depth: 8,
            limit: 200,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, FromArgMatches};

    fn request(line: &str) -> Result<Request, String> {
        let words = std::iter::once("untax").chain(line.split_whitespace());
        // That of the command line, which all benches share.
        let json = clap::Arg::new("json").long("json").action(clap::ArgAction::SetTrue);
        let matches = StorageArguments::command().arg(json).try_get_matches_from(words);
        let parsed = matches.and_then(|matches| StorageArguments::from_arg_matches(&matches));
        parsed.map(|line| line.request()).map_err(|error| error.to_string())
    }

    #[test]
    fn paths_are_named_one_by_one() {
        let all = request("--path /a --path /b --size 64 --depth 2 --limit 10").unwrap();
        assert_eq!(all.paths, [PathBuf::from("/a"), PathBuf::from("/b")]);
        assert_eq!((all.data, all.depth, all.limit), (Bytes::from_mib(64), 2, 10));
    }

    #[test]
    fn nonsense_is_refused() {
        for line in ["--size 63", "--depth 0", "--limit 0", "--path"] {
            assert!(request(line).is_err(), "{line}");
        }
    }
}
