//! Every kind of evidence that a rule gives: its id, name, unit and meaning, once.
//!
//! `{of}` in a name stands for the instance that a piece of evidence is about.

use untax_core::EvidenceKind;

macro_rules! kinds {
    ($($name:ident: $id:literal, $text:literal, $unit:literal, $meaning:literal;)*) => {
        $(#[doc = $meaning] pub const $name: EvidenceKind =
            EvidenceKind { id: $id, name: $text, unit: $unit, meaning: $meaning };)*
        /// All kinds, by subject.
        pub static EVIDENCE: &[EvidenceKind] = &[$($name),*];
    };
}

kinds! {
    // Any subject.
    SETTING: "setting", "{of}", "", "A setting of the database, in its own words.";
    CPUS: "cpus", "CPUs", "count", "CPUs that the database may use at once.";
    SERVER_PROCESSES: "server-processes", "server processes", "count",
        "Processes of the database.";

    // Pages.
    DATA_BYTES: "data-memory", "memory that holds the data", "bytes",
        "Shared memory, buffer pool or heap that the data is cached in.";
    PAGE_SIZE: "page-size", "page size behind it", "bytes",
        "The page size behind most of that memory.";
    TLB_REACH: "tlb-reach", "TLB reach at that page size", "bytes",
        "Memory that the data TLB covers with pages of that size.";
    FAULT_PENALTY: "minor-fault-penalty", "penalty of one minor fault", "s",
        "Time of one minor fault on shared memory, calibrated on this host.";
    FAULTING_SHARE: "shared-fault-share", "page faults on shared memory, of its time on CPU", "share",
        "Samples on a CPU that are in page faults on the shared memory.";
    MINOR_FAULTS: "minor-faults", "minor faults", "1/s",
        "Minor page faults of all its processes.";
    SHARED_FAULTS: "minor-faults-shared", "of them on shared memory", "share",
        "Minor faults that mapped shared memory, of all of them.";
    FAULTS_EARLY: "minor-faults-early", "minor faults early in the window", "1/s",
        "Minor faults of living processes at the beginning of the window, where they fell.";
    FAULTS_LATE: "minor-faults-late", "late in the window", "1/s",
        "The same at its end.";
    WARM_UP: "warm-up", "warm-up, which no tax holds", "CPUs",
        "CPUs that first touches of shared memory took, by processes that stay: it ends by itself.";
    CACHE_ACCESSES: "cache-accesses", "accesses to cached data", "1/s",
        "Look-ups in the database's cache, by its own count.";
    KEY_LOOKUPS: "key-lookups", "of them rows found by a key", "1/s",
        "Rows that were looked up by a key, by the engine's own count.";
    PAGES_PER_ACCESS: "pages-per-access", "pages touched by an access", "pages",
        "Base pages that an access touches at random, on average, by the model of the engine.";
    TOUCH_PENALTY: "touch-penalty", "penalty of a touch on small pages", "s",
        "Extra time of a random touch on 4 KiB pages, calibrated on this host.";
    PAGE_TABLES: "page-tables", "page tables", "bytes", "Page tables of all its processes.";
    PAGE_TABLE_SHARE: "page-table-share", "of the host's memory", "share",
        "Its page tables over the memory of the host.";
    HUGE_PAGES_NEEDED: "hugepages-needed", "pages needed", "pages",
        "Huge pages that the database asks for.";
    HUGE_PAGES_FREE: "hugepages-unpromised", "pages free and not promised", "pages",
        "Pages of the pool that are neither used nor reserved.";
    HUGE_PAGES_ASKED: "hugepages-mode", "asked", "",
        "Whether the database asks for huge pages: on, try or off.";
    HUGE_PAGES_AT_BOOT: "hugepages-boot", "asked for at boot", "pages",
        "Pages of the pool on the kernel's command line.";
    BOOT_WORDS_IGNORED: "boot-words-ignored", "ignored at boot", "",
        "Words about huge pages on the kernel's command line that the kernel passes over.";
    POOL_PAGES: "hugepages-pool", "in the pool", "pages", "Pages in the pool.";
    POOL_FREE: "hugepages-free", "free", "pages", "Pages of the pool that nobody has touched.";
    POOL_PROMISED: "hugepages-reserved", "promised", "pages",
        "Free pages of the pool that a mapping was promised.";
    POOL_IDLE: "hugepages-idle-memory", "idle memory", "bytes",
        "Memory in pages of the pool that nobody uses.";
    HUGETLB_NEEDED: "hugetlb-needed", "huge pages needed", "bytes",
        "Huge pages that the database needs, in bytes.";
    HUGETLB_LIMIT: "hugetlb-limit", "limit", "bytes",
        "Limit of its control group on huge pages.";
    HUGETLB_USED: "hugetlb-used", "touched so far", "bytes",
        "Huge pages that are charged to its control group.";
    THP_MODE: "thp-mode", "THP mode", "", "Mode of transparent huge pages.";
    THP_WANTED: "thp-wanted", "wanted", "", "The mode that suits the engine.";
    THP_DEFRAG: "thp-defrag", "THP defrag", "",
        "When the kernel compacts memory to make huge pages.";
    THP_MAX_PTES_NONE: "thp-max-ptes-none", "khugepaged max_ptes_none", "pages",
        "Base pages that khugepaged may fill up where it makes a huge page.";
    THP_SIZE: "thp-size-mode", "THP of {of}", "",
        "Mode of transparent huge pages of one size, where it has one of its own.";
    THP_SET_BY: "thp-set-by", "set by", "",
        "The program and profile that sets transparent huge pages at every boot.";
    THP_BYTES: "thp-memory", "its memory in THP", "bytes",
        "Anonymous memory of the database in transparent huge pages.";
    THP_WANTS_ON: "thp-wants-always", "wants always", "", "The database that wants THP always.";
    THP_WANTS_OFF: "thp-wants-off", "wants it off", "", "The database that wants THP off.";

    // Idle CPUs.
    WAKE_UPS_ASLEEP: "wake-ups-asleep", "of its wake-ups, those on CPUs that slept", "share",
        "Wake-ups of its threads that the idle task made room for, of all of them.";
    WAKE_UP_TIME: "wake-up-time", "time of one", "s",
        "From waking a thread to its first run on a CPU that slept, on average.";
    WAKING_SHARE: "waking-share", "waking other threads, of its time on CPU", "share",
        "Samples on a CPU as a thread had woken another: interrupts to other CPUs included.";
    IDLE_GOVERNOR: "cpuidle-governor", "cpuidle governor", "",
        "What decides how an idle CPU sleeps.";
    HALT_POLL: "halt-poll", "idle CPUs look for work before they halt", "s",
        "`guest_halt_poll_ns`: for how long a guest polls at most; 0: it halts at once.";
    IDLE_STATE_LATENCY: "idle-state-latency", "to leave {of}", "s",
        "The time that its driver gives for leaving the deepest state that is allowed.";

    // How fast CPUs run.
    CPU_FREQUENCY: "cpu-frequency", "its CPUs ran at", "Hz",
        "The frequency of the CPUs that it ran on, each for as long as it was busy.";
    BASE_FREQUENCY: "base-frequency", "without turbo they hold", "Hz",
        "The frequency that the processor holds on all cores.";
    MOST_FREQUENCY: "most-frequency", "at most", "Hz", "The highest frequency of one core.";
    FREQUENCY_GOVERNOR: "frequency-governor", "governor", "",
        "What chooses the frequency, and what the processor prefers.";
    FREQUENCY_LIMIT: "frequency-limit", "limit", "Hz", "The highest frequency that was allowed.";

    // CPUs.
    CPU_LIMIT: "cpu-limit", "limit", "CPUs", "CPUs that its control group may use.";
    CPU_PERIOD: "cpu-period", "period", "s", "Period in which that quota is to last.";
    CPU_PERIODS: "cpu-periods", "periods", "count", "Periods in which the group ran.";
    THROTTLED_PERIODS: "throttled-periods", "throttled", "count",
        "Periods in which the group used up its quota.";
    HELD_UP: "held-up", "all its tasks with work held up", "share",
        "The part of the window in which all tasks of a group, or of the machine, that had work were held up (PSI).";
    NEIGHBOUR_CPUS: "neighbour-cpus", "{of}", "CPUs", "CPUs that a neighbour used.";
    POOLER: "asked-by-pooler", "asked by way of a pooler, so these may be its clients", "",
        "The pooler through which the database is asked.";
    STOLEN: "stolen-time", "stolen", "s", "CPU time that the hypervisor gave to others.";
    STOLEN_SHARE: "stolen-share", "stolen of the time wanted", "share",
        "Stolen time over the time for which CPUs were wanted.";
    AT_WORK: "connections-at-work", "connections at work", "threads",
        "Threads that serve clients and are active, on average.";
    WANTING_CPU: "connections-wanting-cpu", "wanted a CPU at once", "threads",
        "Threads on a CPU or runnable, on average.";
    CONNECTIONS: "connections", "connections", "count", "Client connections.";
    STATEMENT_COLD: "statement-cold", "a statement, cold", "s",
        "Time of a small statement after others had the CPU.";
    STATEMENT_WARM: "statement-warm", "the same, warm", "s",
        "Time of the same statement right after that.";
    CATALOG_ACCESSES: "catalog-accesses", "accesses to catalogs", "share",
        "Accesses to system catalogs, of all accesses to the cache.";
    PROCESSES_STARTED: "processes-started", "processes started", "1/s",
        "Server processes or threads that were started.";
    CONNECTIONS_PER_S: "connections-per-second", "connections", "1/s",
        "Connections that were made.";
    REQUESTS_PER_S: "requests-per-second", "requests", "1/s",
        "Requests that the server answered.";
    SYSTEM_TIME: "system-time", "in the kernel", "s", "Time on CPU inside the kernel.";
    CPU_TIME: "cpu-time", "on CPU", "s", "Time on CPU.";
    REQUESTS_AT_ONCE: "requests-per-read", "requests at a time", "",
        "Requests that the server takes with one read.";
    SANDBOX: "sandbox", "sandbox", "", "The sandbox that the database runs in.";
    OWN_PROGRAM: "sandbox-own-share", "its own program", "share of time on CPU",
        "Time on CPU in the database's own program, not in the sandbox's kernel.";
    SANDBOX_PID: "sandbox-pid", "{of}", "pid", "A sandbox that hides what runs in it.";

    // NUMA.
    NUMA_MOVED: "numa-pages-moved", "pages moved", "1/s",
        "Pages that NUMA balancing moved to another node.";
    NUMA_FAULTS: "numa-hint-faults", "hint faults", "1/s",
        "Faults by which NUMA balancing samples accesses.";
    NUMA_REMOTE: "numa-remote-share", "accesses to other nodes", "share",
        "Memory on other nodes than the threads, as shares of both.";
    NUMA_MEMORY: "numa-memory-on-node", "memory on node {of}", "share",
        "Memory of the database on one node.";
    NUMA_THREADS: "numa-threads-on-node", "threads on node {of}", "share",
        "Threads of the database on one node.";

    // Memory.
    MEMORY_LIMIT: "memory-limit", "limit", "bytes", "Memory limit of the control group.";
    MEMORY_HIGH: "memory-high", "high", "bytes",
        "Memory from which on the control group is slowed down.";
    MEMORY_CHARGED: "memory-charged", "charged", "bytes",
        "Memory that is charged to the control group.";
    MEMORY_CACHE: "memory-page-cache", "page cache, and slab that can be freed", "bytes",
        "Memory of the group that reclaim can free.";
    MEMORY_FIXED: "memory-unreclaimable", "cannot be freed", "bytes",
        "Memory of the group that reclaim cannot free.";
    MEMORY_TO_COME: "memory-to-come", "its pool may still take", "bytes",
        "Memory that the database's cache may still fill.";
    MEMORY_GROWTH: "memory-growth", "growth", "bytes/s",
        "Growth of what cannot be freed.";
    AT_LIMIT: "memory-limit-hits", "times at its limit", "count",
        "How often the group came to its limit so far.";
    OOM_KILLS: "oom-kills", "killed", "count",
        "Processes of its group that the kernel killed in the window for lack of memory.";
    OOM_KILLS_SO_FAR: "oom-kills-so-far", "killed so far", "count",
        "The same since the group was made.";
    TAKEN_BY_OTHERS: "memory-neighbour-share", "taken by others", "share",
        "Memory that neighbours took, of all that was taken below the limit.";
    TAKEN_BY: "memory-taken", "taken by {of}", "pages/s",
        "Memory that one neighbouring group took.";
    WAITED_FOR_MEMORY: "memory-wait", "{of} waited for memory", "s",
        "Time for which some task of that group waited for memory.";

    READ_AGAIN_BY: "memory-read-again", "read again by {of}", "bytes/s",
        "What a group read again soon after its own memory limit had evicted it.";
    DISK_SHARE_AGAIN: "disk-share-read-again", "of what others cost on the disk, read again", "share",
        "Pages read again, of all that others occupied the database's disks with.";
    KERNEL_CPUS_AGAIN: "kernel-cpus-read-again", "in the kernel for that", "CPUs",
        "Time in the kernel of processes of that group, as much as is for pages read again.";

    // Disks.
    DISK_MEAN: "disk-latency-mean", "{of}: mean time", "s",
        "Mean time of the database's requests of one kind.";
    DISK_P99: "disk-latency-p99", "{of}: 99 %", "s",
        "Time that 99 of 100 of these requests stay below.";
    DISK_REQUESTS: "disk-requests", "{of}s", "1/s", "Requests of that kind.";
    DISK_WAIT: "disk-wait-share", "waited for disks", "share",
        "Active time in which the database waited for disks.";
    DEVICE_BUSY: "device-busy", "{of} busy", "share", "Time in which the device had requests.";
    DEVICE_KIND: "device-kind", "{of}", "", "What is behind the device.";
    DISK_CROWD: "disk-neighbour-chance", "chance to meet the disk busy with others", "share",
        "Time in which neighbours' requests had the device.";
    WRITTEN_BY: "written-by", "written by {of}", "bytes",
        "Data that one process wrote during the window.";
    FLOOD_GROUP: "flood-group", "group that writes the most", "",
        "The control group of the neighbour that writes the most.";
    FLOOD_DEVICE: "flood-device", "device number of {of}", "",
        "The disk that neighbours write the most to.";
    FLOOD_RATE: "flood-rate", "written to {of}", "bytes/s", "What all write to that disk.";
    LONGEST_WAIT: "longest-wait", "longest wait", "s",
        "The longest single wait inside a file call.";
    JOURNAL_COMMIT: "journal-commit", "commit of the journal, mean", "s",
        "Mean time of a commit of the filesystem's journal.";
    JOURNAL_TRANSACTIONS: "journal-transactions", "journal transactions", "count",
        "Transactions of the filesystem's journal.";
    DIRTY: "dirty-memory", "changed, the most", "bytes",
        "The most memory that waited to be written back.";
    DIRTY_THRESHOLD: "dirty-threshold", "threshold", "bytes",
        "Changed memory from which on writers are held back.";
    WRITEBACK: "writeback-memory", "being written then", "bytes",
        "Memory that was being written back at that moment.";
    STORAGE: "storage", "{of}", "", "The network storage behind data, log or temporary files.";
    LIMIT_READS: "io-limit-reads", "limit of reads", "1/s",
        "Limit of the control group on reads.";
    LIMIT_WRITES: "io-limit-writes", "limit of writes", "1/s",
        "Limit of the control group on writes.";
    LIMIT_READ_BYTES: "io-limit-read-bytes", "limit of bytes read", "bytes/s",
        "Limit of the control group on bytes read.";
    LIMIT_WRITTEN_BYTES: "io-limit-written-bytes", "limit of bytes written", "bytes/s",
        "Limit of the control group on bytes written.";

    // Network.
    RETRANSMITS: "retransmits", "sent again", "1/s", "TCP segments that were sent again.";
    RETRANSMIT_SHARE: "retransmit-share", "lost", "share",
        "Segments sent again, of all segments sent.";
    RETRANSMIT_SHARE_OF_ALL: "retransmit-share-network", "lost by all", "share",
        "The same of all connections in its network namespace.";
    RETRANSMIT_OWN: "retransmit-own-share", "its part", "share",
        "Retransmissions of its own connections, of all in its network namespace.";
    TCP_TIMEOUTS: "tcp-timeouts", "time-outs", "count", "Retransmission timers that ran out.";
    LISTEN_OVERFLOWS: "listen-overflows", "not accepted", "count",
        "Connections dropped because nobody accepted them in time.";
    TRACKED: "conntrack-entries", "connections", "count",
        "Entries of the kernel's table of connections.";
    TRACKED_LIMIT: "conntrack-limit", "limit", "count", "Size of that table.";
    TRACKED_DROPPED: "conntrack-drops", "dropped", "count",
        "Packets dropped because the table was full.";
    TRACKED_EVICTED: "conntrack-early-drops", "thrown out", "count",
        "Entries evicted to make room for new ones.";
    TRACKED_CLASHES: "conntrack-insert-failures", "not inserted", "count",
        "Entries that two packets made at once.";
    PACKETS: "packets", "packets", "1/s", "Packets through its network namespace.";
    PACKETS_DROPPED: "packets-dropped", "dropped", "count", "Packets that its link dropped.";
    LINK: "link", "link", "", "The virtual link that its packets go through.";
    OVERLAY: "overlay", "overlay", "", "An overlay network of the host.";
    NETWORK_PLUGIN: "network-plugin", "network plugin (CNI)", "",
        "The name of the node's network plugin, and the programs that set up a pod's network.";
    SERVICE_MODE: "service-mode", "services by", "", "The mode of kube-proxy.";
    SERVICE_RULES: "service-rules", "rules of services", "count",
        "Rules, map elements or virtual servers of services: one for each port of a service.";
    PATH_PRICE: "path-price", "as {of}, more for each round trip", "s",
        "What a round trip over the path of untax bench network that is most like this one takes more \
         than over one virtual wire, with client and server on one CPU.";
    SERVICE_PRICE: "service-price", "rules of services, for each new connection", "s",
        "Their number times what untax bench network measured that one of them adds.";
    PATH_PRICE_GAP: "path-price-missing", "price of the path", "",
        "Why the path has no price here.";
    ON_THE_WAY: "client-network-share", "on the network, of the clients' time (modelled)", "share",
        "Time in which requests and answers are on their way, of the time of the clients that ask.";
    CLIENT_RTT: "client-rtt", "round trip to a client, median", "s",
        "Median of the smoothed round-trip times of clients' TCP connections.";
    ROUND_TRIPS: "round-trips", "round trips of a request (modelled)", "count",
        "Messages that go to the database and back for each request, by their segments.";
    NETWORK_LATENCY: "network-latency", "network, of a request (modelled)", "s",
        "Round trips of a request, each as long as the shortest one of its connection.";
    NETWORK_LATENCY_MOST: "network-latency-most", "at most", "s",
        "The same by smoothed round-trip times, in which the client's own time may be.";
    DIGEST: "machine-id-digest", "digest of the id", "", "A digest of the machine's id.";
    SHARED_WITH: "machine-id-shared-with", "shared with", "",
        "Databases that see the same id.";

    // Locks and engines.
    KERNEL_HOLDER: "kernel-lock-holder", "others waited for {of}", "s",
        "How long others waited for a neighbour that held a lock of the kernel, in what was traced.";
    LATCHES: "lock-wait-futex", "latches (futex)", "s", "Time asleep in futexes and semaphores.";
    PEERS: "lock-wait-peer", "waits for peers (row locks)", "s",
        "Time asleep until another process of the database gave a signal.";
    MEMORY_MAP: "lock-wait-memory-map", "memory map of the process", "s",
        "Time asleep in page faults and changes of mappings.";
    HOLDERS_COMPUTE: "lock-holder-computing", "behind holders that computed", "s",
        "Time behind threads of the database that computed meanwhile.";
    HOLDERS_IDLE: "lock-holder-idle", "behind holders that waited for their clients", "s",
        "Time behind transactions that were idle meanwhile: their applications did something else.";
    PEER_LOCKS: "lock-share-of-peer-waits", "of waits for peers, for locks", "share",
        "Waits for peers that are for locks, as the server says.";
    CONTENTION: "scalability-contention", "contention, what one at a time does", "share",
        "Work that one at a time can do, by the universal scalability law.";
    COHERENCY: "scalability-coherency", "coherency, what each pair takes to agree", "share",
        "Work that each pair adds, by the same law.";
    PEAK: "scalability-peak", "requests at once from which on less gets done", "count",
        "Requests at once at which throughput is largest.";
    LOG_RATE: "log-rate", "log", "bytes/s", "Log that the server writes.";
    LOG_IMAGES: "log-image-share", "images of the log", "share",
        "Bytes of whole-page images, of all bytes of the log.";
    CHECKPOINTS: "checkpoints", "checkpoints", "count", "Checkpoints during the window.";
    LOG_BURST: "log-burst", "log writes: busiest quarter second over mean", "",
        "How unsteadily the log is written: 1 is steady.";
    TEMPORARY_TABLES: "temporary-tables", "temporary tables on disk", "1/s",
        "Temporary tables that did not fit in memory.";
    TEMPORARY_PAGES: "temporary-pages", "pages read and written for them", "",
        "Pages of the engine of temporary tables that were read and written.";
    TEMPORARY_BYTES: "temporary-bytes", "temporary files' I/O", "bytes",
        "Requests to disks for temporary files.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use untax_core::evidence::is_kebab;

    #[test]
    fn an_id_is_used_once_and_says_what_it_is() {
        let units: BTreeMap<&str, &str> =
            EVIDENCE.iter().map(|kind| (kind.id, kind.unit)).collect();
        assert_eq!(units.len(), EVIDENCE.len(), "an id is used twice");
        for kind in EVIDENCE {
            assert!(is_kebab(kind.id), "{}", kind.id);
            assert!(!kind.name.is_empty() && kind.meaning.ends_with('.'), "{}", kind.id);
        }
    }
}
