#!/bin/bash
# The packages in a fresh Debian 12 without a toolchain: installed, used on a PostgreSQL there, upgraded,
# removed, purged.
#
#   tests/packages/debian.sh CACHE DEB RPM     CACHE keeps the unpacked Debian as an archive
cd "$(dirname "$0")/../.."
. tests/packages/common.sh
. scripts/suite.sh

cache=$1 deb=$(realpath "$2") rpm=$(realpath "$3")
state=/var/lib/untax
unit=/etc/systemd/system/multi-user.target.wants/untax-undo-stale.service

# debian ARCHIVE: Debian 12 with PostgreSQL and nothing to build with.
debian() {
    [ ! -e "$1" ] || return 0
    local new=$work/debian log=$work/debootstrap.log
    mkdir -p "$(dirname "$1")" "$new"
    say "unpacking Debian 12, once"
    debootstrap --foreign --variant=minbase --include=postgresql bookworm "$new" "$(debian_mirror)" \
        >"$log" 2>&1 || { tail "$log"; fail "no Debian 12"; }
    # No server starts, and no cluster is made.
    mkdir -p "$new/etc/postgresql-common/createcluster.d"
    echo "create_main_cluster = false" >"$new/etc/postgresql-common/createcluster.d/test.conf"
    chroot "$new" /debootstrap/debootstrap --second-stage >"$log" 2>&1 || { tail "$log"; fail "no Debian 12"; }
    rm -rf "$work/debian/var/cache/apt/archives"/*.deb "$work/debian/var/lib/apt/lists"/*
    tar --create --file "$1.part" --directory "$work/debian" .
    mv "$1.part" "$1"
    rm -rf "$work/debian"
}

# What is there, but for what every package leaves in dpkg's own records and logs.
files() {
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./tmp -o -path ./var/lib/dpkg \
        -o -path ./var/log -o -path ./var/lib/rpm -o -path ./root \) -prune -o -print | sort)
}
inside() { chroot "$root" "$@"; }

lintian --fail-on error,warning "$deb" || fail "lintian refuses the package"
say "lintian: no error and no warning but the overrides of deploy/package/lintian-overrides"

debian "$cache/roots/bookworm-postgresql.tar"
mkdir "$work/tree"
tar --extract --file "$cache/roots/bookworm-postgresql.tar" --directory "$work/tree"
mount_into "$work/tree"
! inside sh -c 'command -v cc || command -v clang || command -v cargo' || fail "there is a toolchain"
cp "$deb" "$root/tmp/untax.deb"
files >"$work/before"

inside dpkg --install /tmp/untax.deb >"$work/dpkg" 2>&1 || fail "not installed: $(cat "$work/dpkg")"
inside untax --version | head -n 1
[ -L "$root$unit" ] || fail "untax-undo-stale is not enabled"
for file in share/man/man1/untax-check.1.gz share/bash-completion/completions/untax \
    share/zsh/vendor-completions/_untax share/fish/vendor_completions.d/untax.fish \
    share/doc/untax/copyright lib/systemd/system/untax-steer.service; do
    [ -e "$root/usr/$file" ] || fail "there is no /usr/$file"
done
inside bash -ec '. /usr/share/bash-completion/completions/untax; complete -p untax' >/dev/null

start_postgres 54672 chroot "$root"
inside untax check --pid "$server" --window 3s --json >"$work/check.json" 2>"$work/check.err" ||
    [ $? -eq 1 ] || fail "the check failed: $(cat "$work/check.err")"
all_parts_measured "$work/check.json"
say "checked in Debian 12: tax $(jq .databases[0].tax.share "$work/check.json")"
inside untax undo --stale
kill "$server"

runs=$(ls "$root$state")
[ -n "$runs" ] || fail "the check was not saved"
rm "$root$unit" # the administrator disables it
inside dpkg --install /tmp/untax.deb >"$work/dpkg" 2>&1 || fail "not upgraded: $(cat "$work/dpkg")"
[ "$(ls "$root$state")" = "$runs" ] || fail "an upgrade changed the state"
[ ! -e "$root$unit" ] || fail "an upgrade enabled what the administrator had disabled"

inside dpkg --remove untax >"$work/dpkg" 2>&1 || fail "not removed: $(cat "$work/dpkg")"
files >"$work/after"
left=$(comm -13 "$work/before" "$work/after" | grep -v "^\.$state" || true)
[ -z "$left" ] || fail "removing leaves: $left"
[ "$(ls "$root$state")" = "$runs" ] || fail "removing changed the state"
say "removed: nothing is left but $state"

inside dpkg --install /tmp/untax.deb >"$work/dpkg" 2>&1 || fail "not installed again: $(cat "$work/dpkg")"
inside dpkg --purge untax >"$work/dpkg" 2>&1 || fail "not purged: $(cat "$work/dpkg")"
grep -q "removing $state" "$work/dpkg" || fail "purging does not say what it removes"
files >"$work/after"
cmp "$work/before" "$work/after" || fail "purging leaves: $(comm -13 "$work/before" "$work/after")"
say "purged: nothing is left"

# Of rpm, that the files and the scripts do the same: its tools are Debian's, and so is the root.
mkdir -p "$root/var/lib/rpm"
rpm --root "$root" --dbpath /var/lib/rpm --nodeps --install "$rpm"
inside untax --version | head -n 1
[ -e "$root/usr/share/zsh/site-functions/_untax" ] || fail "the rpm has no completions for zsh"
inside untax runs >/dev/null 2>&1 || true
mkdir -p "$root$state"
rpm --root "$root" --dbpath /var/lib/rpm --nodeps --upgrade --replacepkgs "$rpm"
rpm --root "$root" --dbpath /var/lib/rpm --nodeps --erase untax
files >"$work/after"
# Directories of fish, zsh and systemd are those packages' on Fedora, and were not here before.
left=$(comm -13 "$work/before" "$work/after" | grep -v "^\.$state" |
    grep -vE '^\./usr/(share/(fish|zsh)|lib/systemd/system-preset)' || true)
[ -z "$left" ] || fail "erasing the rpm leaves: $left"
[ -d "$root$state" ] || fail "erasing the rpm removes the state"
say passed
