#!/bin/bash
# In a cluster whose kubelet has the static CPU policy: untax steer as a DaemonSet of its own.
#
#   CPU_MANAGER=static tests/kubernetes/cluster.sh CACHE tests/kubernetes/steer.sh UNTAX
#
# Two PostgreSQL that may use all CPUs are steered, each onto one. A third gets a CPU for itself: it is never on
# another one, and nobody else is on it. Once the DaemonSet is deleted, all threads have their cpuset again.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

untax=$1
work=$RUN/steer
mkdir "$work"
steering=(--namespace untax-steer)

say() { echo "steer: $*"; }

fail() {
    say "FAILED: $*"
    kubectl get pods --all-namespaces --output wide || true
    kubectl "${steering[@]}" logs --tail 5 daemonset/untax-steer || true
    kubectl get events --all-namespaces --field-selector type=Warning | tail -n 5 || true
    exit 1
}

# until_so WHAT COMMAND…: waits for a command to succeed.
until_so() {
    local what=$1
    shift
    for _ in {1..240}; do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.5
    done
    fail "$what: $(masks shared | xargs) and $(masks exclusive | xargs)"
}

node() { ssh "root@$NODE" "$@"; }

# The CPUs of all threads of the servers that have $1 in their command line, a line for each mask.
masks() {
    local server
    for server in $(pgrep -f "^postgres -D /tmp/data .*cluster_name=$1"); do
        for one in "$server" $(pgrep -P "$server"); do
            sed -n 's/^Cpus_allowed_list:\t//p' "/proc/$one/task"/*/status
        done | sort -u | xargs
    done 2>/dev/null | sort
}

are() { [ "$(masks "$1" | xargs)" = "$2" ]; }

# A PostgreSQL of a name, with so many replicas and this CPU as request and limit: of two CPUs one is kept for the
# node, so that a pod with the other leaves none to be requested.
database() {
    sed -e "s/name: database$/name: $1/; s/app: database/app: $1/; s/serviceName: database/serviceName: $1/" \
        -e "s/replicas: 1/replicas: $2/; s/cpu: 200m/cpu: $3/; s/cpu: 1500m/cpu: $3/" \
        -e "s/fsync=off/fsync=off -c cluster_name=$1/" "$here/database.yaml" | kubectl apply --filename - >/dev/null
}

steer() {
    sed -e 's/image: untax:latest/image: untax:latest\n          imagePullPolicy: Never/; s/cpu: 10m/cpu: 0/' \
        "$here/../../deploy/steer-daemonset.yaml" | kubectl apply --filename - >/dev/null
    kubectl "${steering[@]}" rollout status daemonset/untax-steer --timeout 120s >/dev/null || fail "not ready"
}

no_steering() { ! pgrep -f '^/usr/bin/untax --state-dir /var/lib/untax steer'; }

# Which masks the exclusive server had in some seconds.
seen() {
    for _ in {1..60}; do
        masks exclusive
        sleep 0.2
    done | sort -u | xargs
}

made_state=$([ -e /var/lib/untax ] || echo yes)
"$here/agent-image.sh" "$untax" "$work/image.tar"
node "$PROGRAMS/ctr" --namespace k8s.io images import "$work/image.tar" >/dev/null
database shared 2 0
until_so "the servers do not start" are shared "0-1 0-1"
kubectl label node "$NODE" untax.io/steer=true >/dev/null
steer
until_so "two servers are not steered" are shared "0 1"
say "two servers, each on one CPU: $(masks shared | xargs)"
database exclusive 1 1
until_so "the kubelet gives no CPU away" are exclusive 1
until_so "the others have the exclusive CPU too" are shared "0 0"
say "one has a CPU for itself: $(masks exclusive); the others: $(masks shared | xargs)"
kubectl "${steering[@]}" rollout restart daemonset/untax-steer >/dev/null
kubectl "${steering[@]}" rollout status daemonset/untax-steer --timeout 120s >/dev/null || fail "no restart"
all=$(seen)
[ "$all" = 1 ] || fail "the exclusive server was on $all"
are shared "0 0" || fail "the others are on $(masks shared | xargs)"
kubectl delete statefulset exclusive >/dev/null
kubectl delete namespace untax-steer >/dev/null
until_so "steering does not end" no_steering
until_so "threads are narrowed still" are shared "0-1 0-1"
say "deleted, and all is put back: $(masks shared | xargs)"
if [ -n "$made_state" ]; then
    rm -rf /var/lib/untax
fi
say passed
