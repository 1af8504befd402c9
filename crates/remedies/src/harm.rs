//! The lint against harm: what no plan may do, whatever remedies come up with. A plan that does it is not
//! handed out. Each check reads the steps and texts of the plan, and not how they were made.

mod power;

use crate::remedies::directives;
use crate::remedies::hugepage_boot::counts_by_node;
use crate::remedies::hugetlb_limit;
use crate::sizing::POOL_SHARE;
use std::collections::BTreeMap;
use untax_core::boot::{Arguments, huge_page_words};
use untax_core::database::Cgroup;
use untax_core::host::{HostFacts, Pool};
use untax_core::plan::{Plan, Step, Target, Task};
use untax_core::{Bytes, Database, Snapshot, page_size};

/// Everything harmful in a plan, in words; empty when it may be handed out.
pub fn harms(plan: &Plan, snapshot: &Snapshot) -> Vec<String> {
    let look = Look { plan, snapshot, host: &snapshot.host };
    let mut harms = look.pools();
    harms.extend(look.boot());
    harms.extend(look.limits());
    harms.extend(look.device_limits());
    harms.extend(look.directives());
    harms.extend(look.huge_page_limits());
    harms.extend(power::harms(plan, snapshot));
    harms
}

struct Look<'a> {
    plan: &'a Plan,
    snapshot: &'a Snapshot,
    host: &'a HostFacts,
}

/// A pool, by its size and its node; the host's own has none.
type Place = (Bytes, Option<u32>);

fn number(value: Option<&String>) -> Option<u64> {
    value?.trim().parse().ok()
}

