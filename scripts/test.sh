#!/bin/bash
# Every test of the project, a stage at a time. As root, because real servers are started, limited
# and looked into; what they need is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ]; then
    echo "make test needs root; without it: cargo test --workspace" >&2
    exit 2
fi
begun=$SECONDS
log=$(mktemp)
trap 'rm -f "$log"' EXIT

stage() {
    local since=$SECONDS
    echo
    echo "== $1 (after $(((SECONDS - begun) / 60)) min)"
    shift
    "$@"
    echo "== done in $((SECONDS - since)) s"
}

# These tests, each in a guest machine of its own.
in_guests() {
    local test
    for test in "$@"; do
        cargo xtask vm run --timeout 2400 -- "tests/vm/$test.sh" "$CARGO_TARGET_DIR/debug/untax" ||
            return
    done
}

# The first node has a hole below 4 GiB: with less, no aligned GiB of it is in one piece.
booted() {
    local words=crates/remedies/tests/boot/guest.words
    cargo xtask vm run --timeout 900 --memory 7168 --cmdline "$(<"$words")" -- tests/vm/boot.sh "$words"
}

# Two at a time: a guest has one thread, however many processors it sees.
guests() {
    cargo build --package untax
    in_guests postgres &
    local beside=$! status=0
    { in_guests hugepage-limit limits numa pool-short && booted; } || status=$?
    wait "$beside" || status=$?
    return "$status"
}

# Without UNTAX_REQUIRE_REAL the tests on real servers would be left out where these are missing.
tests() {
    UNTAX_REQUIRE_REAL=1 cargo test --workspace --no-fail-fast 2>&1 | tee "$log"
}

stage "packages" scripts/needs.sh build test vm
stage "formatting" cargo fmt --all --check
stage "lints" cargo clippy --workspace --all-targets -- -D warnings
stage "tidiness" cargo xtask tidy
stage "fresh documents" cargo xtask docs --check
stage "limits of cgroup v2, and a boot, in guest machines" guests
stage "a Kubernetes cluster" scripts/kubernetes.sh --if-built
stage "tests, on real servers too" tests

echo
awk '/^test result:/ { passed += $4; failed += $6; skipped += $8 }
    END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }' "$log"
