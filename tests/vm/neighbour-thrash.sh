#!/bin/bash
# In a guest with cgroup v2: a pod that reads again and again what its own memory.max evicts, from the disk of
# a PostgreSQL that is far from any limit. It is named as the cause, and no longer once its limit is raised.
#
#   tests/vm/neighbour-thrash.sh UNTAX     UNTAX is the program to test
. "$(dirname "$0")/guest.sh"

# Of a load that is light enough to be traced all the time, though an event is dear here.
window=8s

modules loop
# A disk that both share.
truncate --size 1G "$work/image"
mkfs.ext4 -q -F "$work/image"
disk=$(losetup --find --show "$work/image")
home=$work/disk
mkdir "$home"
mount "$disk" "$home"

make_cluster
start_postgres shared_buffers=32MB max_wal_size=2GB
as_postgres "$bin/pgbench" --host "$home" --initialize --quiet --scale 2 postgres \
    >"$work/filling" 2>&1 || { cat "$work/filling"; fail "cannot fill it"; }
"$bin/pgbench" --host "$home" --no-vacuum --client 4 --rate 40 --time 3600 --username postgres \
    --builtin simple-update postgres >"$work/load" 2>&1 &
load=$!

pod=/sys/fs/cgroup/pod
mkdir "$pod"
echo 48M >"$pod/memory.max"
# Pages of a file are charged to the group that reads them first.
dd if=/dev/zero of="$home/file" bs=1M count=160 conv=fsync status=none
echo 1 >/proc/sys/vm/drop_caches
(
    echo "$BASHPID" >"$pod/cgroup.procs"
    while :; do
        dd if="$home/file" of=/dev/null bs=64k status=none
        sleep 0.05
    done
) &
reader=$!
until grep -q '^workingset_refault_file [1-9][0-9]\{4\}' "$pod/memory.stat"; do sleep 1; done
check finds neighbour-reclaim "a pod thrashes inside its memory.max" '"read again by /pod"'
echo max >"$pod/memory.max"
# Until all of its file stays.
sleep 15
check "does not find" neighbour-reclaim "its memory.max is raised"

kill "$reader" "$load"
wait "$reader" "$load" || true
stop_postgres
say passed
