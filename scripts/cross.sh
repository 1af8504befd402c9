#!/bin/bash
# Unpacks what a static build for another architecture links and this machine does not have: Debian's libelf and
# zlib, below CACHE/cross. Nothing is installed; what is there stays as it is. Prints the directory.
#
#   scripts/cross.sh CACHE-DIRECTORY ARCHITECTURE      ARCHITECTURE as Debian names it: arm64
set -euo pipefail
source "$(dirname "$0")/suite.sh"

usage="usage: scripts/cross.sh CACHE-DIRECTORY ARCHITECTURE"
cache=${1:?$usage}/cross
architecture=${2:?$usage}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ ! -d "$cache/$architecture" ]; then
    work=$(mktemp -d "$cache/work.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    # shellcheck source=/dev/null
    suite_open "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$work" "$architecture" >&2
    suite_unpack "$work" libelf-dev zlib1g-dev >&2
    mv "$work/unpacked/usr" "$cache/$architecture"
fi
echo "$cache/$architecture"
