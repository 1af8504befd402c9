//! No plan does harm: on hosts by chance, what each plan makes of its host is worked out here by itself,
//! from the steps and texts that a user would get, and the lint finds each harm that is put into a plan.

#![expect(clippy::unwrap_used, reason = "a test's helpers panic as the test does")]

mod support;

use std::collections::BTreeMap;
use support::hosts::{Made, made};
use support::{gap, host, postgres, snapshot};
use untax_core::Reading::Present;
use untax_core::database::{Cgroup, CpuLimit, HugetlbLimit};
use untax_core::plan::{Effect, Plan, Step, Target};
use untax_core::{Bytes, Database, Seconds, Snapshot};
use untax_remedies::{PlanError, harms};

#[test]
fn no_plan_does_harm() {
    try_hosts(0..2_000);
}

#[test]
#[ignore = "long: a hundred thousand hosts"]
fn no_plan_does_harm_on_a_hundred_thousand_hosts() {
    try_hosts(2_000..102_000);
}

fn try_hosts(seeds: std::ops::Range<u64>) {
    let mut seen = Seen::default();
    for seed in seeds {
        let made = made(seed);
        let plan =
            untax_remedies::plan("a-plan".to_owned(), &made.check, &made.snapshot, &made.wish);
        // Of a host whose sizes could not be read none can be chosen.
        if matches!(plan, Err(PlanError::NoSuchPage { .. })) {
            continue;
        }
        let plan = plan.map_err(|error| format!("host {seed}: {error}")).unwrap();
        for text in
            [pools(&made, &plan), boot(&made, &plan), limits(&made, &plan), words(&made, &plan)]
        {
            assert_eq!(text, None, "host {seed}: {plan:#?}");
        }
        seen.count(&plan);
    }
    seen.demand_all();
}

/// What plans had in them: a property of plans that are empty is none.
#[derive(Default, Debug)]
struct Seen {
    pools: u64,
    sysctls: u64,
    boot_words: u64,
    limits: u64,
    handed: u64,
    refusals: u64,
}

impl Seen {
    fn count(&mut self, plan: &Plan) {
        let any = |is: &dyn Fn(&Step) -> bool| u64::from(plan.steps.iter().any(is));
        self.pools += any(&|step| matches!(step.target, Target::Pool { .. }));
        self.sysctls += any(&|step| step.to.iter().any(|to| to.contains("vm.nr_hugepages")));
        self.boot_words += any(&|step| step.to.iter().any(|to| to.contains("hugepagesz=")));
        self.limits += any(&|step| matches!(step.target, Target::Value { .. }));
        let handed = |(_, text): &(String, String)| text.contains("hugepage");
        self.handed += u64::from(plan.tasks.iter().filter_map(|t| t.file.as_ref()).any(handed));
        self.refusals += u64::from(plan.warnings.iter().any(|w| w.id == "boot-overcommit"));
    }

    fn demand_all(&self) {
        let Self { pools, sysctls, boot_words, limits, handed, refusals } = *self;
        for count in [pools, sysctls, boot_words, limits, handed, refusals] {
            assert!(count >= 15, "such plans are hardly tried: {self:?}");
        }
    }
}

/// A plain host whose plan does no harm, with a pool, nested limits and a PostgreSQL of this version; and
/// the plan.
fn harmless(version: &str) -> (Snapshot, Plan) {
    let mut host = host("debian", "12", Present("grub".to_owned()), "");
    let Present(pools) = &mut host.hugepages else { unreachable!() };
    for pool in pools.iter_mut().filter(|pool| pool.size_bytes == Bytes::MIB_2) {
        let pages = if pool.node.is_none() { 100 } else { 50 };
        (pool.total, pool.free) = (Present(pages), Present(0));
    }
    let mut database = postgres(Bytes::from_mib(1536));
    database.version = Present(version.to_owned());
    let limit = |group: &str, cpus| CpuLimit {
        cgroup: group.to_owned(),
        cpus,
        period_s: Seconds(0.1),
        periods: gap(),
        throttled_periods: gap(),
    };
    database.cgroup = Present(Cgroup {
        cpu: Present(vec![limit("/a/b", 2.0), limit("/a", 3.0)]),
        ..Cgroup::unknown([("unified".to_owned(), "/a/b".to_owned())].into(), "not read")
    });
    let snapshot = snapshot(host, vec![database]);
    let plan = support::plan(&snapshot, "2m");
    (snapshot, plan)
}

