//! The result of `untax fleet`: what `--json` prints.

use serde::Serialize;

/// The schema's name and version.
pub const SCHEMA: &str = "untax.fleet/1";

/// A fleet.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Fleet {
    /// `untax.fleet/1`.
    pub schema: &'static str,
    /// Where the rows come from.
    pub source: String,
    /// Over how long rates are means, seconds; `None` where that is each agent's own life.
    pub range_s: Option<f64>,
    /// How many databases are told by agents.
    pub databases_total: u64,
    /// How many nodes are told of, silent ones included.
    pub nodes_total: u64,
    /// The databases that lose most, in that order.
    pub databases: Vec<Database>,
    /// The causes that take most, in that order.
    pub causes: Vec<Cause>,
    /// The cause of the platform whose end would free most; `None` where nothing is lost to it.
    pub change: Option<Cause>,
    /// Nodes that say nothing: their databases are unknown, and not healthy.
    pub silent: Vec<Silent>,
    /// Nodes that have one machine id.
    pub duplicate_machine_ids: Vec<Group>,
}

/// A database.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Database {
    /// Its stable name.
    pub name: String,
    /// Its node.
    pub node: String,
    /// Its engine.
    pub engine: String,
    /// Its namespace; empty outside of a cluster.
    pub namespace: String,
    /// Its pod.
    pub pod: String,
    /// `told`, or `unknown` where its node is silent.
    pub state: &'static str,
    /// Seconds of active time each second; `None` where that is not measured.
    pub active_s_per_s: Option<f64>,
    /// Of these, what the platform takes.
    pub lost_s_per_s: f64,
    /// The share (0..1) of its active time that the platform takes.
    pub share: Option<f64>,
    /// The causes, of both scopes, the dearest first.
    pub causes: Vec<Cause>,
    /// The rules that were not measured in its last window.
    pub unmeasured: Vec<String>,
}

/// A cause.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Cause {
    /// The rule's id.
    pub rule: String,
    /// `platform` or `database`.
    pub scope: String,
    /// Seconds of active time that it takes each second.
    pub lost_s_per_s: f64,
    /// From how many databases.
    pub databases: u64,
    /// What to change, as the rule says it.
    pub fix: String,
}

/// A node that says nothing.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Silent {
    /// The node, or the address of its agent.
    pub node: String,
    /// Why it counts as silent.
    pub why: String,
}

/// Nodes that share something.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Group {
    /// What they share: a digest.
    pub machine_id: String,
    /// The nodes.
    pub nodes: Vec<String>,
    /// What to do.
    pub fix: String,
}
