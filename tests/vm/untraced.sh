#!/bin/bash
# In a guest whose kernel does not let itself be traced: a check ends as usual, says why in one sentence, and finds
# what the kernel counts by itself.
#
#   tests/vm/untraced.sh UNTAX     UNTAX is the program to test
#
# The reason is that of the kernel that is booted: too old, or locked down by its command line. On any other one,
# its type information is hidden.
. "$(dirname "$0")/guest.sh"

mount -t securityfs securityfs /sys/kernel/security
if grep -q 'lockdown=confidentiality' /proc/cmdline; then
    why='lockdown (confidentiality)'
elif [ -e /sys/kernel/btf/vmlinux ] && [ "${2:-}" = types ]; then
    mount -t tmpfs tmpfs /sys/kernel/btf
    why='no type information (BTF)'
else
    why='it has no BPF_PROG_TYPE_SYSCALL'
fi

# Checks process $pid; fails unless it says why nothing is traced.
look_untraced() {
    "$untax" --state-dir "$work/state" check --pid "$pid" --window "$window" --no-calibration \
        --json >"$work/check.json" || [ $? -eq 1 ] || fail "untax check failed"
    tr -d '\n' <"$work/check.json" >"$work/line.json"
    grep -q "this kernel refuses tracing: $why" "$work/line.json" || fail "it does not say: $why"
    grep -q '"active_s": *[0-9]' "$work/line.json" && fail "it claims to have traced"
    return 0
}

# Fails unless the last check finds rule $1, and says that its tax is unmeasured.
finds() {
    grep -q "\"rule\": *\"$1\", *\"scope\"" "$work/line.json" || fail "it does not find $1 by what the kernel counts"
    grep -q "\"rule\": *\"$1\", *\"id\": *\"no-bpf\", *\"why\": *\"tax: this kernel refuses" "$work/line.json" ||
        fail "it does not say why $1 has no tax"
    say "untraced, untax check finds $1"
}

say "Linux $(uname -r): $why"
in_group sh -c 'while :; do :; done & while :; do :; done'
echo "20000 100000" >"$cgroup/cpu.max"
look_untraced
finds cpu-throttled
echo max >"$cgroup/cpu.max"
empty_group

echo 48M >"$cgroup/memory.high"
in_group tail /dev/zero
until [ "$(awk '$1 == "high" { print $2 }' "$cgroup/memory.events")" -gt 0 ]; do sleep 0.1; done
look_untraced
finds reclaim-stall
empty_group
say passed
