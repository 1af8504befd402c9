//! What a calibration may cost.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use untax_core::Bytes;

/// What a calibration may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Processor time.
    pub cpu: Duration,
    /// Memory, of a process that then ends, without its page tables.
    pub memory: Bytes,
    /// Page tables, so many at most: those of many processes that map the same memory.
    pub page_tables: Bytes,
}

impl Budget {
    /// With no more page tables than a small part of the memory that is available.
    #[must_use]
    pub fn within(self, available: Bytes) -> Self {
        Self { page_tables: self.page_tables.min(Bytes(available.0 / 32)), ..self }
    }
}

/// For `check`, which must be cheap.
pub const QUICK: Budget = Budget {
    cpu: Duration::from_secs(3),
    memory: Bytes::from_mib(256),
    page_tables: Bytes::from_mib(512),
};

/// For `bench pages`, which is not.
pub const FULL: Budget = Budget {
    cpu: Duration::from_secs(4),
    memory: Bytes::from_mib(512),
    page_tables: Bytes::from_mib(512),
};
