#!/bin/bash
# Builds loads that no package of Debian's has, from their published modules: below CACHE/loads. What is
# there stays as it is.
#
#   scripts/loads.sh CACHE-DIRECTORY
set -euo pipefail

cache=${1:?usage: scripts/loads.sh CACHE-DIRECTORY}/loads

# The last version that the module proxy has. It speaks to MySQL and MariaDB.
go_tpc=github.com/pingcap/go-tpc/cmd/go-tpc@v1.0.7

# Tests that start together build it once.
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ ! -x "$cache/go-tpc" ]; then
    command -v go >/dev/null || {
        echo "loads.sh: no go to build go-tpc with; install golang, 1.15 or newer" >&2
        exit 2
    }
    echo "building $go_tpc" >&2
    GOBIN=$cache go install "$go_tpc"
fi