fn step(target: Target, from: Option<&str>, to: &str) -> Step {
    Step {
        id: "a-step".to_owned(),
        remedy: "a-remedy".to_owned(),
        summary: String::new(),
        databases: vec!["postgres:4012".to_owned()],
        target,
        from: from.map(str::to_owned),
        to: Some(to.to_owned()),
        refresh: Vec::new(),
        effect: Effect::Now,
    }
}

#[test]
fn the_lint_finds_each_harm() {
    let pool = |directory: &str, to| {
        let directory = format!("{directory}/hugepages/hugepages-2048kB");
        step(Target::Pool { directory }, Some("50"), to)
    };
    let node = |to| pool("/sys/devices/system/node/node0", to);
    let file = |text: &str| step(Target::File { file: "/etc/x".to_owned() }, None, text);
    let cpu = |group: &str, from, to| {
        let file = format!("/sys/fs/cgroup{group}/cpu.max");
        step(Target::Value { file }, Some(from), to)
    };
    let disk = |group: &str| {
        let file = format!("/sys/fs/cgroup{group}/io.max");
        step(Target::DeviceLimit { file, device: "8:0".to_owned() }, None, "wbps=1")
    };
    let (snapshot, plan) = harmless("13.16");
    assert_eq!(harms(&plan, &snapshot), Vec::<String>::new());
    for (step, harm) in [
        (node("49"), "made smaller"),
        (node("none"), "made smaller"),
        (node("9999"), "on node 0, which has 12 GiB"),
        (pool("/sys/devices/system/node/node7", "51"), "this host has no pool"),
        (pool("/sys/kernel/mm", "20000"), "on this host, which has 24 GiB"),
        (file("vm.nr_hugepages = 99\n"), "fewer pages of 2 MiB at boot than there are"),
        (file("vm.nr_hugepages = 99999\n"), "195 GiB of huge pages at boot"),
        (file("GRUB=\"hugepagesz=1G hugepages=900\"\n"), "900 GiB of huge pages at boot"),
        (file("GRUB=\"default_hugepagesz=1G\"\n"), "another default size"),
        (cpu("/a", "300000 100000", "100000 100000"), "a limit is lowered"),
        (cpu("/a", "300000 100000", "many"), "a number that is not known"),
        (cpu("/a", "300000 100000", "max 100000"), "cpu.max of /a/b stays in the way"),
        (disk("/a"), "a database may be in this group"),
        (
            step(Target::Block { file: "/etc/pg.conf".to_owned() }, None, "huge_page_size = 2MB\n"),
            "huge_page_size",
        ),
    ] {
        let plan = Plan { steps: vec![step], ..plan.clone() };
        let found = harms(&plan, &snapshot);
        assert!(found.iter().any(|found| found.contains(harm)), "{harm}: {found:?}");
    }
}

#[test]
fn the_lint_finds_what_is_missing() {
    let (mut snapshot, plan) = harmless("15.8");
    let Present(cgroup) = &mut snapshot.databases[0].cgroup else { unreachable!() };
    cgroup.hugetlb = Present(vec![HugetlbLimit {
        cgroup: "/a".to_owned(),
        size_bytes: Bytes::MIB_2,
        max_bytes: Present(Bytes(0)),
        rsvd_max_bytes: gap(),
        usage_bytes: gap(),
    }]);
    assert!(harms(&plan, &snapshot)[0].contains("insist on pages that /a forbids"));
    let Present(memory) = &mut snapshot.host.memory else { unreachable!() };
    memory.default_huge_page_bytes = gap();
    assert!(harms(&plan, &snapshot).iter().any(|harm| harm.contains("a size that is not known")));
    snapshot.host.memory = gap();
    assert!(harms(&plan, &snapshot).iter().any(|harm| harm.contains("whose memory is not known")));
}

