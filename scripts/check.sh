#!/bin/bash
# Builds untax and checks the databases that run on this machine; when none does, a scratch
# PostgreSQL under load, which is gone afterwards. Ends well whether or not there are findings.
set -euo pipefail
cd "$(dirname "$0")/.."

report=$UNTAX_CACHE/report.html
mkdir -p "$UNTAX_CACHE"
scripts/needs.sh build
# The scratch PostgreSQL too, whether or not it is needed: a second build would compile crates again,
# as the two ask them for other features.
cargo build --release --package untax --package untax-scenes --bin untax --example scratch
untax=$CARGO_TARGET_DIR/release/untax

# For a look that nobody asked for; the check itself is kept, so that untax plan finds it.
aside=$(mktemp -d)
trap 'rm -rf "$aside"' EXIT

# Runs a check that writes the report; findings are a success too.
check() {
    "$@" || [ $? -eq 1 ]
}

"$untax" --state-dir "$aside" check --window 0s --json >"$aside/look.json" || [ $? -eq 1 ]
if grep -q '"databases": *\[\]' "$aside/look.json"; then
    echo "No database runs here: starting a scratch PostgreSQL with load." >&2
    scripts/needs.sh check
    check "$CARGO_TARGET_DIR/release/examples/scratch" \
        "$untax" check --pid '{pid}' --window 10s --html "$report"
else
    check "$untax" check --all --window 10s --html "$report"
fi
echo
echo "The same as a page: $report"
echo "The program: $untax"
