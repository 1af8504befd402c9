#!/bin/bash
# In a guest with two NUMA nodes: memory on the other node than the threads is found, and pages that
# the kernel keeps moving.
#
#   tests/vm/numa.sh UNTAX     UNTAX is the program to test
#
# A process with its CPUs on node 0 and its memory on node 1 must be found numa-remote, one with
# both on node 0 must not. Memory whose node the threads leave again and again is moved by the
# kernel's NUMA balancing: numa-churn, and not when balancing is off. All nodes are equally near in
# an emulated machine, so only what is found counts.
set -euo pipefail

untax=$1
work=$(mktemp -d)
cgroup=/sys/fs/cgroup/database

say() { echo "numa: $*"; }

fail() {
    say "FAILED: $*"
    tr -d "\n" <"$work/check.json" | tr -s ' ' | grep -o '"databases": .*' | cut -c1-3000 || true
    exit 1
}

# Keeps reading and writing 160 MiB of its own.
busy='my $data = "x" x (160 << 20);
    while (1) { for (my $at = 0; $at < length $data; $at += 4096) { substr($data, $at, 1) = "y" } }'

# Starts it in the group, as numactl is told by the arguments; waits until its memory is there.
start() {
    (
        echo "$BASHPID" >"$cgroup/cgroup.procs"
        exec numactl "$@" perl -e "$busy"
    ) &
    pid=$!
    until [ "$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")" -gt $((160 << 10)) ]; do sleep 0.2; done
}

stop() {
    echo 1 >"$cgroup/cgroup.kill"
    wait "$pid" 2>/dev/null || true
}

# Checks the process; says whether that "finds" or "does not find" rule $1.
look() {
    "$untax" --state-dir "$work/state" check --pid "$pid" --window "${2:-2s}" --no-calibration --json \
        >"$work/check.json" || [ $? -eq 1 ] || fail "untax check failed"
    tr -d '\n' <"$work/check.json" >"$work/line.json"
    is=finds
    grep -q "\"rule\": *\"$1\", *\"severity\": *\"\(low\|medium\|high\)\"" "$work/line.json" ||
        is="does not find"
}

# Fails unless a check "finds" or "does not find" rule $2: $3 says why it should.
check() {
    local is
    look "$2"
    [ "$is" = "$1" ] || fail "untax check $is $2: $3"
    say "untax check $is $2: $3"
}

[ -d /sys/devices/system/node/node1 ] || fail "the guest has one node"
mkdir "$cgroup"
echo 0 >/proc/sys/kernel/numa_balancing

start --cpunodebind=0 --membind=1
check finds numa-remote "its CPUs are on node 0, its memory on node 1"
grep -q 'tax: what an access to another node costs' "$work/line.json" ||
    fail "numa-remote does not say why it has no tax"
stop
start --cpunodebind=0 --membind=0
check "does not find" numa-remote "its CPUs and its memory are on node 0"
check "does not find" numa-churn "balancing is off"
stop

# Moves the process between the nodes, so that its memory is always on the wrong one. Scans come
# far apart by default, for machines with more memory and time than this one has.
scans=/sys/kernel/debug/sched/numa_balancing
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null || true
for file in scan_delay_ms scan_period_min_ms scan_period_max_ms; do
    echo 100 >"$scans/$file" || fail "no $scans/$file"
done
echo 1 >/proc/sys/kernel/numa_balancing
# Without a policy for its memory: one would forbid the kernel to move it.
start --cpunodebind=0
all=$(sed 's/.*-//' /sys/devices/system/cpu/online)
nodes=("$(cat /sys/devices/system/node/node0/cpulist)" "$(cat /sys/devices/system/node/node1/cpulist)")
say "moving it between CPUs ${nodes[0]} and ${nodes[1]} of 0-$all"
(while :; do for cpus in "${nodes[@]}"; do taskset -pc "$cpus" "$pid" >/dev/null || exit; sleep 2; done; done) &
mover=$!
# A guest on a busy machine may stand still for most of a window.
for _ in 1 2 3 4; do
    look numa-churn 6s
    [ "$is" = finds ] && break
done
kill "$mover"
[ "$is" = finds ] || fail "untax check does not find numa-churn: $(grep numa_ /proc/vmstat | tr '\n' ' ')"
say "untax check finds numa-churn: its threads are never where its memory is"
grep -o '"summary": *"NUMA balancing moves[^"]*"' "$work/line.json"
stop
say passed
