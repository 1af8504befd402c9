//! Files of a crate import each other in one direction: no circles, no diagnosis that knows another one.
//!
//! A file imports another one by a `use` or by a path in its code. A name that a file only passes on
//! (`pub use a::B`) is followed to the file that defines it. Declaring a module imports nothing, and
//! tests may import what they like.

mod circles;
mod resolve;
mod source;
mod tokens;

use crate::tidy::problem::{Problem, Tree};
use circles::Imports;
use resolve::Crate;

pub fn check(tree: &Tree) -> Vec<Problem> {
    let roots = tree.keys().filter(|path| path.ends_with("src/lib.rs"));
    let imports: Imports = roots.flat_map(|root| Crate::read(tree, root).imports()).collect();
    [circles(&imports), directions(&imports)].concat()
}

fn circles(imports: &Imports) -> Vec<Problem> {
    let problem = |circle: Vec<&str>| {
        let way = circle[1..].join(" → ");
        let first = circle[0];
        Problem::new(first, None, format!("imports in a circle: → {way} → {first}"))
    };
    circles::shortest(imports).into_iter().map(problem).collect()
}

/// Where the diagnoses are, and the model that they share.
const DIAGNOSES: &str = "crates/rules/src/diagnoses/";
const MODEL: &str = "crates/rules/src/model/";

/// Refuses imports of a diagnosis by another one or by the model.
fn directions(imports: &Imports) -> Vec<Problem> {
    let edges = imports.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to)));
    let refused = edges.filter(|(from, to)| {
        let (Some(to), own) = (diagnosis(to), diagnosis(from)) else { return false };
        from.starts_with(MODEL) || own.is_some_and(|own| own != to)
    });
    refused
        .map(|(from, to)| Problem::new(from, None, format!("imports the diagnosis {to}")))
        .collect()
}

/// The diagnosis that a file belongs to.
fn diagnosis(path: &str) -> Option<&str> {
    let file = path.strip_prefix(DIAGNOSES)?.strip_suffix(".rs")?;
    file.split('/').next().filter(|name| *name != "mod")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let tree = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        check(&tree.collect()).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn a_circle_is_named_with_its_files_in_order() {
        let files = |c: &'static str| {
            [
                ("x/src/lib.rs", "mod a; mod b; mod c;"),
                ("x/src/a.rs", "use crate::b::B;"),
                ("x/src/b.rs", "pub struct B; fn f() { super::c::g() }"),
                ("x/src/c.rs", c),
            ]
        };
        assert!(problems(&files("pub fn g() {}")).is_empty());
        let circle = "x/src/a.rs: imports in a circle: → x/src/b.rs → x/src/c.rs → x/src/a.rs";
        assert_eq!(problems(&files("use crate::a; pub fn g() {}")), [circle]);
        assert!(problems(&files("#[cfg(test)] mod tests { use crate::a; }")).is_empty());
    }

    #[test]
    fn a_parent_that_uses_a_child_is_not_used_by_it() {
        let files = |lib: &'static str, a: &'static str| [("x/src/lib.rs", lib), ("x/src/a.rs", a)];
        let child = "use super::T; pub fn f() {}";
        assert!(problems(&files("mod a; pub struct T;", child)).is_empty());
        assert_eq!(problems(&files("mod a; pub struct T; use a::f;", child)).len(), 1);
        assert_eq!(problems(&files("mod a; pub struct T; fn g() { a::f() }", child)).len(), 1);
        // What the parent only passes on is the other child's.
        let passed = [
            ("x/src/lib.rs", "mod a; mod b; pub use a::*; pub use b::B;"),
            ("x/src/a.rs", "use crate::B; pub struct A;"),
            ("x/src/b.rs", "pub struct B;"),
        ];
        assert!(problems(&passed).is_empty());
        let back = [passed[0], passed[1], ("x/src/b.rs", "use crate::A; pub struct B;")];
        assert_eq!(problems(&back).len(), 1);
    }

    #[test]
    fn diagnoses_stand_alone_and_the_model_below_them() {
        let files = |one: &'static str, model: &'static str| {
            [
                ("crates/rules/src/lib.rs", "mod diagnoses; mod model; mod catalogue;"),
                ("crates/rules/src/catalogue.rs", "use crate::diagnoses::one;"),
                ("crates/rules/src/diagnoses/mod.rs", "pub mod one; pub mod two;"),
                ("crates/rules/src/diagnoses/one.rs", one),
                ("crates/rules/src/diagnoses/one/part.rs", "pub fn p() {}"),
                ("crates/rules/src/diagnoses/two.rs", "pub fn t() {}"),
                ("crates/rules/src/model/mod.rs", "pub mod m;"),
                ("crates/rules/src/model/m.rs", model),
            ]
        };
        assert!(problems(&files("mod part; use part::p; use crate::model::m;", "")).is_empty());
        let other = "crates/rules/src/diagnoses/one.rs: \
                     imports the diagnosis crates/rules/src/diagnoses/two.rs";
        assert_eq!(problems(&files("use super::two::t;", "")), [other]);
        let model = "crates/rules/src/model/m.rs: \
                     imports the diagnosis crates/rules/src/diagnoses/two.rs";
        assert_eq!(problems(&files("", "use crate::diagnoses::two;")), [model]);
    }
}
