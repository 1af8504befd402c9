#!/bin/bash
# In a guest: limits of cgroup v2 are found by tracing.
#
#   tests/vm/limits.sh UNTAX     UNTAX is the program to test
#
# cpu.max on two spinning processes: `untax check` must find cpu-throttled, and not before there is
# a limit. memory.high on a process that keeps allocating: reclaim-stall.
. "$(dirname "$0")/guest.sh"

in_group sh -c 'while :; do :; done & while :; do :; done'
check "does not find" cpu-throttled "there is no limit"
echo "20000 100000" >"$cgroup/cpu.max"
check finds cpu-throttled "two processes share a fifth of a CPU"
echo max >"$cgroup/cpu.max"
empty_group

echo 48M >"$cgroup/memory.high"
# Keeps all it reads until there is a line feed, which there is not.
in_group tail /dev/zero
until [ "$(awk '$1 == "high" { print $2 }' "$cgroup/memory.events")" -gt 0 ]; do sleep 0.1; done
check finds reclaim-stall "it allocates beyond memory.high"
empty_group
say passed
