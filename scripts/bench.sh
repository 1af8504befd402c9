#!/bin/bash
# The figures of docs/results/, measured anew into target/bench/, but those that tests print (agreement,
# scalability) and the one beside a program in C. As root, on a quiet machine; takes about nine hours.
# Interrupted benches go on where they were stopped when started again.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/needs.sh build bench
cargo build --release --package untax --package xtask
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cargo run --release --package untax-host --example synthetic_tree -- "$tree/host" 10000 300

cargo xtask bench prediction
cargo xtask bench causes
cargo xtask bench causes --dose mild
scripts/engines.sh "$UNTAX_CACHE"
cargo xtask bench engines
cargo xtask bench overhead
cargo xtask bench verdicts
cargo xtask bench snapshot --tree "$tree/host"
for access in direct hash; do
    results=target/bench/pages-100m$([ $access = direct ] || echo -$access)
    "$CARGO_TARGET_DIR/release/untax" bench pages --rows 100000000 --row-bytes 128 \
        --connections 1,2,4 --access $access --html "$results.html" --json >"$results.json"
done