fn configured(pool: &untax_core::host::Pool) -> u64 {
    pool.total.value().unwrap_or(&0).saturating_sub(*pool.surplus.value().unwrap_or(&0))
}

fn number(text: Option<&String>) -> u64 {
    text.unwrap().trim().parse().unwrap()
}

/// Pages that a database needs of a size, where that is known.
fn need(database: &Database, size: Bytes) -> Option<u64> {
    let asked = database.huge_pages.value()?;
    let lengths = asked.lengths_bytes.iter().map(|length| length.0.div_ceil(size.0));
    (!asked.lengths_bytes.is_empty()).then(|| lengths.sum())
}

/// Pools grow, where there is memory, by what is needed at most, and leave a tenth of it.
fn pools(made: &Made, plan: &Plan) -> Option<String> {
    let host = &made.snapshot.host;
    let steps = plan.steps.iter().filter_map(|step| match &step.target {
        Target::Pool { directory } => Some((step, directory)),
        _ => None,
    });
    let mut grown: BTreeMap<Option<u32>, u64> = BTreeMap::new();
    let mut more = 0;
    let mut size = Bytes(0);
    for (step, directory) in steps {
        let pools = host.hugepages.value()?;
        let pool = pools.iter().find(|pool| {
            let name = format!("hugepages-{}kB", pool.size_bytes.0 >> 10);
            let folder = match pool.node {
                Some(node) => format!("/sys/devices/system/node/node{node}/hugepages/{name}"),
                None => format!("/sys/kernel/mm/hugepages/{name}"),
            };
            folder == *directory
        });
        let Some(pool) = pool else { return Some(format!("no pool {directory}")) };
        let (from, to) = (configured(pool), number(step.to.as_ref()));
        if to <= from {
            return Some(format!("{directory} does not grow: {from} to {to}"));
        }
        *grown.entry(pool.node).or_default() += to - from;
        more += to - from;
        size = pool.size_bytes;
    }
    if more == 0 {
        return None;
    }
    let all: Option<u64> = made.snapshot.databases.iter().map(|d| need(d, size).or(Some(0))).sum();
    // The server may need a page more than its mapping is long; and pages that are in use beyond the
    // configured number are in use.
    let pools = host.hugepages.value()?.iter();
    let mut pools = pools.filter(|pool| pool.node.is_none() && pool.size_bytes == size);
    let surplus = pools.next().and_then(|pool| pool.surplus.value().copied()).unwrap_or_default();
    let spare = made.snapshot.databases.len() as u64 + surplus;
    if more > all? + spare {
        return Some(format!("{more} pages more, for a need of {all:?}"));
    }
    for (node, pages) in &grown {
        let memory = match node {
            None => host.memory.value().map(|memory| memory.total_bytes),
            Some(node) => {
                host.numa.value()?.iter().find(|n| n.node == *node)?.total_bytes.value().copied()
            }
        };
        let Some(memory) = memory else { return Some("memory that is not known".to_owned()) };
        let here = host.hugepages.value()?.iter().filter(|pool| pool.node == *node);
        let taken: u64 = here.filter_map(|p| Some(p.total.value()? * p.size_bytes.0)).sum();
        if taken + pages * size.0 > memory.0 / 10 * 9 + 10 {
            return Some(format!("{pages} pages of {size} beside {taken} on {node:?} of {memory}"));
        }
    }
    None
}

