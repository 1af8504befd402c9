#!/bin/bash
# In a guest with two NUMA nodes: memory on the other node than the threads is found, memory that was
# moved between two windows, and pages that the kernel keeps moving.
#
#   tests/vm/numa.sh UNTAX     UNTAX is the program to test
#
# A process with its CPUs on node 0 and its memory on node 1 must be found numa-remote, one with
# both on node 0 must not. Memory whose node the threads leave again and again is moved by the
# kernel's NUMA balancing: numa-churn, and not while balancing is off. All nodes are equally near in
# an emulated machine, so only what is found counts.
. "$(dirname "$0")/guest.sh"

# Keeps reading and writing 160 MiB of its own.
busy='my $data = "x" x (160 << 20);
    while (1) { for (my $at = 0; $at < length $data; $at += 4096) { substr($data, $at, 1) = "y" } }'

# Starts it in the group, as numactl is told by the arguments; waits until its memory is there.
start() {
    in_group numactl "$@" perl -e "$busy"
    until [ "$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")" -gt $((160 << 10)) ]; do sleep 0.2; done
}

[ -d /sys/devices/system/node/node1 ] || fail "the guest has one node"
echo 0 >/proc/sys/kernel/numa_balancing

start --cpunodebind=0 --membind=1
check finds numa-remote "its CPUs are on node 0, its memory on node 1" \
    'tax: what an access to another node costs'
empty_group
start --cpunodebind=0 --membind=0
check "does not find" numa-remote "its CPUs and its memory are on node 0"
empty_group

# Memory that is moved near while windows are recorded: the timeline tells that, whatever it brought.
start --cpunodebind=0 --membind=1
touch "$work/lines"
"$untax" --state-dir "$work/state" watch --json --record "$work/moved.untax" --pid "$pid" --window 2s --count 8 >"$work/lines" &
recorder=$!
until [ "$(wc -l <"$work/lines")" -ge 3 ]; do
    kill -0 "$recorder" || fail "the recorder ended"
    sleep 0.5
done
migratepages "$pid" 1 0
wait "$recorder" || [ $? -eq 1 ] || fail "untax watch failed"
"$untax" timeline "$work/moved.untax" >"$work/told"
grep "memory moved between nodes" "$work/told" || fail "untax timeline does not tell that memory moved: $(<"$work/told")"
empty_group

# Moves the process between the nodes, so that its memory is always on the wrong one. Scans come
# far apart by default, for machines with more memory and time than this one has.
scans=/sys/kernel/debug/sched/numa_balancing
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null || true
for file in scan_delay_ms scan_period_min_ms scan_period_max_ms; do
    echo 100 >"$scans/$file" || fail "no $scans/$file"
done
# Without a policy for its memory: one would forbid the kernel to move it.
start --cpunodebind=0
all=$(sed 's/.*-//' /sys/devices/system/cpu/online)
nodes=("$(cat /sys/devices/system/node/node0/cpulist)" "$(cat /sys/devices/system/node/node1/cpulist)")
say "moving it between CPUs ${nodes[0]} and ${nodes[1]} of 0-$all"
(while :; do for cpus in "${nodes[@]}"; do taskset -pc "$cpus" "$pid" >/dev/null || exit; sleep 2; done; done) &
mover=$!
window=6s
check "does not find" numa-churn "balancing is off"
echo 1 >/proc/sys/kernel/numa_balancing
check finds numa-churn "its threads are never where its memory is"
kill "$mover"
grep -o '"summary": *"NUMA balancing moves[^"]*"' "$work/line.json"
empty_group
say passed
