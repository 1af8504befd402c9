//! The words about huge pages among others.

/// The names of these words. `grubby` removes a word by its name.
pub const HUGE_PAGE_NAMES: [&str; 3] = ["default_hugepagesz", "hugepagesz", "hugepages"];

/// The words about huge pages among others, in their order.
pub fn huge_page_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    words.into_iter().filter(|word| HUGE_PAGE_NAMES.contains(&parts(word).0)).collect()
}

/// The name and the value of a word; the value is empty where there is none.
pub fn parts(word: &str) -> (&str, &str) {
    word.split_once('=').unwrap_or((word, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_about_huge_pages_are_looked_at() {
        let line = "quiet hugepages=2 hugetlb_cma=1G transparent_hugepage=never hugepagesz=1G";
        assert_eq!(huge_page_words(line.split(' ')), ["hugepages=2", "hugepagesz=1G"]);
    }
}
