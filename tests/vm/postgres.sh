#!/bin/bash
# In a guest: PostgreSQL under io.max and memory.high of cgroup v2, and behind a network that loses
# packets (netem). Each is found while it is there, and not before.
#
#   tests/vm/postgres.sh UNTAX     UNTAX is the program to test
. "$(dirname "$0")/guest.sh"

# Of a load that is light enough to be traced all the time, though an event is dear here.
window=8s
rate=25

# Clients in the background, until they are stopped: a prefix to run them with, and the arguments of
# pgbench.
start_load() {
    local prefix=$1
    shift
    # shellcheck disable=SC2086
    $prefix "$bin/pgbench" --no-vacuum --client 4 --rate "$rate" --time 3600 --username postgres "$@" postgres \
        >"$work/load" 2>&1 &
    load=$!
    sleep 3
    kill -0 "$load" || { cat "$work/load"; fail "there is no load"; }
}

stop_load() {
    kill "$load"
    wait "$load" || true
}

modules loop veth sch_netem

# A disk of its own, so that its limit is nobody else's.
truncate --size 1G "$work/image"
mkfs.ext4 -q -F "$work/image"
disk=$(losetup --find --show "$work/image")
home=$work/disk
mkdir "$home"
mount "$disk" "$home"
number=$(<"/sys/class/block/${disk##*/}/dev")

make_cluster
address=10.87.0.1
echo "host all all $address/24 trust" >>"$home/data/pg_hba.conf"
start_postgres shared_buffers=16MB max_wal_size=2GB listen_addresses=0.0.0.0
as_postgres "$bin/pgbench" --host "$home" --initialize --quiet --scale 4 postgres \
    >"$work/filling" 2>&1 || { cat "$work/filling"; fail "cannot fill it"; }

# Whether clients wait for their commits: only while the disk is what is looked at.
wait_for_commits() {
    sql "alter system set synchronous_commit = $1"
    sql "select pg_reload_conf()" >/dev/null
}

# An emulated disk is no fast one: a few percent of waiting for it are its own.
severities='\(medium\|high\)'
wait_for_commits off
start_load "" --host "$home" --builtin simple-update
check "does not find" disk-slow "nobody waits for commits"
wait_for_commits on
# So low that a guest on a busy machine reaches it too, with fewer commits than it is asked for.
echo "$number wiops=5" >"$cgroup/io.max"
check finds disk-slow "io.max is 5 writes a second, under commits that are flushed" '"limit of writes"'
echo "$number wiops=max" >"$cgroup/io.max"
wait_for_commits off

check "does not find" reclaim-stall "memory has no limit"
echo $(($(<"$cgroup/memory.current") / 2)) >"$cgroup/memory.high"
check finds reclaim-stall "memory.high is half of what it has"
echo max >"$cgroup/memory.high"
stop_load

# Clients in a network of their own, at the other end of a virtual cable.
ip netns add clients
ip link add server type veth peer name clients netns clients
ip address add "$address/24" dev server
ip link set server up
ip -n clients address add "${address%.1}.2/24" dev clients
ip -n clients link set clients up
# How dear it is depends on how many time-outs there are in a window, and of so few that is chance.
severities='\(info\|low\|medium\|high\)'
# The CPUs of an emulated machine take turns: what is not lost is late, and must not be sent again.
echo 0 >/proc/sys/net/ipv4/tcp_early_retrans
network() { ip route replace "${address%.1}.0/24" dev server proto kernel scope link src "$address" "$@"; }
network rto_min 3s
start_load "ip netns exec clients" --host "$address" --select-only
check "does not find" tcp-retransmit "nothing is lost"
echo 3 >/proc/sys/net/ipv4/tcp_early_retrans
network
tc qdisc add dev server root netem loss 5%
check finds tcp-retransmit "one packet of twenty is lost"
stop_load
stop_postgres
say passed
