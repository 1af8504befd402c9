#!/bin/bash
# Everything on Kubernetes that is tested, on a real cluster of one node. As root.
#
#   scripts/kubernetes.sh [--if-built]     --if-built does nothing where Kubernetes must be built
#                                          first, which takes ten minutes of two processors
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${UNTAX_CACHE:-$HOME/.cache/untax}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target}

if [ "${1:-}" = --if-built ] && ! tests/kubernetes/build.sh "$cache" --have; then
    echo "SKIPPED: Kubernetes is not built here; make kubernetes builds and tests it"
    exit
fi
scripts/needs.sh build kubernetes
tests/kubernetes/build.sh "$cache" >/dev/null
cargo build --package untax
tests/kubernetes/cluster.sh "$cache" bash -euc '
    tests/kubernetes/manifests.sh crates/remedies/tests/kubernetes
    tests/kubernetes/huge-pages.sh "$CARGO_TARGET_DIR/debug/untax"
'
prometheus=$(scripts/prometheus.sh "$cache")
tests/kubernetes/cluster.sh "$cache" tests/kubernetes/agent.sh "$CARGO_TARGET_DIR/debug/untax" "$prometheus"
CPU_MANAGER=static tests/kubernetes/cluster.sh "$cache" tests/kubernetes/steer.sh "$CARGO_TARGET_DIR/debug/untax"
tests/kubernetes/cluster.sh "$cache" tests/kubernetes/bench.sh "$CARGO_TARGET_DIR/debug/untax"
tests/kubernetes/killed.sh "$cache"
