//! Finding the databases of a host and reading each.

use crate::answer::Answer;
use crate::ask::{Asker, Question};
use crate::database_view::{DatabaseView, Description};
use crate::engine::Engine;
use crate::memory::Memory;
use crate::process_table::{Process, Table};
use crate::{catalogue, counters, mappings, names, network, placement, recognition, settings};
use serde::{Deserialize, Serialize};
use untax_core::Reading::{self, Absent, Present};
use untax_core::Seconds;
use untax_core::database::{
    Cgroup, Container, Counters, Database, DatabaseMemory, Pod, ProcessRole,
};
use untax_core::host::HostFacts;
use untax_core::network::{ClientConnection, DatabaseNetwork};
use untax_core::placement::Placement;
use untax_core::snapshot::{ProcessTime, Sandbox};
use untax_host::process::{self, Stat};
use untax_host::{Host, cgroup, digest};

/// Which databases are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Selection {
    /// All that are recognised.
    All,
    /// The one that this process belongs to; a program that is not recognised is read as
    /// `generic`.
    Pid(u32),
    /// Those in the container with this id, or whose id starts so.
    Container(String),
    /// Those in a pod with one of these uids.
    Pod(Vec<String>),
}

/// A main process that was chosen, and where it sits.
struct Found {
    engine: &'static Engine,
    pid: u32,
    cgroup: Reading<Cgroup>,
    container: Option<Container>,
    pod: Option<Pod>,
}

/// What runs on a host at one moment.
pub struct Discovered {
    /// The databases that were asked for, in ascending order of pid.
    pub databases: Vec<Database>,
    /// All processes but kernel threads.
    pub processes: Vec<ProcessTime>,
    /// Workers of the kernel.
    pub kernel_workers: Vec<ProcessTime>,
    /// Sandboxes that hide what runs in them.
    pub sandboxes: Vec<Sandbox>,
}

/// Finds the databases and reads each, in ascending order of pid.
///
/// Servers are asked over their sockets, at once, by `asker` in child processes; what they refuse
/// is read from files and command lines instead. A selection that fits nothing is absent.
pub fn discover(
    host: &Host,
    facts: &HostFacts,
    selection: &Selection,
    asker: &Asker,
) -> Reading<Discovered> {
    recognition::processes(host).and_then(|table| {
        let databases = choose(host, facts, &table, selection).map(|found| {
            let clients = |found: Found| (network::clients(host, found.pid), found);
            let clients: Vec<_> = found.into_iter().map(clients).collect();
            let ask = |(clients, found): (_, Found)| {
                (asker.start(host, found.engine, found.pid), clients, found)
            };
            let questions: Vec<_> = clients.into_iter().map(ask).collect();
            // All are counted while they are asked: what one answers may take long.
            let counted = questions.into_iter().filter_map(|(question, clients, found)| {
                let view = view(host, facts, &table, &found)?;
                Some((Counted::of(&view, clients), view, found, question))
            });
            let counted: Vec<_> = counted.collect();
            let describe = |(counted, view, found, question)| read(counted, view, found, question);
            let mut databases: Vec<Database> = counted.into_iter().map(describe).collect();
            names::give(host, &mut databases);
            databases
        });
        let ticks = process::ticks_per_second(host).into_value().filter(|ticks| *ticks > 0);
        databases.map(|databases| Discovered {
            databases,
            processes: times(table.stats(), ticks, |stat| cpu_wait(host, stat)),
            kernel_workers: times(table.kernel_workers(), ticks, |_| None),
            sandboxes: table.sandboxes(ticks),
        })
    })
}

/// Asks the servers before anything is counted, and has `asker` keep their answers for the next look at this
/// host. A window that begins with that look is then no longer for a server that answers late.
pub fn ask_beforehand(host: &Host, facts: &HostFacts, selection: &Selection, asker: &Asker) {
    let Present(table) = recognition::processes(host) else { return };
    let found = choose(host, facts, &table, selection).into_value().unwrap_or_default();
    let ask = |found: &Found| Some((found.pid, asker.start(host, found.engine, found.pid)?));
    let questions: Vec<(u32, Question)> = found.iter().filter_map(ask).collect();
    for (pid, question) in questions {
        asker.keep(pid, question);
    }
}