/// A boot with the plan has no fewer pages of any size than there are or were asked for, and leaves a
/// tenth of the memory.
fn boot(made: &Made, plan: &Plan) -> Option<String> {
    let snapshot = &made.snapshot;
    let files = plan.steps.iter().filter(|step| step.remedy == "hugepage-boot");
    let files = files.filter_map(|step| step.to.clone());
    let tasks = plan.tasks.iter().filter(|task| task.remedy == "hugepage-boot");
    let tasks = tasks.filter_map(|task| Some(task.file.clone()?.1));
    for text in files.chain(tasks) {
        let asked = booted(&text, snapshot);
        let Some(asked) = asked else { return Some(format!("of no known size: {text}")) };
        let total = snapshot.host.memory.value()?.total_bytes;
        let bytes: u64 = asked.iter().map(|(size, pages)| size.saturating_mul(*pages)).sum();
        if bytes > total.0 / 10 * 9 + 10 {
            return Some(format!("{bytes} of {total} at boot: {text}"));
        }
        for pool in snapshot.host.hugepages.value()?.iter().filter(|pool| pool.node.is_none()) {
            let size = pool.size_bytes.0;
            let planned =
                plan.sizing.node.advice.page == untax_core::page_size::token(pool.size_bytes);
            let pages = asked.get(&size).copied().unwrap_or(0);
            if planned && pages < configured(pool) {
                return Some(format!("{pages} pages of {size}, there are {}", configured(pool)));
            }
        }
    }
    None
}

/// The pools of a boot with this text, by size, as the kernel makes them.
fn booted(text: &str, snapshot: &Snapshot) -> Option<BTreeMap<u64, u64>> {
    let default = snapshot.default_huge_page().map(|size| size.0);
    let mut asked = BTreeMap::new();
    let mut size = default;
    let text: String =
        text.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect();
    let words = text.split(|c: char| c.is_whitespace() || "\"'[]{}".contains(c));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    for (at, word) in words.iter().enumerate() {
        let value = || words[at + 1..].iter().find_map(|word| word.parse::<u64>().ok());
        match word.split_once('=') {
            Some(("hugepagesz" | "default_hugepagesz", name)) if !name.contains('[') => {
                size = untax_core::page_size::parse(name).map(|size| size.0);
            }
            Some(("hugepages", count)) if count.starts_with(|c: char| c.is_ascii_digit()) => {
                let parts = count.split(',').map(|part| part.rsplit(':').next().unwrap());
                let pages: u64 = parts.map(|part| part.parse::<u64>().unwrap()).sum();
                *asked.entry(size?).or_default() += pages;
            }
            // Bottlerocket's ways.
            None if *word == "hugepagesz" => {
                size = untax_core::page_size::parse(words[at + 2]).map(|size| size.0);
            }
            None if *word == "hugepages" => *asked.entry(size?).or_default() += value()?,
            None if word.ends_with('i') && words.get(at + 2) == Some(&"count") => {
                let size = untax_core::page_size::parse(word.trim_end_matches('i'))?;
                *asked.entry(size.0).or_default() += value()?;
            }
            _ if word.trim_end_matches(':').ends_with("vm.nr_hugepages") => {
                *asked.entry(default?).or_default() += value()?;
            }
            _ => {}
        }
    }
    Some(asked)
}

/// The steps that set a value in a file whose path ends so.
fn values<'a>(plan: &'a Plan, end: &str) -> std::vec::IntoIter<&'a Step> {
    let is = |step: &&Step| match &step.target {
        Target::Value { file } => file.ends_with(end),
        _ => false,
    };
    plan.steps.iter().filter(is).collect::<Vec<_>>().into_iter()
}

