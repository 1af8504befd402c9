#!/bin/bash
# In a guest: limits of cgroup v2 are found by tracing.
#
#   tests/vm/limits.sh UNTAX     UNTAX is the program to test
#
# cpu.max on two spinning processes: `untax check` must find cpu-throttled, and not before there is
# a limit. memory.high on a process that keeps allocating: reclaim-stall. Time is emulated here, so
# only what is found counts, not how much of it.
set -euo pipefail

untax=$1
work=$(mktemp -d)
cgroup=/sys/fs/cgroup/limited

say() { echo "limits: $*"; }

fail() {
    say "FAILED: $*"
    # What it says of the database, which is after what it says of the host.
    tr -d "\n" <"$work/check.json" | tr -s ' ' | grep -o '"databases": .*' | cut -c1-3000 || true
    exit 1
}

# Checks process $1; says whether that "finds" or "does not find" rule $2.
look() {
    "$untax" --state-dir "$work/state" check --pid "$1" --window 4s --no-calibration --json \
        >"$work/check.json" || [ $? -eq 1 ] || fail "untax check failed"
    grep -q '"active_s": *[0-9]' "$work/check.json" || fail "threads were not traced"
    # No process substitution here: the guest has no /dev/fd.
    tr -d '\n' <"$work/check.json" >"$work/line.json"
    grep -q "refuses tracing" "$work/line.json" && fail "a program was not loaded"
    is=finds
    grep -q "\"rule\": *\"$2\", *\"severity\": *\"\(low\|medium\|high\)\"" \
        "$work/line.json" || is="does not find"
}

# Fails unless a check of process $1 "finds" or "does not find" rule $2. A guest on a busy machine
# may stand still for most of a window, so a cause may be looked for three times.
check() {
    local is
    look "$1" "$3"
    for _ in 2 3; do
        [ "$is" = "$2" ] || [ "$2" != finds ] || look "$1" "$3"
    done
    [ "$is" = "$2" ] || fail "untax check $is $3"
    say "untax check $is $3: $4"
}

# Starts a shell script in the group, as the leader of what it starts.
in_group() {
    sh -c 'echo $$ >'"$cgroup"'/cgroup.procs; '"$1" &
    pid=$!
}

mkdir "$cgroup"
in_group 'while :; do :; done & while :; do :; done'
check "$pid" "does not find" cpu-throttled "there is no limit"
echo "20000 100000" >"$cgroup/cpu.max"
check "$pid" finds cpu-throttled "two processes share a fifth of a CPU"
echo max >"$cgroup/cpu.max"
echo 1 >"$cgroup/cgroup.kill"

echo 48M >"$cgroup/memory.high"
# Keeps all it reads until there is a line feed, which there is not.
in_group 'exec tail /dev/zero'
until [ "$(awk '$1 == "high" { print $2 }' "$cgroup/memory.events")" -gt 0 ]; do sleep 0.1; done
check "$pid" finds reclaim-stall "it allocates beyond memory.high"
echo 1 >"$cgroup/cgroup.kill"
say passed
