#!/bin/bash
# In a guest that was booted with the words that a plan writes: the pool is there.
#
#   tests/vm/boot.sh WORDS      WORDS is the file with them
#
# cargo test -p untax-remedies --test boot holds that file to what a plan for RHEL writes. Every
# size and every NUMA node must have as many pages as the words say, and all of them free.
set -euo pipefail

words=$(<"$1")

say() { echo "boot: $*"; }

fail() {
    say "FAILED: $*"
    exit 1
}

grep -qF "$words" /proc/cmdline || fail "the kernel was not given: $words"
pools=0
for word in $words; do
    case $word in
    hugepagesz=1G) size=1048576kB ;;
    hugepagesz=2M) size=2048kB ;;
    hugepages=*)
        counts=${word#*=}
        for count in ${counts//,/ }; do
            node=${count%:*} pages=${count#*:}
            pool=/sys/devices/system/node/node$node/hugepages/hugepages-$size
            [ "$(<"$pool/nr_hugepages")" = "$pages" ] ||
                fail "node $node has $(<"$pool/nr_hugepages") pages of $size, not $pages"
            [ "$(<"$pool/free_hugepages")" = "$pages" ] || fail "pages of $size are not free"
            say "node $node has $pages pages of $size"
            pools=$((pools + 1))
        done
        ;;
    esac
done
[ "$pools" = 2 ] || fail "$pools pools were looked at, not one on each of two nodes"
say passed
