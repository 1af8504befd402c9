//! A made-up machine of which no number is zero and nothing is false: a zero that comes out of it
//! was put there by a parser.

use untax_core::Reading::Present;
use untax_host::Record;

/// The files of the machine. Process 7 is a database in a container and a pod.
pub const FILES: &[(&str, &str)] = &[
    ("/proc/sys/kernel/osrelease", "6.12.9-amd64\n"),
    ("/proc/cmdline", "root=/dev/vda1 default_hugepagesz=1G hugepages=16 mitigations=auto psi=1\n"),
    (
        "/proc/cpuinfo",
        "processor\t: 1\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 7713\ncache size\t: 512 KB\n\
         physical id\t: 1\ncore id\t\t: 3\nflags\t\t: fpu pse pdpe1gb\n\n\
         processor\t: 2\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 7713\ncache size\t: 512 KB\n\
         physical id\t: 1\ncore id\t\t: 4\nflags\t\t: fpu pse pdpe1gb\n\n",
    ),
    ("/sys/devices/system/cpu/online", "1-2\n"),
    ("/sys/devices/system/cpu/cpuidle/current_driver", "intel_idle\n"),
    ("/sys/devices/system/cpu/cpuidle/current_governor_ro", "menu\n"),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state3/name", "C6\n"),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state3/latency", "133\n"),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state3/usage", "1111\n"),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state3/time", "51111\n"),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state3/disable", "1\n"),
    ("/sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us", "31\n"),
    ("/sys/devices/system/cpu/cpu2/cpuidle/state3/usage", "1111\n"),
    ("/sys/devices/system/cpu/cpu2/cpuidle/state3/time", "51111\n"),
    ("/sys/devices/system/cpu/cpu2/cpuidle/state3/disable", "1\n"),
    ("/sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us", "31\n"),
    ("/sys/module/haltpoll/parameters/guest_halt_poll_ns", "211111\n"),
    ("/sys/module/haltpoll/parameters/guest_halt_poll_grow_start", "51111\n"),
    ("/sys/module/haltpoll/parameters/guest_halt_poll_allow_shrink", "Y\n"),
    ("/sys/devices/system/cpu/cpufreq/policy1/scaling_driver", "acpi-cpufreq\n"),
    ("/sys/devices/system/cpu/cpufreq/policy1/affected_cpus", "1 2\n"),
    ("/sys/devices/system/cpu/cpufreq/policy1/base_frequency", "2411111\n"),
    ("/sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "powersave\n"),
    ("/sys/devices/system/cpu/cpufreq/policy1/energy_performance_preference", "power\n"),
    ("/sys/devices/system/cpu/cpufreq/policy1/scaling_min_freq", "811111\n"),
    ("/sys/devices/system/cpu/cpufreq/policy1/scaling_max_freq", "2111111\n"),
    ("/sys/devices/system/cpu/cpufreq/policy1/cpuinfo_max_freq", "3511111\n"),
    ("/sys/devices/system/cpu/cpufreq/policy1/stats/time_in_state", "2111111 111\n811111 1191\n"),
    ("/sys/devices/system/cpu/cpufreq/boost", "1\n"),
    ("/sys/devices/system/cpu/cpu1/cache/index3/level", "3\n"),
    ("/sys/devices/system/cpu/cpu1/cache/index3/size", "32768K\n"),
    ("/sys/devices/system/cpu/cpu1/topology/core_cpus_list", "1\n"),
    ("/sys/devices/system/cpu/cpu1/topology/package_cpus_list", "1-2\n"),
    ("/sys/bus/event_source/devices/cpu/caps/pmu_name", "zen\n"),
    (
        "/proc/meminfo",
        "MemTotal:       24684184 kB\nMemFree:        23838136 kB\nMemAvailable:   24156611 kB\n\
         SwapTotal:       1148576 kB\nAnonHugePages:    512111 kB\nShmemHugePages:     2148 kB\n\
         PageTables:         3564 kB\nHugepagesize:       2148 kB\nHugetlb:         4194314 kB\n",
    ),
    ("/proc/stat", "cpu  23216 114 3482 214121 591 17 94 19 12 11\ncpu1 1 2 3 4 5 6 7 8 9 1\n"),
    ("/proc/version", "Linux version 6.12.9-amd64 (gcc 14) #1 SMP\n"),
    (
        "/proc/vmstat",
        "allocstall_normal 11\nallocstall_movable 12\nnuma_hint_faults 71\n\
         numa_hint_faults_local 51\nnuma_pages_migrated 31\n",
    ),
    ("/proc/sys/net/netfilter/nf_conntrack_max", "262144\n"),
    (
        "/proc/self/net/stat/nf_conntrack",
        "entries clashres insert_failed drop early_drop\n1f 2 3 4 5\n1f 2 3 4 5\n",
    ),
    (
        "/proc/7/net/stat/nf_conntrack",
        "entries clashres insert_failed drop early_drop\n2f 2 3 4 5\n2f 2 3 4 5\n",
    ),
    ("/proc/7/root/etc/machine-id", "6b5a4d3c2f1e\n"),
    ("/sys/class/net/vxlan1/uevent", "DEVTYPE=vxlan\nINTERFACE=vxlan1\nIFINDEX=5\n"),
    ("/sys/class/net/vxlan1/flags", "0x1143\n"),
    ("/sys/class/net/vxlan1/statistics/rx_packets", "31\n"),
    ("/sys/class/net/vxlan1/statistics/tx_packets", "12\n"),
    ("/sys/class/net/veth1/uevent", "INTERFACE=veth1\nIFINDEX=7\n"),
    ("/sys/class/net/veth1/type", "1\n"),
    ("/sys/class/net/veth1/iflink", "3\n"),
    ("/etc/machine-id", "1f2e3d4c5b6a\n"),
    ("/sys/class/dmi/id/product_uuid", "a1b2c3d4e5f6\n"),
    (
        "/proc/self/mountinfo",
        "35 24 1:31 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 \
         rw,nsdelegate,memory_hugetlb_accounting\n",
    ),
    (
        "/etc/os-release",
        "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\nID=debian\n",
    ),
    ("/etc/default/grub", "GRUB_ENABLE_BLSCFG=true\n"),
    ("/proc/sys/vm/dirty_background_ratio", "11\n"),
    ("/sys/devices/system/node/node1/cpulist", "1-2\n"),
    ("/sys/devices/system/node/node1/distance", "11 21\n"),
    (
        "/sys/devices/system/node/node1/meminfo",
        "Node 1 MemTotal:       24684184 kB\nNode 1 MemFree:        23838136 kB\n",
    ),
    ("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages", "512\n"),
    ("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages", "412\n"),
    ("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/surplus_hugepages", "12\n"),
    ("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512\n"),
    ("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "412\n"),
    ("/sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages", "111\n"),
    ("/sys/kernel/mm/hugepages/hugepages-2048kB/surplus_hugepages", "12\n"),
    ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("/sys/kernel/mm/transparent_hugepage/defrag", "always defer [defer+madvise] madvise never\n"),
    ("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always [advise] never deny force\n"),
    ("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2197152\n"),
    ("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled", "always [inherit] never\n"),
    ("/sys/kernel/mm/transparent_hugepage/khugepaged/defrag", "1\n"),
    ("/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan", "4196\n"),
    ("/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none", "511\n"),
    (
        "/proc/7/stat",
        "7 (post) gres) S 1 7 7 1 -1 4194561 1511 91111 3 4 251 61 711 81 21 1 2 1 31337 \
         221966336 3567 18446744073709551615 1 1\n",
    ),
    (
        "/proc/7/status",
        "Name:\tpostgres\nUid:\t115\t115\t115\t115\nNSpid:\t7\t1\nVmRSS:\t  8192 kB\nVmPTE:\t 12 kB\n\
         HugetlbPages:\t 4196 kB\nThreads:\t2\nCpus_allowed_list:\t1-2\n",
    ),
    (
        "/proc/7/maps",
        "7f1111111111-7f2111111111 rw-s 11111111 11:1f 1234       /anon_hugepage (deleted)\n\
         7f3111111111-7f4111111111 r-xp 11111111 fd:11 77         /usr/lib/postgresql/postgres\n",
    ),
    ("/proc/7/schedstat", "21111111 511111 7\n"),
    ("/proc/7/task/7/schedstat", "21111111 511111 7\n"),
    ("/proc/7/task/9/schedstat", "31111111 611111 8\n"),
    (
        "/proc/7/cgroup",
        "0::/kubepods.slice/kubepods-pod8c6f2e1a4b1d3957f1e2c4a6b8d1f135.slice/\
         cri-containerd-3f7a1b4c9d2e1f6185a7c3b9e4d2f1a16b8c5d7e9f1a1b2c3d4e5f61718293a4.scope\n",
    ),
    ("/proc/7/cmdline", "postgres\0-D\0/var/lib/postgresql\0"),
    (
        "/sys/fs/cgroup/kubepods.slice/kubepods-pod8c6f2e1a4b1d3957f1e2c4a6b8d1f135.slice/hugetlb.2MB.max",
        "4194314\n",
    ),
    (
        "/sys/fs/cgroup/kubepods.slice/kubepods-pod8c6f2e1a4b1d3957f1e2c4a6b8d1f135.slice/hugetlb.2MB.rsvd.max",
        "6291456\n",
    ),
    (
        "/sys/fs/cgroup/kubepods.slice/kubepods-pod8c6f2e1a4b1d3957f1e2c4a6b8d1f135.slice/hugetlb.2MB.current",
        "2197152\n",
    ),
    (
        "/sys/fs/cgroup/kubepods.slice/kubepods-pod8c6f2e1a4b1d3957f1e2c4a6b8d1f135.slice/memory.max",
        "8589934592\n",
    ),
    ("/sys/fs/cgroup/kubepods.slice/hugetlb.2MB.max", "max\n"),
    ("/sys/fs/cgroup/kubepods.slice/hugetlb.2MB.rsvd.max", "max\n"),
    ("/sys/fs/cgroup/kubepods.slice/hugetlb.2MB.current", "2197152\n"),
    ("/sys/fs/cgroup/kubepods.slice/memory.max", "max\n"),
    (
        "/sys/fs/cgroup/kubepods.slice/kubepods-pod8c6f2e1a4b1d3957f1e2c4a6b8d1f135.slice/memory.high",
        "7516192768\n",
    ),
    (
        "/sys/fs/cgroup/kubepods.slice/kubepods-pod8c6f2e1a4b1d3957f1e2c4a6b8d1f135.slice/memory.current",
        "6442450944\n",
    ),
    (
        "/sys/fs/cgroup/kubepods.slice/kubepods-pod8c6f2e1a4b1d3957f1e2c4a6b8d1f135.slice/memory.stat",
        "anon 4294967296\nfile 2147483648\nshmem 1073741824\npgsteal 91\n\
         workingset_refault_file 17\n",
    ),
    (
        "/sys/fs/cgroup/kubepods.slice/kubepods-pod8c6f2e1a4b1d3957f1e2c4a6b8d1f135.slice/memory.events",
        "low 1\nhigh 3\nmax 12\noom 2\noom_kill 1\n",
    ),
    (
        "/sys/fs/cgroup/kubepods.slice/kubepods-pod8c6f2e1a4b1d3957f1e2c4a6b8d1f135.slice/memory.pressure",
        "some avg10=1.11 avg60=1.11 avg300=1.11 total=1500\nfull avg10=1.11 avg60=1.11 avg300=1.11 total=711\n",
    ),
    (
        "/sys/fs/cgroup/kubepods.slice/kubepods-pod8c6f2e1a4b1d3957f1e2c4a6b8d1f135.slice/cpu.pressure",
        "some avg10=1.11 avg60=1.11 avg300=1.11 total=91\nfull avg10=1.11 avg60=1.11 avg300=1.11 total=17\n",
    ),
    (
        "/sys/fs/cgroup/kubepods.slice/kubepods-pod8c6f2e1a4b1d3957f1e2c4a6b8d1f135.slice/io.pressure",
        "some avg10=1.11 avg60=1.11 avg300=1.11 total=81\nfull avg10=1.11 avg60=1.11 avg300=1.11 total=19\n",
    ),
    (
        "/proc/pressure/cpu",
        "some avg10=1.11 avg60=1.11 avg300=1.11 total=9111\nfull avg10=1.11 avg60=1.11 avg300=1.11 total=11\n",
    ),
    (
        "/proc/pressure/io",
        "some avg10=1.11 avg60=1.11 avg300=1.11 total=8111\nfull avg10=1.11 avg60=1.11 avg300=1.11 total=1911\n",
    ),
    (
        "/proc/pressure/memory",
        "some avg10=1.11 avg60=1.11 avg300=1.11 total=1711\nfull avg10=1.11 avg60=1.11 avg300=1.11 total=811\n",
    ),
    (
        "/sys/fs/cgroup/kubepods.slice/kubepods-pod8c6f2e1a4b1d3957f1e2c4a6b8d1f135.slice/cpu.max",
        "150000 100000\n",
    ),
    (
        "/sys/fs/cgroup/kubepods.slice/kubepods-pod8c6f2e1a4b1d3957f1e2c4a6b8d1f135.slice/cpu.stat",
        "usage_usec 91\nnr_periods 61\nnr_throttled 11\nthrottled_usec 51\n",
    ),
];

/// The machine with these contents of its files.
pub fn machine<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Record {
    let leaf = |number: u32, [eax, ebx, ecx, edx]: [u32; 4]| serde_json::json!({ "number": number, "subleaf": 0, "eax": eax, "ebx": ebx, "ecx": ecx, "edx": edx });
    let leaves = [
        leaf(0, [0x10, 0x6874_7541, 0x444d_4163, 0x6974_6e65]),
        leaf(1, [0x00a0_0f11, 0, 1 << 31, 0]),
        leaf(0x4000_0000, [0, 0x4b4d_564b, 0x564b_4d56, 0x4d]),
        leaf(0x8000_0005, [0xff40_ff40, 0xff40_ff40, 0, 0]),
        leaf(0x8000_0006, [0x4800_2200, 0x6800_4200, 0, 0]),
    ];
    let made =
        files.into_iter().fold(Record::default(), |made, (path, text)| made.with_file(path, text));
    made.with_answer("cpuid", &Present(leaves))
        .with_answer("cpu_dma_latency", &Present(31_u64))
        .with_answer("machine_architecture", &Present("x86_64"))
        .with_answer("base_page_bytes", &Present(4096))
        .with_answer("clock_ticks_per_second", &Present(100))
        .with_link("/proc/self/ns/pid", "pid:[4026531836]")
}
