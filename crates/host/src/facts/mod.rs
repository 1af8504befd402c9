//! Facts of the host, one file per fact.
