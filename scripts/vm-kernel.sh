#!/bin/bash
# Prints the path of a kernel for the guest; fetches it, and its modules, first when the cache has
# none. The modules are beside it, below modules/, where modprobe --dirname finds them.
#
# The kernel is the newest cloud kernel of trixie-backports: its drivers for virtiofs and the
# virtio console are built in, and it has every cgroup v2 controller. The package is unpacked into
# the cache, not installed, and apt works on lists of its own, so the machine's own package sources
# stay as they are. The mirror is the one the machine already uses for Debian.
set -euo pipefail

cache=${1:?usage: scripts/vm-kernel.sh CACHE-DIRECTORY}/kernel
suite=trixie-backports

fail() {
    echo "vm-kernel.sh: $*" >&2
    exit 2
}

# The first Debian mirror among the machine's package sources.
mirror() {
    apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(CODENAME)' 2>/dev/null |
        awk '$2 == "Debian" && $3 !~ /security/ && !found++ { print $1 }'
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
    local uri=$1 work=$2
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
    cat >"$work/sources.list" <<EOF
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $suite main
EOF
    cat >"$work/apt.conf" <<EOF
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State::lists "$work/lists";
Dir::Cache "$work/cache";
Acquire::Languages "none";
APT::Sandbox::User "root";
EOF
    export APT_CONFIG=$work/apt.conf
    apt-get --quiet --quiet update
    local binary version
    binary=$(apt-cache depends --important linux-image-cloud-amd64 |
        sed -n 's/.*Depends: linux-image-\([0-9].*\)/linux-binary-\1/p')
    [ -n "$binary" ] || fail "$suite has no cloud kernel: name one with --kernel"
    version=${binary#linux-binary-}
    (
        cd "$work"
        for package in "$binary" "linux-modules-$version"; do
            apt-get --quiet --quiet download "$package"
            dpkg-deb -x "$package"_*.deb unpacked
        done
    )
    mkdir -p "$cache/modules/lib/modules"
    rm -rf "$cache/modules/lib/modules/$version"
    mv "$work/unpacked/usr/lib/modules/$version/vmlinuz" "$cache/vmlinuz-$version"
    mv "$work/unpacked/usr/lib/modules/$version" "$cache/modules/lib/modules"
    depmod --basedir "$cache/modules" "$version"
}

if [ -z "$(newest)" ]; then
    uri=$(mirror)
    if [ -z "$uri" ]; then
        apt-get --quiet --quiet update
        uri=$(mirror)
    fi
    [ -n "$uri" ] || fail "no Debian mirror among the machine's package sources"
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/fetch.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    echo "fetching a guest kernel from $suite" >&2
    fetch "$uri" "$work" >&2
fi
newest
