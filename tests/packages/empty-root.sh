#!/bin/bash
# The static file, in a root that holds nothing else, checks a PostgreSQL of the machine.
#
#   tests/packages/empty-root.sh PROGRAM
. "$(dirname "$0")/common.sh"

program=$1
mkdir "$work/tree"
cp "$program" "$work/tree/untax"
mount_into "$work/tree"
[ "$(ls -A "$root" | tr '\n' ' ')" = "proc sys untax " ] || fail "the root is not empty: $(ls -A "$root")"

chroot=$(command -v chroot)
untax() { env --ignore-environment "$chroot" "$root" /untax "$@"; }

untax --version >"$work/version"
grep -q '^commit [0-9a-f]\{12\}' "$work/version" || fail "no commit: $(cat "$work/version")"
grep -q ', static$' "$work/version" || fail "not static: $(cat "$work/version")"
grep -q '^BPF programs built in: .*threads' "$work/version" || fail "no BPF: $(cat "$work/version")"
say "$(tr '\n' ' ' <"$work/version")"

# Without HOME and without a file of users: the C library would load modules of the host to find either.
chroot --userspec 65534:65534 "$root" /untax --state-dir /tmp explain small-pages >/dev/null
env --ignore-environment "$chroot" --userspec 65534:65534 "$root" /untax runs >"$work/runs" 2>&1 || true
! grep -qi 'segmentation\|assert\|loaded' "$work/runs" || fail "$(cat "$work/runs")"

start_postgres 54671
untax check --pid "$server" --window 3s --json >"$work/check.json" 2>"$work/check.err" || [ $? -eq 1 ] ||
    fail "the check failed: $(cat "$work/check.err")"
all_parts_measured "$work/check.json"
say "checked: tax $(jq .databases[0].tax.share "$work/check.json"), unmeasured: $(
    jq --compact-output '[.databases[0].unmeasured[].rule]' "$work/check.json")"
[ "$(ls -A "$root" | tr '\n' ' ')" = "proc sys untax var " ] || fail "it left: $(ls -A "$root")"

# Names: of this host, of the file of hosts, and one that nobody knows.
env --ignore-environment "$chroot" "$root" /untax agent --window 1s --listen 127.0.0.1:54673 2>"$work/agent" &
pids+=($!)
mkdir "$root/etc"
echo '127.0.0.1 node-1.example # as a test has it' >"$root/etc/hosts"
fleet() { untax fleet --agents "$1:54673" >"$work/fleet" 2>"$work/fleet.err"; }
for _ in {1..60}; do
    ! fleet localhost || break
    sleep 1
done
grep -q 'on 1 nodes' "$work/fleet" || fail "localhost: $(cat "$work/fleet.err" "$work/agent")"
fleet node-1.example || fail "a name of /etc/hosts: $(cat "$work/fleet.err")"
say "names: $(head -n 1 "$work/fleet")"
! fleet nobody.example || fail "a name that nobody knows has an address"
grep -q 'DNS server 127.0.0.1:53' "$work/fleet.err" || fail "no reason: $(cat "$work/fleet.err")"
say "names: $(cat "$work/fleet.err")"
say passed
