//! `hugepage-boot`: the same pool after every boot.
//!
//! Pages of the kernel's default size are asked for by a file in `/etc/sysctl.d`: it is read
//! before any database starts, when nearly all memory is still free and in one piece; it is the
//! same on every distribution; it leaves the boot loader alone, so that no mistake can keep a
//! machine from booting; and one removed file undoes it. It cannot name NUMA nodes (the kernel
//! spreads the pages evenly) or another size of page. So the kernel's command line is used for
//! 1 GiB pages, which in practice exist at boot only; for nodes with unlike pools; and where the
//! command line asks for pages of this size already, because two places would contradict each
//! other.

use super::boot_loader::{self, Change, REMEDY_ID};
use super::hugepage_pool::targets;
use crate::arguments::Arguments;
use crate::case::Case;
use crate::lint::POOL_SHARE;
use crate::remedy::{Draft, Remedy};
use crate::sizing::size_of;
use untax_core::boot::huge_page_words;
use untax_core::host::Kernel;
use untax_core::plan::{Effect, Step, Target, Warning};
use untax_core::{Bytes, Database};

pub const REMEDY: Remedy = Remedy {
    id: REMEDY_ID,
    summary: "the number of huge pages after every boot, on each NUMA node",
    answers: &["hugepage-pool"],
    plan,
};

/// `/etc/sysctl.conf` is read last where it is linked from here; its line would win.
const DROP_IN: &str = "/etc/sysctl.d/90-untax-hugepages.conf";

/// The first kernel that takes `hugepages=0:8,1:8` (commit b5389086ad7b).
const COUNTS_BY_NODE: (u32, u32) = (5, 16);

/// The pool as it is to be.
struct Wanted {
    page: Bytes,
    /// Pages of each node; one count without a node where the kernel tells no nodes apart.
    counts: Vec<(Option<u32>, u64)>,
}

fn plan(case: &Case) -> Draft {
    let Some(targets) = targets(case) else { return Draft::default() };
    let wanted = Wanted {
        page: size_of(&case.sizing.node.advice.page),
        counts: targets.iter().map(|(pool, to)| (pool.node, *to)).collect(),
    };
    let Some(kernel) = case.snapshot.host.kernel.value() else { return Draft::default() };
    let words = match kernel.parameters.value() {
        Some(parameters) => huge_page_words(parameters.iter().map(String::as_str)),
        None => Vec::new(),
    };
    let before = Arguments::parse(&words);
    let mut after = before.clone();
    if let Some(size) = default_wanted(case, &wanted, &before) {
        after.default = Some(size);
    }
    let spread = wanted.is_even() || !counts_by_node(kernel);
    if spread && is_by_sysctl(&wanted, &before, &after) && !boot_loader::is_elsewhere(case) {
        let warnings = warnings(case, &wanted, &before, &after);
        return Draft { steps: vec![sysctl(case, &wanted)], warnings, ..Draft::default() };
    }
    if !is_asked_for(&wanted, before.count(wanted.page)) {
        after.set(wanted.page, wanted.count(kernel));
    }
    if after == before {
        return Draft::default();
    }
    let change = Change { page: wanted.page, pages: wanted.total(), words: &words, after: &after };
    let mut draft = if kernel.parameters.is_present() {
        boot_loader::draft(case, &change)
    } else {
        boot_loader::by_hand(case, &change)
    };
    draft.warnings = warnings(case, &wanted, &before, &after);
    draft
}

impl Wanted {
    fn total(&self) -> u64 {
        self.counts.iter().map(|(_, pages)| pages).sum()
    }

    /// Whether the kernel, which spreads a sum evenly, makes this of it.
    fn is_even(&self) -> bool {
        let pages = || self.counts.iter().map(|(_, pages)| pages);
        pages().max().zip(pages().min()).is_none_or(|(most, least)| most - least <= 1)
    }

    /// The value of `hugepages=`; `None` for none.
    fn count(&self, kernel: &Kernel) -> Option<String> {
        if self.total() == 0 {
            return None;
        }
        if self.counts.len() < 2 || !counts_by_node(kernel) {
            return Some(self.total().to_string());
        }
        Some(self.by_node())
    }

    fn by_node(&self) -> String {
        let node = |(node, pages): &(Option<u32>, u64)| format!("{}:{pages}", node.unwrap_or(0));
        self.counts.iter().map(node).collect::<Vec<_>>().join(",")
    }
}

fn counts_by_node(kernel: &Kernel) -> bool {
    let mut numbers = kernel.release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    number().zip(number()).is_some_and(|version| version >= COUNTS_BY_NODE)
}

/// Whether a count of the command line makes the wanted pool already.
fn is_asked_for(wanted: &Wanted, count: Option<&str>) -> bool {
    match count {
        None => wanted.total() == 0,
        Some(count) => {
            count == wanted.by_node() || (count == wanted.total().to_string() && wanted.is_even())
        }
    }
}

fn default_size(arguments: &Arguments) -> Bytes {
    arguments.default.unwrap_or(Bytes::MIB_2)
}

fn is_by_sysctl(wanted: &Wanted, before: &Arguments, after: &Arguments) -> bool {
    wanted.page == Bytes::MIB_2
        && default_size(before) == wanted.page
        && before.count(wanted.page).is_none()
        && before.default == after.default
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

/// The kernel's default size, when it must become another one: some databases cannot name a size.
fn default_wanted(case: &Case, wanted: &Wanted, before: &Arguments) -> Option<Bytes> {
    let named = case.concerned().all(names_its_size);
    (!named && wanted.total() > 0 && default_size(before) != wanted.page).then_some(wanted.page)
}

/// Whether a database can be told which size of huge page to take: PostgreSQL from 14 on
/// (`huge_page_size`); MariaDB tries all sizes by itself. MySQL and Oracle take the default.
pub(super) fn names_its_size(database: &Database) -> bool {
    let major = || database.version.value()?.split('.').next()?.parse::<u32>().ok();
    match database.engine.as_str() {
        "postgres" => major().is_none_or(|major| major >= 14),
        "mysql" => database.product == "MariaDB",
        _ => false,
    }
}

fn warnings(case: &Case, wanted: &Wanted, before: &Arguments, after: &Arguments) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = overcommit(case, wanted, after).into_iter().collect();
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
        warn(
            "boot-default-size",
            format!(
                "huge pages are {} by default after the boot, not {}: that concerns every \
                 program that names no size",
                wanted.page,
                default_size(before)
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
fn overcommit(case: &Case, wanted: &Wanted, after: &Arguments) -> Option<Warning> {
    let total = case.snapshot.host.memory.value()?.total_bytes;
    let others = after.bytes_but(wanted.page);
    let pools = others + Bytes(wanted.total().saturating_mul(wanted.page.0));
    (pools.0 as f64 > total.0 as f64 * POOL_SHARE).then(|| Warning {
        id: "boot-overcommit".to_owned(),
        refuses: true,
        text: format!(
            "huge pages would take {pools} of {total} at boot, and the machine might not come up: \
             make the databases smaller, or choose fewer with --only"
        ),
    })
}
