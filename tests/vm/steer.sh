#!/bin/bash
# In a guest with two NUMA nodes and cgroup v2: untax steer by masks of threads, and by a sched_ext program.
#
#   tests/vm/steer.sh UNTAX [PART…]     UNTAX is the program to test; the parts are by_masks, memory and
#                                       refusals, or of the program that is loaded: by_program, killed, watchdog
#
# Time in the guest is emulated, so only behaviour counts: which CPUs threads have and run on, and that all is
# put back.
. "$(dirname "$0")/guest.sh"

[ -d /sys/devices/system/node/node1 ] || fail "the guest has one node"
ext=/sys/kernel/sched_ext
[ "$(<$ext/state)" = disabled ] || fail "sched_ext is $(<$ext/state) before anything is steered"

# A process whose children keep CPUs busy, N of them, with short pauses.
crowd() {
    cat >"$work/crowd" <<'PERL'
for (1 .. $ARGV[0]) {
    next if fork;
    while (1) { for my $i (1 .. 20000) { } select undef, undef, undef, 0.002 }
}
sleep 1000000;
PERL
    perl "$work/crowd" "$1" &
    crowd=$!
    until [ "$(tree "$crowd" | wc -l)" -eq $(($1 + 1)) ]; do sleep 0.1; done
}

# A process and its children.
tree() { echo "$1"; cat "/proc/$1/task/$1/children" 2>/dev/null | tr ' ' '\n' | grep . || true; }

# Ends them.
end() {
    local all
    all=$(tree "$1")
    kill -KILL $all 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

# Field $2 of the stat file of each process of the tree of $1 (names hold no space).
fields() { for one in $(tree "$1"); do cut -d' ' -f"$2" "/proc/$one/stat" 2>/dev/null || true; done; }

# What the processes of a tree share: their CPUs as the kernel lists them, and their policies.
masks() { for one in $(tree "$1"); do sed -n 's/^Cpus_allowed_list:\t//p' "/proc/$one/status"; done | sort -u | xargs; }
policies() { fields "$1" 41 | sort -u | xargs; }

# Waits until a command prints $1 beside a steering that runs.
until_steered() {
    local wanted=$1 tries=0
    shift
    until [ "$("$@")" = "$wanted" ]; do
        kill -0 "$steer" 2>/dev/null || fail "untax steer has ended: $(cat "$work/err")"
        tries=$((tries + 1))
        [ $tries -lt 300 ] || fail "$* gives $("$@"), not $wanted: $(tail -n 2 "$work/out")"
        sleep 0.1
    done
}

# Waits until a command prints $1.
until_is() {
    local wanted=$1 tries=0
    shift
    until [ "$("$@")" = "$wanted" ]; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || fail "$* gives $("$@"), not $wanted: $(tail -n 3 "$work/err" 2>/dev/null) $(tail -n 2 "$work/out" 2>/dev/null)"
        sleep 0.1
    done
}

state() { cat $ext/state; }

# Starts to steer; the words are those of untax steer.
steer() {
    : >"$work/out" : >"$work/err"
    "$untax" --state-dir "$work/state" steer "$@" --json >"$work/out" 2>"$work/err" &
    steer=$!
}

stop() {
    "$untax" --state-dir "$work/state" steer stop || fail "steer stop"
    wait "$steer" || fail "untax steer ended with $?: $(cat "$work/err")"
}

# Percent of looks at running processes of a tree in which these were on CPUs $2 to $3. One program looks: a
# fork for each look takes seconds in an emulated guest.
at_home() {
    perl - "$2" "$3" $(tree "$1") <<'PERL'
my ($low, $high, @tree) = @ARGV;
my ($all, $home) = (0, 0);
for (1 .. 150) {
    for my $pid (@tree) {
        open my $stat, '<', "/proc/$pid/stat" or next;
        my @field = split ' ', <$stat> // next;
        next unless $field[2] eq 'R';
        $all++;
        $home++ if $field[38] >= $low && $field[38] <= $high;
    }
    select undef, undef, undef, 0.02;
}
print $all ? int(100 * $home / $all) : 'none', "\n";
PERL
}

# Percent of CPU time that is idle over some seconds.
idle() {
    { head -n 1 /proc/stat; sleep 4; head -n 1 /proc/stat; } | awk '{ idle = $5 + $6; all = 0
        for (i = 2; i <= 9; i++) all += $i
        if (NR == 2) print int(100 * (idle - last_idle) / (all - last_all)); last_idle = idle; last_all = all }'
}

