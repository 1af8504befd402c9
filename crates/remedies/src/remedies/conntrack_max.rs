//! `conntrack-max`: a connection table that has room. Source: kernel.org,
//! networking/nf_conntrack-sysctl, `nf_conntrack_max`.

use crate::case::Case;
use crate::remedy::{Draft, Remedy};
use crate::sysctl::Sysctl;

pub const REMEDY: Remedy = Remedy {
    id: "conntrack-max",
    summary: "the size of the connection table, now and after every boot",
    answers: &["conntrack-max"],
    plan,
};

const NAME: &str = "net.netfilter.nf_conntrack_max";
const DROP_IN: &str = "/etc/sysctl.d/90-untax-conntrack.conf";

/// A full table is doubled: what did not get in is not counted.
const GROWTH: u64 = 2;

/// An entry with its extensions and its place in the table (`nf_conntrack` in /proc/slabinfo: 256 to 320
/// bytes), rounded up.
const ENTRY_BYTES: u64 = 512;

/// The part of the memory that a full table may take.
const MOST_PART: u64 = 50;

fn plan(case: &Case) -> Draft {
    let host = &case.snapshot.host;
    let known = host.conntrack.value().zip(host.memory.value());
    let Some((conntrack, memory)) = known else { return Draft::default() };
    // No limit is written as zero.
    let now = conntrack.most;
    let to = now.saturating_mul(GROWTH).min(memory.total_bytes.0 / MOST_PART / ENTRY_BYTES);
    if now == 0 || to <= now {
        return Draft::default();
    }
    let databases = case.databases_or_all();
    let change = Sysctl { remedy: REMEDY.id, name: NAME, drop_in: DROP_IN };
    let steps = change.steps(&databases, &now.to_string(), &to.to_string());
    Draft { steps, ..Draft::default() }
}
