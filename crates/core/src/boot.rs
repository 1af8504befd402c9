//! The words about huge pages among those of the kernel's command line.

mod arguments;
mod words;

pub use arguments::{Arguments, by_node};
pub use words::{HUGE_PAGE_NAMES, huge_page_words, parts};
