//! The modules that a Rust source file declares, and the paths that it uses.

use super::tokens::{Token, tokens};
use std::collections::BTreeSet;

/// The words of a path: `crate::a::B` has three.
pub type Words = Vec<String>;

/// A `use` of one name, or of all names in a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The path that it names.
    pub path: Words,
    /// The name that it has in this file; `None` for a glob.
    pub name: Option<String>,
}

/// What a file says of modules. Code that only tests compile is left out.
#[derive(Debug, Default)]
pub struct Source {
    /// The modules that it declares in files of their own.
    pub modules: BTreeSet<String>,
    /// What it imports.
    pub imports: Vec<Import>,
    /// Paths that it uses without an import.
    pub paths: Vec<Words>,
    /// The items that it defines.
    pub items: BTreeSet<String>,
}

impl Source {
    /// Reads a file.
    pub fn of(text: &str) -> Self {
        let mut source = Self::default();
        Reader { tokens: &tokens(text), at: 0, source: &mut source, inline: Vec::new() }.read();
        source
    }
}

/// Words before the name of an item.
const KINDS: &[&str] =
    &["fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"];

struct Reader<'a, 's> {
    tokens: &'a [Token<'a>],
    at: usize,
    source: &'s mut Source,
    /// How many braces are open inside of each module that the file holds itself.
    inline: Vec<usize>,
}

