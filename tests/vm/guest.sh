# What the tests in a guest share. To be sourced; the first argument of a test is the program to
# test.
#
# Time is emulated here, so only what is found counts, not how much of it.
set -euo pipefail

untax=${1:-}
work=$(mktemp -d)
chmod 755 "$work"
cgroup=/sys/fs/cgroup/database
mkdir "$cgroup"

say() { echo "$(basename "$0" .sh): $*"; }

# What the last check says of the database, which is after what it says of the host.
fail() {
    say "FAILED: $*"
    if [ -e "$work/check.json" ]; then
        tr -d "\n" <"$work/check.json" | tr -s ' ' | grep -o '"databases": .*' | cut -c1-3000 || true
    fi
    exit 1
}

# Starts a program in the group; its process is $pid.
in_group() {
    (
        echo "$BASHPID" >"$cgroup/cgroup.procs"
        exec "$@"
    ) &
    pid=$!
}

# Ends all that is in the group.
empty_group() {
    # Before Linux 5.14 one by one.
    if [ -e "$cgroup/cgroup.kill" ]; then
        echo 1 >"$cgroup/cgroup.kill"
    else
        until [ -z "$(<"$cgroup/cgroup.procs")" ]; do
            xargs kill -KILL <"$cgroup/cgroup.procs" 2>/dev/null || true
            sleep 0.1
        done
    fi
    wait "$pid" 2>/dev/null || true
}

# From which severity on a finding counts.
severities='\(low\|medium\|high\)'
# How long a check looks.
window=4s

# Checks process $pid; says whether that "finds" or "does not find" rule $1.
look() {
    "$untax" --state-dir "$work/state" check --pid "$pid" --window "$window" --no-calibration \
        --json >"$work/check.json" || [ $? -eq 1 ] || fail "untax check failed"
    # No process substitution here: the guest has no /dev/fd.
    tr -d '\n' <"$work/check.json" >"$work/line.json"
    grep -q "refuses tracing" "$work/line.json" && fail "a program was not loaded"
    is="does not trace for"
    # Where the machine stands still, slices of the window do not stand for the whole.
    grep -q '"active_s": *[0-9]' "$work/line.json" || return 0
    is=finds
    grep -q "\"rule\": *\"$1\", *\"scope\": *\"[a-z]*\", *\"severity\": *\"$severities\"" "$work/line.json" ||
        is="does not find"
}

# Fails unless a check $1 ("finds" or "does not find") rule $2; $3 says why it should. Where $4 is given,
# the same check must name it. A guest on a busy machine may stand still for most of a window, and then
# waits long for its own disk, so it is looked up to four times.
check() {
    for _ in 1 2 3 4; do
        look "$2"
        if [ "$is" = finds ] && ! grep -q "${4:-}" "$work/line.json"; then is="finds, without $4,"; fi
        [ "$is" != "$1" ] || break
    done
    [ "$is" = "$1" ] || fail "untax check $is $2: $3"
    say "untax check $is $2: $3"
}

# Loads modules of the guest's kernel.
modules() {
    local module
    for module in "$@"; do
        modprobe --dirname "$UNTAX_MODULES" "$module" || fail "the kernel has no module $module"
    done
}

# PostgreSQL: its programs, its data below $home, and who runs it.
bin=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null | sort --version-sort | tail -1)
home=$work

as_postgres() { (cd "$home" && exec runuser -u postgres -- "$@"); }

sql() { as_postgres psql --host "$home" --no-psqlrc --quiet --tuples-only --no-align -c "$1" postgres; }

make_cluster() {
    say "making a cluster"
    chown postgres "$home"
    as_postgres "$bin/initdb" -D "$home/data" --auth trust --no-sync --no-locale >/dev/null
}

# Starts the server with these settings in the group, and waits until it answers.
start_postgres() {
    local setting settings=()
    for setting in unix_socket_directories="$home" listen_addresses= autovacuum=off "$@"; do
        settings+=(-c "$setting")
    done
    in_group setpriv --reuid postgres --regid postgres --init-groups \
        "$bin/postgres" -D "$home/data" "${settings[@]}" >"$work/log" 2>&1
    while kill -0 "$pid" 2>/dev/null; do
        if "$bin/pg_isready" --quiet --host "$home"; then return; fi
        sleep 0.5
    done
    tail -n 20 "$work/log"
    fail "the server with $* did not start"
}

stop_postgres() {
    as_postgres "$bin/pg_ctl" -D "$home/data" --mode immediate --silent stop
}