/// Processor time of each process, and what `waited` tells; none when the length of a tick is not known.
fn times<'a>(
    stats: impl Iterator<Item = &'a Stat>,
    ticks: Option<u64>,
    waited: impl Fn(&Stat) -> Option<Seconds>,
) -> Vec<ProcessTime> {
    let seconds = |user: u64, system: u64, ticks: u64| {
        Seconds(user.saturating_add(system) as f64 / ticks as f64)
    };
    let time = |stat: &Stat, ticks: u64| ProcessTime {
        pid: stat.pid,
        started_ticks: stat.started_ticks,
        parent: stat.parent,
        name: stat.comm.clone(),
        threads: stat.threads,
        cpu_s: seconds(stat.user_ticks, stat.system_ticks, ticks),
        waited_s: waited(stat),
        ended_s: seconds(stat.children_user_ticks, stat.children_system_ticks, ticks),
        system_s: seconds(0, stat.system_ticks, ticks),
        ended_system_s: seconds(0, stat.children_system_ticks, ticks),
    };
    ticks.map_or_else(Vec::new, |ticks| stats.map(|stat| time(stat, ticks)).collect())
}

/// Each of several threads counts its own waiting. Of more than these nobody asks: that would take longer than a
/// look at all else.
const FEW_THREADS: u32 = 8;

/// How long the threads of a process were ready to run and had no CPU.
fn cpu_wait(host: &Host, stat: &Stat) -> Option<Seconds> {
    if stat.threads > FEW_THREADS {
        return None;
    }
    process::sched_time(host, stat.pid, stat.threads).into_value().map(|time| time.runnable_s)
}

fn choose(
    host: &Host,
    facts: &HostFacts,
    table: &Table,
    selection: &Selection,
) -> Reading<Vec<Found>> {
    let engine = |main| catalogue::by_id(table.get(main)?.part.as_ref()?.0);
    let found = |main| Some(place(host, facts, engine(main)?, main));
    match selection {
        Selection::All => Present(table.mains().filter_map(found).collect()),
        Selection::Pid(pid) => {
            if table.get(*pid).is_none() {
                return Absent(format!("there is no process {pid}; kernel threads do not count"));
            }
            let is_member =
                |main: &u32| engine(*main).is_some_and(|e| (e.members)(table, *main).contains(pid));
            let main = table.mains().find(is_member);
            let generic = || Some(place(host, facts, catalogue::by_id("generic")?, *pid));
            Present(main.map_or_else(generic, found).into_iter().collect())
        }
        Selection::Container(id) => {
            let inside = |f: &Found| f.container.as_ref().is_some_and(|c| c.id.starts_with(id));
            some(table.mains().filter_map(found).filter(inside), &format!("a container {id}"))
        }
        Selection::Pod(uids) => {
            let inside = |f: &Found| f.pod.as_ref().is_some_and(|pod| uids.contains(&pod.uid));
            let place = format!("a pod {}", uids.join(" or "));
            some(table.mains().filter_map(found).filter(inside), &place)
        }
    }
}

fn some(chosen: impl Iterator<Item = Found>, place: &str) -> Reading<Vec<Found>> {
    let chosen: Vec<_> = chosen.collect();
    if chosen.is_empty() {
        return Absent(format!(
            "no database that untax knows runs in {place}; name another program with --pid"
        ));
    }
    Present(chosen)
}

fn place(host: &Host, facts: &HostFacts, engine: &'static Engine, pid: u32) -> Found {
    let layout = facts.cgroup.as_ref();
    let cgroup = layout.and_then(|layout| cgroup::of_process(host, layout, pid));
    let container = cgroup.value().and_then(|own| cgroup::container_of(host, pid, own));
    let pod = cgroup.value().and_then(cgroup::pod_of);
    Found { engine, pid, cgroup, container, pod }
}

fn view<'a>(
    host: &'a Host,
    facts: &'a HostFacts,
    table: &'a Table,
    found: &Found,
) -> Option<DatabaseView<'a>> {
    let pid = found.pid;
    Some(DatabaseView {
        host,
        facts,
        table,
        main: table.get(pid)?,
        members: (found.engine.members)(table, pid),
        status: process::status(host, pid),
        cgroup: found.cgroup.clone(),
        directory: directory(host, pid),
        answer: Absent("not asked yet".to_owned()),
        settings: Absent("not read yet".to_owned()),
        memory: Memory::unread(),
    })
}

/// Where a process works, as it sees it itself. The kernel tells the path from our own root,
/// which is another one when the process was started with `chroot`.
fn directory(host: &Host, pid: u32) -> Reading<String> {
    let root = host.link(&format!("/proc/{pid}/root"));
    let root = root.into_value().filter(|root| root != "/").unwrap_or_default();
    host.link(&format!("/proc/{pid}/cwd")).map(|directory| match directory.strip_prefix(&root) {
        Some(inside) if inside.starts_with('/') => inside.to_owned(),
        _ => directory,
    })
}

