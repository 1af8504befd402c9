//! Limits of control groups on huge pages, against what a database has mapped or will map.

use crate::model::huge_pages::{base_page, pool, unreserved_pages};
use untax_core::database::{HugetlbLimit, Segment};
use untax_core::host::HostFacts;
use untax_core::{Bytes, Database, Reading};

/// The huge pages that a database has mapped, or will map when it is started again.
pub struct Need {
    /// The size of one page.
    pub size: Bytes,
    /// All of them.
    pub bytes: Bytes,
    /// Whether they are mapped now.
    pub mapped: bool,
    /// Where that was read.
    pub source: String,
}

/// A limit that is too low for a need.
pub struct Broken {
    /// The group.
    pub cgroup: String,
    /// The end of the file's name: `max`, or `rsvd.max`.
    pub file: &'static str,
    /// The limit.
    pub limit: Bytes,
    /// What its group has touched.
    pub usage: Option<Bytes>,
}

/// What a limit that is too low does to a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Harm {
    /// Its pages are mapped: the next one that it touches too many kills it.
    Killed,
    /// It maps its pages when it is started again, and is killed then.
    KilledAtNextStart,
    /// Its mapping is refused, or there are too few pages for it: it stays on base pages.
    StaysSmall,
    /// This host has no such pages that it could miss.
    None,
}

impl Need {
    /// What a database has mapped, or asks for.
    pub fn of(host: &HostFacts, database: &Database) -> Option<Self> {
        let mapped = mapped(host, database);
        if mapped.is_some() {
            return mapped;
        }
        let asked = database.huge_pages.value().filter(|asked| asked.asked != "off")?;
        let size = *asked.size_bytes.value()?;
        let bytes = Bytes(asked.needed_pages.value()?.saturating_mul(size.0));
        Some(Self { size, bytes, mapped: false, source: asked.source.clone() })
    }

    /// The limit that speaks first, of those from its own group up. A mapping that one of them refuses
    /// is never touched, so that limits on reservations speak before those on touched pages.
    pub fn broken(&self, limits: &[HugetlbLimit]) -> Option<Broken> {
        let own = self.own(limits)?;
        let reserved = self
            .limits(limits)
            .filter(|_| !self.mapped)
            .find_map(|limit| self.exceeds(limit, own, "rsvd.max", limit.rsvd_max_bytes.value()));
        let touched = || {
            self.limits(limits)
                .find_map(|limit| self.exceeds(limit, own, "max", limit.max_bytes.value()))
        };
        reserved.or_else(touched)
    }

    fn limits<'a>(
        &self,
        limits: &'a [HugetlbLimit],
    ) -> impl Iterator<Item = &'a HugetlbLimit> + use<'a> {
        let size = self.size;
        limits.iter().filter(move |limit| limit.size_bytes == size)
    }

    fn own<'a>(&self, limits: &'a [HugetlbLimit]) -> Option<&'a HugetlbLimit> {
        self.limits(limits).next()
    }

    /// Where what others have touched is not known it may be nothing.
    fn exceeds(
        &self,
        limit: &HugetlbLimit,
        own: &HugetlbLimit,
        file: &'static str,
        max: Option<&Bytes>,
    ) -> Option<Broken> {
        let others = others(limit, own).into_value().unwrap_or_default();
        let max = *max?;
        (others + self.bytes > max).then(|| Broken {
            cgroup: limit.cgroup.clone(),
            file,
            limit: max,
            usage: limit.usage_bytes.value().copied(),
        })
    }

    /// Why it is not known whether a limit is broken; `None` where it is known.
    pub fn unknown(&self, limits: &[HugetlbLimit]) -> Option<String> {
        let own = self.own(limits)?;
        self.limits(limits).find_map(|limit| {
            let reserved = Some(&limit.rsvd_max_bytes).filter(|_| !self.mapped);
            let mut all = std::iter::once(&limit.max_bytes).chain(reserved);
            let max = all.find(|max| !matches!(max, Reading::Absent(_)))?;
            max.why().or_else(|| others(limit, own).why())
        })
    }

    /// What a broken limit does to the database.
    pub fn harm(&self, host: &HostFacts, database: &Database, broken: &Broken) -> Harm {
        if self.mapped {
            return Harm::Killed;
        }
        let pool = pool(host, self.size);
        if pool.and_then(|pool| pool.total.value()) == Some(&0) {
            return Harm::None;
        }
        let is_on = database.huge_pages.value().is_some_and(|asked| asked.asked == "on");
        let free = pool.and_then(unreserved_pages);
        let fits = free.is_some_and(|free| Bytes(free.saturating_mul(self.size.0)) >= self.bytes);
        if broken.file == "max" && (is_on || fits) {
            Harm::KilledAtNextStart
        } else {
            Harm::StaysSmall
        }
    }
}

/// What comes of the limit that keeps a database from the huge pages that it needs; none where no limit does.
pub fn harm_of_limit(host: &HostFacts, database: &Database) -> Option<Harm> {
    let need = Need::of(host, database)?;
    let limits = database.cgroup.value()?.hugetlb.value()?;
    Some(need.harm(host, database, &need.broken(limits)?))
}

/// Whether a limit keeps a database from huge pages that this host has for it.
pub fn is_limited(host: &HostFacts, database: &Database) -> bool {
    harm_of_limit(host, database).is_some_and(|harm| harm != Harm::None)
}

fn mapped(host: &HostFacts, database: &Database) -> Option<Need> {
    // Transparent huge pages count in no such limit.
    if database.memory.hugetlb_bytes.value() == Some(&Bytes(0)) {
        return None;
    }
    let base = base_page(host);
    let segments = database.memory.segments.value()?;
    let huge = |s: &&Segment| s.page_size_bytes.value().is_some_and(|page| *page > base);
    let size = *segments.iter().find(huge)?.page_size_bytes.value()?;
    let same = segments.iter().filter(|s| s.page_size_bytes.value() == Some(&size));
    let bytes = same.map(|s| s.bytes).sum();
    Some(Need { size, bytes, mapped: true, source: format!("/proc/{}/maps", database.pid) })
}

/// What others below a limit have touched. What the database's own group has is part of the need, and
/// of the usage of every group above.
fn others(limit: &HugetlbLimit, own: &HugetlbLimit) -> Reading<Bytes> {
    if limit.cgroup == own.cgroup {
        return Reading::Present(Bytes(0));
    }
    limit.usage_bytes.clone().and_then(|usage| own.usage_bytes.clone().map(|own| usage - own))
}
