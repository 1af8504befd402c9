//! How a bench was done, in sentences that travel with its result.

use super::options::{Access, Model, Request};

/// The sentences.
pub(crate) fn sentences(request: &Request, together: bool) -> Vec<String> {
    let readers = match request.model {
        Model::Process => "one process per connection, each with page tables of its own",
        Model::Thread => "one thread per connection, all in one process",
    };
    let found = match request.access {
        Access::Hash => "through an open-addressing hash index in the same memory",
        Access::Direct => "by row number, without an index",
    };
    let order = if together {
        "All page sizes of a row width were in memory at once; trials went round in random order, \
         every second round backwards, and one trial per round was repeated for the noise floor."
    } else {
        "The tables did not fit in memory together: they were filled one after the other and then \
         in reverse order (A B, B A), with half of the trials each; the noise floor compares the \
         two fillings of the same table."
    };
    vec![
        format!("Uniform random keys from seed {}; rows found {found}.", request.seed),
        "Every read takes in all bytes of its row and compares their sum with what the key \
         demands."
            .to_owned(),
        format!(
            "{readers}; every reader touched the whole table once before its first trial, so that \
             no trial pays for minor faults."
        ),
        order.to_owned(),
        "Ratios are medians of pairs of the same round with 95 % intervals; a verdict \
         needs the whole interval beyond the noise floor, which 95 % of medians of as many \
         identical pairs stay within."
            .to_owned(),
    ]
}
