#!/bin/bash
# In a guest with two NUMA nodes: a plan asks for more huge pages than one node has memory for.
#
#   tests/vm/pool-short.sh UNTAX     UNTAX is the program to test
#
# What is available in all suffices, so nothing can be known beforehand: the first node gives its
# pages, the second one fewer than asked. `untax apply` must say so, and leave both pools as they
# were.
set -euo pipefail

untax=$1
work=$(mktemp -d)
chmod 755 "$work"
bin=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin | sort --version-sort | tail -1)
left_mib=120

say() { echo "pool-short: $*"; }

fail() {
    say "FAILED: $*"
    grep MemFree /sys/devices/system/node/node*/meminfo || true
    cat "$work"/*.err "$work/log" 2>/dev/null | tail -n 30 || true
    exit 1
}

as_postgres() { (cd "$work" && runuser -u postgres -- "$@"); }

pools() { cat /sys/devices/system/node/node*/hugepages/hugepages-2048kB/nr_hugepages | tr '\n' ' '; }

free_mib() { awk '/MemFree/ { print int($4 / 1024) }' /sys/devices/system/node/node1/meminfo; }

[ -d /sys/devices/system/node/node1 ] || fail "the guest has one node"
chown postgres "$work"
as_postgres "$bin/initdb" -D "$work/data" --auth trust --no-sync --no-locale >/dev/null
# A few pages: without any, huge_pages=try is no promise that was broken.
echo 8 >/proc/sys/vm/nr_hugepages
as_postgres "$bin/postgres" -D "$work/data" -k "$work" -c listen_addresses= \
    -c shared_buffers=400MB -c huge_pages=try -c fsync=off >"$work/log" 2>&1 &
until "$bin/pg_isready" --quiet --host "$work"; do
    kill -0 $! 2>/dev/null || fail "the server did not start"
    sleep 0.5
done

# The guest's root is read-only; the plan has a file for the time after a boot.
mount -t tmpfs tmpfs /etc/sysctl.d

mkdir "$work/memory"
mount -t tmpfs -o mpol=bind:1,size=100% tmpfs "$work/memory"
dd if=/dev/zero of="$work/memory/filler" bs=1M count=$(($(free_mib) - left_mib)) status=none ||
    fail "node 1 cannot be filled"
before=$(pools)
say "pools of $before pages, $(free_mib) MiB free on node 1"

"$untax" --state-dir "$work/state" check --window 0s --json >"$work/check.json" 2>"$work/check.err" ||
    [ $? -eq 1 ] || fail "untax check failed"
"$untax" --state-dir "$work/state" plan --only hugepages-short --json >"$work/plan.json" \
    2>"$work/plan.err" || fail "there is no plan"
grep -q '"id": *"pool-2m-node1"' "$work/plan.json" || fail "the plan does not ask node 1"
plan=$(sed -n 's/^  "plan": *"\(.*\)",$/\1/p' "$work/plan.json")
"$untax" --state-dir "$work/state" apply "$plan" --dry-run || fail "it is refused beforehand"
status=0
"$untax" --state-dir "$work/state" apply "$plan" 2>"$work/apply.err" || status=$?
say "status $status: $(tail -1 "$work/apply.err")"
[ "$status" = 2 ] || fail "apply ended with $status"
grep -q 'asked for [0-9]* huge pages, got [0-9]*: memory is too fragmented or in use' \
    "$work/apply.err" || fail "it does not say how many it got"
grep -q 'what was done before it is undone' "$work/apply.err" || fail "it does not say what is left"
[ -z "$(ls /etc/sysctl.d)" ] || fail "a file is left"
[ "$(pools)" = "$before" ] || fail "the pools are $(pools)"
"$untax" --state-dir "$work/state" undo | grep -q undone || fail "the receipt is not undone"
say passed
