//! Whatever a host's files hold, reading them ends, and says nothing that was not there.

mod made;

use made::Made;
use proptest::prelude::*;
use untax_engines::Selection;

/// Files of a process that are read, and those of the engines.
const FILES: [&str; 9] = [
    "stat",
    "status",
    "cmdline",
    "maps",
    "schedstat",
    "cgroup",
    "smaps_rollup",
    "root/srv/a/postgresql.conf",
    "root/etc/my.cnf",
];

const PROGRAMS: [&str; 6] = [
    "/usr/lib/postgresql/15/bin/postgres",
    "/usr/sbin/mariadbd",
    "/usr/bin/redis-server",
    "/usr/bin/mongod",
    "/u01/bin/oracle",
    "/bin/other",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,60}",
        "[0-9]{1,22} \\([a-z)( ]{0,6}\\) [A-Z]( -?[0-9]{1,21}){0,24}",
        "(Vm(PTE|RSS)|NSpid|Uid|Threads|AnonHugePages):[\t ]*[0-9]{0,22}( kB)?\n?",
        "[0-9a-f]{1,17}-[0-9a-f]{1,17} rw-[sp] [0-9a-f]{1,8} 0:1 [0-9]{0,21} {1,4}(/SYSV0|/dev/zero)?",
        "((include|include_dir|port|huge_pages)[ =]'?\\PC{0,12}\n){0,4}",
    ]
}

proptest! {
    #[test]
    fn no_content_of_any_file_is_too_odd(
        program in 0..PROGRAMS.len(),
        file in 0..FILES.len(),
        content in text(),
        select in 0..3_u32,
    ) {
        let made = Made::new()
            .link("/proc/100/exe", PROGRAMS[program])
            .file(&format!("/proc/100/{}", FILES[file]), &content)
            .postmaster(100, 1, "/srv/a")
            .backend(101, 100, "postgres: walwriter ");
        let selection = [Selection::All, Selection::Pid(100), Selection::Pid(101)];
        let found = made.select(&selection[select as usize]);
        for database in found.into_value().unwrap_or_default() {
            prop_assert!(database.pid == 100 || database.pid == 101);
            if FILES[file] == "maps" && !content.contains('-') {
                prop_assert!(!database.memory.shared_bytes.is_present() || program != 0);
            }
        }
    }
}
