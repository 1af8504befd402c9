//! `hugepage-boot`: the same pool after every boot.
//!
//! Pages of the kernel's default size are asked for by a file in `/etc/sysctl.d`: it is read
//! before any database starts, when nearly all memory is still free and in one piece; it is the
//! same on every distribution; it leaves the boot loader alone, so that no mistake can keep a
//! machine from booting; and one removed file undoes it. It cannot name NUMA nodes (the kernel
//! spreads the pages evenly over those that have memory) or another size of page. So the kernel's
//! command line is used for other sizes; for nodes with unlike pools; and where the command line
//! asks for pages of this size already, because two places would contradict each other.

use super::boot_loader::{self, Change, REMEDY_ID};
use crate::case::Case;
use crate::pool_plan::{Place, PoolPlan};
use crate::remedies::directives::names_its_page_size;
use crate::remedy::{Draft, Remedy};
use crate::sizing::POOL_SHARE;
use untax_core::Bytes;
use untax_core::boot::{Arguments, by_node, huge_page_words};
use untax_core::host::Kernel;
use untax_core::plan::{Effect, Step, Target, Warning};

pub const REMEDY: Remedy = Remedy {
    id: REMEDY_ID,
    summary: "the number of huge pages after every boot, on each NUMA node that has memory",
    answers: &["hugepage-pool"],
    plan,
};

/// `/etc/sysctl.conf` is read last where it is linked from here; its line would win.
pub const DROP_IN: &str = "/etc/sysctl.d/90-untax-hugepages.conf";

/// The first kernel that takes `hugepages=0:8,1:8` (commit b5389086ad7b).
const COUNTS_BY_NODE: (u32, u32) = (5, 16);

/// An even spread is as good as one by memory where no node differs by more than this share.
const ALIKE: f64 = 0.05;

/// The pool as it is to be.
struct Wanted {
    page: Bytes,
    /// Pages of each node that has some; one count without a node where the nodes are not known.
    counts: Vec<(Option<u32>, u64)>,
}

fn plan(case: &Case) -> Draft {
    if case.wants_no_pool() {
        return Draft::default();
    }
    let (page, places) = match (case.page(), PoolPlan::of(case)) {
        // A pool that is large enough came from somewhere.
        (Some(page), PoolPlan::Wanted(places)) if places.iter().any(|p| p.to > p.now) => {
            (page, places)
        }
        (_, PoolPlan::TooLarge { more, room }) => return refused(too_large(more, room)),
        _ => return Draft::default(),
    };
    let Some(kernel) = case.snapshot.host.kernel.value() else { return Draft::default() };
    let words = match kernel.parameters.value() {
        Some(parameters) => huge_page_words(parameters.iter().map(String::as_str)),
        None => Vec::new(),
    };
    let default = case.snapshot.default_huge_page();
    // A count that no size stands before is of the default size: without that it cannot be kept.
    if default.is_none() && !words.is_empty() {
        return Draft::default();
    }
    let before = Arguments::parse(&words, default);
    let wanted = Wanted::new(page, &places, before.count(page));
    let mut after = before.clone();
    if default != Some(page) && !case.concerned().all(names_its_page_size) {
        after.default = Some(page);
        if let Some(warning) = taken_by_default(case, page, default) {
            return refused(warning);
        }
    }
    let spread = wanted.is_even() || !counts_by_node(kernel);
    let by_sysctl = default == Some(page) && before.count(page).is_none();
    if spread && by_sysctl && !boot_loader::is_elsewhere(case) {
        let warnings = warnings(case, &wanted, &before, &after);
        return Draft { steps: vec![sysctl(case, &wanted)], warnings, ..Draft::default() };
    }
    if !wanted.is_asked_for(before.count(page)) {
        after.set(page, wanted.count(kernel));
    }
    if after == before {
        return Draft::default();
    }
    if let Some(warning) = overcommit(case, &after) {
        return refused(warning);
    }
    let change = Change { page, pages: wanted.total(), default, words: &words, after: &after };
    let mut draft = if kernel.parameters.is_present() {
        boot_loader::draft(case, &change)
    } else {
        boot_loader::by_hand(case, &change)
    };
    draft.warnings = warnings(case, &wanted, &before, &after);
    draft
}

impl Wanted {
    /// What the plan wants, and no less than the command line asks for already.
    fn new(page: Bytes, places: &[Place], asked: Option<&str>) -> Self {
        let counts = places.iter().map(|place| (place.pool.node, place.to));
        let mut counts: Vec<(Option<u32>, u64)> = counts.filter(|(_, pages)| *pages > 0).collect();
        for (node, asked) in asked.into_iter().flat_map(by_node).filter(|(node, _)| node.is_some())
        {
            match counts.iter_mut().find(|(known, _)| *known == node) {
                Some((_, pages)) => *pages = asked.max(*pages),
                None => counts.push((node, asked)),
            }
        }
        counts.sort_unstable();
        Self { page, counts }
    }

    fn total(&self) -> u64 {
        self.counts.iter().map(|(_, pages)| pages).sum()
    }

    /// Whether the kernel, which spreads a sum evenly over nodes with memory, makes nearly this of it.
    fn is_even(&self) -> bool {
        let pages = || self.counts.iter().map(|(_, pages)| *pages);
        pages().max().zip(pages().min()).is_none_or(|(most, least)| {
            most - least <= 1 || (most - least) as f64 <= most as f64 * ALIKE
        })
    }

