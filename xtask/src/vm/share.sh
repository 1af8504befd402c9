#!/bin/sh
# Serves the host's root, read-only, to a guest over virtiofs. Runs in a mount namespace of its
# own, so that what it mounts ends with it. Its argument is the number of the listening socket's
# file descriptor.
set -eu
mount --rbind / /mnt
findmnt --raw --noheadings --output TARGET --submounts --target /mnt | while read -r place; do
    mount -o remount,bind,ro "$place"
done
for virtiofsd in /usr/lib/qemu/virtiofsd /usr/libexec/virtiofsd; do
    if [ -x "$virtiofsd" ]; then
        exec "$virtiofsd" --fd="$1" -o source=/mnt -o cache=auto
    fi
done
echo "virtiofsd is missing: run scripts/needs.sh vm" >&2
exit 1
