#!/bin/bash
# What idle CPUs that sleep cost, predicted and measured: docs/results/idle-wakeups.md. For each server and
# number of clients: PAIRS times throughput without and with polling, by turns in the order ABBA, and a check
# of 5 s without. Needs root, the haltpoll governor, PostgreSQL, Redis, MariaDB and sysbench, and a machine on
# which nothing else runs.
set -euo pipefail
cd "$(dirname "$0")/.."

knob=/sys/module/haltpoll/parameters/guest_halt_poll_ns
untax=${UNTAX:-$CARGO_TARGET_DIR/release/untax}
pairs=${PAIRS:-5} seconds=${SECONDS_EACH:-2}
work=$(mktemp -d /tmp/idle-wakeups.XXXXXX)
before=$(cat $knob)
postgres=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)

end() {
    echo "$before" >$knob
    as postgres "$postgres/pg_ctl" -D "$work/pg" -m immediate stop >/dev/null || true
    kill $(jobs -p) 2>/dev/null || true
    wait
    rm -rf "$work"
}
as() { setpriv --reuid="$1" --regid="$1" --init-groups "${@:2}"; }

serve() {
    trap end EXIT
    chmod 755 "$work"
    install -d -o postgres "$work/pg"
    as postgres "$postgres/initdb" -D "$work/pg" >/dev/null
    as postgres "$postgres/pg_ctl" -D "$work/pg" -l "$work/pg/log" -w start \
        -o "-k $work/pg -p 5499 -c listen_addresses= -c shared_buffers=256MB" >/dev/null
    as postgres "$postgres/pgbench" -h "$work/pg" -p 5499 -i -s 10 postgres &>/dev/null
    redis-server --port 7799 --bind 127.0.0.1 --save '' >/dev/null &
    install -d -o mysql "$work/my"
    mariadb-install-db --user=mysql --datadir="$work/my" &>/dev/null
    mariadbd --no-defaults --user=mysql --datadir="$work/my" --socket="$work/my/socket" --skip-networking \
        --innodb-buffer-pool-size=256M &>/dev/null &
    for _ in $(seq 50); do mariadb -S "$work/my/socket" -e 'create database if not exists test' 2>/dev/null && break; sleep 0.2; done
    sb 1 prepare &>/dev/null
}
sb() {
    sysbench oltp_point_select --mysql-socket="$work/my/socket" --mysql-user=root --mysql-db=test \
        --tables=1 --table-size=100000 --threads="$1" "${@:2}"
}

# Requests per second of a server with so many clients, for so long.
load() {
    case $1 in
    postgres) as postgres "$postgres/pgbench" -h "$work/pg" -p 5499 -S -c "$2" -T "$3" postgres 2>/dev/null |
        sed -n 's/^tps = \([0-9.]*\).*/\1/p' ;;
    commits) as postgres "$postgres/pgbench" -h "$work/pg" -p 5499 -N -c "$2" -T "$3" postgres 2>/dev/null |
        sed -n 's/^tps = \([0-9.]*\).*/\1/p' ;;
    redis) local from to
        from=$(redis-cli -p 7799 info stats | sed -n 's/^total_commands_processed:\([0-9]*\).*/\1/p')
        timeout -s KILL "$3" redis-benchmark -p 7799 -t get -c "$2" -n 1000000000 -q &>/dev/null || true
        to=$(redis-cli -p 7799 info stats | sed -n 's/^total_commands_processed:\([0-9]*\).*/\1/p')
        echo $(((to - from) / $3)) ;;
    mariadb) sb "$2" --time="$3" run | sed -n 's/.*transactions:.*(\([0-9.]*\) per sec.*/\1/p' ;;
    esac
}

cell() {
    local server=$1 clients=$2 line="" pair order poll
    load "$server" "$clients" 1 >/dev/null
    for pair in $(seq "$pairs"); do
        if ((pair % 2)); then order="0 200000"; else order="200000 0"; fi
        for poll in $order; do
            echo "$poll" >$knob
            line+=" $poll:$(load "$server" "$clients" "$seconds")"
        done
    done
    echo 0 >$knob
    load "$server" "$clients" 8 >/dev/null &
    local loading=$!
    sleep 1
    "$untax" --state-dir "$work/state" check --window 5s --no-calibration --json >"$work/check.json" || true
    wait $loading
    python3 - "$server" "$clients" "$work/check.json" $line <<'PYTHON'
import json, statistics, sys
server, clients, path, *trials = sys.argv[1:]
engine = {"commits": "postgres", "mariadb": "mysql"}.get(server, server)
trials = [(t.split(":")[0], float(t.split(":")[1])) for t in trials]
ratios = sorted(
    (b if b[0] != "0" else a)[1] / (a if a[0] == "0" else b)[1] for a, b in zip(trials[::2], trials[1::2])
)
database = next(d for d in json.load(open(path))["databases"] if d["engine"] == engine)
found = [f for f in database["findings"] if f["rule"] == "idle-wakeup"]
said = "not found"
if found:
    f, first = found[0], database["findings"][0] is found[0]
    tax, gain = f["tax"], f["gain"]
    said = f"{f['severity']}{', first' if first else ''} | {tax['share']:.0%} ({tax['low']:.0%}–{tax['high']:.0%})"
    said += f" | {gain['factor']:.2f} ({gain['low']:.2f}–{gain['high']:.2f})" if gain else " | –"
else:
    said += " | – | –"
before = statistics.median(t[1] for t in trials if t[0] == "0")
print(
    f"| {server} | {clients} | {before:,.0f} | {statistics.median(ratios):.2f} "
    f"({ratios[0]:.2f}–{ratios[-1]:.2f}) | {said} |",
    flush=True,
)
PYTHON
}

serve
echo "| server | clients | requests/s | measured | found | tax | gain predicted |"
echo "|---|---|---|---|---|---|---|"
for of in ${CELLS:-postgres:1 postgres:2 postgres:4 postgres:8 redis:1 redis:2 redis:4 redis:8 mariadb:1 mariadb:2 mariadb:4 mariadb:8 commits:1 commits:4}; do
    cell "${of%:*}" "${of#*:}"
done
