//! The life of a BPF program: opened, configured, loaded, attached; gone with its value.

use crate::refusal;
use libbpf_rs::{
    ErrorKind, Link, MapCore, MapFlags, MapType, Object, ObjectBuilder, OpenMapMut, PrintLevel,
    ProgramInput, ProgramMut, ProgramType, libbpf_sys, num_possible_cpus,
};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::Mutex;
use untax_core::{Reading, Seconds};
use untax_host::Host;
use untax_host::facts::INITIAL_PID_NAMESPACE;

/// A compiled program.
pub(crate) struct Program {
    /// The object file.
    pub object: &'static [u8],
    /// Functions whose tracepoints some kernels lack.
    pub optional: &'static [&'static str],
    /// Functions at events that are not worth it for everybody: whoever wants them attaches them.
    pub later: &'static [&'static str],
    /// Functions with another tracepoint each, which some kernels lack as well: looked at by the
    /// verifier once for both.
    pub twins: &'static [(&'static str, &'static str)],
}

/// A program that runs; its links are removed, and it with them, when this is dropped.
pub(crate) struct Running {
    object: Object,
    /// While this is open, the kernel counts the time that programs take.
    counted: Option<OwnedFd>,
    links: Vec<(String, Link)>,
    /// Functions whose tracepoints this kernel lacks.
    missing: Vec<String>,
    /// What of its processor time was billed.
    billed: Seconds,
}

/// What libbpf said of the program that is being loaded: its errors are numbers alone.
static LOG: Mutex<String> = Mutex::new(String::new());

/// A log of the verifier's, and more, bytes.
const MOST_LOG: usize = 16 << 20;

fn append_log(_: PrintLevel, text: String) {
    if let Ok(mut said) = LOG.lock() {
        if said.len() > MOST_LOG {
            said.clear();
        }
        said.extend([text]);
    }
}

impl Program {
    /// Loads and attaches it, after `configure` saw each of its maps.
    pub fn run(
        &self,
        host: &Host,
        configure: impl Fn(&mut OpenMapMut) -> libbpf_rs::Result<()>,
    ) -> Reading<Running> {
        // It would take the host's processes for those that have the same numbers here.
        let namespace = host.link("/proc/self/ns/pid").into_value();
        if namespace.is_some_and(|namespace| namespace != INITIAL_PID_NAMESPACE) {
            let why = "untax numbers processes otherwise than the kernel; start it in the host's pid \
                       namespace (docker run --pid=host, hostPID: true)";
            return Reading::Absent(why.to_owned());
        }
        libbpf_rs::set_print(Some((PrintLevel::Warn, append_log)));
        if let Ok(mut said) = LOG.lock() {
            said.clear();
        }
        match self.load(configure) {
            Ok(running) => Reading::Present(running),
            Err(error) => {
                let said = LOG.lock().map(|said| said.clone()).unwrap_or_default();
                refusal::reading(host, &error, &said)
            }
        }
    }

    fn load(
        &self,
        configure: impl Fn(&mut OpenMapMut) -> libbpf_rs::Result<()>,
    ) -> libbpf_rs::Result<Running> {
        let mut open = ObjectBuilder::default().open_memory(self.object)?;
        for mut map in open.maps_mut() {
            make_room(&mut map)?;
            configure(&mut map)?;
        }
        let object = open.load()?;
        let counted = count_time();
        let mut running = Running {
            object,
            counted,
            links: Vec::new(),
            missing: Vec::new(),
            billed: Seconds(0.0),
        };
        let at_events = |kind| !matches!(kind, ProgramType::Syscall | ProgramType::PerfEvent);
        let later = |program: &ProgramMut| self.later.iter().any(|name| program.name() == *name);
        let at_once = |program: &ProgramMut| at_events(program.prog_type()) && !later(program);
        running.attach(at_once, self.optional)?;
        running.attach_twins(self.twins)?;
        Ok(running)
    }
}

/// How many free entries a CPU takes for itself, of a map that lets go of those used least lately: where
/// there are none left it reuses its own again and again (`LOCAL_FREE_TARGET` of the kernel).
const TAKEN_BY_CPU: u32 = 128;

/// Room for what all CPUs take.
fn make_room(map: &mut OpenMapMut) -> libbpf_rs::Result<()> {
    if map.map_type() != MapType::LruHash {
        return Ok(());
    }
    let cpus = u32::try_from(num_possible_cpus()?).unwrap_or(u32::MAX);
    let most = map.max_entries().max(cpus.saturating_mul(2 * TAKEN_BY_CPU));
    map.set_max_entries(most)
}

