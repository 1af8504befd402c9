//! What the threads of a database did during a window, as the kernel's scheduler saw it.

mod causes;
mod connecting;
mod hangs;
mod holders;
mod kinds;
mod late_waits;
mod older;
mod pieces;
mod sampled;
mod sampled_shares;
mod slice;
mod wake_ups;
mod weights;
mod window;

pub use causes::{Behind, Cause};
pub use connecting::MANY_CONNECTIONS_PER_S;
pub use hangs::{HANG_S, is_in_files};
pub use holders::Holder;
pub use kinds::{Doing, Part, Polling};
pub use late_waits::{Unsettled, settle_across};
pub use pieces::Piece;
pub use sampled::{Call, Sampled};
pub use slice::{FIRST_REQUESTS, Longest, Slice, Spent};
pub use wake_ups::WakeUps;
pub use window::{Activity, NOT_FOLLOWED};
