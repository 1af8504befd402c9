#!/bin/bash
# Makes the artefacts of a release, and tests them: in an empty root, in a fresh Debian, as an image.
#
#   scripts/packages.sh [--built]     --built takes the artefacts that cargo xtask release has made
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${UNTAX_CACHE:-$HOME/.cache/untax}
scripts/needs.sh build check packages
if [ "${1:-}" != --built ]; then
    command -v go >/dev/null || { echo "SKIPPED: nfpm is built with Go, which is not here"; exit 0; }
    cargo xtask release --quick
fi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
out=target/dist
tests/packages/empty-root.sh "$out/untax-linux-$(uname -m)"
tests/packages/image.sh "$out/untax-$version-image-$(uname -m).tar" "$version"
tests/packages/debian.sh "$cache" "$out"/untax_"$version"*.deb "$out"/untax-"$version"*.rpm
