#!/bin/bash
# Runs a command beside a Kubernetes cluster of one node, on this machine, as root.
#
#   tests/kubernetes/cluster.sh CACHE-DIRECTORY COMMAND…
#
# The node has processes, network, mounts and a name of its own, and the kernel with its huge pages
# in common with the machine. The command runs on the machine, as a pod with hostPID would: it sees
# the processes of pods, their control groups, and what containerd keeps in /run. In its PATH,
# `kubectl` speaks to the cluster and `ssh` runs a command on the node. NODE is the node's name.
#
# Nothing is left behind, also when this is killed: the kernel then ends the node and the command,
# and a guard that outlives them puts the machine back. Meanwhile no other test changes its settings.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

export NODE=untax-node
# The control group above all pods.
export GROUP=untax-kubernetes

fail() {
    echo "cluster.sh: $*" >&2
    exit 2
}

[ $# -gt 1 ] || fail "usage: cluster.sh CACHE-DIRECTORY COMMAND…"
[ "$(id -u)" -eq 0 ] || fail "a node needs root: run as root"
if [ "${UNTAX_MOUNTS:-}" != own ]; then
    PROGRAMS=$("$here/build.sh" "$1")
    export PROGRAMS
    # The turn to change settings, as the tests on real servers take it. The guard has it, too, so
    # it lasts until all is back.
    exec 9</sys/kernel/mm
    flock 9
    UNTAX_MOUNTS=own exec unshare --mount --propagation private "$0" "$@"
fi
unset UNTAX_MOUNTS
cache=$1/kubernetes
shift

# Mounts that end with the last process that sees them, and the groups. Kubelet and CNI keep files at
# places of their own, which the guard removes where there were none.
make_mounts() {
    local hierarchy directory
    for directory in /var/lib/kubelet /var/lib/cni; do
        [ -e "$directory" ] || echo "$directory" >>"$RUN/directories"
    done
    mount -t tmpfs -o mode=755 untax /run
    mount -t tmpfs -o mode=755 untax /var/log
    # A machine with cgroup v1 may have mounted no hierarchy for huge pages.
    if [ "$(stat --file-system --format %T /sys/fs/cgroup)" != cgroup2fs ] &&
        [ ! -e /sys/fs/cgroup/hugetlb ]; then
        touch "$RUN/hierarchy"
        mkdir /sys/fs/cgroup/hugetlb
        mount -t cgroup -o hugetlb untax /sys/fs/cgroup/hugetlb
    fi
    # One hierarchy may be mounted in several places.
    for hierarchy in $(findmnt --noheadings --list --output TARGET --types cgroup,cgroup2); do
        mkdir -p "$hierarchy/$GROUP"
    done
}

# Programs that stand between the command and the node.
make_path() {
    local ns=/proc/$node/ns
    mkdir "$RUN/path"
    cat >"$RUN/path/kubectl" <<END
#!/bin/sh
exec nsenter --net=$ns/net "$PROGRAMS/kubectl" --kubeconfig "$RUN/admin.kubeconfig" "\$@"
END
    # Words are joined and read by a shell at the other end, as ssh does.
    cat >"$RUN/path/ssh" <<END
#!/bin/sh
[ "\$1" = "root@$NODE" ] || { echo "ssh: no host \$1" >&2; exit 255; }
shift
exec nsenter --mount=$ns/mnt --net=$ns/net --uts=$ns/uts --pid=$ns/pid_for_children \\
    env "PATH=$here/node:\$PATH" sh -c "\$*"
END
    chmod 755 "$RUN/path/kubectl" "$RUN/path/ssh"
    export PATH=$RUN/path:$PATH
}

# Waits until the node's kubelet says that it is ready.
wait_for_node() {
    local until=$((SECONDS + 300))
    while kill -0 "$node" 2>/dev/null && [ "$SECONDS" -lt "$until" ]; do
        ! kubectl wait --for=condition=Ready "node/$NODE" --timeout=10s >/dev/null 2>&1 || return 0
        sleep 0.5
    done
    tail -n 5 "$RUN"/log/* >&2
    fail "the node did not get ready"
}

finish() {
    if [ -n "${node:-}" ]; then
        { kill -KILL "$node" && wait "$node"; } 2>/dev/null || true
    fi
    exec {input}>&-
    wait "$guard" || fail "the machine is not as it was"
}

# What a run left whose guard was killed as well.
"$here/guard.sh" now
rm -rf "$cache"/run.*
RUN=$(mktemp -d "$cache/run.XXXXXX")
export RUN
mkdir "$RUN/log"
coproc GUARD { exec setsid "$here/guard.sh"; }
guard=$GUARD_PID input=${GUARD[1]}
trap finish EXIT
trap 'exit 130' INT TERM HUP
read -r _ <&"${GUARD[0]}"

make_mounts
setpriv --pdeathsig KILL unshare --mount --propagation private --pid --fork --kill-child \
    --mount-proc --net --uts "$here/node/start.sh" >"$RUN/log/node" 2>&1 9<&- &
node=$!
make_path
wait_for_node
# What the command started may outlive it, and is not to keep the turn.
setpriv --pdeathsig KILL "$@" 9<&-
