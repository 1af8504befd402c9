//! The words about huge pages on the kernel's command line.
//!
//! The order matters: `hugepages=` is about the `hugepagesz=` before it. The kernel heeds the
//! first pair for a size and drops later ones (Documentation/admin-guide/mm/hugetlbpage.rst), so
//! a word is replaced, never added beside one that is there.

use untax_core::Bytes;
use untax_core::boot::parts;

/// What the words about huge pages say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    /// The size of page that is meant where none is named, if it is set.
    pub default: Option<Bytes>,
    /// Sizes and how many pages of each: a number, or `0:8,1:8` for NUMA nodes.
    pools: Vec<(Bytes, String)>,
    /// Words that the kernel ignores, or that make no sense.
    pub ignored: Vec<String>,
}

impl Arguments {
    /// Reads them as the kernel does.
    pub fn parse(words: &[&str]) -> Self {
        let mut arguments = Self::default();
        let mut current = None;
        for word in words {
            let (name, value) = parts(word);
            match (name, size(value)) {
                ("default_hugepagesz", Some(size)) if arguments.default.is_none() => {
                    arguments.default = Some(size);
                    current = Some(size);
                }
                ("hugepagesz", Some(size)) => current = Some(size),
                ("hugepages", _) if !value.is_empty() => {
                    let size = current.or(default_of(words)).unwrap_or(Bytes::MIB_2);
                    if arguments.count(size).is_some() {
                        arguments.ignored.push((*word).to_owned());
                    } else {
                        arguments.pools.push((size, value.to_owned()));
                    }
                }
                _ => arguments.ignored.push((*word).to_owned()),
            }
        }
        arguments
    }

    /// How many pages of a size they ask for.
    pub fn count(&self, size: Bytes) -> Option<&str> {
        self.pools.iter().find(|(known, _)| *known == size).map(|(_, count)| count.as_str())
    }

    /// The memory of all pools but those of one size.
    pub fn bytes_but(&self, size: Bytes) -> Bytes {
        let pages = |count: &str| -> u64 {
            let counts = count.split(',').map(|node| node.rsplit(':').next().unwrap_or(node));
            counts.filter_map(|pages| pages.parse::<u64>().ok()).fold(0, u64::saturating_add)
        };
        let others = self.pools.iter().filter(|(known, _)| *known != size);
        others.map(|(size, count)| Bytes(pages(count).saturating_mul(size.0))).sum()
    }

    /// Asks for so many pages of a size; for none when there is no count.
    pub fn set(&mut self, size: Bytes, count: Option<String>) {
        let at = self.pools.iter().position(|(known, _)| *known == size);
        match (at, count) {
            (Some(at), Some(count)) => self.pools[at].1 = count,
            (None, Some(count)) => self.pools.push((size, count)),
            (Some(at), None) => drop(self.pools.remove(at)),
            (None, None) => {}
        }
    }

    /// The words: the default at most once, each size once, each followed by its count.
    pub fn words(&self) -> Vec<String> {
        let default = self.default.map(|size| format!("default_hugepagesz={}", name(size)));
        let pools = self.pools.iter().flat_map(|(size, count)| {
            [format!("hugepagesz={}", name(*size)), format!("hugepages={count}")]
        });
        default.into_iter().chain(pools).collect()
    }
}

fn default_of(words: &[&str]) -> Option<Bytes> {
    let mut named = words.iter().map(|word| parts(word));
    named.find(|(name, _)| *name == "default_hugepagesz").and_then(|(_, value)| size(value))
}

/// A size as the kernel's `memparse` reads it.
fn size(text: &str) -> Option<Bytes> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        _ => return None,
    };
    let bytes = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    bytes.is_power_of_two().then_some(Bytes(bytes))
}

/// A size as people write it on a command line.
fn name(size: Bytes) -> String {
    match size.0 {
        bytes if bytes.is_multiple_of(1 << 30) => format!("{}G", bytes >> 30),
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        bytes => format!("{}K", bytes >> 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::boot::huge_page_words;

    fn parsed(line: &str) -> Arguments {
        Arguments::parse(&huge_page_words(line.split(' ')))
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
    }

    #[test]
    fn what_the_kernel_ignores_is_told() {
        let arguments =
            parsed("hugepagesz=1G hugepages=16 hugepagesz=1G hugepages=9 hugepagesz=3M");
        assert_eq!(arguments.count(Bytes::GIB_1), Some("16"));
        assert_eq!(arguments.ignored, ["hugepages=9", "hugepagesz=3M"]);
    }

    #[test]
    fn setting_replaces() {
        let mut arguments = parsed("hugepagesz=2M hugepages=512 hugepagesz=1G hugepages=16");
        arguments.set(Bytes::MIB_2, Some("0:8,1:8".to_owned()));
        arguments.set(Bytes::GIB_1, None);
        assert_eq!(line(&arguments), "hugepagesz=2M hugepages=0:8,1:8");
        assert_eq!(parsed(&line(&arguments)), arguments);
        assert_eq!(arguments.bytes_but(Bytes::GIB_1), Bytes::from_mib(32));
        assert_eq!(arguments.bytes_but(Bytes::MIB_2), Bytes(0));
    }
}
