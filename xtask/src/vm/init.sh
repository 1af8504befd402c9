#!/bin/bash
# Process 1 of the guest: mounts what a command expects to find, runs the command, says how it
# ended and stops the machine. Its argument is the directory of this run on the shared root.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
run=$1
mapfile -d '' -t command <"$run/command"
directory=${command[0]}
command=("${command[@]:1}")

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm /dev/hugepages /dev/mqueue
mount -t devpts devpts /dev/pts
mount -t hugetlbfs hugetlbfs /dev/hugepages
mount -t mqueue mqueue /dev/mqueue
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
mount -t tmpfs -o mode=755 tmpfs /run

# The root is read-only. What commands write into is a file system in memory, and the working
# directory stays visible also when it lies under one of these.
mkdir /run/directory
mount --bind "$directory" /run/directory
for place in /dev/shm /tmp /var/tmp /var/log /var/cache; do
    mount -t tmpfs -o mode=1777 tmpfs "$place"
done
[ -d "$directory" ] || { mkdir -p "$directory" && mount --bind /run/directory "$directory"; }
mkdir -p /run/lock /run/home
export HOME=/run/home

for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
    echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
done
echo untax-guest >/proc/sys/kernel/hostname
ip link set lo up

# The device of the virtio port with this name; the kernel finds ports while we run.
port() {
    until device=$(grep -lx "$1" /sys/class/virtio-ports/*/name 2>/dev/null); do sleep 0.05; done
    device=${device%/name}
    echo "/dev/${device##*/}"
}

# Through pipes, because a port can be opened only once and programs reopen /dev/stderr.
mkfifo /run/out /run/err
cat /run/out >"$(port out)" & out=$!
cat /run/err >"$(port err)" & err=$!
(cd "$directory" && exec "${command[@]}") >/run/out 2>/run/err </dev/null
status=$?

# Whatever the command left running would hold the pipes open.
for process in /proc/[0-9]*; do
    process=${process##*/}
    case $process in 1 | "$out" | "$err") ;; *) kill -KILL "$process" 2>/dev/null ;; esac
done
wait "$out" "$err"
echo "$status" >"$(port status)"
echo b >/proc/sysrq-trigger
sleep 60
