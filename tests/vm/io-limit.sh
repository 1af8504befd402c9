#!/bin/bash
# In a guest: a neighbour floods the disk of PostgreSQL; the plan limits the neighbour's group by io.max of
# cgroup v2, and not the database's, and undoing it takes the limit away.
#
#   tests/vm/io-limit.sh UNTAX     UNTAX is the program to test
. "$(dirname "$0")/guest.sh"

window=8s
severities='\(info\|low\|medium\|high\)'
batch=/sys/fs/cgroup/batch

modules loop

# A disk of its own, which the neighbour uses too.
truncate --size 1G "$work/image"
mkfs.ext4 -q -F "$work/image"
disk=$(losetup --find --show "$work/image")
home=$work/disk
mkdir "$home" "$batch"
mount "$disk" "$home"
number=$(<"/sys/class/block/${disk##*/}/dev")

make_cluster
start_postgres shared_buffers=16MB max_wal_size=2GB
as_postgres "$bin/pgbench" --host "$home" --initialize --quiet --scale 4 postgres \
    >"$work/filling" 2>&1 || { cat "$work/filling"; fail "cannot fill it"; }
"$bin/pgbench" --no-vacuum --client 4 --rate 25 --time 3600 --username postgres --host "$home" \
    --builtin simple-update postgres >"$work/load" 2>&1 &
load=$!

# Past the page cache, so that its requests are its own.
(
    echo "$BASHPID" >"$batch/cgroup.procs"
    while :; do
        dd if=/dev/zero of="$home/flood" bs=256k count=400 oflag=direct conv=notrunc status=none
    done
) &
flood=$!
sleep 3

untax() { "$untax" --state-dir "$work/state" "$@"; }
# What the neighbour wrote to the disk so far.
flooded() { sed -n "s/^$number .*wbytes=\([0-9]*\) .*/\1/p" "$batch/io.stat"; }
rate() {
    local before
    before=$(flooded)
    sleep 10
    echo $((($(flooded) - before) / 10))
}

check finds shared-filesystem "a neighbour floods the disk" flood-group
before=$(rate)
untax plan --only shared-filesystem --json >"$work/plan.json"
grep -q "batch/io.max" "$work/plan.json" || { cat "$work/plan.json"; fail "the plan limits no neighbour"; }
untax plan --only shared-filesystem -o "$work/plan" >/dev/null
untax apply "$work/plan" >"$work/applied" 2>&1 || { cat "$work/applied"; fail "it cannot be applied"; }
grep -q "^$number .*wbps=[0-9]" "$batch/io.max" || fail "the neighbour has no limit"
[ -z "$(<"$cgroup/io.max")" ] || fail "the database was limited"
say "limited: $(<"$batch/io.max")"
after=$(rate)
say "the neighbour wrote $before bytes a second before, $after with the limit"
limit=$(sed -n "s/^$number .*wbps=\([0-9]*\).*/\1/p" "$batch/io.max")
[ "$after" -le $((limit + limit / 4)) ] || fail "it wrote more than it is allowed"
receipt=$(sed -n 's/^applied; untax undo \(.*\) puts.*/\1/p' "$work/applied")
untax undo "$receipt" >/dev/null 2>&1 || fail "it cannot be undone"
[ -z "$(<"$batch/io.max")" ] || fail "the limit stayed: $(<"$batch/io.max")"

kill "$load" "$flood"
echo 1 >"$batch/cgroup.kill"
stop_postgres
say passed
