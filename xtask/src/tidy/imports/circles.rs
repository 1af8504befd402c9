//! Circles among the files that import each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The files that each file imports, by their paths.
pub type Imports = BTreeMap<String, BTreeSet<String>>;

/// The shortest circle through each file, each circle once, from its first file on. A file that is on a
/// shorter circle has that one alone.
pub fn shortest(imports: &Imports) -> Vec<Vec<&str>> {
    let circles: BTreeSet<Vec<&str>> =
        imports.keys().filter_map(|file| through(imports, file)).map(from_first).collect();
    circles.into_iter().collect()
}

/// The shortest circle through a file, from it on.
fn through<'a>(imports: &'a Imports, file: &'a str) -> Option<Vec<&'a str>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut left = VecDeque::from([file]);
    while let Some(at) = left.pop_front() {
        for next in imports.get(at).into_iter().flatten() {
            if next == file {
                return Some(way(&before, file, at));
            }
            if !before.contains_key(next.as_str()) {
                before.insert(next, at);
                left.push_back(next);
            }
        }
    }
    None
}

fn way<'a>(before: &BTreeMap<&'a str, &'a str>, from: &'a str, to: &'a str) -> Vec<&'a str> {
    let mut way = vec![to];
    let mut at = to;
    while at != from {
        at = before[at];
        way.push(at);
    }
    way.reverse();
    way
}

/// The same circle, beginning with the file whose path comes first.
fn from_first(mut circle: Vec<&str>) -> Vec<&str> {
    let first = (0..circle.len()).min_by_key(|i| circle[*i]).unwrap_or_default();
    circle.rotate_left(first);
    circle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_circle_is_told_once() {
        let edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "c"), ("e", "a")];
        let mut imports = Imports::new();
        for (from, to) in edges {
            imports.entry(from.to_owned()).or_default().insert(to.to_owned());
        }
        assert_eq!(shortest(&imports), [vec!["a", "b", "c"], vec!["c", "d"]]);
        imports.get_mut("c").unwrap().clear();
        assert!(shortest(&imports).is_empty());
    }
}
