//! The entry of `bench network` in the list of experiments.

use super::arguments::NetworkArguments;
use super::cluster::ClusterPaths;
use super::family::Paths;
use super::peers::{CLIENT, SERVER};
use crate::experiment::{Context, Experiment, ExperimentError, RunResult};
use crate::platform::WARNINGS;
use crate::platform::entry::{self, About};
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use untax_changes::Program;

const ABOUT: About = About { id: "network", schema: "untax.bench.network/1", in_cluster: false };

/// `untax bench network`.
pub const EXPERIMENT: Experiment = Experiment {
    id: ABOUT.id,
    summary: "what network paths cost on this machine: veth, bridge, services, policies, overlays, eBPF",
    privilege: "root, to make network namespaces",
    // bpf_redirect_peer and bpf_redirect_neigh; older kernels lack those two paths alone.
    minimum_kernel: "4.9",
    cost: "two CPUs for up to the budget, some 60 network namespaces, 1 GiB of memory",
    schema: ABOUT.schema,
    warnings: WARNINGS,
    command: NetworkArguments::command,
    children: &[SERVER, CLIENT],
    run,
    read: entry::read,
};

fn run(matches: &ArgMatches, context: &mut Context) -> RunResult {
    let arguments = NetworkArguments::from_arg_matches(matches).map_err(ExperimentError::failed)?;
    if arguments.cluster.cluster {
        let about = About { in_cluster: true, ..ABOUT };
        let mut paths = ClusterPaths::new(arguments.cluster.clone());
        return entry::run(about, &arguments.common, &mut paths, context);
    }
    let mut paths = Paths::new(&arguments, Program::this());
    entry::run(ABOUT, &arguments.common, &mut paths, context)
}
