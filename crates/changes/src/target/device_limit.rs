//! A control group's I/O limit on one block device.

use super::kind::Kind;
use crate::tree::Tree;
use std::io;

/// No limit: the kernel takes the line of a device away that is told so.
const UNLIMITED: &str = "rbps=max wbps=max riops=max wiops=max";

/// The line of a device in a group's `io.max`.
pub struct DeviceLimit<'a> {
    /// The file.
    pub file: &'a str,
    /// The device, `major:minor`.
    pub device: &'a str,
}

impl DeviceLimit<'_> {
    fn is_own(&self, line: &str) -> bool {
        line.split(' ').next() == Some(self.device)
    }
}

impl Kind for DeviceLimit<'_> {
    fn file(&self) -> Option<String> {
        Some(self.file.to_owned())
    }

    fn read(&self, tree: &Tree) -> io::Result<Option<String>> {
        let text = tree.text(self.file)?;
        let line = text.lines().find(|line| self.is_own(line));
        Ok(line.and_then(|line| Some(line.split_once(' ')?.1.trim().to_owned())))
    }

    fn write(&self, tree: &Tree, value: Option<&str>) -> io::Result<()> {
        let line = format!("{} {}", self.device, value.unwrap_or(UNLIMITED));
        if tree.is_live() {
            return tree.write(self.file, &line);
        }
        // The kernel keeps the lines of other devices by itself.
        let text = tree.text(self.file)?;
        let others = text.lines().filter(|other| !self.is_own(other));
        let own = value.map(|_| line.as_str());
        let lines: String = others.chain(own).map(|line| format!("{line}\n")).collect();
        tree.write(self.file, &lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_a_line_of_its_own_while_it_is_limited() {
        let root = tempfile::tempdir().unwrap();
        let tree = Tree::at(root.path());
        let file = "/sys/fs/cgroup/batch/io.max";
        let other = "254:1 rbps=max wbps=7 riops=max wiops=max";
        tree.replace(file, &format!("{other}\n")).unwrap();
        let limit = DeviceLimit { file, device: "254:16" };
        assert_eq!(limit.read(&tree).unwrap(), None, "254:1 is another device");
        let value = "rbps=max wbps=1048576 riops=max wiops=max";
        for _ in 0..2 {
            limit.write(&tree, Some(value)).unwrap();
            assert_eq!(limit.read(&tree).unwrap().as_deref(), Some(value));
        }
        limit.write(&tree, None).unwrap();
        assert_eq!(tree.text(file).unwrap(), other);
        let missing = DeviceLimit { file: "/sys/fs/cgroup/gone/io.max", device: "254:16" };
        assert!(missing.write(&tree, Some(value)).is_err());
    }
}