impl<'a> Reader<'a, '_> {
    fn peek(&self, ahead: usize) -> Option<Token<'a>> {
        self.tokens.get(self.at + ahead).copied()
    }

    fn word(&self, ahead: usize) -> Option<&'a str> {
        match self.peek(ahead) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn is_sign(&self, ahead: usize, sign: char) -> bool {
        self.peek(ahead) == Some(Token::Sign(sign))
    }

    fn read(mut self) {
        while let Some(token) = self.peek(0) {
            match token {
                Token::Sign('#') if self.is_test_attribute() => self.skip_item(),
                Token::Word("use") => self.import(),
                Token::Word("mod") => self.module(),
                Token::Word(_) => self.path(),
                Token::Sign(sign) => self.brace(sign),
                Token::Path => self.at += 1,
            }
        }
    }

    fn brace(&mut self, sign: char) {
        self.at += 1;
        let Some(open) = self.inline.last_mut() else { return };
        match sign {
            '{' => *open += 1,
            '}' if *open == 0 => {
                self.inline.pop();
            }
            '}' => *open -= 1,
            _ => {}
        }
    }

    /// Whether `#[cfg(test)]`, or one like it, begins here. Any other attribute is left to be read.
    fn is_test_attribute(&self) -> bool {
        let end = self.attribute_end(self.at);
        let words: Vec<&Token> =
            self.tokens[self.at..end].iter().filter(|t| matches!(t, Token::Word(_))).collect();
        let is = |word| words.contains(&&Token::Word(word));
        is("cfg") && is("test") && !is("not")
    }

    fn attribute_end(&self, start: usize) -> usize {
        let is_end = |token: &Token| *token == Token::Sign(']');
        self.tokens[start..].iter().position(is_end).map_or(self.tokens.len(), |n| start + n + 1)
    }

    /// Passes over attributes and the item after them.
    fn skip_item(&mut self) {
        while self.is_sign(0, '#') {
            self.at = self.attribute_end(self.at);
        }
        let mut open = 0_usize;
        while let Some(token) = self.peek(0) {
            self.at += 1;
            match token {
                Token::Sign('{' | '(' | '[') => open += 1,
                Token::Sign('}' | ')' | ']') => open = open.saturating_sub(1),
                _ => {}
            }
            // An import ends after the brace that closes its names.
            if open == 0 && (token == Token::Sign(';') || self.ends_block(token)) {
                return;
            }
        }
    }

    fn ends_block(&self, token: Token) -> bool {
        token == Token::Sign('}') && !self.is_sign(0, ';')
    }

    fn module(&mut self) {
        let name = self.word(1);
        self.at += 2;
        match name {
            Some(name) if self.is_sign(0, ';') => {
                self.source.modules.insert(name.to_owned());
            }
            Some(_) if self.is_sign(0, '{') => {
                self.at += 1;
                self.inline.push(0);
            }
            _ => {}
        }
    }

    fn import(&mut self) {
        self.at += 1;
        // `use<'a>` bounds what a type captures and imports nothing.
        if !self.is_sign(0, '<') {
            self.tree(&[]);
        }
    }

    /// Reads one branch of an import, below the words before it.
    fn tree(&mut self, before: &[String]) {
        let mut path = before.to_vec();
        loop {
            match self.peek(0) {
                Some(Token::Word("as")) => {
                    let name = self.word(1).map(str::to_owned);
                    self.at += 2;
                    return self.add(path, name);
                }
                Some(Token::Word(word)) => path.push(word.to_owned()),
                Some(Token::Path) => {}
                Some(Token::Sign('*')) => {
                    self.at += 1;
                    return self.add(path, None);
                }
                Some(Token::Sign('{')) => return self.group(&path),
                _ => {
                    let name = path.last().cloned();
                    return self.add(path, name);
                }
            }
            self.at += 1;
        }
    }

    fn group(&mut self, before: &[String]) {
        while self.is_sign(0, '{') || self.is_sign(0, ',') {
            self.at += 1;
            if self.word(0).is_some() || self.is_sign(0, '*') {
                self.tree(before);
            }
        }
        self.at += 1;
    }

    fn add(&mut self, path: Words, name: Option<String>) {
        let mut path = self.as_in_file(path);
        let mut name = name;
        // `a::{self}` imports `a`.
        if path.len() > 1 && path.last().is_some_and(|word| word == "self") {
            path.pop();
            name = name.filter(|name| name != "self").or_else(|| path.last().cloned());
        }
        self.source.imports.push(Import { path, name });
    }

    /// A path as the file itself would write it: `super` in a module that the file holds is the file.
    fn as_in_file(&self, mut path: Words) -> Words {
        for _ in &self.inline {
            if path.first().is_some_and(|word| word == "super") {
                "self".clone_into(&mut path[0]);
                if path.get(1).is_some_and(|word| word == "super") {
                    path.remove(0);
                }
            }
        }
        path
    }

    /// Reads a path, or a word that is none.
    fn path(&mut self) {
        let mut path = Words::new();
        while let Some(word) = self.word(0) {
            path.push(word.to_owned());
            self.at += 1;
            if self.peek(0) != Some(Token::Path) || self.word(1).is_none() {
                break;
            }
            self.at += 1;
        }
        if path.len() > 1 {
            let path = self.as_in_file(path);
            self.source.paths.push(path);
        } else if KINDS.contains(&path[0].as_str()) {
            let ahead = usize::from(self.is_sign(0, '!'));
            self.source.items.extend(self.word(ahead).map(str::to_owned));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(text: &str) -> Vec<(String, String)> {
        let import = |i: Import| (i.path.join("::"), i.name.unwrap_or("*".to_owned()));
        Source::of(text).imports.into_iter().map(import).collect()
    }

    #[test]
    fn groups_renames_and_globs_are_imports_of_their_own() {
        let found = imports("pub use crate::{a::{self, B as C}, d::*, e};\nuse super::f;");
        let expected = [
            ("crate::a", "a"),
            ("crate::a::B", "C"),
            ("crate::d", "*"),
            ("crate::e", "e"),
            ("super::f", "f"),
        ];
        assert_eq!(found, expected.map(|(path, name)| (path.to_owned(), name.to_owned())));
    }

    #[test]
    fn code_of_tests_is_left_out() {
        let text = "mod a;\n#[cfg(test)]\nmod b;\n#[cfg(test)]\n#[path = \"x.rs\"]\nmod x;\n\
                    #[cfg(test)]\nuse crate::{c, d};\n#[cfg(test)]\nmod tests { use crate::e; }\n\
                    #[cfg(not(test))]\nuse crate::f;\nfn g() { crate::h::i(); }\n";
        let source = Source::of(text);
        assert_eq!(source.modules.iter().collect::<Vec<_>>(), ["a"]);
        assert_eq!(imports(text), [("crate::f".to_owned(), "f".to_owned())]);
        assert_eq!(source.paths, [["crate", "h", "i"]]);
        assert!(source.items.contains("g"));
    }

    #[test]
    fn a_module_inside_of_the_file_names_it_by_super() {
        let text = "mod a { use super::B; pub fn c() { super::super::d(); } }\nuse super::E;";
        let paths: Vec<String> = imports(text).into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["self::B", "super::E"]);
        assert_eq!(Source::of(text).paths, [["super", "d"]]);
    }
}
