//! What several diagnoses share: where time went, and what it is worth when it comes back.

pub mod accounting;
pub mod base_pages;
pub mod client_network;
pub mod clients;
pub mod cold_caches;
pub mod connections;
pub mod cpu_cost;
pub mod cpus;
pub mod disk_charges;
pub mod disk_limit;
pub mod disk_neighbours;
pub mod disk_requests;
pub mod event_loop;
pub mod file_waits;
pub mod full_page_images;
pub mod huge_pages;
pub mod memory_limits;
pub mod memory_shortage;
pub mod page_faults;
pub mod page_walks;
pub mod pressure;
pub mod process_starts;
pub mod reclaim;
pub mod sandbox;
pub mod stall;
pub mod without_tax;
