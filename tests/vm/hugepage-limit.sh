#!/bin/bash
# In a guest: a cgroup that allows fewer huge pages than a PostgreSQL will touch.
#
#   tests/vm/hugepage-limit.sh UNTAX     UNTAX is the program to test; without it only the kernel
#                                        and PostgreSQL are shown to do what the rule warns of.
#
# With hugetlb.2MB.max the server starts, works and dies of a bus error when its buffers fill:
# `untax check` must say so while it still lives. With hugetlb.2MB.rsvd.max the kernel refuses at
# once, and huge_pages=try falls back to small pages.
. "$(dirname "$0")/guest.sh"

buffers_mib=256
limit_mib=96

start() {
    start_postgres shared_buffers="${buffers_mib}MB" huge_pages="$1" fsync=off max_wal_size=4GB
}

# The bytes of huge pages that the cgroup's processes have touched.
touched() { cat "$cgroup/hugetlb.2MB.current"; }

# Whether a check of the running server finds the rule: what may be, not what happens in a window.
found() {
    "$untax" --state-dir "$work/state" check --pid "$pid" --window 0s --json \
        >"$work/check.json" || [ $? -eq 1 ] || fail "untax check failed"
    grep -q '"rule": *"hugepage-limit"' "$work/check.json"
}

# Fails unless the check "reports" or "does not report" the rule.
check_reports() {
    [ -n "$untax" ] || return 0
    local is=reports
    found || is="does not report"
    [ "$is" = "$1" ] || fail "untax check $is hugepage-limit: $2"
    say "untax check $is hugepage-limit: $2"
}

make_cluster
echo $((buffers_mib * 3 / 4)) >/proc/sys/vm/nr_hugepages

start on
say "a server of $buffers_mib MiB lives without a limit, with $(($(touched) >> 20)) MiB touched"
check_reports "does not report" "there is no limit"

say "limit on pages touched: hugetlb.2MB.max = $limit_mib MiB"
echo "${limit_mib}M" >"$cgroup/hugetlb.2MB.max"
[ "$(sql 'select 1')" = 1 ] || fail "the server does not answer"
check_reports reports "the limit lies below what the server will touch"

# One row to a page, so that few rows fill the buffers.
sql "create unlogged table filler (t text) with (fillfactor = 10)"
if sql "insert into filler select repeat('x', 800) from generate_series(1, $((buffers_mib * 128)))" \
    >"$work/filling" 2>&1; then
    fail "the buffers filled, though the limit lies below them"
fi
# The server says so when it has seen to its child, which its client does not wait for.
for _ in {1..600}; do
    if grep -q 'terminated by signal 7' "$work/log"; then break; fi
    sleep 0.1
done
grep -q 'terminated by signal 7' "$work/log" || fail "no backend died of a bus error"
say "filling the buffers killed a backend: $(grep -m1 -o 'was terminated by signal 7.*' "$work/log")"
stop_postgres

say "limit on pages reserved: hugetlb.2MB.rsvd.max = $limit_mib MiB"
echo max >"$cgroup/hugetlb.2MB.max"
echo "${limit_mib}M" >"$cgroup/hugetlb.2MB.rsvd.max"
start try
[ "$(touched)" = 0 ] || fail "the server has huge pages, though the limit forbids it"
say "the server fell back to small pages"
check_reports reports "the limit lies below what the server asks for"
stop_postgres
say passed
