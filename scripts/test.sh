#!/bin/bash
# The tests of the project, a stage at a time: cargo xtask test. With --long, those that make test
# leaves out.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/needs.sh build
echo "== the runner of the tests"
cargo build --quiet --package xtask
echo "== built in $SECONDS s"
exec cargo xtask test "$@"
