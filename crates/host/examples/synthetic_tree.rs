//! Writes a capture of a made-up host with many processes, to measure how long a check of it
//! takes: `cargo run --release -p untax-host --example synthetic_tree -- DIR 10000 300`.
//!
//! The host is a virtual machine of 64 CPUs whose one PostgreSQL maps 6 GiB on base pages in
//! every backend; all other processes are small services. Both moments are 10 s apart.

use std::path::Path;
use std::process::ExitCode;
use untax_core::Reading::Present;
use untax_host::{Capture, Record};

/// The pid of the postmaster; its children follow.
const POSTMASTER: usize = 1000;

/// The length of the shared memory in KiB, and the page tables that map all of it.
const SHARED_KIB: usize = 6 << 20;
const PAGE_TABLE_KIB: usize = SHARED_KIB / 512;

/// What is in the files of one moment.
struct Moment {
    /// 0 at the start, 1 at the end of the window.
    number: usize,
    processes: usize,
    backends: usize,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers = arguments.iter().skip(1).map(|n| n.parse().ok()).collect::<Option<Vec<usize>>>();
    let (Some(folder), Some([processes, backends])) = (arguments.first(), numbers.as_deref())
    else {
        eprintln!("usage: synthetic_tree DIR PROCESSES BACKENDS");
        return ExitCode::from(3);
    };
    let moment = |number| host(&Moment { number, processes: *processes, backends: *backends });
    match Capture::write(Path::new(folder), &moment(0), &moment(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn host(moment: &Moment) -> Record {
    let last = POSTMASTER + moment.backends;
    let others = (1..).filter(|pid| !(POSTMASTER..=last).contains(pid));
    let services = moment.processes.saturating_sub(moment.backends + 1);
    let record = others.take(services).fold(machine(moment), service);
    let record = postmaster(record, moment);
    (POSTMASTER + 1..=last).fold(record, |record, pid| backend(record, pid, moment))
}

fn machine(moment: &Moment) -> Record {
    let ticks = 1_000_000 + moment.number * 64_000;
    let cpu = |n: usize| {
        format!(
            "processor: {n}\nvendor_id: AuthenticAMD\nmodel name: AMD EPYC 7763\n\
             physical id: 1\ncore id: {}\nflags: pse pdpe1gb\n\n",
            n / 2
        )
    };
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB";
    let thp = "/sys/kernel/mm/transparent_hugepage";
    let files = [
        ("/proc/uptime", format!("{}.00 5000.00\n", 90_000 + moment.number * 10)),
        ("/proc/sys/kernel/osrelease", "6.12.9-amd64\n".to_owned()),
        ("/proc/cmdline", "root=/dev/vda1 psi=1\n".to_owned()),
        ("/proc/cpuinfo", (0..64).map(cpu).collect()),
        ("/proc/stat", format!("cpu  {ticks} 100 {ticks} {ticks} 100 100 100 100 100 100\n")),
        (
            "/proc/meminfo",
            "MemTotal: 65536000 kB\nMemFree: 16384000 kB\nMemAvailable: 32768000 kB\n\
             PageTables: 4000000 kB\nHugepagesize: 2048 kB\nHugetlb: 0 kB\n"
                .to_owned(),
        ),
        (
            "/proc/self/mountinfo",
            "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n".to_owned(),
        ),
        ("/etc/os-release", "ID=debian\nVERSION_ID=12\nPRETTY_NAME=Debian\n".to_owned()),
        ("/sys/devices/system/cpu/online", "0-63\n".to_owned()),
    ];
    let record = Record::default()
        .with_answer("taken_at", &Present(format!("2026-01-01T00:00:{}0Z", moment.number)))
        .with_answer("machine_architecture", &Present("x86_64"))
        .with_answer("base_page_bytes", &Present(4096))
        .with_answer("clock_ticks_per_second", &Present(100))
        .with_file(&format!("{thp}/enabled"), "always [madvise] never\n");
    let counts = ["nr_hugepages", "free_hugepages", "resv_hugepages", "surplus_hugepages"];
    let record = counts
        .iter()
        .fold(record, |record, file| record.with_file(&format!("{pool}/{file}"), "0\n"));
    files.iter().fold(record, |record, (path, text)| record.with_file(path, text))
}

/// A process with the numbers that a check reads: resident memory and page tables in KiB.
struct Process<'a> {
    pid: usize,
    parent: usize,
    executable: &'a str,
    command: &'a str,
    resident_kib: usize,
    page_table_kib: usize,
    minor_faults: usize,
    group: &'a str,
}

fn process(record: Record, of: &Process) -> Record {
    let Process { pid, parent, executable, command, minor_faults, .. } = of;
    let name = executable.rsplit('/').next().unwrap_or_default();
    let at = |file: &str| format!("/proc/{pid}/{file}");
    let stat = format!(
        "{pid} ({name}) S {parent} {pid} {pid} 0 -1 4194304 {minor_faults} 0 0 0 {minor_faults} 50 \
         0 0 20 0 1 0 {} 0 0\n",
        pid * 10
    );
    let status = format!(
        "Name:\t{name}\nUid:\t105\t105\t105\t105\nGid:\t113\t113\t113\t113\nNSpid:\t{pid}\n\
         VmRSS:\t{} kB\nRssAnon:\t4096 kB\nRssShmem:\t{} kB\nVmPTE:\t{} kB\n\
         HugetlbPages:\t0 kB\nThreads:\t1\n",
        of.resident_kib,
        of.resident_kib.saturating_sub(4096),
        of.page_table_kib
    );
    record
        .with_file(&at("stat"), &stat)
        .with_file(&at("status"), &status)
        .with_file(&at("schedstat"), &format!("{minor_faults}000000 {minor_faults}000 9\n"))
        .with_file(&at("cmdline"), command)
        .with_file(&at("cgroup"), &format!("0::{}\n", of.group))
        .with_link(&at("exe"), executable)
}

fn service(record: Record, pid: usize) -> Record {
    process(
        record,
        &Process {
            pid,
            parent: usize::from(pid > 1),
            executable: "/usr/bin/service",
            command: "/usr/bin/service\0--number\0",
            resident_kib: 8192,
            page_table_kib: 64,
            minor_faults: 2000,
            group: "/system.slice/service.service",
        },
    )
}

const POSTGRES: &str = "/usr/lib/postgresql/15/bin/postgres";
const GROUP: &str = "/system.slice/postgresql@15-main.service";

fn postmaster(record: Record, moment: &Moment) -> Record {
    let data = "/var/lib/postgresql/15/main";
    let command = format!("{POSTGRES}\0-D\0{data}\0");
    let start = 0x7f00_0000_0000_usize;
    let maps = format!(
        "{start:x}-{:x} rw-s 00000000 00:01 1033    /dev/zero (deleted)\n",
        start + (SHARED_KIB << 10)
    );
    let record = process(
        record,
        &Process {
            pid: POSTMASTER,
            parent: 1,
            executable: POSTGRES,
            command: &command,
            resident_kib: 200_000,
            page_table_kib: 400,
            minor_faults: 20_000 + moment.number,
            group: GROUP,
        },
    );
    let at = |file: &str| format!("/proc/{POSTMASTER}/{file}");
    record
        .with_file(&at("maps"), &maps)
        .with_link(&at("cwd"), data)
        .with_link(&at("root"), "/")
        .with_file(&at(&format!("root{data}/PG_VERSION")), "15\n")
        .with_file(
            &at(&format!("root{data}/postgresql.conf")),
            "shared_buffers = 6GB\nhuge_pages = off\nmax_connections = 400\n",
        )
}

fn backend(record: Record, pid: usize, moment: &Moment) -> Record {
    process(
        record,
        &Process {
            pid,
            parent: POSTMASTER,
            executable: POSTGRES,
            command: "postgres: app shop 10.0.0.7(51234) idle",
            resident_kib: SHARED_KIB,
            page_table_kib: PAGE_TABLE_KIB,
            minor_faults: SHARED_KIB / 4 + moment.number * 1000,
            group: GROUP,
        },
    )
}
