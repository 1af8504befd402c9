//! What the alternatives of one layer of the platform would cost the databases of a check.

use crate::Reading;
use crate::bench::{Estimate, RatioVerdict};
use serde::{Deserialize, Serialize};

/// The schema's name and version.
pub const SCHEMA: &str = "untax.advise/1";

/// The alternatives of one layer, with their prices, for every database of a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Advice {
    /// `untax.advise/1`.
    pub schema: String,
    /// `runtime`, `network` or `storage`.
    pub layer: String,
    /// The check's run.
    pub check: String,
    /// The results of benches that prices may stand on, the latest first.
    pub benches: Vec<String>,
    /// Why there are no such results, and the command that makes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<String>,
    /// The databases.
    pub databases: Vec<DatabaseAdvice>,
}

/// The alternatives for one database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DatabaseAdvice {
    /// `engine:pid`.
    pub id: String,
    /// The engine's id.
    pub engine: String,
    /// The product's name.
    pub product: String,
    /// What it needs of the platform.
    pub needs: Needs,
    /// The alternative that it has now.
    pub now: Reading<String>,
    /// The alternative that prices are over: the one that it has now where that was measured, else the
    /// baseline of the bench.
    pub over: Option<String>,
    /// All alternatives, those with a price first, the cheapest first.
    pub choices: Vec<Choice>,
    /// What to choose, a sentence each.
    pub says: Vec<String>,
}

/// What share of its time a database leaves to the platform.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Needs {
    /// The kernel's part (0..1) of its time on CPU: system calls, page faults, interrupts.
    pub kernel_share: Reading<f64>,
    /// The part (0..1) of the time between two requests of a connection in which messages are on the way.
    pub network_share: Reading<f64>,
    /// The part (0..1) of its active time in which threads wait for a disk.
    pub disk_share: Reading<f64>,
    /// How many connections are made for each request.
    pub connections_per_request: Reading<f64>,
}

/// One alternative.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Choice {
    /// The bench's arm, such as `gvisor-systrap`.
    pub id: String,
    /// What it is.
    pub summary: String,
    /// What it separates from the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// Whether system calls reach another kernel than the host's first; none where that is not known, or
    /// no question of this layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separates_kernel: Option<bool>,
    /// What it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Why no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What an alternative costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Price {
    /// How many times as long a request takes: above 1 it is a loss, below 1 a gain. Where the database
    /// limits the load, throughput is divided by it.
    pub factor: Estimate,
    /// Whether it differs from 1 by more than noise does: `slower` is a price, `faster` a gain.
    pub verdict: RatioVerdict,
    /// How it is known.
    pub method: Method,
    /// The cell that it stands on, such as `redis-get @ two-cores`.
    pub cell: String,
    /// The bench's run.
    pub bench: String,
    /// Pairs of trials that it stands on.
    pub pairs: u32,
    /// What it must be read with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How a price is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// A server of the same engine was measured in both alternatives on this host.
    Measured,
    /// Round trips of a request times the CPU time that one more costs a server here, over the CPU time of a
    /// request.
    RoundTrips,
    /// The database's own share of waiting for disks, times what the same access costs here.
    DiskShare,
}

impl Method {
    /// What reports call it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::RoundTrips => "round trips of a request x CPU time of one",
            Self::DiskShare => "share of disk waits x cost of an access",
        }
    }
}
