//! What the words about huge pages on the kernel's command line say.
//!
//! The order matters: `hugepages=` is about the `hugepagesz=` before it. The kernel heeds the
//! first pair for a size and drops later ones (Documentation/admin-guide/mm/hugetlbpage.rst;
//! `hugepages_setup` and `hugepagesz_setup` of mm/hugetlb.c), so a word is replaced, never added
//! beside one that is there.

use super::words::parts;
use crate::{Bytes, page_size};

/// What the words about huge pages say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    /// The size of page that is meant where none is named, if it is set.
    pub default: Option<Bytes>,
    /// Sizes and how many pages of each: a number, or `0:8,1:8` for NUMA nodes.
    pools: Vec<(Bytes, String)>,
    /// Words that the kernel ignores, or that make no sense.
    pub ignored: Vec<String>,
    /// Sizes that are named and have no count.
    pub uncounted: Vec<Bytes>,
}

impl Arguments {
    /// Reads them as the kernel does, on which pages are of the size `default` where no word says
    /// otherwise. Where that is not known, a count without a size is of no known size, and is
    /// among the ignored.
    pub fn parse(words: &[&str], default: Option<Bytes>) -> Self {
        let mut arguments = Self::default();
        let default = default_of(words).or(default);
        // The size that the next count is about: none where it was counted already.
        let mut current = default;
        for word in words {
            let (name, value) = parts(word);
            match (name, page_size::parse(value)) {
                ("default_hugepagesz", Some(size)) if arguments.default.is_none() => {
                    arguments.default = Some(size);
                    current = Some(size);
                }
                ("hugepagesz", Some(size)) => {
                    current = Some(size);
                    if !arguments.uncounted.contains(&size) && arguments.count(size).is_none() {
                        arguments.uncounted.push(size);
                    }
                }
                ("hugepages", _) if !value.is_empty() => {
                    arguments.add(current.take(), value, word);
                }
                _ => arguments.ignored.push((*word).to_owned()),
            }
        }
        arguments
    }

    fn add(&mut self, size: Option<Bytes>, count: &str, word: &str) {
        match size.filter(|size| self.count(*size).is_none()) {
            Some(size) => {
                self.uncounted.retain(|named| *named != size);
                self.pools.push((size, count.to_owned()));
            }
            None => self.ignored.push(word.to_owned()),
        }
    }

    /// How many pages of a size they ask for.
    pub fn count(&self, size: Bytes) -> Option<&str> {
        self.pools.iter().find(|(known, _)| *known == size).map(|(_, count)| count.as_str())
    }

    /// The sizes that have a count, and the sum of it.
    pub fn pools(&self) -> impl Iterator<Item = (Bytes, u64)> {
        self.pools.iter().map(|(size, count)| (*size, pages(count)))
    }

    /// Asks for so many pages of a size.
    pub fn set(&mut self, size: Bytes, count: String) {
        self.uncounted.retain(|named| *named != size);
        match self.pools.iter_mut().find(|(known, _)| *known == size) {
            Some((_, known)) => *known = count,
            None => self.pools.push((size, count)),
        }
    }

    /// The words: the default at most once, each size once, each followed by its count.
    pub fn words(&self) -> Vec<String> {
        let word = page_size::boot_word;
        let default = self.default.map(|size| format!("default_hugepagesz={}", word(size)));
        let pools = self.pools.iter().flat_map(|(size, count)| {
            [format!("hugepagesz={}", word(*size)), format!("hugepages={count}")]
        });
        default.into_iter().chain(pools).collect()
    }
}

/// The pages of a count, those of all nodes together.
fn pages(count: &str) -> u64 {
    by_node(count).map(|(_, pages)| pages).fold(0, u64::saturating_add)
}

/// The parts of a count such as `0:8,1:8`; a plain number is of no node.
pub fn by_node(count: &str) -> impl Iterator<Item = (Option<u32>, u64)> {
    count.split(',').filter_map(|part| match part.split_once(':') {
        Some((node, pages)) => Some((Some(node.parse().ok()?), pages.parse().ok()?)),
        None => Some((None, part.parse().ok()?)),
    })
}

fn default_of(words: &[&str]) -> Option<Bytes> {
    let mut named = words.iter().map(|word| parts(word));
    let (_, value) = named.find(|(name, _)| *name == "default_hugepagesz")?;
    page_size::parse(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::words::huge_page_words;

    fn parsed(line: &str) -> Arguments {
        Arguments::parse(&huge_page_words(line.split(' ')), Some(Bytes::MIB_2))
    }

    fn line(arguments: &Arguments) -> String {
        arguments.words().join(" ")
    }

    #[test]
    fn a_count_belongs_to_the_size_before_it() {
        let arguments = parsed("hugepages=512 hugepagesz=1G hugepages=16");
        assert_eq!(line(&arguments), "hugepagesz=2M hugepages=512 hugepagesz=1G hugepages=16");
        let arguments = parsed("hugepages=4 default_hugepagesz=1G");
        assert_eq!(line(&arguments), "default_hugepagesz=1G hugepagesz=1G hugepages=4");
        let arguments = parsed("default_hugepagesz=1G hugepages=4 hugepagesz=2048K hugepages=7");
        assert_eq!(
            line(&arguments),
            "default_hugepagesz=1G hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=7"
        );
        assert_eq!(arguments.ignored, Vec::<String>::new());
        let nodes = parsed("hugepagesz=2M hugepages=0:8,1:9");
        assert_eq!(nodes.pools().collect::<Vec<_>>(), [(Bytes::MIB_2, 17)]);
    }

    #[test]
    fn a_count_without_a_size_is_of_the_hosts_default() {
        let words = ["hugepages=33"];
        let arm64 = Arguments::parse(&words, Some(Bytes::from_mib(512)));
        assert_eq!(arm64.count(Bytes::from_mib(512)), Some("33"));
        let unknown = Arguments::parse(&words, None);
        assert_eq!(
            (unknown.pools().count(), unknown.ignored),
            (0, vec!["hugepages=33".to_owned()])
        );
    }

    #[test]
    fn words_that_the_kernel_ignores_are_named() {
        let arguments =
            parsed("hugepagesz=1G hugepages=16 hugepagesz=1G hugepages=9 hugepagesz=3M");
        assert_eq!(arguments.count(Bytes::GIB_1), Some("16"));
        assert_eq!(arguments.ignored, ["hugepages=9", "hugepagesz=3M"]);
    }

    #[test]
    fn a_second_count_in_a_row_is_ignored_and_a_size_without_one_is_named() {
        let arguments = parsed("hugepagesz=1G hugepagesz=2M hugepages=9 hugepages=7000");
        assert_eq!(arguments.pools().collect::<Vec<_>>(), [(Bytes::MIB_2, 9)]);
        assert_eq!(arguments.ignored, ["hugepages=7000"]);
        assert_eq!(arguments.uncounted, [Bytes::GIB_1]);
    }

    #[test]
    fn setting_replaces() {
        let mut arguments = parsed("hugepagesz=2M hugepages=512 hugepagesz=1G hugepages=16");
        arguments.set(Bytes::MIB_2, "0:8,1:8".to_owned());
        assert_eq!(line(&arguments), "hugepagesz=2M hugepages=0:8,1:8 hugepagesz=1G hugepages=16");
        assert_eq!(parsed(&line(&arguments)), arguments);
        assert_eq!(arguments.pools().collect::<Vec<_>>(), [(Bytes::MIB_2, 16), (Bytes::GIB_1, 16)]);
    }
}
