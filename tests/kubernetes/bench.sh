#!/bin/bash
# In the cluster: the benches of paths and of runtime classes between real pods.
#
#   tests/kubernetes/bench.sh UNTAX [RESULTS-DIRECTORY]
#
# Pods run this very program, which they see on the node. Every path that a cluster of one node has must
# be measured, and a class of another runtime than the default; nothing of ours may be left in it.
set -euo pipefail

untax=$(readlink -f "$1")
to=${2:-$RUN/bench}
mkdir -p "$to"

say() { echo "bench: $*"; }

fail() {
    say "FAILED: $*"
    kubectl get pods --all-namespaces --output wide || true
    kubectl get events --all-namespaces | tail -n 12 || true
    exit 1
}

# bench FAMILY ARGUMENTS…: its result is $to/FAMILY.json.
bench() {
    local family=$1
    shift
    "$untax" --state-dir "$to/state" bench "$family" --cluster --image untax.invalid/host:1 \
        --mount /usr --mount "$(dirname "$untax")" --program "$untax" --beside --json "$@" \
        >"$to/$family.json" || fail "untax bench $family"
}

# measured FAMILY CELL ARM: whether it has a figure.
measured() {
    jq --exit-status --arg cell "$2" --arg arm "$3" '.cells[] | select(.workload == $cell) | .arms[]
        | select(.arm == $arm and .state == "measured" and .value.median > 0)' "$to/$1.json" >/dev/null ||
        fail "$1: no figure of $2 in $3: $(jq --compact-output --arg arm "$3" \
            '[.arms[] | select(.id == $arm) | .cannot], [.cells[] | {workload, state, why,
            arms: [.arms[] | select(.arm == $arm) | {state, why}]}]' "$to/$1.json")"
}

kubectl apply --filename - >/dev/null <<END
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: crun}
handler: crun
END
bench network --workloads rr,crr,udp-rr --blocks "${BLOCKS:-1}" --budget "${BUDGET:-60s}"
for path in host-network pod-to-pod cluster-ip node-port; do
    for cell in rr crr udp-rr; do measured network "$cell" "$path"; done
done
say "paths: $(jq --compact-output '[.cells[] | {(.workload): [.arms[] | select(.value) | {(.arm):
    (.value.median * 100 | round / 100)}] | add}] | add' "$to/network.json")"
bench runtime --workloads tcp-rr,system-calls --blocks "${BLOCKS:-1}" --budget "${BUDGET:-60s}"
for arm in default crun; do
    for cell in tcp-rr system-calls; do measured runtime "$cell" "$arm"; done
done
say "runtime classes: $(jq --compact-output '[.cells[] | {(.workload): [.arms[] | select(.value) | {(.arm):
    (.value.median * 100 | round / 100)}] | add}] | add' "$to/runtime.json")"
for _ in {1..60}; do
    left=$(kubectl get namespaces --output name | grep untax-bench || true)
    [ -n "$left" ] || break
    sleep 0.5
done
[ -z "$left" ] || fail "left in the cluster: $left"
say passed
