#!/bin/bash
# The demonstration of the README: a scratch PostgreSQL with one client on CPUs that halt, found, planned
# for, verified and put back, by the commands that the README shows. Needs root and a guest that could poll
# (the haltpoll governor). Run it on a machine where nothing else runs: its figures are those of idle CPUs.
set -euo pipefail
cd "$(dirname "$0")/.."

knob=/sys/module/haltpoll/parameters/guest_halt_poll_ns

# Shows a command, and runs it; findings and verdicts are a success too.
run() {
    echo
    echo "# $*"
    case $1 in
    untax) "$release/untax" --state-dir "$state" "${@:2}" || [ $? -eq 1 ] ;;
    *) "$@" ;;
    esac
}

inside() {
    release=$2
    before=$(cat $knob)
    state=$(mktemp -d)
    # Undo has done it by then, unless a command failed.
    trap 'echo "$before" >$knob; rm -rf "$state"' EXIT
    cd "$state"
    run untax check --pid "$1" --window 5s --no-calibration
    run untax plan --only idle-wakeup -o fix
    # Until the load of the check has ended: it would be a second client.
    while pgrep --exact pgbench >/dev/null; do sleep 0.2; done
    run untax apply fix
    run cat $knob
    run untax verify fix --workload pgbench --trial 2s
    run untax undo "$(basename "$(find receipts -name '*.jsonl' | sort | tail -n 1)" .jsonl)"
    run cat $knob
}

if [ "${1:-}" = inside ]; then
    inside "$2" "$3"
    exit
fi
if [ ! -e $knob ]; then
    echo "this kernel has no $knob: no guest, or another governor" >&2
    exit 2
fi
scripts/needs.sh build check
cargo build --release --package untax --package untax-scenes --bin untax --example scratch
release=$CARGO_TARGET_DIR/release
"$release/examples/scratch" --clients 1 --seconds 9 "$0" inside '{pid}' "$release"
