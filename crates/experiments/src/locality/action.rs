//! What is done to the database, in this order, and the causes that name it rightly.

use super::schema::Scene;
use super::server::TABLES;

/// Something that is done on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// A higher limit of processor time.
    MoreTime,
    /// A table moves to the fast disk.
    MoveTable(u32),
}

impl Action {
    /// All of them.
    pub(super) fn all() -> Vec<Self> {
        std::iter::once(Self::MoreTime).chain((1..=TABLES).map(Self::MoveTable)).collect()
    }

    /// Its id in results.
    pub(super) fn id(self) -> String {
        match self {
            Self::MoreTime => "cpu-limit".to_owned(),
            Self::MoveTable(table) => format!("tablespace-{table}"),
        }
    }

    /// What is done, in words.
    pub(super) fn text(self, scene: &Scene) -> String {
        match self {
            Self::MoreTime => format!(
                "the CPU limit is raised from {:.2} to {:.2} CPUs",
                scene.cpus_before, scene.cpus_after
            ),
            Self::MoveTable(table) => {
                format!("tablespace {table} of {TABLES} moves from the slow disk to the fast one")
            }
        }
    }

    /// The causes of a timeline that name it.
    pub(super) fn expected(self) -> &'static [&'static str] {
        match self {
            Self::MoreTime => &["cpu-limit"],
            // Where its files are, or which disk it reads from.
            Self::MoveTable(_) => &["storage", "data-moved"],
        }
    }
}