/// What the kernel counts of a database.
struct Counted {
    mapped: mappings::Mapped,
    counters: Counters,
    network: Reading<DatabaseNetwork>,
    placement: Reading<Placement>,
}

impl Counted {
    fn of(view: &DatabaseView, clients: Reading<Vec<ClientConnection>>) -> Self {
        Self {
            mapped: mappings::sum_mapped(view),
            counters: counters::read(view),
            network: network::read(view, clients),
            placement: placement::read(view),
        }
    }
}

fn read(
    counted: Counted,
    mut view: DatabaseView,
    found: Found,
    question: Option<Question>,
) -> Database {
    let Counted { mapped, counters, network, placement } = counted;
    view.answer = answer(view.host, &found, question);
    view.settings = settings::choose(&view.answer, || (found.engine.settings)(&view));
    view.memory = mappings::read(&view, found.engine.single_process);
    let Description {
        product,
        version,
        model,
        connections,
        data_directory,
        data_bytes,
        page_size_bytes,
        huge_pages,
        accesses,
    } = (found.engine.describe)(&view);
    let told = view.answer.as_ref().map(|answer| answer.counts.clone());
    let moment = view.answer.value().and_then(|answer| answer.told_at_us);
    let told_at_s = moment.map(|us| us as f64 / 1e6);
    let living = || view.processes().filter(|p| !matches!(p.stat.state, 'Z' | 'X'));
    let namespaces = view.status.value().map(|s| s.namespace_pids.as_slice()).unwrap_or_default();
    Database {
        id: format!("{}:{}", found.engine.id, found.pid),
        name: String::new(),
        engine: found.engine.id.to_owned(),
        traits: (found.engine.traits)(),
        product,
        version,
        machine_id: machine_id(view.host, &found),
        pid: found.pid,
        started_ticks: Present(view.main.stat.started_ticks),
        executable: view.main.executable.clone(),
        executable_deleted: view.main.deleted.clone(),
        uid: view.status("Uid", |s| s.uid),
        allowed_cpus: view.status("Cpus_allowed_list", |s| s.allowed_cpus.clone()),
        namespace_pid: namespaces.get(1..).and_then(<[u32]>::last).copied(),
        model,
        pids: living().map(|p| p.stat.pid).collect(),
        roles: living().filter_map(|p| Some((p.stat.pid, role_of(found.engine, p)?))).collect(),
        threads: Present(living().map(|p| p.stat.threads).fold(0, u32::saturating_add)),
        connections,
        container: found.container,
        pod: found.pod,
        cgroup: found.cgroup,
        data_directory,
        places: (found.engine.places)(&view),
        memory: DatabaseMemory {
            shared_bytes: data_bytes,
            page_size_bytes,
            page_table_bytes: mapped.page_table_bytes,
            mapped_shared_bytes: mapped.mapped_shared_bytes,
            resident_bytes: view.status("VmRSS", |s| s.resident),
            hugetlb_bytes: view.status("HugetlbPages", |s| s.hugetlb),
            anon_huge_bytes: view.memory.anon_huge_bytes.clone(),
            thp_allowed: view.status("THP_enabled", |s| s.thp_enabled),
            segments: view.memory.segments.clone(),
        },
        huge_pages,
        settings: view.settings.clone(),
        counters: Counters { told_at_s, accesses, told, ..counters },
        network,
        placement,
    }
}

fn role_of(engine: &Engine, process: &Process) -> Option<ProcessRole> {
    (engine.process_role)(process.arguments.value()?.first()?)
}

/// As the database's container sees it.
fn machine_id(host: &Host, found: &Found) -> Reading<String> {
    match found.container {
        Some(_) => digest::machine_id_of(host, found.pid),
        None => Absent("it is in no container and sees the host's own files".to_owned()),
    }
}

fn answer(host: &Host, found: &Found, question: Option<Question>) -> Reading<Answer> {
    let silent = || Absent(format!("{} is not asked over its socket", found.engine.summary));
    if found.engine.asking.is_none() {
        return silent();
    }
    let key = format!("ask:{}:{}", found.engine.id, found.pid);
    host.observe(&key, || question.map_or_else(silent, Question::finish))
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_host::Record;

    #[test]
    fn a_line_that_is_cut_off_does_not_tell_how_long_it_waited() {
        let line = "7 (x) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0\n";
        let stat = process::parse_stat(line).unwrap();
        let waited = |text: &str| {
            let record = Record::default().with_file("/proc/7/schedstat", text);
            cpu_wait(&Host::from_record(record), &stat)
        };
        assert_eq!(waited("2000000000 500000000 7\n"), Some(Seconds(0.5)));
        assert_eq!(waited("2000000000 5"), None);
    }
}
