//! How saved runs are named on the command line: whole, by a prefix, or by how long ago.

/// What a name of a run stands for.
#[derive(Debug, PartialEq, Eq)]
pub enum Named<'a> {
    /// This run.
    Run(&'a str),
    /// No run: it may be a file.
    None,
    /// Several runs begin so.
    Several(Vec<&'a str>),
    /// So many runs of this kind are saved, fewer than that.
    TooFew(usize),
}

/// The kind of a run: `check` of `check-20260101T101500000Z`.
pub fn kind(id: &str) -> &str {
    id.rsplit_once('-').map_or(id, |(kind, _)| kind)
}

/// When a run was made, as its name says it.
pub fn made(id: &str) -> &str {
    id.rsplit_once('-').map_or("", |(_, made)| made)
}

/// The latest first.
pub fn sort(ids: &mut [String]) {
    ids.sort_by(|one, other| made(other).cmp(made(one)).then_with(|| one.cmp(other)));
}

/// The run of `ids`, the latest first, that `name` stands for. `@last` is the latest one of `wanted` kind, or
/// of any kind, `@-1` the one before it.
pub fn find<'a>(ids: &'a [String], name: &str, wanted: Option<&str>) -> Named<'a> {
    let fits = |id: &&String| wanted.is_none_or(|wanted| kind(id) == wanted);
    if let Some(back) = steps_back(name) {
        let found = ids.iter().filter(fits).nth(back);
        return found
            .map_or_else(|| Named::TooFew(ids.iter().filter(fits).count()), |id| Named::Run(id));
    }
    if let Some(id) = ids.iter().find(|id| *id == name) {
        return Named::Run(id);
    }
    let begins: Vec<&str> = match name {
        "" => Vec::new(),
        _ => ids.iter().filter(|id| id.starts_with(name)).map(String::as_str).collect(),
    };
    match begins.as_slice() {
        [] => Named::None,
        [id] => Named::Run(id),
        _ => Named::Several(begins),
    }
}

fn steps_back(name: &str) -> Option<usize> {
    match name.strip_prefix('@')? {
        "last" => Some(0),
        back => back.strip_prefix('-')?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved() -> Vec<String> {
        let mut ids = [
            "check-20260101T101500000Z",
            "bench-pages-20260101T101700000Z",
            "check-20260102T101500000Z",
            "verify-20260101T101600000Z",
        ]
        .map(str::to_owned)
        .to_vec();
        sort(&mut ids);
        ids
    }

    #[test]
    fn the_last_one_is_the_last_of_its_kind() {
        let ids = saved();
        let is = |name, kind, expected| assert_eq!(find(&ids, name, kind), Named::Run(expected));
        is("@last", None, "check-20260102T101500000Z");
        is("@-1", None, "bench-pages-20260101T101700000Z");
        is("@-1", Some("check"), "check-20260101T101500000Z");
        is("@last", Some("bench-pages"), "bench-pages-20260101T101700000Z");
        assert_eq!(find(&ids, "@-2", Some("check")), Named::TooFew(2));
        assert_eq!(find(&ids, "@last", Some("plan")), Named::TooFew(0));
    }

    #[test]
    fn a_beginning_names_one_run_or_none() {
        let ids = saved();
        assert_eq!(find(&ids, "ver", None), Named::Run("verify-20260101T101600000Z"));
        assert_eq!(find(&ids, "check-20260102", None), Named::Run("check-20260102T101500000Z"));
        assert!(matches!(find(&ids, "check", None), Named::Several(found) if found.len() == 2));
        for file in ["host.tar.gz", "@", "@-", "@first", ""] {
            assert_eq!(find(&ids, file, None), Named::None, "{file}");
        }
    }
}
