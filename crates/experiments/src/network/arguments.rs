//! The arguments of `bench network` alone.

use crate::cluster::ClusterArguments;
use crate::platform;
use clap::Parser;

/// Benchmark network paths: veth, bridge, routing, services, policies, overlays, eBPF
///
/// The bench builds paths between a client and a server in its own network namespaces. Over each
/// path, the bench measures round trips, connections and database loads, paired and in random
/// order. Nothing on the host's own network changes.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "network",
    after_help = "The bench needs root; some arms also need iptables, nft and redis-server. In a \
                  cluster, it needs only kubectl.\n\n\
                  Examples:\n  untax bench network --quick\n  \
                  untax bench network --cluster --image registry.example/untax:1   between two pods"
)]
pub(super) struct NetworkArguments {
    #[command(flatten)]
    pub common: platform::Arguments,
    /// Numbers of services that paths with services are built with
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,100,1000,10000")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub services: Vec<u32>,
    /// Numbers of rules that paths with network policies are built with
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "100,1000")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub rules: Vec<u32>,
    #[command(flatten)]
    pub cluster: ClusterArguments,
}