# Fails unless untax steer refuses with these words.
refuses() {
    local words=$1
    shift
    if "$untax" --state-dir "$work/other" steer "$@" >"$work/refused" 2>&1; then fail "untax steer $* is not refused"; fi
    grep -q "$words" "$work/refused" || fail "untax steer $*: no '$words' in: $(cat "$work/refused")"
    say "refused: $(tail -n 1 "$work/refused")"
}

hotplug() { echo "$2" >"/sys/devices/system/cpu/cpu$1/online"; }

by_masks() {
    say "masks: a cpuset of version 2 that is written under it"
    echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
    crowd 3
    echo "$crowd" >"$cgroup/cgroup.procs"
    for one in $(tree "$crowd"); do echo "$one" >"$cgroup/cgroup.procs"; done
    echo 0-2 >"$cgroup/cpuset.cpus"
    steer --instance "$crowd=0-1/hard"
    until_steered 0-1 masks "$crowd"
    echo 2-3 >"$cgroup/cpuset.cpus"
    until_is 2-3 masks "$crowd"
    echo 0-3 >"$cgroup/cpuset.cpus"
    until_steered 0-1 masks "$crowd"
    say "masks: CPUs that go offline and come back"
    hotplug 1 0
    until_is 0 masks "$crowd"
    hotplug 1 1
    until_steered 0-1 masks "$crowd"
    stop
    until_is 0-3 masks "$crowd"
    [ "$(<"$cgroup/cpuset.cpus")" = 0-3 ] || fail "a cpuset was written"
    end "$crowd"
}

by_program() {
    say "ext: two busy instances on two nodes"
    # As many as keep two CPUs busy between them, though each pauses.
    crowd 6
    one=$crowd
    crowd 6
    two=$crowd
    sleep 2
    before=$(idle)
    steer --backend ext --instance "$one=0-1" --instance "$two=2-3"
    until_steered enabled state
    until_steered 7 policies "$one"
    until_steered 7 policies "$two"
    grep -q untax_soft $ext/root/ops || fail "the program is $(cat $ext/root/ops)"
    until_is 0-3 masks "$one"
    for look in "$one 0 1" "$two 2 3"; do
        share=$(at_home $look)
        say "ext: $share % of looks find $look"
        [ "$share" -ge 95 ] || fail "$share % on preferred CPUs"
    done
    after=$(idle)
    say "ext: $after % of CPU time idle beside queued work, $before % unsteered"
    [ "$after" -le $((before + 5)) ] || fail "CPUs idle more than unsteered"
    refuses "schedules threads here already" --backend ext --instance "$one=0"
    say "ext: new processes are of it"
    crowd_of_one=$(tree "$one" | sed -n 2p)
    [ "$(cut -d' ' -f41 "/proc/$crowd_of_one/stat")" = 7 ] || fail "a child has another class"
    say "ext: CPUs that go offline and come back"
    hotplug 3 0
    sleep 4
    [ "$(state)" = enabled ] || fail "the program ended when a CPU went: $(cat "$work/err")"
    hotplug 3 1
    sleep 4
    [ "$(state)" = enabled ] || fail "the program ended when a CPU came: $(cat "$work/err")"
    say "ext: the other instance ends, and its CPUs are used"
    end "$two"
    spilled() { grep -c '"why":"spill"' "$work/out" || true; }
    tries=0
    until [ "$(spilled)" -gt 0 ]; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || fail "no spill: $(tail -n 2 "$work/out")"
        sleep 0.2
    done
    grep '"why":"spill"' "$work/out" | head -n 1
    tries=0
    until fields "$one" 39 | grep -q '[23]'; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || fail "no thread runs on the idle CPUs"
        sleep 0.05
    done
    stop
    until_is disabled state
    until_is 0 policies "$one"
    end "$one"
}

