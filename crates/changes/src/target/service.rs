//! A unit of systemd that runs, or does not.

use super::kind::Kind;
use crate::tree::Tree;
use std::io;

/// The value of a unit that runs.
const ACTIVE: &str = "active";

/// Its name.
pub struct Service<'a>(pub &'a str);

impl Service<'_> {
    fn systemctl(&self, tree: &Tree, words: &[&str]) -> io::Result<String> {
        if !tree.has_program("systemctl") {
            return Err(io::Error::other("systemctl is not installed here"));
        }
        let all = [&["systemctl"], words, &[self.0]].concat();
        tree.run(&all.into_iter().map(str::to_owned).collect::<Vec<_>>())
    }
}

impl Kind for Service<'_> {
    fn file(&self) -> Option<String> {
        None
    }

    /// A unit that is not known is as one that does not run.
    fn read(&self, tree: &Tree) -> io::Result<Option<String>> {
        let state = self.systemctl(tree, &["show", "--property=ActiveState", "--value"])?;
        Ok(Some(state.trim().to_owned()).filter(|state| state == ACTIVE))
    }

    fn write(&self, tree: &Tree, value: Option<&str>) -> io::Result<()> {
        let verb = if value.is_some() { "start" } else { "stop" };
        self.systemctl(tree, &[verb]).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_unit_is_active_or_not_there() {
        let root = tempfile::tempdir().unwrap();
        let tree = Tree::at(root.path());
        let unit = Service("untax-test.service");
        assert!(unit.read(&tree).is_err(), "no systemctl");
        let systemctl = tree.place("/usr/sbin/systemctl");
        fs::create_dir_all(systemctl.parent().unwrap()).unwrap();
        let script = "#!/bin/sh\ncd $UNTAX_ROOT\n[ $1 = show ] && exec cat state\n\
                      [ $1 = start ] && echo active >state || echo inactive >state\n";
        fs::write(&systemctl, script).unwrap();
        fs::set_permissions(&systemctl, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(tree.place("/state"), "failed\n").unwrap();
        assert_eq!(unit.read(&tree).unwrap(), None);
        unit.write(&tree, Some(ACTIVE)).unwrap();
        assert_eq!(unit.read(&tree).unwrap().as_deref(), Some(ACTIVE));
        unit.write(&tree, None).unwrap();
        assert_eq!(unit.read(&tree).unwrap(), None);
    }
}
