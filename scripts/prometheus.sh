#!/bin/bash
# Unpacks Debian's Prometheus and promtool below CACHE/prometheus, without installing them: as a service it
# would run from then on. What is there stays as it is.
#
#   scripts/prometheus.sh CACHE-DIRECTORY
set -euo pipefail

cache=${1:?usage: scripts/prometheus.sh CACHE-DIRECTORY}/prometheus

# Tests that start together unpack it once.
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ ! -x "$cache/prometheus" ] || [ ! -x "$cache/promtool" ]; then
    work=$(mktemp -d "$cache/work.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    cd "$work"
    apt-get --quiet --quiet download prometheus >&2 || {
        apt-get --quiet --quiet update >&2
        apt-get --quiet --quiet download prometheus >&2
    }
    dpkg-deb -x prometheus_*.deb unpacked
    mv unpacked/usr/bin/prometheus unpacked/usr/bin/promtool "$cache/"
fi
echo "$cache"