killed() {
    say "ext: SIGKILL of untax steer"
    crowd 2
    steer --backend ext --instance "$crowd=0-1"
    until_steered 7 policies "$crowd"
    kill -KILL "$steer"
    wait "$steer" 2>/dev/null || true
    until_is disabled state
    until_is 0 policies "$crowd"
    say "ext: SIGKILL of it and of its guard"
    # The guard of the killed one has the right until all is back.
    sleep 1
    steer --backend ext --instance "$crowd=0-1"
    until_steered 7 policies "$crowd"
    guard=$(grep -o '"guard_pid":[0-9]*' "$work/out" | cut -d: -f2)
    kill -KILL "$guard" "$steer"
    wait "$steer" 2>/dev/null || true
    until_is disabled state
    [ "$(policies "$crowd")" = 7 ] || fail "nothing is left to be put back"
    "$untax" --state-dir "$work/state" steer stop
    until_is 0 policies "$crowd"
    end "$crowd"
}

refusals() {
    crowd 1
    echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
    echo "$crowd" >"$cgroup/cgroup.procs"
    echo "50000 100000" >"$cgroup/cpu.max"
    refuses "limits the CPU time" --backend ext --instance "$crowd=0"
    echo max >"$cgroup/cpu.max"
    echo 50 >"$cgroup/cpu.weight"
    refuses "has the CPU weight 50" --backend ext --instance "$crowd=0"
    echo 100 >"$cgroup/cpu.weight"
    chrt -f 1 sleep 1000 &
    real_time=$!
    until [ "$(cut -d' ' -f41 "/proc/$real_time/stat")" = 1 ]; do sleep 0.1; done
    refuses "has a real-time policy" --backend ext --instance "$crowd=0"
    kill "$real_time"
    wait "$real_time" 2>/dev/null || true
    end "$crowd"
}

# Threads of the program that wait too long: busy programs of the default class come before them, and the
# kernel is told to reserve nothing for them.
watchdog() {
    say "ext: the kernel's watchdog"
    mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null || true
    reserved=/sys/kernel/debug/sched/ext_server
    [ -d $reserved ] || fail "no $reserved"
    for cpu in $reserved/cpu*; do echo 0 >"$cpu/runtime" || fail "$cpu/runtime"; done
    crowd 1
    hogs=()
    for cpu in 0 1 2 3; do
        taskset -c $cpu perl -e 'while (1) { }' &
        hogs+=($!)
    done
    steer --backend ext --instance "$crowd=0-1/hard"
    tries=0
    while kill -0 "$steer" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 900 ] || fail "the watchdog did not end it: $(state)"
        sleep 0.2
    done
    if wait "$steer"; then fail "untax steer ended well"; fi
    grep -q "the kernel ended the sched_ext program" "$work/err" || fail "$(cat "$work/err")"
    say "$(tail -n 1 "$work/err")"
    kill -KILL "${hogs[@]}"
    until_is disabled state
    until_is 0 policies "$crowd"
    fields "$crowd" 14 | xargs >"$work/ticks"
    sleep 2
    [ "$(fields "$crowd" 14 | xargs)" != "$(<"$work/ticks")" ] || fail "its threads do not run any more"
    end "$crowd"
}

memory() {
    say "memory on the other node: a warning, and what it advises"
    # No CPUs: a mask of its own would be left alone.
    numactl --preferred=1 perl -e 'my $data = "x" x (64 << 20); sleep 1000000' &
    far=$!
    until [ "$(awk '/^VmRSS/ { print $2 }' "/proc/$far/status")" -gt $((64 << 10)) ]; do sleep 0.2; done
    warned() {
        steer --instance "$far=0-1"
        until_steered 0-1 masks "$far"
        stop
        warning=$(grep -o '"warnings":\[[^]]*\]' "$work/out")
    }
    warned
    say "$warning"
    advice=$(echo "$warning" | grep -o "migratepages [0-9]* 1 0") || fail "no advice: $warning"
    say "$advice"
    $advice
    warned
    [ "$warning" = '"warnings":[]' ] || fail "it is warned after the pages were moved: $warning"
    end "$far"
    numactl --membind=0 perl -e 'my $data = "x" x (64 << 20); sleep 1000000' &
    far=$!
    until [ "$(awk '/^VmRSS/ { print $2 }' "/proc/$far/status")" -gt $((64 << 10)) ]; do sleep 0.2; done
    warned
    [ "$warning" = '"warnings":[]' ] || fail "it is warned after a start on that node: $warning"
    end "$far"
}

parts=("${@:2}")
[ ${#parts[@]} -gt 0 ] || parts=(by_masks memory refusals)
for part in "${parts[@]}"; do
    $part
    say "passed: $part"
done
say passed
