//! Reading the processes of a host, and recognising the programs of engines among them.

use crate::engine::Engine;
use crate::postgres::title;
use crate::process_table::{Candidate, GVISOR, Process, Role, Table, base};
use crate::{catalogue, loader, oracle};
use std::collections::BTreeMap;
use untax_core::Reading::{self, Denied, Present};
use untax_host::process::{self, Stat};
use untax_host::{Host, command_line, elf};

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
        let programs: Vec<Program> =
            users.into_iter().map(|stat| Program::of(host, stat)).collect();
        let renamed = renamed(host, &programs);
        let users = programs.into_iter().map(|program| {
            let pid = program.stat.pid;
            (pid, examine(host, program, renamed.get(&pid).copied()))
        });
        let is_worker = |s: &Stat| KERNEL_WORKERS.iter().any(|name| s.comm.starts_with(name));
        let kernel_workers = kernel.into_iter().filter(is_worker).collect();
        Table::new(users.collect(), kernel_workers)
    })
}

/// A process and the program that it runs, as the kernel names it.
struct Program {
    stat: Stat,
    executable: Reading<String>,
    deleted: Reading<bool>,
}

impl Program {
    fn of(host: &Host, stat: Stat) -> Self {
        let link = host.link(&format!("/proc/{}/exe", stat.pid));
        let deleted = link.as_ref().map(|path| path.ends_with(DELETED));
        let executable = link.map(|path| path.trim_end_matches(DELETED).to_owned());
        Self { stat, executable, deleted }
    }

    /// Whether it is of none of the names that an engine's program, or one that runs these, may have.
    fn is_unknown(&self) -> bool {
        self.executable.value().is_some_and(|path| {
            let name = base(path);
            catalogue::by_program(name).is_none() && name != GVISOR && !loader::is_loader(path)
        })
    }
}

/// The engines of the processes whose program has another name than the engine's.
fn renamed(host: &Host, programs: &[Program]) -> BTreeMap<u32, &'static Engine> {
    let unknown = programs.iter().filter(|program| program.is_unknown());
    let pids: Vec<u32> = unknown.map(|program| program.stat.pid).collect();
    let symbols: Vec<&str> =
        catalogue::ENGINES.iter().flat_map(|engine| engine.exports).copied().collect();
    let found = elf::exported(host, &pids, &symbols).into_value().unwrap_or_default();
    let engine = |(pid, symbols): (u32, Vec<String>)| Some((pid, catalogue::by_exports(&symbols)?));
    found.into_iter().filter_map(engine).collect()
}

fn examine(host: &Host, program: Program, renamed: Option<&'static Engine>) -> Process {
    let Program { stat, executable, deleted } = program;
    let pid = stat.pid;
    if executable.value().is_some_and(|path| loader::is_loader(path)) {
        return examine_loaded(host, Program { stat, executable, deleted });
    }
    let read = |keep: &dyn Fn(String) -> String| command_line::map_arguments(host, pid, keep);
    let (arguments, engine) = match &executable {
        Present(path) => match catalogue::by_program(base(path)).or(renamed) {
            Some(engine) => (read(&title::shorten), Some(engine)),
            // Which of its processes it is, and no more.
            None if base(path) == GVISOR => (read(&|text| first_argument(&text).to_owned()), None),
            None => (not_needed(), None),
        },
        // Another user's program: its name and command line are all there is to go by.
        Denied(_) => {
            let engine_of = |first: &str| by_appearance(&stat.comm, first);
            let arguments = read(&|text| match engine_of(first_argument(&text)) {
                _ if loader::is_loader(first_argument(&text)) => keep_of_loaded(&text),
                Some(_) => title::shorten(text),
                None => first_word(&text).to_owned(),
            });
            let arguments = arguments.map(without_loader);
            let first = arguments.value().and_then(|a| a.first()).map_or("", String::as_str);
            let engine = engine_of(first);
            (arguments, engine)
        }
        // A kernel thread, or a process that ended and waits for its parent.
        _ => (not_needed(), None),
    };
    let part = part(host, &stat, engine, &executable, &arguments);
    Process { stat, executable, deleted, arguments, part }
}

fn part(
    host: &Host,
    stat: &Stat,
    engine: Option<&'static Engine>,
    executable: &Reading<String>,
    arguments: &Reading<Vec<String>>,
) -> Option<(&'static str, Role)> {
    let engine = engine?;
    let name = executable.value().map_or(stat.comm.as_str(), |path| base(path));
    let role = (engine.role)(&Candidate { name, arguments });
    Some((engine.id, in_namespace(host, stat.pid, role)))
}

/// A process that the dynamic loader was started for: its command line says which program that runs.
fn examine_loaded(host: &Host, program: Program) -> Process {
    let Program { stat, executable, deleted } = program;
    let words = command_line::map_arguments(host, stat.pid, |line| keep_of_loaded(&line));
    let engine = words.value().and_then(|words| loaded_engine(loader::program_words(words)));
    let arguments = words.map(|words| match engine {
        Some(_) => loader::program_words(&words).to_vec(),
        None => words,
    });
    // As the process itself sees it, like the kernel's own link but for a root of its own.
    let path = engine.and(arguments.value()).and_then(|words| words.first());
    let path = path.filter(|path| path.starts_with('/')).cloned();
    let executable = path.map_or(executable, Present);
    let part = part(host, &stat, engine, &executable, &arguments);
    Process { stat, executable, deleted, arguments, part }
}

/// The engine of a program by the first word of its command line, or of its title.
fn loaded_engine<T: AsRef<str>>(words: &[T]) -> Option<&'static Engine> {
    catalogue::by_program(base(first_word(words.first()?.as_ref())))
}

/// The command line of an engine's program without those words that are the loader's.
fn without_loader(words: Vec<String>) -> Vec<String> {
    let is_loaded = words.first().is_some_and(|first| loader::is_loader(first));
    let program = if is_loaded { loader::program_words(&words) } else { &[] };
    if loaded_engine(program).is_some() { program.to_vec() } else { words }
}

/// What is kept of a loader's command line: that of an engine's program, behind the loader's own name; of
/// other programs none.
fn keep_of_loaded(line: &str) -> String {
    let words: Vec<&str> = line.split('\0').filter(|word| !word.is_empty()).collect();
    let program = loader::program_words(&words);
    let itself = first_argument(line);
    match loaded_engine(program) {
        Some(_) => format!("{itself}\0{}", title::shorten(program.join("\0"))),
        None => itself.to_owned(),
    }
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
