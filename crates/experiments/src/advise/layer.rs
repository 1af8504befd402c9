//! The layers that there is advice for.

use clap::ValueEnum;

/// A layer of the platform with alternatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Layer {
    /// What starts the container of the database, if any
    Runtime,
    /// The way of packets between the database and its clients
    Network,
    /// The volume and the filesystem of its data
    Storage,
}

impl Layer {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Runtime, Self::Network, Self::Storage];

    /// Its name, which is that of its bench.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::Network => "network",
            Self::Storage => "storage",
        }
    }

    /// The command that measures its alternatives.
    pub fn command(self) -> String {
        format!("untax bench {}", self.id())
    }
}
