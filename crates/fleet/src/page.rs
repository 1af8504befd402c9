//! A fleet as one page that opens offline: search, filter, sort, and a database's causes.

use crate::fleet::Fleet;

const PAGE: &str = include_str!("page.html");

/// The page. Whatever names hold stays text: it is in no other place than the data.
pub fn page(fleet: &Fleet) -> String {
    let json = serde_json::to_string(fleet).unwrap_or_else(|_| "null".to_owned());
    // Within JSON these stand in texts alone, and a page would take some of them for the end of the data.
    let json = json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028");
    PAGE.replace("@DATA@", &json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::rank;
    use crate::rank::tests::rows;

    #[test]
    fn hostile_names_stay_data() {
        let mut rows = rows();
        let name = "</script><script>alert(1)</script>@DATA@";
        for row in rows.taxes.iter_mut().chain(&mut rows.active) {
            row.labels.insert("database".to_owned(), name.to_owned());
        }
        let page = page(&rank(&rows, 10));
        assert_eq!(page.matches("<script>").count(), 1);
        assert_eq!(page.matches("</script>").count(), 2);
        let begin = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
        let data = &page[begin..begin + page[begin..].find("</script>").unwrap()];
        let fleet: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(fleet["databases"][0]["name"], name);
    }
}