    /// Whether a count of the command line makes the wanted pool, or a larger one, already.
    fn is_asked_for(&self, count: Option<&str>) -> bool {
        let Some(count) = count else { return self.total() == 0 };
        let asked: Vec<_> = by_node(count).collect();
        match &asked[..] {
            [(None, pages)] => *pages > self.total() || (*pages == self.total() && self.is_even()),
            nodes => self.counts.iter().all(|(node, wanted)| {
                nodes.iter().any(|(known, pages)| known == node && pages >= wanted)
            }),
        }
    }

    /// The value of `hugepages=`.
    fn count(&self, kernel: &Kernel) -> String {
        if self.counts.len() < 2 || !counts_by_node(kernel) {
            return self.total().to_string();
        }
        self.by_node()
    }

    fn by_node(&self) -> String {
        let node = |(node, pages): &(Option<u32>, u64)| format!("{}:{pages}", node.unwrap_or(0));
        self.counts.iter().map(node).collect::<Vec<_>>().join(",")
    }
}

/// Whether a kernel takes a count for each node.
pub fn counts_by_node(kernel: &Kernel) -> bool {
    let mut numbers = kernel.release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    number().zip(number()).is_some_and(|version| version >= COUNTS_BY_NODE)
}

fn sysctl(case: &Case, wanted: &Wanted) -> Step {
    let pages = wanted.total();
    let text = format!(
        "# Made by untax. A line in /etc/sysctl.conf, or in a file with a later name, would win.\n\
         vm.nr_hugepages = {pages}\n"
    );
    Step {
        id: REMEDY_ID.to_owned(),
        remedy: REMEDY_ID.to_owned(),
        summary: format!("{DROP_IN}: {pages} pages of {} after every boot", wanted.page),
        databases: case.databases(),
        target: Target::File { file: DROP_IN.to_owned() },
        from: None,
        to: Some(text),
        refresh: Vec::new(),
        effect: Effect::Reboot,
    }
}

fn refused(warning: Warning) -> Draft {
    Draft { warnings: vec![warning], ..Draft::default() }
}

fn too_large(more: Bytes, room: Bytes) -> Warning {
    Warning {
        id: "boot-overcommit".to_owned(),
        refuses: true,
        text: format!(
            "the databases need {more} of huge pages more, and this host has room for {room} beside \
             everything else: make the databases smaller, or choose fewer with --only"
        ),
    }
}

/// Why the default size cannot become another one for the sake of a database that cannot name its own:
/// what is there of the default size is somebody's.
fn taken_by_default(case: &Case, page: Bytes, default: Option<Bytes>) -> Option<Warning> {
    let pools = case.snapshot.host.hugepages.value()?.iter().filter(|pool| pool.node.is_none());
    let mut of_default = pools.filter(|pool| Some(pool.size_bytes) == default);
    let is_empty = of_default.all(|pool| pool.total.value() == Some(&0)) && default.is_some();
    let size = default.map_or_else(|| "an unknown size".to_owned(), |size| size.to_string());
    (!is_empty).then(|| Warning {
        id: "boot-default-size".to_owned(),
        refuses: true,
        text: format!(
            "a database here takes huge pages of the default size alone, {size}; {page} cannot become \
             the default while others may use that pool: plan without --page"
        ),
    })
}

fn warnings(case: &Case, wanted: &Wanted, before: &Arguments, after: &Arguments) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |id: &str, text: String| {
        warnings.push(Warning { id: id.to_owned(), refuses: false, text });
    };
    if !before.ignored.is_empty() {
        let ignored = before.ignored.join(" ");
        warn(
            "boot-arguments",
            format!("the kernel ignores {ignored} on its command line; the plan leaves it out"),
        );
    }
    if after.default != before.default {
        let default = case.snapshot.default_huge_page();
        let default = default.map(|size| format!(", not {size}")).unwrap_or_default();
        warn(
            "boot-default-size",
            format!(
                "huge pages are {} by default after the boot{default}: that concerns every program \
                 that names no size, and each vm.nr_hugepages in /etc/sysctl.conf and /etc/sysctl.d",
                wanted.page,
            ),
        );
    }
    let kernel = case.snapshot.host.kernel.value().filter(|kernel| !counts_by_node(kernel));
    if let Some(kernel) = kernel.filter(|_| !wanted.is_even()) {
        warn(
            "boot-nodes",
            format!(
                "Linux {} cannot be told pages for each NUMA node at boot: it will spread them \
                 evenly, not {}",
                kernel.release,
                wanted.by_node()
            ),
        );
    }
    warnings
}

/// A machine that reserves its memory before anything runs does not come up again.
fn overcommit(case: &Case, after: &Arguments) -> Option<Warning> {
    let total = case.snapshot.host.memory.value()?.total_bytes;
    let pools = after.pools().map(|(size, pages)| Bytes(pages.saturating_mul(size.0)));
    let pools: Bytes = pools.sum();
    (pools.0 as f64 > total.0 as f64 * POOL_SHARE).then(|| Warning {
        id: "boot-overcommit".to_owned(),
        refuses: true,
        text: format!(
            "huge pages would take {pools} of {total} at boot, and the machine might not come up: \
             make the databases smaller, or choose fewer with --only"
        ),
    })
}
