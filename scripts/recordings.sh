#!/bin/bash
# Records two terminals for the documents: a check that leads to a plan and its proof, and a watch, of a scratch
# PostgreSQL whose control group has three tenths of a CPU. As root.
#
#   scripts/recordings.sh [UNTAX]     UNTAX is the program; default: what make dist built
set -euo pipefail
cd "$(dirname "$0")/.."

untax=$(realpath "${1:-target/dist/untax-linux-$(uname -m)}")
scripts/needs.sh build check
work=$(mktemp -d)
chmod 755 "$work"
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
group=/sys/fs/cgroup/untax-recording
[ ! -d /sys/fs/cgroup/cpu ] || group=/sys/fs/cgroup/cpu/untax-recording

as_postgres() { setpriv --reuid postgres --regid postgres --clear-groups "$@"; }

clean() {
    as_postgres "$bin/pg_ctl" --pgdata "$work/data/db" --mode immediate --silent stop || true
    [ ! -d "$group" ] || rmdir "$group"
    rm -rf "$work"
}
trap clean EXIT

mkdir "$group"
mkdir -m 700 "$work/data"
chown postgres:postgres "$work/data"
as_postgres "$bin/initdb" --pgdata "$work/data/db" --auth trust --no-sync >/dev/null
as_postgres tee --append "$work/data/db/postgresql.conf" >/dev/null <<CONF
port = 54673
listen_addresses = ''
unix_socket_directories = '$work/data'
fsync = off
CONF
sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" setpriv --reuid postgres --regid postgres --clear-groups \
    "$bin/pg_ctl" --pgdata "$work/data/db" --log "$work/data/log" --wait --silent start
pgbench=(as_postgres "$bin/pgbench" --host "$work/data" --port 54673)
"${pgbench[@]}" --initialize --scale 5 --quiet postgres 2>/dev/null
if [ -e "$group/cpu.max" ]; then
    echo "30000 100000" >"$group/cpu.max"
else
    echo 30000 >"$group/cpu.cfs_quota_us"
fi

# record NAME TITLE COLUMNS ROWS SCRIPT: in a terminal of its own.
record() {
    local name=$1 title=$2 columns=$3 rows=$4
    script --quiet --flush --log-out "$work/$name.out" --log-timing "$work/$name.time" \
        --command "stty columns $columns rows $rows; bash '$work/$name.sh'" >/dev/null
    cargo xtask recording --output "$work/$name.out" --timing "$work/$name.time" --columns "$columns" \
        --rows "$rows" --title "$title" "docs/recordings/$name.svg"
    echo "docs/recordings/$name.svg"
}

mkdir -p docs/recordings "$work/bin"
ln -s "$untax" "$work/bin/untax"
export PATH=$work/bin:$PATH TERM=xterm-256color UNTAX_STATE=$work/state
export pid data=$work/data bin
pid=$(head -n 1 "$work/data/db/postmaster.pid")

cat >"$work/verify.sh" <<'SHOW'
load="setpriv --reuid postgres --regid postgres --clear-groups $bin/pgbench -h $data -p 54673 -c 4 -S -n postgres"
show() {
    printf '\n\033[1m# %s\033[0m\n' "$*"
    case $1 in untax) untax --state-dir "$UNTAX_STATE" "${@:2}" || [ $? -eq 1 ] ;; esac
    sleep 3
}
cd "$data/.."
$load -T 8 >/dev/null 2>&1 &
sleep 1
show untax check --pid "$pid" --window 5s --no-calibration
wait
show untax plan --only cpu-throttled -o fix
printf '#!/bin/sh\n%s -T 3\n' "$load" >bench.sh
chmod 755 bench.sh
show untax verify fix --workload ./bench.sh
SHOW
record verify "untax check finds cpu-throttled, untax plan says what to change, untax verify proves what it is worth" 96 40

cat >"$work/watch.sh" <<'SHOW'
cd "$data/.."
setpriv --reuid postgres --regid postgres --clear-groups "$bin/pgbench" -h "$data" -p 54673 -c 4 -S -n -T 28 postgres \
    >/dev/null 2>&1 &
(sleep 22; kill -INT "$$") &
exec untax --state-dir "$UNTAX_STATE" watch --pid "$pid" --window 2s
SHOW
record watch "untax watch: the taxes of a database, window after window" 110 34

[ -z "${KEEP_STATE:-}" ] || cp -a "$work/state" "$KEEP_STATE"