/// No limit goes down, and a raised one is not left below another.
fn limits(made: &Made, plan: &Plan) -> Option<String> {
    let of = |end: &str| values(plan, end);
    let value = |text: Option<&String>| -> f64 {
        let text = text.unwrap();
        let mut parts = text.split(' ');
        let first = parts.next().unwrap().parse().unwrap_or(f64::INFINITY);
        parts.next().map_or(first, |period| first / period.parse::<f64>().unwrap())
    };
    let lowered = of("cpu.max").chain(of("memory.max")).chain(of("memory.high"));
    for step in lowered {
        if value(step.to.as_ref()) < value(step.from.as_ref()) {
            return Some(format!("{} goes down", step.id));
        }
    }
    for database in &made.snapshot.databases {
        let Some(cgroup) = database.cgroup.value() else { continue };
        let for_it = |step: &&Step| step.databases.contains(&database.id);
        let limits: Vec<_> = cgroup.cpu.value().into_iter().flatten().collect();
        let after = |group: &str, now: f64| {
            let steps = of(&format!("{group}/cpu.max")).map(|step| value(step.to.as_ref()));
            steps.reduce(f64::max).unwrap_or(now)
        };
        let lowest = limits.iter().min_by(|a, b| a.cpus.total_cmp(&b.cpus));
        if let Some(lowest) = lowest.filter(|_| of("cpu.max").any(|step| for_it(&step))) {
            let own = lowest.cgroup.contains("own-");
            let machine = made.snapshot.host.cpu.value().map_or(1e9, |cpu| f64::from(cpu.logical));
            let wanted = after(&lowest.cgroup, lowest.cpus);
            let used = wanted.min(machine);
            let low = limits.iter().find(|limit| own && after(&limit.cgroup, limit.cpus) < used);
            // A limit above the machine's CPUs limits nobody.
            let is_in_way = wanted <= lowest.cpus && lowest.cpus < machine;
            if is_in_way || low.is_some() {
                return Some(format!("{lowest:?} goes to {wanted}, {low:?} stays"));
            }
        }
        let wanted = of("memory.max").chain(of("memory.high")).filter(for_it);
        let wanted = wanted.map(|step| value(step.to.as_ref())).reduce(f64::max);
        for group in cgroup.memory.value().into_iter().flatten() {
            for (name, now) in
                [("memory.max", &group.max_bytes), ("memory.high", &group.high_bytes)]
            {
                let Some(now) = now.value() else { continue };
                let file = format!("{}/{name}", group.cgroup);
                // Where two databases want it otherwise, the plan is refused.
                let steps = of(&file).map(|step| value(step.to.as_ref()));
                let after = steps.reduce(f64::max).unwrap_or(now.0 as f64);
                if wanted.is_some_and(|wanted| after < wanted) {
                    return Some(format!("{file} stays at {after}, {wanted:?} are wanted"));
                }
            }
        }
    }
    None
}

/// What only some versions know is told to those alone.
fn words(made: &Made, plan: &Plan) -> Option<String> {
    let old = |database: &Database, first: &[u32]| {
        let version = database.version.value().map(String::as_str).unwrap_or_default();
        let numbers = version.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
        numbers.collect::<Vec<_>>().as_slice() < first
    };
    let texts =
        plan.tasks.iter().filter_map(|task| Some((&task.databases, &task.file.as_ref()?.1)));
    let blocks = plan.steps.iter().filter_map(|step| Some((&step.databases, step.to.as_ref()?)));
    for (ids, text) in texts.chain(blocks) {
        for database in made.snapshot.databases.iter().filter(|database| ids.contains(&database.id))
        {
            let is_for = |engine, word, first: &[u32]| {
                text.contains(word) && (database.engine != engine || old(database, first))
            };
            let wrong = is_for("postgres", "huge_page_size =", &[14])
                || is_for("redis", "disable-thp", &[6, 2])
                || is_for("redis", "io-threads", &[6])
                || is_for("oracle", "use_large_pages =", &[11, 2, 0, 2]);
            if wrong {
                return Some(format!("{} {:?}: {text}", database.id, database.version));
            }
        }
    }
    None
}
