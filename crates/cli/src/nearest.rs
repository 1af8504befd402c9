//! Which word was meant.

/// Below this similarity (Jaro-Winkler, as clap takes it) two words are unlike.
const ALIKE: f64 = 0.7;

/// "; did you mean WORD?" where one of the words is like the one that was typed; else nothing.
pub fn did_you_mean<'a>(typed: &str, words: impl IntoIterator<Item = &'a str>) -> String {
    let likeness = |word: &'a str| (strsim::jaro_winkler(typed, word), word);
    let alike = words.into_iter().map(likeness).filter(|(likeness, _)| *likeness > ALIKE);
    let nearest = alike.max_by(|(one, _), (other, _)| one.total_cmp(other));
    nearest.map(|(_, word)| format!("; did you mean {word}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_is_most_alike_is_named() {
        let words = ["small-pages", "disk-slow", "cpu-throttled"];
        assert_eq!(did_you_mean("smal-page", words), "; did you mean small-pages?");
        assert_eq!(did_you_mean("xyz", words), "");
    }
}