impl Look<'_> {
    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.plan.steps.iter()
    }

    /// The pages that a pool has now.
    fn configured(pool: &Pool) -> Option<u64> {
        Some(pool.total.value()?.saturating_sub(*pool.surplus.value()?))
    }

    /// Pools never shrink, and all of them together leave room on the host and on each node.
    fn pools(&self) -> Vec<String> {
        let mut harms = Vec::new();
        let mut after: BTreeMap<Place, u64> = BTreeMap::new();
        for pool in self.host.hugepages.value().into_iter().flatten() {
            after.extend(pool.total.value().map(|pages| ((pool.size_bytes, pool.node), *pages)));
        }
        let mut grown = Vec::new();
        for step in self.steps() {
            let Target::Pool { directory } = &step.target else { continue };
            let known = self.host.hugepages.value().into_iter().flatten();
            let mut known = known.filter(|pool| {
                page_size::of_directory(directory) == Some((pool.size_bytes, pool.node))
            });
            let Some((pool, now)) = known.next().and_then(|p| Some((p, Self::configured(p)?)))
            else {
                harms.push(format!("{}: this host has no pool {directory}", step.id));
                continue;
            };
            let Some(to) = number(step.to.as_ref()).filter(|to| *to >= now) else {
                harms.push(format!("{}: a pool that others may use is made smaller", step.id));
                continue;
            };
            let place = (pool.size_bytes, pool.node);
            *after.entry(place).or_default() += to - now;
            // What a node gets, the host has.
            if pool.node.is_some() {
                *after.entry((pool.size_bytes, None)).or_default() += to - now;
            }
            grown.push(pool.node);
        }
        for node in grown.iter().copied().chain([None].into_iter().filter(|_| !grown.is_empty())) {
            harms.extend(self.too_much(node, &after));
        }
        harms.dedup();
        harms
    }

    fn too_much(&self, node: Option<u32>, after: &BTreeMap<Place, u64>) -> Option<String> {
        let memory = match node {
            None => self.host.memory.value().map(|memory| memory.total_bytes),
            Some(node) => {
                let mut nodes = self.host.numa.value().into_iter().flatten();
                nodes.find(|known| known.node == node)?.total_bytes.value().copied()
            }
        };
        let here = after.iter().filter(|((_, of), _)| *of == node);
        let bytes: Bytes = here.map(|((size, _), pages)| Bytes(pages.saturating_mul(size.0))).sum();
        let place = node.map_or_else(|| "this host".to_owned(), |node| format!("node {node}"));
        match memory {
            Some(memory) if bytes.0 as f64 <= memory.0 as f64 * POOL_SHARE => None,
            Some(memory) => Some(format!("pools of {bytes} on {place}, which has {memory}")),
            None => Some(format!("pools of {bytes} on {place}, whose memory is not known")),
        }
    }

    /// All texts that set something at boot: steps and what is handed over.
    fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.steps().filter(|step| {
            matches!(step.target, Target::File { .. } | Target::Block { .. } | Target::Grubby)
        });
        let files = files.filter_map(|step| Some((step.id.as_str(), step.to.as_deref()?)));
        let tasks = self.plan.tasks.iter().filter_map(|task| {
            let (name, text) = task.file.as_ref()?;
            Some((name.as_str(), text.as_str()))
        });
        files.chain(tasks)
    }

    /// Numbers of pages at boot: of a size that is known, no fewer than there are, and in all no more than
    /// memory holds.
    fn boot(&self) -> Vec<String> {
        let default = self.snapshot.default_huge_page();
        let mut harms = Vec::new();
        for (id, text) in self.texts() {
            for pages in sysctl_pages(text) {
                match default {
                    Some(size) => harms.extend(self.asked(id, &[(size, pages)])),
                    None => harms.push(format!("{id}: {pages} pages of a size that is not known")),
                }
            }
            let words = boot_words(text);
            let arguments = Arguments::parse(&words, default);
            if words.is_empty() {
                continue;
            }
            let pools: Vec<(Bytes, u64)> = arguments.pools().collect();
            harms.extend(self.asked(id, &pools));
            harms.extend(self.dropped(id, &arguments));
            let by_node = words.iter().any(|word| word.contains(':') && !self.is_given(word));
            if by_node && !self.host.kernel.value().is_some_and(counts_by_node) {
                harms.push(format!("{id}: this kernel takes no pages for each node at boot"));
            }
            let other = arguments.default.filter(|size| Some(*size) != default);
            let is_new = other.is_some() && other != self.before().default;
            if is_new && !self.is_unused(default) {
                harms.push(format!(
                    "{id}: another default size, while the pool of the default is used"
                ));
            }
        }
        harms
    }

    /// Whether nobody has pages of a size.
    fn is_unused(&self, size: Option<Bytes>) -> bool {
        let pools = self.host.hugepages.value().into_iter().flatten();
        let mut pools = pools.filter(|pool| pool.node.is_none() && Some(pool.size_bytes) == size);
        size.is_some() && pools.all(|pool| pool.total.value() == Some(&0))
    }

    /// Of a size that pools are asked for at boot, not fewer than there are; together with the pools of
    /// other sizes not more than memory holds.
    fn asked(&self, id: &str, asked: &[(Bytes, u64)]) -> Vec<String> {
        let mut harms = Vec::new();
        let pools =
            || self.host.hugepages.value().into_iter().flatten().filter(|p| p.node.is_none());
        for (size, pages) in asked {
            let now = pools().find(|pool| pool.size_bytes == *size).and_then(Self::configured);
            // What the words of another pool say is kept as it is, whatever became of it.
            let kept = self.before().pools().any(|asked| asked == (*size, *pages));
            if !kept && now.is_some_and(|now| *pages < now) {
                harms.push(format!("{id}: fewer pages of {size} at boot than there are"));
            }
        }
        let bytes: Bytes =
            asked.iter().map(|(size, pages)| Bytes(pages.saturating_mul(size.0))).sum();
        let total = self.host.memory.value().map(|memory| memory.total_bytes);
        if !total.is_some_and(|total| bytes.0 as f64 <= total.0 as f64 * POOL_SHARE) {
            harms.push(format!(
                "{id}: {bytes} of huge pages at boot, more than memory is known for"
            ));
        }
        harms
    }

    /// Whether the running kernel was given a word.
    fn is_given(&self, word: &str) -> bool {
        let kernel = self.host.kernel.value();
        let words = kernel.and_then(|kernel| kernel.parameters.value());
        words.is_some_and(|words| words.iter().any(|given| given == word))
    }

    /// What the command line of the running kernel says.
    fn before(&self) -> Arguments {
        let kernel = self.host.kernel.value();
        let words = kernel.and_then(|kernel| kernel.parameters.value()).map(Vec::as_slice);
        let words = huge_page_words(words.unwrap_or_default().iter().map(String::as_str));
        Arguments::parse(&words, self.snapshot.default_huge_page())
    }

    /// Pools that the running kernel was asked for, and the new words ask no more, or for less.
    fn dropped(&self, id: &str, after: &Arguments) -> Vec<String> {
        let of =
            |size: Bytes| after.pools().find(|(known, _)| *known == size).map_or(0, |(_, n)| n);
        let less =
            self.before().pools().filter(|(size, pages)| of(*size) < *pages).collect::<Vec<_>>();
        less.into_iter()
            .map(|(size, _)| format!("{id}: pages of {size} that were asked for at boot go"))
            .collect()
    }

    /// A limit is never lowered, and one that is raised is not left below a lower one of the same kind.
    fn limits(&self) -> Vec<String> {
        let mut harms = Vec::new();
        for step in self.steps() {
            let Target::Value { file } = &step.target else { continue };
            let Some(kind) = kind_of(file) else { continue };
            let (from, to) = (amount(step.from.as_ref()), amount(step.to.as_ref()));
            let is_lowered = match (from, to) {
                (Some(from), Some(to)) => to < from,
                _ => true,
            };
            if is_lowered {
                harms.push(format!(
                    "{}: a limit is lowered, or to a number that is not known",
                    step.id
                ));
            }
            let databases = self.snapshot.databases.iter();
            for database in databases.filter(|d| step.databases.contains(&d.id)) {
                harms.extend(self.left_below(step, kind, database));
            }
        }
        harms
    }

    /// A limit on a disk is for a neighbour, never for a group that a database is in or may be in.
    fn device_limits(&self) -> Vec<String> {
        let is_above = |folder: &str, path: &str| {
            let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
            ends.into_iter().any(|end| end > 1 && folder.ends_with(&path[..end]))
        };
        let holds = |folder: &str, database: &Database| {
            let groups = database.cgroup.value();
            groups.is_none_or(|groups| groups.paths.values().any(|path| is_above(folder, path)))
        };
        let limited = self.steps().filter_map(|step| match &step.target {
            Target::DeviceLimit { file, .. } => Some((step, file.rsplit_once('/')?.0)),
            _ => None,
        });
        let harmful = limited.filter(|(_, folder)| {
            self.snapshot.databases.iter().any(|database| holds(folder, database))
        });
        harmful.map(|(step, _)| format!("{}: a database may be in this group", step.id)).collect()
    }

    /// A limit of the database that keeps it from what a step is to give it. Its lowest limit is raised to
    /// what it wants, unless others share that: then the sum of what all want says nothing of this one.
    fn left_below(&self, step: &Step, kind: Kind, database: &Database) -> Option<String> {
        let all = limits_of(kind, database.cgroup.value()?);
        let lowest = all.iter().min_by(|a, b| a.amount.total_cmp(&b.amount))?;
        let is_shared = self.snapshot.databases.iter().any(|other| {
            let groups = other.cgroup.value().map(|cgroup| limits_of(kind, cgroup));
            let mut groups = groups.into_iter().flatten();
            other.id != database.id && groups.any(|limit| limit.group == lowest.group)
        });
        let wanted = self.raised(lowest).filter(|to| *to > lowest.amount);
        let in_way = match wanted {
            // A limit above everything there is limits nobody.
            None => Some(lowest).filter(|limit| limit.amount < self.all_there_is(kind)),
            Some(_) if is_shared => None,
            Some(to) => {
                let to = to.min(self.all_there_is(kind));
                all.iter().find(|limit| self.raised(limit).unwrap_or(limit.amount) < to)
            }
        };
        let low = in_way.filter(|limit| !self.is_handed_over(limit, database))?;
        Some(format!("{}: {} of {} stays in the way", step.id, low.names[0], low.group))
    }

    /// The most that anybody could use: a limit above it limits nobody.
    fn all_there_is(&self, kind: Kind) -> f64 {
        let all = match kind {
            Kind::Cpu => self.host.cpu.value().map(|cpu| f64::from(cpu.logical)),
            Kind::Memory => self.host.memory.value().map(|memory| memory.total_bytes.0 as f64),
        };
        all.unwrap_or(f64::MAX)
    }

    /// What the plan makes of a limit.
    fn raised(&self, limit: &Limit) -> Option<f64> {
        let is_of = |step: &&Step| {
            let Target::Value { file } = &step.target else { return false };
            limit.names.iter().any(|name| file.ends_with(&format!("{}/{name}", limit.group)))
        };
        let steps = self.steps().filter(is_of);
        steps.filter_map(|step| amount(step.to.as_ref())).reduce(f64::max)
    }

    fn is_handed_over(&self, limit: &Limit, database: &Database) -> bool {
        let tasks = self.plan.tasks.iter().filter(|task| task.databases.contains(&database.id));
        tasks.map(|task| &task.summary).any(|summary| summary.contains(limit.group))
    }

    /// A directive is for versions that have it.
    fn directives(&self) -> Vec<String> {
        let of = |ids: &[String], text: &str| -> Vec<String> {
            let databases = self.snapshot.databases.iter().filter(|d| ids.contains(&d.id));
            let unknown = databases.filter_map(|database| {
                let word = directives::unknown_in(database, text)?;
                Some(format!("{word}: {} is not known to have it", database.id))
            });
            unknown.collect()
        };
        let tasks = self.plan.tasks.iter().filter_map(|task| Some((task, task.file.as_ref()?)));
        let tasks = tasks.flat_map(|(task, (_, text))| of(&task.databases, text));
        let blocks = self.steps().filter(|step| matches!(step.target, Target::Block { .. }));
        let blocks = blocks.filter_map(|step| Some((step, step.to.as_deref()?)));
        tasks.chain(blocks.flat_map(|(step, text)| of(&step.databases, text))).collect()
    }

    /// A database that is told to insist on huge pages may have as many as it maps.
    fn huge_page_limits(&self) -> Vec<String> {
        let told = self
            .snapshot
            .databases
            .iter()
            .filter(|database| database.pod.is_none() && self.is_told_to_insist(database));
        told.filter_map(|database| {
            let page = page_size::from_token(&self.plan.sizing.node.advice.page)?;
            let sizes = self.plan.sizing.databases.iter().find(|size| size.id == database.id)?;
            let pages = *sizes.huge_pages.value()?.get(&page_size::token(page))?;
            let need = Bytes(pages.saturating_mul(page.0));
            let low = hugetlb_limit::below(database, page, need);
            let said = |group: &str| {
                let of_database = |task: &&Task| task.databases.contains(&database.id);
                let mut tasks = self.plan.tasks.iter().filter(of_database);
                tasks.any(|task| {
                    task.remedy == hugetlb_limit::REMEDY.id && task.summary.contains(group)
                })
            };
            let (limit, ..) = low.into_iter().find(|(limit, ..)| !said(&limit.cgroup))?;
            Some(format!(
                "{} is told to insist on pages that {} forbids",
                database.id, limit.cgroup
            ))
        })
        .collect()
    }

    fn is_told_to_insist(&self, database: &Database) -> bool {
        const WORDS: [&str; 3] = ["huge_pages = on", "large_pages = ON", "use_large_pages = ONLY"];
        let insists = |text: &str| WORDS.iter().any(|word| text.contains(word));
        let of = |ids: &[String]| ids.contains(&database.id);
        let tasks = self.plan.tasks.iter().filter(|task| of(&task.databases));
        let mut tasks = tasks.filter_map(|task| task.file.as_ref());
        let mut steps = self.steps().filter(|step| of(&step.databases));
        tasks.any(|(_, text)| insists(text))
            || steps.any(|step| step.to.as_deref().is_some_and(insists))
    }
}

