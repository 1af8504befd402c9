#!/bin/bash
# Prints the path of a kernel for the guest; fetches it first when the cache has none.
#
# The kernel is the newest cloud kernel of trixie-backports: its drivers for virtiofs and the
# virtio console are built in, and it has every cgroup v2 controller. The package is unpacked into
# the cache, not installed.
set -euo pipefail
source "$(dirname "$0")/suite.sh"

cache=${1:?usage: scripts/vm-kernel.sh CACHE-DIRECTORY}/kernel
suite=trixie-backports

fail() {
    echo "vm-kernel.sh: $*" >&2
    exit 2
}

newest() {
    find "$cache" -maxdepth 1 -name 'vmlinuz-*' 2>/dev/null | sort --version-sort | tail -1
}

fetch() {
    local work=$1 binary
    suite_open "$suite" "$work"
    binary=$(apt-cache depends --important linux-image-cloud-amd64 |
        sed -n 's/.*Depends: linux-image-\([0-9].*\)/linux-binary-\1/p')
    [ -n "$binary" ] || fail "$suite has no cloud kernel: name one with --kernel"
    suite_unpack "$work" "$binary"
    mv "$work"/unpacked/usr/lib/modules/*/vmlinuz "$cache/vmlinuz-${binary#linux-binary-}"
}

if [ -z "$(newest)" ]; then
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/fetch.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    echo "fetching a guest kernel from $suite" >&2
    fetch "$work" >&2
fi
newest
