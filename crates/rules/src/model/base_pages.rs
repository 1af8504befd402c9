//! What it costs a database that its data is on base pages: page faults of new processes, and page walks.

use crate::model::accounting::Demand;
use crate::model::cpu_cost::CpuCost;
use crate::model::huge_pages::on_base_pages;
use crate::model::{page_faults, page_walks};
use untax_core::database::{Model, PoolUse};
use untax_core::window::Pair;
use untax_core::{Bytes, Interval, Reading, Window};

/// Shared memory smaller than this gains nothing that could be told from noise: the second-level
/// TLB of any current server processor reaches 4 to 12 MiB with 4 KiB pages.
const WORTH_BYTES: Bytes = Bytes::from_mib(64);

/// Data on base pages that could be on huge pages.
pub struct Data {
    /// How much there is.
    pub bytes: Bytes,
    /// The size of its pages.
    pub page: Bytes,
}

impl Data {
    /// The data of one database; `None` where it is on huge pages already or has nothing to gain from
    /// them.
    ///
    /// # Errors
    /// Why it is not known which pages the data is on.
    pub fn of(window: &Window, pair: &Pair) -> Result<Option<Self>, String> {
        let memory = &pair.end.memory;
        // `thp-mode` speaks for engines that take none.
        if pair.end.traits.pool == PoolUse::Never {
            return Ok(None);
        }
        let (Some(bytes), Some(page), Some(base)) = (
            memory.shared_bytes.value().copied(),
            memory.page_size_bytes.value().copied(),
            on_base_pages(&window.end.host, pair.end),
        ) else {
            let why = memory.shared_bytes.why().or(memory.page_size_bytes.why());
            return Err(why.unwrap_or_default());
        };
        Ok((base && bytes >= WORTH_BYTES).then_some(Self { bytes, page }))
    }
}

/// The two parts of the cost, and the demand that they are shares of.
pub struct Cost {
    /// What the database wanted of the CPUs.
    pub demand: Reading<Demand>,
    /// None for an engine of one process: it faults its memory in once, not for each client.
    faults: Option<Reading<CpuCost>>,
    walks: Reading<CpuCost>,
}

impl Cost {
    /// The cost to one database, whose data is on base pages.
    pub fn of(window: &Window, pair: &Pair) -> Self {
        Self {
            demand: Demand::of(window, pair),
            faults: (pair.end.model == Model::Process).then(|| page_faults::cost(window, pair)),
            walks: page_walks::cost(window, pair),
        }
    }

    /// Why the cost, or a part of it, is not known.
    pub fn gaps(&self) -> Vec<String> {
        if let Some(why) = self.demand.why() {
            return vec![format!("tax: {why}")];
        }
        let gap = |name: &str, part: &Reading<CpuCost>| Some(format!("{name}: {}", part.why()?));
        let faults = self.faults.as_ref().and_then(|faults| gap("minor faults", faults));
        faults.into_iter().chain(gap("page walks", &self.walks)).collect()
    }

    /// Whether all of its parts are known.
    pub fn is_whole(&self) -> bool {
        self.walks.is_present() && self.faults.as_ref().is_none_or(Reading::is_present)
    }

    /// Its parts, as far as they are known.
    pub fn parts(&self) -> impl Iterator<Item = &CpuCost> {
        self.faults.iter().chain([&self.walks]).filter_map(Reading::value)
    }

    /// What its parts leave out because it ends by itself, in words.
    pub fn warm_ups(&self) -> impl Iterator<Item = &str> {
        self.parts().filter_map(|part| part.warm_up.as_deref())
    }

    /// The time on CPU that its known parts took together, s; `None` where none is known.
    pub fn taken_s(&self) -> Option<Interval> {
        self.parts().map(|part| part.taken_s).reduce(Interval::plus)
    }
}

/// What `small-pages` charges a database; `None` where it charges nothing, so that others may.
fn charged(window: &Window, pair: &Pair) -> Option<Cost> {
    Data::of(window, pair).ok()??;
    let cost = Cost::of(window, pair);
    (cost.demand.is_present() && cost.taken_s().is_some()).then_some(cost)
}

/// The share of active time that `small-pages` charges for page faults of new server processes. A rule that
/// charges for starting them leaves this out.
pub fn share_of_faults(window: &Window, pair: &Pair) -> f64 {
    let share = || {
        let cost = charged(window, pair)?;
        let taken_s = cost.faults?.into_value()?.taken_s;
        Some(cost.demand.into_value()?.share_of(taken_s).mid)
    };
    share().unwrap_or(0.0)
}

/// The time on CPU that `small-pages` charges, s. A rule that charges for memory that is in no cache
/// leaves this out.
pub fn charged_s(window: &Window, pair: &Pair) -> f64 {
    let cost = charged(window, pair);
    cost.iter().flat_map(Cost::parts).map(|part| part.taken_s.mid).sum()
}
