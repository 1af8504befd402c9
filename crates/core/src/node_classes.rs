//! The classes of nodes that the databases of a fleet want, and how the memory of each node adds up.

use crate::Bytes;
use serde::Serialize;
use std::collections::BTreeMap;

/// The schema's name and version.
pub const SCHEMA: &str = "untax.node-classes/1";

/// The classes of a fleet. Each database stays on its node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct NodeClasses {
    /// `untax.node-classes/1`.
    pub schema: &'static str,
    /// The classes, in the order of their names.
    pub classes: Vec<Class>,
    /// The nodes, in the order in which they were given.
    pub nodes: Vec<Node>,
    /// What each database asks for.
    pub databases: Vec<Placed>,
}

/// A class of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Class {
    /// `general`, or `database` with the page sizes and `low-latency-disks` that its databases want.
    pub name: String,
    /// How many nodes of the fleet are to be of it.
    pub nodes: usize,
    /// The pools of each of its nodes: the largest that one of them needs.
    pub pools: Vec<ClassPool>,
    /// Whether its databases wait for their disks now.
    pub low_latency_disks: bool,
    /// The labels of its nodes.
    pub labels: BTreeMap<String, String>,
    /// The taints of its nodes, as kubectl takes them.
    pub taints: Vec<String>,
}

/// A pool of huge pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ClassPool {
    /// The size of a page.
    pub size_bytes: Bytes,
    /// How many.
    pub pages: u64,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Node {
    /// Its name.
    pub node: String,
    /// Its class.
    pub class: String,
    /// Where its memory goes then.
    pub memory: Balance,
}

/// The memory of a node. The parts add up to the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[expect(clippy::struct_field_names, reason = "names of JSON carry their unit")]
pub struct Balance {
    /// All of it.
    total_bytes: Bytes,
    /// Pools of huge pages.
    pools_bytes: Bytes,
    /// What its databases ask for beside these.
    databases_bytes: Bytes,
    /// What the system and everything else had in use when the node was looked at.
    others_bytes: Bytes,
    /// What is left.
    rest_bytes: Bytes,
}

impl Balance {
    /// The rest follows from the parts. Where they are more than the whole: by how much.
    pub fn new(total: Bytes, pools: Bytes, databases: Bytes, others: Bytes) -> Result<Self, Bytes> {
        let parts = [pools, databases, others].iter().map(|part| u128::from(part.0)).sum::<u128>();
        let whole = u128::from(total.0);
        let Some(rest) = whole.checked_sub(parts) else {
            return Err(Bytes(u64::try_from(parts - whole).unwrap_or(u64::MAX)));
        };
        Ok(Self {
            total_bytes: total,
            pools_bytes: pools,
            databases_bytes: databases,
            others_bytes: others,
            // It is at most the whole, which fits.
            rest_bytes: Bytes(rest as u64),
        })
    }

    /// All of it, pools, databases, others, the rest.
    pub fn parts(&self) -> [Bytes; 5] {
        [
            self.total_bytes,
            self.pools_bytes,
            self.databases_bytes,
            self.others_bytes,
            self.rest_bytes,
        ]
    }
}

/// What a database asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Placed {
    /// Its node.
    pub node: String,
    /// Its id there.
    pub id: String,
    /// The class of its node.
    pub class: String,
    /// Huge pages: the resource as Kubernetes names it, and the quantity.
    pub huge_pages: Option<(String, String)>,
    /// Memory beside them.
    pub memory_bytes: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn memory_adds_up_or_is_refused(total: u64, pools: u64, databases: u64, others: u64) {
            let sum = u128::from(pools) + u128::from(databases) + u128::from(others);
            match Balance::new(Bytes(total), Bytes(pools), Bytes(databases), Bytes(others)) {
                Ok(balance) => {
                    let [all, parts @ ..] = balance.parts().map(|part| u128::from(part.0));
                    prop_assert_eq!(all, parts.iter().sum::<u128>());
                }
                Err(missing) => {
                    prop_assert!(sum > u128::from(total) && missing.0 > 0);
                }
            }
        }
    }
}
