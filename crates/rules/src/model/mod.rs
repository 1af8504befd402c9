//! What several diagnoses share: where time went, and what it is worth when it comes back.

pub mod accounting;
pub mod clients;
pub mod cold_caches;
pub mod cpus;
pub mod disk;
pub mod disk_limit;
pub mod disk_neighbours;
pub mod event_loop;
pub mod file_waits;
pub mod full_page_images;
pub mod huge_pages;
pub mod memory_shortage;
pub mod pressure;
pub mod stall;
pub mod without_tax;
