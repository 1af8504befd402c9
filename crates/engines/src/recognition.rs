//! Reading the processes of a host, and recognising the programs of engines among them.

use crate::engine::Engine;
use crate::postgres::title;
use crate::process_table::{Candidate, GVISOR, Process, Role, Table, base};
use crate::{catalogue, oracle};
use untax_core::Reading::{self, Denied, Present};
use untax_host::process::{self, Stat};
use untax_host::{Host, command_line};

/// What the kernel appends to the link of a program whose file is gone.
const DELETED: &str = " (deleted)";

/// How the kernel calls its workers, and the threads that complete what devices have done when there is
/// too much of it for interrupts.
const KERNEL_WORKERS: [&str; 2] = ["kworker/", "ksoftirqd/"];

/// Programs that run scripts: such a process is not the program that its script is named after.
const INTERPRETERS: [&str; 7] = ["sh", "bash", "dash", "ash", "busybox", "perl", "python"];

/// Reads the `stat` of every process, the program of all but kernel threads, and the command
/// line of those that may be databases.
pub(crate) fn processes(host: &Host) -> Reading<Table> {
    process::all(host).map(|stats| {
        let kthreadd = stats.iter().find(|stat| stat.is_kthreadd()).map(|stat| stat.pid);
        let (kernel, users): (Vec<Stat>, Vec<Stat>) = stats
            .into_iter()
            .partition(|s| kthreadd.is_some_and(|pid| s.parent == pid || s.pid == pid));
        let users = users.into_iter().map(|stat| (stat.pid, examine(host, stat)));
        let is_worker = |s: &Stat| KERNEL_WORKERS.iter().any(|name| s.comm.starts_with(name));
        let kernel_workers = kernel.into_iter().filter(is_worker).collect();
        Table::new(users.collect(), kernel_workers)
    })
}

fn examine(host: &Host, stat: Stat) -> Process {
    let pid = stat.pid;
    let link = host.link(&format!("/proc/{pid}/exe"));
    let deleted = link.as_ref().map(|path| path.ends_with(DELETED));
    let executable = link.map(|path| path.trim_end_matches(DELETED).to_owned());
    let read = |keep: &dyn Fn(String) -> String| command_line::map_arguments(host, pid, keep);
    let (arguments, engine) = match &executable {
        Present(path) => match catalogue::by_program(base(path)) {
            Some(engine) => (read(&title::shorten), Some(engine)),
            // Which of its processes it is, and no more.
            None if base(path) == GVISOR => (read(&|text| first_argument(&text).to_owned()), None),
            None => (not_needed(), None),
        },
        // Another user's program: its name and command line are all there is to go by.
        Denied(_) => {
            let engine_of = |first: &str| by_appearance(&stat.comm, first);
            let arguments = read(&|text| match engine_of(first_argument(&text)) {
                Some(_) => title::shorten(text),
                None => first_word(&text).to_owned(),
            });
            let first = arguments.value().and_then(|a| a.first()).map_or("", String::as_str);
            let engine = engine_of(first);
            (arguments, engine)
        }
        // A kernel thread, or a process that ended and waits for its parent.
        _ => (not_needed(), None),
    };
    let part = engine.map(|engine| {
        let name = executable.value().map_or(stat.comm.as_str(), |path| base(path));
        let role = (engine.role)(&Candidate { name, arguments: &arguments });
        (engine.id, in_namespace(host, pid, role))
    });
    Process { stat, executable, deleted, arguments, part }
}

/// Two containers may each run an instance of the same name.
fn in_namespace(host: &Host, pid: u32, role: Role) -> Role {
    match role {
        Role::Named { leads, name } => {
            let namespace = host.link(&format!("/proc/{pid}/ns/pid")).into_value();
            Role::Named { leads, name: format!("{name} {}", namespace.unwrap_or_default()) }
        }
        role => role,
    }
}

fn first_argument(line: &str) -> &str {
    line.split('\0').next().unwrap_or_default()
}

/// All that is kept of the command line of a program that is no database: what follows is nobody
/// else's business.
fn first_word(line: &str) -> &str {
    line.split(['\0', ' ', ':']).next().unwrap_or_default()
}

fn by_appearance(comm: &str, first: &str) -> Option<&'static Engine> {
    // A rewritten title is one text: `postgres: walwriter`, `redis-server *:6379`.
    let word = first_word(first);
    let word = base(word).trim_start_matches('-');
    let is_script = INTERPRETERS.iter().any(|i| word.starts_with(i));
    catalogue::by_program(word)
        .or_else(|| if is_script { None } else { catalogue::by_program(comm) })
        .or_else(|| oracle::instance_name(comm).and(catalogue::by_id("oracle")))
}

fn not_needed<T>() -> Reading<T> {
    Reading::Absent("the command line of a program that is no known database is not read".into())
}
