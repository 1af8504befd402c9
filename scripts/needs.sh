#!/bin/bash
# Installs the Debian packages that a task of this project needs and that are missing.
#
#   scripts/needs.sh GROUP…        GROUP is build, check, test, vm, kubernetes, packages or bench
#
# Installing is harmless to the machine: no service is started, now or at the next boot, no default
# database cluster is made, and what is there already stays as it is.
set -euo pipefail

# PACKAGE=FILE: the package is missing when no such file is there, so that a program which was
# installed in another way is left alone.
declare -A packages=(
    [build]="gcc=/usr/bin/cc libc6-dev=/usr/include/stdlib.h clang=/usr/bin/clang make=/usr/bin/make
        pkg-config=/usr/bin/pkg-config libelf-dev=/usr/include/libelf.h zlib1g-dev=/usr/include/zlib.h"
    [check]="postgresql=/usr/lib/postgresql/*/bin/pgbench"
    [test]="fio=/usr/bin/fio e2fsprogs=/usr/sbin/mkfs.ext4 xfsprogs=/usr/sbin/mkfs.xfs btrfs-progs=/usr/*bin/mkfs.btrfs postgresql=/usr/lib/postgresql/*/bin/pgbench mariadb-server=/usr/sbin/mariadbd
        sysbench=/usr/bin/sysbench redis-server=/usr/bin/redis-server runc=/usr/*bin/runc runsc=/usr/*bin/runsc nftables=/usr/sbin/nft iptables=/usr/sbin/iptables-nft
        numactl=/usr/bin/numactl pgbouncer=/usr/sbin/pgbouncer linux-perf=/usr/bin/perf bpftrace=/usr/bin/bpftrace
        crun=/usr/bin/crun bubblewrap=/usr/bin/bwrap sqlite3=/usr/bin/sqlite3 strace=/usr/bin/strace
        openssh-server=/usr/sbin/sshd openssh-client=/usr/bin/ssh"
    [bench]="postgresql=/usr/lib/postgresql/*/bin/pgbench time=/usr/bin/time"
    [vm]="postgresql=/usr/lib/postgresql/*/bin/pgbench qemu-system-x86=/usr/bin/qemu-system-x86_64
        iproute2=/usr/*bin/ip mount=/usr/bin/mount kmod=/usr/sbin/modprobe e2fsprogs=/usr/sbin/mkfs.ext4 debian-archive-keyring=/usr/share/keyrings/debian-archive-keyring.gpg"
    [packages]="debootstrap=/usr/sbin/debootstrap lintian=/usr/bin/lintian rpm=/usr/bin/rpm umoci=/usr/bin/umoci
        runc=/usr/*bin/runc jq=/usr/bin/jq mount=/usr/bin/mount
        debian-archive-keyring=/usr/share/keyrings/debian-archive-keyring.gpg"
    [kubernetes]="postgresql=/usr/lib/postgresql/*/bin/pgbench runc=/usr/*bin/runc jq=/usr/bin/jq openssl=/usr/bin/openssl
        iproute2=/usr/*bin/ip mount=/usr/bin/mount debian-archive-keyring=/usr/share/keyrings/debian-archive-keyring.gpg"
)

# Services that these packages would start.
services="postgresql mariadb redis-server rsync pgbouncer ssh"

policy=/usr/sbin/policy-rc.d
clusters=/etc/postgresql-common/createcluster.d

fail() {
    echo "needs.sh: $*" >&2
    exit 2
}

missing() {
    local group need
    for group in "$@"; do
        for need in ${packages[$group]}; do
            compgen -G "${need#*=}" >/dev/null || echo "${need%%=*}"
        done
    done | sort --unique
}

# While packages are set up: no service starts, and no cluster is made.
hold_back() {
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\n# untax: removed when scripts/needs.sh ends\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    mkdir -p "$clusters"
    echo "create_main_cluster = false # removed when scripts/needs.sh ends" >"$clusters/untax.conf"
}

# Undoes hold_back; files that others put there stay.
release() {
    if grep -qs untax: "$policy"; then rm -f "$policy"; fi
    rm -f "$clusters/untax.conf" "$log"
}

install() {
    DEBIAN_FRONTEND=noninteractive apt-get --yes --no-install-recommends install "$@" >"$log" 2>&1
}

# Services that were not here before must not start at the next boot either.
disable_new() {
    local service
    for service in $services; do
        case " $present " in *" $service "*) continue ;; esac
        if command -v systemctl >/dev/null; then
            systemctl disable --quiet "$service" >/dev/null 2>&1 || true
        elif command -v update-rc.d >/dev/null; then
            update-rc.d "$service" disable >/dev/null 2>&1 || true
        fi
    done
}

# Of the services above, those that are installed.
services_here() {
    local service
    for service in $services; do
        if [ -e "/etc/init.d/$service" ] || [ -e "/lib/systemd/system/$service.service" ]; then
            echo "$service"
        fi
    done
}

[ $# -gt 0 ] || fail "name a group: ${!packages[*]}"
for group in "$@"; do
    [ -n "${packages[$group]:-}" ] || fail "no group '$group': there are ${!packages[*]}"
done
wanted=$(missing "$@")
[ -n "$wanted" ] || exit 0
# shellcheck disable=SC2086
set -- $wanted

echo "installing: $*" >&2
[ "$(id -u)" -eq 0 ] || fail "installing packages needs root; or install them yourself: $*"
command -v apt-get >/dev/null || fail "only Debian's packages are known here; install the like of: $*"
present=$(services_here | tr '\n' ' ')
log=$(mktemp)
trap release EXIT
hold_back
if ! install "$@"; then
    # The package lists are missing or old.
    apt-get --quiet --quiet update
    install "$@" || { cat "$log" >&2; fail "apt-get could not install: $*"; }
fi
disable_new
