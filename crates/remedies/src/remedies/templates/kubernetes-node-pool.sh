ssh "root@$node" sh -s <<'END'
set -eu
# A larger pool is somebody's: it stays.
set_pool() {
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
        [ "$(cat "$1/nr_hugepages")" -lt "$2" ] || return 0
        echo "$2" >"$1/nr_hugepages"
        [ "$(cat "$1/nr_hugepages")" -lt "$2" ] || return 0
        echo 1 >/proc/sys/vm/compact_memory
        sleep 5
    done
    echo "$1: $(cat "$1/nr_hugepages") pages, not $2: reboot the node, or choose fewer" >&2
    exit 1
}
@WRITES@END
