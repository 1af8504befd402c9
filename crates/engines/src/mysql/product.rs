//! Which of the products a server is.

use crate::database_view::DatabaseView;
use crate::process_table::base;

/// MariaDB's program has a name of its own since 10.4; before, only the server tells.
pub(super) fn product(view: &DatabaseView) -> String {
    if let Some(product) = view.answer.value().and_then(|answer| answer.product.clone()) {
        return product;
    }
    let name = view.main.executable.value().map_or(view.main.stat.comm.as_str(), |e| base(e));
    if name.starts_with("mariadbd") { "MariaDB" } else { "MySQL" }.to_owned()
}
