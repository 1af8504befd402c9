#!/bin/bash
# A cluster that is killed leaves the machine as it was.
#
#   tests/kubernetes/killed.sh CACHE-DIRECTORY
#
# It is killed with a pod running and a pool of huge pages changed, and nothing of it can clean up
# but its guard.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pool=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages

fail() {
    echo "killed: FAILED: $*"
    exit 1
}

# In the cluster: tells where it is when there is something to clean up, and stays.
if [ "${2:-}" = in-cluster ]; then
    kubectl apply --filename "$here/database.yaml" >/dev/null
    until kubectl wait --for=condition=Ready pod/database-0 --timeout=1s >/dev/null 2>&1; do
        sleep 0.5
    done
    before=$(<"$pool")
    echo $((before + 16)) >"$pool"
    [ "$(<"$pool")" = $((before + 16)) ] || fail "the pool cannot be changed"
    echo "$before $RUN" >"$1.new"
    mv "$1.new" "$1"
    exec sleep 600
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here/cluster.sh" "$1" "$0" "$work/changed" in-cluster &
cluster=$!
until [ -e "$work/changed" ]; do
    kill -0 "$cluster" 2>/dev/null || fail "the cluster ended"
    sleep 0.5
done
read -r before run <"$work/changed"
kill -KILL "$cluster"
wait "$cluster" 2>/dev/null || true
# The guard has the turn to change settings until it is done.
exec 8</sys/kernel/mm
flock 8
[ "$(<"$pool")" = "$before" ] || fail "the pool has $(<"$pool") pages, not $before"
[ ! -e "$run" ] || fail "$run is left"
[ -z "$(find /sys/fs/cgroup -name untax-kubernetes)" ] || fail "control groups are left"
! pgrep --full -- "$run" >/dev/null || fail "programs of the cluster still run"
echo "killed: passed"
