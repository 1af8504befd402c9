//! The causes that a change of throughput may have: all of them, in the order in which parts of a request's time are
//! charged to them. Facts that changed come before patterns, and what acts on few parts before what acts on all.

mod facts;
mod kind;
mod patterns;

pub(crate) use kind::{AT_ONCE, Kind, Parts, Sign};

/// Every cause.
pub(crate) const CAUSES: &[Kind] = &[
    facts::CPU_LIMIT,
    facts::CPUS,
    facts::MEMORY_LIMIT,
    facts::IO_LIMIT,
    facts::STORAGE,
    facts::PAGES,
    patterns::MOVED_HOST,
    facts::ROLE,
    facts::VERSION,
    facts::SETTINGS,
    patterns::STEAL,
    patterns::NEIGHBOUR,
    patterns::DISK_NEIGHBOUR,
    patterns::DATA_MOVED,
    patterns::CACHE,
    patterns::READ_LATENCY,
    patterns::WRITE_LATENCY,
    patterns::WRITE_BURST,
    patterns::PLACEMENT,
    patterns::LOAD,
    facts::RESTART,
];

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::timeline::PARTS;

    #[test]
    fn ids_are_unique_and_parts_are_listed() {
        for (at, cause) in CAUSES.iter().enumerate() {
            assert!(CAUSES[..at].iter().all(|other| other.id != cause.id), "{}", cause.id);
            if let Parts::These(parts) = cause.parts {
                let known =
                    |part: &&str| *part == AT_ONCE || PARTS.iter().any(|(id, _)| id == part);
                assert!(parts.iter().all(known), "{}", cause.id);
            }
            assert!(cause.id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", cause.id);
        }
    }
}
