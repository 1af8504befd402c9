#!/bin/bash
# Puts the machine back as it was before the cluster, when its standard input ends.
#
#   tests/kubernetes/guard.sh     as cluster.sh starts it: RUN and GROUP are its directory and the
#                                 name of its control groups
#
# The input ends with cluster.sh, however that ends, and the kernel ends the node then. Fails where
# the machine is not as it was. Where this
# was killed as well, `guard.sh now` before the next cluster removes what was left.
set -euo pipefail
trap '' HUP INT TERM

# Every hierarchy of control groups.
hierarchies() { findmnt --noheadings --list --output TARGET --types cgroup,cgroup2; }

# The pools of huge pages, one of each size on each node: DIRECTORY PAGES SURPLUS.
pools() {
    local pool
    for pool in /sys/devices/system/node/node*/hugepages/hugepages-*; do
        echo "$pool $(<"$pool/nr_hugepages") $(<"$pool/surplus_hugepages")"
    done
}

# Pages that processes still have become surplus when a pool shrinks, and go when it is told again.
put_pools_back() {
    local pool pages
    while read -r pool pages _; do
        [ "$(<"$pool/nr_hugepages")" = "$pages" ] || echo "$pages" >"$pool/nr_hugepages"
    done <<<"$prior"
    [ "$(pools)" = "$prior" ]
}

# Fails while processes are in the groups.
remove_groups() {
    local hierarchy
    for hierarchy in $(hierarchies); do
        [ ! -d "$hierarchy/$GROUP" ] || find "$hierarchy/$GROUP" -depth -type d -exec rmdir {} +
    done
}

# Where cluster.sh mounted a hierarchy for huge pages. The kernel keeps one whose last groups are
# still going when it is unmounted: then it is unmounted once more.
remove_hierarchy() {
    local place=/sys/fs/cgroup/hugetlb
    [ -e "$RUN/hierarchy" ] || return 0
    for _ in {1..50}; do
        ! mountpoint --quiet "$place" || umount "$place"
        sleep 0.2
        [ "$(awk '$1 == "hugetlb" { print $2 }' /proc/cgroups)" != 0 ] || break
        mount -t cgroup -o hugetlb untax "$place"
    done
    ! mountpoint --quiet "$place" || umount "$place"
    rmdir "$place"
}

# What the node made where nothing was.
remove_directories() {
    [ ! -e "$RUN/directories" ] || xargs rm -rf --one-file-system <"$RUN/directories"
}

if [ "${1:-}" = now ]; then
    remove_groups
    exit
fi
prior=$(pools)
echo ready
read -r _ || true
for _ in {1..300}; do
    put_pools_back && remove_groups 2>/dev/null && break
    sleep 0.1
done
failed=0
put_pools_back || { echo "guard.sh: the pools of huge pages are not as they were" >&2; failed=1; }
remove_groups || { echo "guard.sh: control groups called $GROUP are left" >&2; failed=1; }
remove_hierarchy || { echo "guard.sh: a hierarchy for huge pages is left" >&2; failed=1; }
remove_directories || { echo "guard.sh: directories of the node are left" >&2; failed=1; }
rm -rf "$RUN" || failed=1
exit "$failed"
