//! From the paths in a crate's files to the files that they name.

use super::circles::Imports;
use super::source::{Source, Words};
use crate::tidy::problem::Tree;
use std::collections::{BTreeMap, BTreeSet};

/// How many imports in a row pass a name on, at most: some pass it back.
const MOST_STEPS: usize = 8;

/// The modules of a crate that have a file, by their path below the crate; the crate itself has none.
pub struct Crate {
    modules: BTreeMap<Words, Module>,
}

struct Module {
    file: String,
    source: Source,
}

impl Crate {
    /// Reads a crate from its root, as far as modules are declared and not for tests alone.
    pub fn read(tree: &Tree, root: &str) -> Self {
        let folder = root.trim_end_matches("lib.rs").trim_end_matches('/');
        let mut modules = BTreeMap::new();
        let mut left = vec![(Words::new(), root.to_owned())];
        while let Some((path, file)) = left.pop() {
            let Some(text) = tree.get(&file) else { continue };
            let source = Source::of(text);
            for name in &source.modules {
                let path = [path.clone(), vec![name.clone()]].concat();
                let base = format!("{folder}/{}", path.join("/"));
                let files = [format!("{base}.rs"), format!("{base}/mod.rs")];
                left.extend(files.into_iter().map(|file| (path.clone(), file)));
            }
            modules.insert(path, Module { file, source });
        }
        Self { modules }
    }

    /// The files that each file imports.
    pub fn imports(&self) -> Imports {
        self.modules.keys().map(|path| (self.modules[path].file.clone(), self.of(path))).collect()
    }

    fn of(&self, module: &Words) -> BTreeSet<String> {
        let Module { file, source } = &self.modules[module];
        let used = source.imports.iter().map(|import| &import.path).chain(&source.paths);
        let targets = used.filter_map(|path| self.target(module, path, MOST_STEPS));
        let files = targets.map(|target| self.modules[&target].file.clone());
        files.filter(|target| target != file).collect()
    }

    /// The module that defines what a path names in a module, if it is of this crate.
    fn target(&self, module: &Words, path: &[String], steps: usize) -> Option<Words> {
        let mut at = module.clone();
        let mut rest = path;
        let is_rooted = match rest.first()?.as_str() {
            "crate" => {
                at.clear();
                true
            }
            first => ["self", "super"].contains(&first),
        };
        while let Some(first @ ("crate" | "self" | "super")) = rest.first().map(String::as_str) {
            if first == "super" {
                at.pop()?;
            }
            rest = &rest[1..];
        }
        let found = self.below(&at, rest, steps);
        // A path that begins with a word of its own is of this crate if the module knows the word.
        found.or_else(|| is_rooted.then_some(at))
    }

    /// Follows a path below a module; `None` if the module does not know its first word.
    fn below(&self, at: &Words, path: &[String], steps: usize) -> Option<Words> {
        let (first, rest) = path.split_first()?;
        let source = &self.modules.get(at)?.source;
        if source.modules.contains(first) {
            let child = [at.clone(), vec![first.clone()]].concat();
            let deeper = self.below(&child, rest, steps);
            return deeper.or_else(|| self.modules.contains_key(&child).then_some(child));
        }
        if source.items.contains(first) {
            return Some(at.clone());
        }
        let steps = steps.checked_sub(1)?;
        let named = source.imports.iter().find(|import| import.name.as_ref() == Some(first));
        if let Some(import) = named {
            return self.target(at, &[import.path.as_slice(), rest].concat(), steps);
        }
        let globs = source.imports.iter().filter(|import| import.name.is_none());
        globs.into_iter().find_map(|glob| {
            let from = self.target(at, &glob.path, steps)?;
            (from != *at).then(|| self.below(&from, path, steps)).flatten()
        })
    }
}
