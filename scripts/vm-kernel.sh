#!/bin/bash
# Prints the path of a kernel for the guest; fetches it, and its modules, first when the cache has
# none. The modules are beside it, below modules/, where modprobe --dirname finds them.
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

# The newest kernel whose modules are there.
newest() {
    local kernel
    for kernel in $(find "$cache" -maxdepth 1 -name 'vmlinuz-*' 2>/dev/null | sort --version-sort --reverse); do
        if [ -e "$cache/modules/lib/modules/${kernel#*/vmlinuz-}/modules.dep" ]; then
            echo "$kernel"
            return
        fi
    done
}

fetch() {
    local work=$1 binary version modules
    suite_open "$suite" "$work"
    binary=$(apt-cache depends --important linux-image-cloud-amd64 |
        sed -n 's/.*Depends: linux-image-\([0-9].*\)/linux-binary-\1/p')
    [ -n "$binary" ] || fail "$suite has no cloud kernel: name one with --kernel"
    version=${binary#linux-binary-}
    suite_unpack "$work" "$binary" "linux-modules-$version"
    modules=$work/unpacked/usr/lib/modules/$version
    mkdir -p "$cache/modules/lib/modules"
    rm -rf "$cache/modules/lib/modules/$version"
    mv "$modules/vmlinuz" "$cache/vmlinuz-$version"
    mv "$modules" "$cache/modules/lib/modules"
    depmod --basedir "$cache/modules" "$version"
}

# Guests that start together fetch it once.
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ -z "$(newest)" ]; then
    work=$(mktemp -d "$cache/fetch.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    echo "fetching a guest kernel from $suite" >&2
    fetch "$work" >&2
fi
newest