/// What it takes to run a program once, beyond the time that the kernel counts (ns): the way to it and
/// the clocks that count; for a sample the interrupt too, which a hypervisor may have to pass on.
/// Measured where both are dear, in a nested virtual machine: by two threads that wake each other in
/// turn, and by a loop that reads a clock and sees it stand still.
fn around_ns(kind: ProgramType) -> u64 {
    match kind {
        ProgramType::PerfEvent => 14_000,
        _ => 90,
    }
}

/// Makes the kernel count the time that programs take.
#[expect(unsafe_code, reason = "libbpf-rs has no call for it")]
fn count_time() -> Option<OwnedFd> {
    // SAFETY: takes a number, and gives a new descriptor or a negative error.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    // SAFETY: the descriptor is new, so nobody else owns it.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A clock of one CPU that ticks so many times a second, whatever runs there.
#[expect(unsafe_code, reason = "neither libbpf-rs nor rustix has this system call")]
fn cpu_clock(cpu: u32, per_s: u64) -> libbpf_rs::Result<OwnedFd> {
    let mut attributes = libbpf_sys::perf_event_attr {
        type_: libbpf_sys::PERF_TYPE_SOFTWARE,
        size: size_of::<libbpf_sys::perf_event_attr>() as u32,
        config: libbpf_sys::PERF_COUNT_SW_CPU_CLOCK.into(),
        // Of this clock the period is in nanoseconds.
        __bindgen_anon_1: libbpf_sys::perf_event_attr__bindgen_ty_1 {
            sample_period: 1_000_000_000 / per_s,
        },
        ..Default::default()
    };
    // On an idle CPU there is no thread to sample.
    attributes.set_exclude_idle(1);
    let (any_process, no_group) = (-1, -1);
    // SAFETY: the kernel reads `size` bytes of the attributes, and gives a new descriptor or -1.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            any_process,
            cpu,
            no_group,
            libbpf_sys::PERF_FLAG_FD_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    // SAFETY: the descriptor is new, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

impl Running {
    /// Attaches some of its functions; tracepoints of the `optional` ones may be missing.
    pub fn attach(
        &mut self,
        which: impl Fn(&ProgramMut) -> bool,
        optional: &[&str],
    ) -> libbpf_rs::Result<()> {
        for program in self.object.progs_mut().filter(which) {
            let name = program.name().to_string_lossy().into_owned();
            let may_be_missing = optional.contains(&name.as_str());
            match link_or_missing(name.clone(), program.attach(), may_be_missing)? {
                Some(link) => self.links.push(link),
                None => self.missing.push(name),
            }
        }
        Ok(())
    }

    fn attach_twins(&mut self, twins: &[(&str, &str)]) -> libbpf_rs::Result<()> {
        for (name, tracepoint) in twins {
            let program = self.object.progs_mut().find(|program| program.name() == *name);
            if let Some(program) = program {
                let link = program.attach_raw_tracepoint(tracepoint);
                self.links.extend(link_or_missing((*name).to_owned(), link, true)?);
            }
        }
        Ok(())
    }

    /// Runs one of its functions on each of these CPUs, so many times a second; on all or none.
    pub fn sample(
        &mut self,
        name: &str,
        cpus: impl Iterator<Item = u32>,
        per_s: u64,
    ) -> libbpf_rs::Result<()> {
        let program = self.object.progs_mut().find(|program| program.name() == name);
        let program = program.ok_or_else(|| libbpf_rs::Error::from_raw_os_error(libc::ENOENT))?;
        let link = |cpu| {
            let clock = cpu_clock(cpu, per_s)?;
            let link = program.attach_perf_event(clock.as_raw_fd())?;
            // From here on the link closes it.
            let _ = clock.into_raw_fd();
            Ok((name.to_owned(), link))
        };
        let links = cpus.map(link).collect::<libbpf_rs::Result<Vec<_>>>()?;
        self.links.extend(links);
        Ok(())
    }

    /// Whether one of its functions is attached.
    pub fn has(&self, name: &str) -> bool {
        self.links.iter().any(|(attached, _)| attached == name)
    }

    /// Whether one of its functions was to be attached and could not.
    pub fn lacks(&self, name: &str) -> bool {
        self.missing.iter().any(|missing| missing == name)
    }

    /// Detaches some of its functions.
    pub fn detach(&mut self, names: &[&str]) {
        self.links.retain(|(name, _)| !names.contains(&name.as_str()));
    }

    /// How often one of its functions ran so far, where that is counted.
    pub fn runs(&self, name: &str) -> Option<u64> {
        self.counted.as_ref()?;
        let program = self.object.progs_mut().find(|program| program.name() == name)?;
        run_time(&program).ok().map(|(_, count)| count)
    }

    /// One of its maps.
    pub fn map(&self, name: &str) -> libbpf_rs::Result<impl MapCore + '_> {
        let found = self.object.maps().find(|map| map.name() == name);
        found.ok_or_else(|| libbpf_rs::Error::from_raw_os_error(libc::ENOENT))
    }

    /// What a table holds of counts by two numbers each, and empties it.
    pub fn drain(&self, name: &str) -> libbpf_rs::Result<Vec<((u32, u32), u64)>> {
        let map = self.map(name)?;
        let mut all = Vec::new();
        let keys: Vec<Vec<u8>> = map.keys().collect();
        for key in keys {
            // An entry may give way to a newer one meanwhile.
            let Some(count) = map.lookup(&key, MapFlags::ANY)? else { continue };
            let number = |bytes: &[u8]| Some(u32::from_ne_bytes(bytes.try_into().ok()?));
            let numbers = key.get(0..4).and_then(number).zip(key.get(4..8).and_then(number));
            let count = count.get(0..8).and_then(|bytes| bytes.try_into().ok());
            all.extend(numbers.zip(count.map(u64::from_ne_bytes)));
            let _ = map.delete(&key);
        }
        Ok(all)
    }

    /// Runs one of its functions now.
    pub fn call(&self, name: &str) -> libbpf_rs::Result<()> {
        let found = self.object.progs_mut().find(|program| program.name() == name);
        let program = found.ok_or_else(|| libbpf_rs::Error::from_raw_os_error(libc::ENOENT))?;
        program.test_run(ProgramInput::default()).map(drop)
    }

    /// Processor time that its functions took since this was asked last.
    pub fn cost_since_last(&mut self) -> Reading<Seconds> {
        self.cost().map(|total| total - std::mem::replace(&mut self.billed, total))
    }

    /// Processor time that its functions took since they run, and what it took to run them.
    pub fn cost(&self) -> Reading<Seconds> {
        if self.counted.is_none() {
            let why = "the time of programs in the kernel is counted for CAP_SYS_ADMIN alone";
            return Reading::Absent(why.to_owned());
        }
        let times = self.object.progs_mut().map(|program| taken_ns(&program));
        match times.sum::<std::io::Result<u64>>() {
            Ok(total_ns) => Reading::Present(Seconds::from_ns(total_ns)),
            Err(error) => Reading::Failed(format!("what tracing costs: {error}")),
        }
    }

    /// The same of one of them.
    pub fn cost_of(&self, name: &str) -> Option<Seconds> {
        self.counted.as_ref()?;
        let program = self.object.progs_mut().find(|program| program.name() == name)?;
        taken_ns(&program).ok().map(Seconds::from_ns)
    }
}

/// Processor time that a program took, and what it took to run it, ns.
fn taken_ns(program: &ProgramMut) -> std::io::Result<u64> {
    let (time_ns, count) = run_time(program)?;
    Ok(time_ns + count * around_ns(program.prog_type()))
}

/// A link with the name of its function; none where its tracepoint is missing and may be.
fn link_or_missing(
    name: String,
    link: libbpf_rs::Result<Link>,
    may_be_missing: bool,
) -> libbpf_rs::Result<Option<(String, Link)>> {
    match link {
        Ok(link) => Ok(Some((name, link))),
        Err(error) if may_be_missing && error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// For how long the kernel ran a program so far (ns), and how often. Every kernel that counts it tells it.
#[expect(unsafe_code, reason = "libbpf-rs tells it of all programs of a machine alone")]
fn run_time(program: &ProgramMut) -> std::io::Result<(u64, u64)> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut bytes = size_of_val(&info) as u32;
    let fd = program.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `bytes` to `info`, none of whose pointers are set.
    let result = unsafe { libbpf_sys::bpf_prog_get_info_by_fd(fd, &raw mut info, &raw mut bytes) };
    if result < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok((info.run_time_ns, info.run_cnt))
}
