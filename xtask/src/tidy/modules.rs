//! Every source file belongs to a module: one that is named nowhere is compiled nowhere.

use super::problem::{Problem, Tree};

pub fn check(tree: &Tree) -> Vec<Problem> {
    tree.keys()
        .filter(|path| path.ends_with(".rs") && !is_root(path))
        .filter(|path| !is_named(tree, path))
        .map(|path| Problem::new(path, None, "no module names this file"))
        .collect()
}

/// Files that Cargo finds by itself.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.rsplit('/').collect();
    match parts[..] {
        ["lib.rs" | "main.rs", "src", ..] | ["build.rs", ..] => true,
        ["main.rs", _, folder, ..] | [_, folder, ..] => {
            ["tests", "examples", "benches", "bin", "fuzz_targets"].contains(&folder)
        }
        _ => false,
    }
}

fn is_named(tree: &Tree, path: &str) -> bool {
    let module = path.strip_suffix("/mod.rs").or(path.strip_suffix(".rs")).unwrap_or(path);
    let Some((folder, name)) = module.rsplit_once('/') else { return false };
    let parents = ["/lib.rs", "/main.rs", "/mod.rs", ".rs"].map(|end| format!("{folder}{end}"));
    let start = format!("{folder}/");
    let placed = format!("#[path = \"{name}.rs\"]");
    tree.iter().any(|(other, text)| {
        let may_declare = parents.contains(other) || (other.starts_with(&start) && is_root(other));
        (may_declare && declares(text, name))
            || (other.starts_with(&start) && text.contains(&placed))
    })
}

fn declares(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim();
        let line = line.strip_prefix("pub").unwrap_or(line);
        line.ends_with(&format!("mod {name};")) && !line.starts_with("//")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let tree = files.iter().map(|(p, t)| ((*p).to_owned(), (*t).to_owned())).collect();
        check(&tree).into_iter().map(|problem| problem.path).collect()
    }

    #[test]
    fn a_file_that_no_module_names_is_found() {
        let lib = ("c/src/lib.rs", "mod a;\npub(crate) mod b;\n// mod d;\n");
        let files = [lib, ("c/src/a.rs", "mod x;"), ("c/src/a/x.rs", ""), ("c/src/b/mod.rs", "")];
        assert!(problems(&files).is_empty());
        let dead = [lib, ("c/src/a.rs", ""), ("c/src/d.rs", ""), ("c/src/a/x.rs", "")];
        assert_eq!(problems(&dead), ["c/src/a/x.rs", "c/src/d.rs"]);
    }

    #[test]
    fn a_module_may_name_its_file() {
        let files = [("c/src/lib.rs", "mod a;"), ("c/src/a_tests.rs", "")];
        let a = |text| [files[0], files[1], ("c/src/a.rs", text)];
        assert!(problems(&a("#[path = \"a_tests.rs\"]\nmod tests;\n")).is_empty());
        assert_eq!(problems(&a("")), ["c/src/a_tests.rs"]);
    }

    #[test]
    fn tests_share_modules() {
        let test = ("c/tests/t.rs", "mod support;\n");
        assert!(problems(&[test, ("c/tests/support/mod.rs", "")]).is_empty());
        assert_eq!(problems(&[("c/tests/support/mod.rs", "")]), ["c/tests/support/mod.rs"]);
    }
}
