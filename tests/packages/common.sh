# Sourced by the tests of artefacts: a scratch PostgreSQL with load, and what a check must say of it.
set -euo pipefail

[ "$(id -u)" -eq 0 ] || { echo "SKIPPED: needs root"; exit 0; }
work=$(mktemp -d)
chmod 755 "$work"
root=
pids=()

say() { echo "$(basename "$0" .sh): $*"; }
fail() { say "$*" >&2; exit 1; }

# Ends what was started and unmounts what was mounted, whatever happens.
clean() {
    local pid
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
    [ -z "$root" ] || unmount
    rm -rf "$work"
}
trap clean EXIT

# mount_into ROOT: /proc and /sys, as every system has them.
mount_into() {
    root=$1
    mkdir -p "$root/proc" "$root/sys"
    mount --bind /proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --make-rslave "$root/sys"
}

unmount() {
    umount "$root/proc" 2>/dev/null || true
    umount --recursive --lazy "$root/sys" 2>/dev/null || true
}

# start_postgres PORT [COMMAND…]: a server and four clients, started by COMMAND; $server is its pid.
start_postgres() {
    local port=$1 bin data=/tmp/untax-package-test
    shift
    bin=$("$@" sh -c 'ls -d /usr/lib/postgresql/*/bin' | tail -n 1)
    in_postgres=("$@" setpriv --reuid postgres --regid postgres --clear-groups)
    "${in_postgres[@]}" sh -euc "
        rm -rf $data && mkdir $data
        $bin/initdb --pgdata $data/data --auth trust --no-sync
        echo \"port = $port
            listen_addresses = ''
            unix_socket_directories = '$data'
            fsync = off\" >>$data/data/postgresql.conf
        $bin/pg_ctl --pgdata $data/data --log $data/log --wait start
        $bin/pgbench --host $data --port $port --initialize --scale 5 --quiet postgres
    " >"$work/postgres.log" 2>&1 || { cat "$work/postgres.log"; fail "PostgreSQL does not start"; }
    server=$(head -n 1 "$(data_of "$@")/data/postmaster.pid")
    "${in_postgres[@]}" "$bin/pgbench" --host "$data" --port "$port" --client 4 --time 120 \
        --select-only --no-vacuum postgres >/dev/null 2>&1 &
    pids+=($! "$server")
}

# Where the data is, as this machine sees it: below the root of a chroot.
data_of() {
    local prefix=
    [ "${1:-}" != chroot ] || prefix=$2
    echo "$prefix/tmp/untax-package-test"
}

# Of the JSON of a check: the database was found, it was busy, and each part of its time was measured.
all_parts_measured() {
    jq --exit-status '
        (.databases | length) == 1 and (.databases[0] |
            .engine == "postgres" and .tax != null and .time.active_s > 0 and
            ([.time.active_s, .time.on_cpu_s, .time.runnable_s, .time.throttled_s, .time.wake_up_s,
              .time.disk_s, .time.reclaim_s, .time.lock_s, .time.network_s, .time.idle_s,
              .time.unaccounted_s] | all(type == "number")))' "$1" >/dev/null || {
        jq '.databases[] | {id, engine, tax, time, unmeasured}, .unmeasured' "$1" >&2 || cat "$1" >&2
        fail "a part of the time was not measured"
    }
}
