#!/bin/bash
# Prints the path of a kernel for the guest; fetches it, and its modules, first when the cache has
# none.
#
#   scripts/vm-kernel.sh CACHE-DIRECTORY SUITE
#
# The kernel is the newest cloud kernel of a suite of Debian: bookworm (6.1), trixie (6.12) or
# trixie-backports (7.x). Its packages are unpacked into the cache, not installed. The modules are
# beside it, below modules/, where modprobe --dirname finds them. A kernel whose drivers for virtiofs
# and the virtio console are modules needs an initramfs, which is beside it too: initrd.
set -euo pipefail
source "$(dirname "$0")/suite.sh"

suite=${2:?usage: scripts/vm-kernel.sh CACHE-DIRECTORY SUITE}
cache=$1/kernel/$suite

# What a guest needs before it has its root.
early="virtio_pci virtio_console virtiofs"

fail() {
    echo "vm-kernel.sh: $*" >&2
    exit 2
}

# The newest kernel whose files are all there.
newest() {
    local kernel
    for kernel in $(find "$cache" -mindepth 2 -maxdepth 2 -name vmlinuz 2>/dev/null | sort --version-sort --reverse); do
        if [ -e "${kernel%/*}/complete" ]; then
            echo "$kernel"
            return
        fi
    done
}

# Puts the kernel of the version $1, its modules and its initramfs into $2.
fetch() {
    local version=$1 work=$2 packages=("linux-image-$1")
    if apt-cache show "linux-binary-$version" >/dev/null 2>&1; then
        packages=("linux-binary-$version" "linux-modules-$version")
    fi
    suite_unpack "$work" "${packages[@]}"
    mkdir -p "$work/kernel/modules/lib"
    mv "$(find "$work/unpacked" -name 'vmlinuz*' -type f)" "$work/kernel/vmlinuz"
    mv "$(find "$work/unpacked" -path "*lib/modules" -type d)" "$work/kernel/modules/lib"
    depmod --basedir "$work/kernel/modules" "$version"
    if [ -n "$(find "$work/kernel/modules" -name 'virtiofs.ko*')" ]; then
        make_initramfs "$version" "$work"
    fi
    touch "$work/kernel/complete"
}

# An initramfs that loads the early modules, in the order in which they need each other, and goes
# on with the shared root.
make_initramfs() {
    local version=$1 work=$2 root=$2/initramfs module file
    suite_unpack "$work" busybox-static
    mkdir -p "$root/bin" "$root/proc" "$root/root"
    mv "$(find "$work/unpacked" -path '*bin/busybox' -type f)" "$root/bin/busybox"
    {
        echo '#!/bin/busybox sh'
        for module in $early; do
            modprobe --dirname "$work/kernel/modules" --set-version "$version" --show-depends "$module"
        done | sed -n 's/^insmod \(\S*\).*/\1/p' | awk '!seen[$0]++' | while read -r file; do
            cp "$file" "$root"
            echo "/bin/busybox insmod /${file##*/}"
        done
        cat <<'INIT'
/bin/busybox mount -t proc proc /proc
init=$(/bin/busybox sed -n 's/.* init=\(\S*\).*/\1/p' /proc/cmdline)
/bin/busybox mount -t virtiofs -o ro untax /root
/bin/busybox umount /proc
exec /bin/busybox switch_root /root "$init" "$@"
INIT
    } >"$root/init"
    chmod 755 "$root/init"
    (cd "$root" && find . | bin/busybox cpio -o -H newc) >"$work/kernel/initrd" 2>/dev/null
}

# Guests that start together fetch it once.
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ -z "$(newest)" ]; then
    work=$(mktemp -d "$cache/fetch.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    echo "fetching a guest kernel from $suite" >&2
    suite_open "$suite" "$work" >&2
    version=$(apt-cache depends --important linux-image-cloud-amd64 |
        sed -n 's/.*Depends: linux-image-\([0-9].*\)/\1/p')
    [ -n "$version" ] || fail "$suite has no cloud kernel: name one with --kernel"
    fetch "$version" "$work" >&2
    rm -rf "${cache:?}/$version"
    mv "$work/kernel" "$cache/$version"
fi
newest
