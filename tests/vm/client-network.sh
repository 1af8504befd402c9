#!/bin/bash
# In a guest: PostgreSQL whose clients are behind a network that delays packets (netem). Their round-trip
# time is that of `ss -ti`, and they are said to be far; not before.
#
#   tests/vm/client-network.sh UNTAX     UNTAX is the program to test
. "$(dirname "$0")/guest.sh"

modules veth sch_netem tcp_diag
severities='\(info\|low\|medium\|high\)'

make_cluster
address=10.87.0.1
echo "host all all $address/24 trust" >>"$home/data/pg_hba.conf"
start_postgres shared_buffers=16MB listen_addresses=0.0.0.0
as_postgres "$bin/pgbench" --host "$home" --initialize --quiet --scale 1 postgres \
    >"$work/filling" 2>&1 || { cat "$work/filling"; fail "cannot fill it"; }

# Clients in a network of their own, at the other end of a virtual cable.
ip netns add clients
ip link add server type veth peer name clients netns clients
ip address add "$address/24" dev server
ip link set server up
ip -n clients address add "${address%.1}.2/24" dev clients
ip -n clients link set clients up

# Twenty transactions a second for each of four clients: most of their time is their own.
ip netns exec clients "$bin/pgbench" --no-vacuum --client 4 --rate 80 --time 3600 --username postgres \
    --select-only --host "$address" postgres >"$work/load" 2>&1 &
load=$!
sleep 3
check "does not find" far-clients "the cable is short"

# The median of what `ss` says, in whole milliseconds.
median_of_ss() {
    ss -tinH state established "( sport = :5432 and dst $address/24 )" |
        grep -o ' rtt:[0-9.]*' | cut -d: -f2 | sort -n | awk '{ all[NR] = $1 } END { print int(all[int((NR + 1) / 2)]) }'
}

tc qdisc add dev server root netem delay 200ms
# Until the smoothed time has followed, and the shortest one has forgotten the short cable.
sysctl -q net.ipv4.tcp_min_rtt_wlen=2
kill "$load"
wait "$load" || true
ip netns exec clients "$bin/pgbench" --no-vacuum --client 4 --time 3600 --username postgres \
    --select-only --host "$address" postgres >"$work/load" 2>&1 &
load=$!
sleep 3
check finds far-clients "each round trip takes 200 ms"
said=$(grep -o '"client_rtt_us_p50": *[0-9]*' "$work/line.json" | grep -o '[0-9]*$')
expected=$(median_of_ss)
say "median round trip: untax $said us, ss $expected ms, netem 200 ms"
[ "$said" -ge 200000 ] || fail "the median is shorter than the delay"
# An emulated machine answers late, by how much is chance.
[ "$((said / 1000))" -le "$((expected * 2))" ] || fail "ss says less"
[ "$expected" -le "$((said / 1000 * 2))" ] || fail "ss says more"

kill "$load"
wait "$load" || true
stop_postgres
say passed