/// What a limit is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Cpu,
    Memory,
}

fn kind_of(file: &str) -> Option<Kind> {
    match file.rsplit('/').next()? {
        "cpu.max" | "cpu.cfs_quota_us" => Some(Kind::Cpu),
        "memory.max" | "memory.high" | "memory.limit_in_bytes" => Some(Kind::Memory),
        _ => None,
    }
}

/// The number in the file of a limit: CPUs of `cpu.max`, otherwise as it stands; no limit is infinite.
fn amount(value: Option<&String>) -> Option<f64> {
    let mut parts = value?.split_whitespace();
    let first = match parts.next()? {
        "max" | "-1" => return Some(f64::INFINITY),
        number => number.parse::<f64>().ok()?,
    };
    match parts.next() {
        Some(period) => Some(first / period.parse::<f64>().ok()?),
        None => Some(first),
    }
}

/// A limit of a group, in the unit of [`amount`].
struct Limit<'a> {
    group: &'a str,
    /// The file, by its names in both versions of control groups.
    names: &'static [&'static str],
    amount: f64,
}

/// The limits of a kind that a database is under.
fn limits_of(kind: Kind, cgroup: &Cgroup) -> Vec<Limit<'_>> {
    match kind {
        Kind::Cpu => {
            let limits = cgroup.cpu.value().into_iter().flatten();
            let limits = limits.map(|limit| Limit {
                group: &limit.cgroup,
                names: &["cpu.max", "cpu.cfs_quota_us"],
                amount: limit.cpus,
            });
            limits.collect()
        }
        Kind::Memory => {
            let groups = cgroup.memory.value().into_iter().flatten();
            let both = groups.flat_map(|group| {
                let max: (&'static [&'static str], _) =
                    (&["memory.max", "memory.limit_in_bytes"], group.max_bytes.value());
                let high: (&'static [&'static str], _) =
                    (&["memory.high"], group.high_bytes.value());
                [max, high].into_iter().filter_map(|(names, bytes)| {
                    Some(Limit { group: &group.cgroup, names, amount: bytes?.0 as f64 })
                })
            });
            both.collect()
        }
    }
}

/// Numbers of pages of the default size in lines of sysctl.d, and in those made of them.
fn sysctl_pages(text: &str) -> Vec<u64> {
    const NAME: &str = "vm.nr_hugepages";
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let lines = lines.filter_map(|line| line.split_once(NAME).map(|(_, rest)| rest));
    let digits = |rest: &str| {
        let number = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        number[..end].parse().ok()
    };
    lines.filter_map(digits).collect()
}

/// Words about huge pages for a kernel's command line, among those of a text.
fn boot_words(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let words = lines.flat_map(|line| line.split([' ', '"', '\'']));
    let words = huge_page_words(words);
    // Patterns that take words out of a line are no words.
    let is_word = |word: &&str| {
        let value = untax_core::boot::parts(word).1;
        !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || ":,".contains(c))
    };
    words.into_iter().filter(is_word).collect()
}
