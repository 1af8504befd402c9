#!/bin/bash
# In a guest of any kernel that is traced: programs are loaded, the parts of time add up, and a limit on CPUs is
# found.
#
#   tests/vm/kernel.sh UNTAX     UNTAX is the program to test
. "$(dirname "$0")/guest.sh"

# A number of the last check, of the whole window; nothing where it was not measured.
number() {
    sed -e '/"time_pieces": \[/,/^ *\],\{0,1\}$/d' "$work/check.json" |
        sed -n "s/^ *\"$1\": *\([0-9.e-]*\),\{0,1\}$/\1/p" | "${2:-tail}" -n 1
}

# Whether the parts of the time of $1 threads make up the window; `sum` says what they are.
add_up() {
    local part parts=0 window
    # The disks have a window of their own.
    window=$(number window_s head)
    for part in on_cpu_s runnable_s disk_s reclaim_s lock_s network_s idle_s unaccounted_s; do
        [ -n "$(number "$part")" ] || fail "$part was not measured"
        parts="$parts + $(number "$part")"
    done
    sum="$parts s are not $1 times $window s"
    awk "BEGIN { off = ($parts) / ($1 * $window) - 1; exit off < -0.02 || off > 0.02 }"
}

say "Linux $(uname -r)"
if grep -q 'lockdown=integrity' /proc/cmdline; then
    mount -t securityfs securityfs /sys/kernel/security
    grep -q '\[integrity\]' /sys/kernel/security/lockdown || fail "the kernel is not locked down"
    say "the kernel is locked down: $(</sys/kernel/security/lockdown)"
fi
in_group sh -c 'while :; do :; done & while :; do :; done'
echo "20000 100000" >"$cgroup/cpu.max"
# An emulated machine stops now and then for as long as a slice lasts: then what was seen in it stands for more
# than there was, and another check is made.
for _ in 1 2 3; do
    check finds cpu-throttled "two processes share a fifth of a CPU"
    add_up 2 && sum="" && break
    say "$sum"
done
[ -z "$sum" ] || fail "$sum"
say "the parts of time add up"
empty_group
say passed
