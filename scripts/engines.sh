#!/bin/bash
# Unpacks servers that people run and this machine's own suite does not have, each with the libraries
# of its suite in a root of its own: below CACHE/engines. Nothing is installed; a root that is there
# stays as it is.
#
#   scripts/engines.sh CACHE-DIRECTORY [ENGINE…]      ENGINE is one of those below; all when none is named
set -euo pipefail
source "$(dirname "$0")/suite.sh"

# SUITE: PACKAGES. A shell and setpriv start the server inside; mariadb-install-db is a shell script.
declare -A engines=(
    [postgres17]="trixie: postgresql-17"
    [postgres18]="sid: postgresql-18"
    [mysql9]="sid: mysql-server-core"
    [mariadb11]="sid: mariadb-server-core mariadb-client-core hostname sed grep gawk"
    [valkey]="sid: valkey-server"
)
always="libc-bin coreutils dash util-linux base-files"

fail() {
    echo "engines.sh: $*" >&2
    exit 2
}

# unpack WORK ROOT PACKAGE…: with all that they depend on, as if nothing were installed.
unpack() {
    local work=$1 root=$2 package
    shift 2
    : >"$work/status"
    rm -rf "$work/cache/archives"/*.deb
    apt-get --quiet --quiet --yes --no-install-recommends --download-only \
        -o Dir::State::status="$work/status" -o Debug::NoLocking=1 install "$@" >/dev/null
    # The links of base-files, as `/lib` to `/usr/lib`, must be there before what goes through them.
    mkdir -p "$root"/{etc,proc,sys,dev,tmp,run} "$root/usr"/{bin,sbin,lib,lib64}
    local name
    for name in bin sbin lib lib64; do ln -s "usr/$name" "$root/$name"; done
    for package in "$work/cache/archives"/*.deb; do
        dpkg-deb --fsys-tarfile "$package" |
            tar --extract --directory "$root" --keep-directory-symlink --no-same-owner \
                --exclude='./usr/share/doc' --exclude='./usr/share/man' --exclude='./usr/share/locale' \
                --exclude='./usr/share/info'
    done
    touch "$root"/etc/{passwd,group,hosts}
    [ -e "$root/usr/bin/sh" ] || ln -s dash "$root/usr/bin/sh"
}

# fetch ENGINE SUITE PACKAGE…
fetch() {
    local engine=$1 suite=$2 root=$cache/$1.new
    shift 2
    echo "unpacking $engine from $suite" >&2
    if [ "${opened:-}" != "$suite" ]; then
        rm -rf "$work"
        suite_open "$suite" "$work"
        opened=$suite
    fi
    rm -rf "$root"
    # shellcheck disable=SC2086
    unpack "$work" "$root" $always "$@"
    mv "$root" "$cache/$engine"
}

cache=${1:?usage: scripts/engines.sh CACHE-DIRECTORY [ENGINE…]}/engines
shift
[ $# -gt 0 ] || set -- postgres17 postgres18 mysql9 mariadb11 valkey
for engine in "$@"; do
    [ -n "${engines[$engine]:-}" ] || fail "no engine '$engine': there are ${!engines[*]}"
done

# Tests that start together unpack them once.
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
work=$cache/fetch
trap 'rm -rf "$work" "$cache"/*.new' EXIT
for engine in "$@"; do
    if [ ! -d "$cache/$engine" ]; then
        # shellcheck disable=SC2086
        fetch "$engine" "${engines[$engine]%%:*}" ${engines[$engine]#*:}
    fi
done
