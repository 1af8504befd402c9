#!/bin/bash
# In a guest with cgroup v2: memory that cannot be freed comes close to memory.max, and then the kernel kills.
#
#   tests/vm/oom.sh UNTAX     UNTAX is the program to test
. "$(dirname "$0")/guest.sh"

mib=48
in_group perl -e 'my $data = "x" x ($ARGV[0] << 20); sleep 1 while 1' "$mib"
until [ "$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")" -gt $((mib << 10)) ]; do sleep 0.2; done
check "does not find" oom-near "there is no limit"
echo $(($(<"$cgroup/memory.current") * 103 / 100)) >"$cgroup/memory.max"
check finds oom-near "3 % are left under memory.max" "cannot be freed"

# Room for the shell, so that it is what grows that is killed.
echo $(($(<"$cgroup/memory.current") + (16 << 20))) >"$cgroup/memory.max"
(
    echo "$BASHPID" >"$cgroup/cgroup.procs"
    while :; do
        sh -c 'echo 1000 >/proc/self/oom_score_adj; exec tail /dev/zero' || true
        sleep 0.2
    done
) 2>/dev/null &
until [ "$(awk '$1 == "oom_kill" { print $2 }' "$cgroup/memory.events")" -gt 0 ]; do sleep 0.2; done
check finds oom-near "the kernel kills what goes beyond memory.max" "the kernel killed [1-9][0-9]* of its processes in the window"
empty_group
say passed
