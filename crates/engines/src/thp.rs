//! Transparent huge pages behind a database's own memory.

use crate::database_view::DatabaseView;
use untax_core::Bytes;
use untax_core::Reading::{self, Absent, Present};
use untax_core::host::CgroupLayout;

/// What `smaps_rollup` costs for each resident GiB on 4 KiB pages. Measured on a 4 GiB private
/// anonymous mapping: 24 ms, 6 ms each GiB; on transparent huge pages 0.05 ms. The kernel walks
/// the page tables under `mmap_lock`, which holds up `mmap` and `brk` of that process.
const ROLLUP_MS_PER_GIB: f64 = 6.0;

/// The longest that `mmap_lock` of a database may be held for one figure.
const ROLLUP_LIMIT_MS: f64 = 50.0;

/// Anonymous memory of the main process in transparent huge pages: from `smaps_rollup` where that
/// is cheap, otherwise from its control group, if that holds nothing but this database.
pub(crate) fn anon_huge(view: &DatabaseView) -> Reading<Bytes> {
    let resident = view.status("VmRSS", |s| s.resident);
    let path = format!("/proc/{}/smaps_rollup", view.pid());
    let walked = resident.and_then(|resident| {
        let ms = resident.0 as f64 / Bytes::GIB_1.0 as f64 * ROLLUP_MS_PER_GIB;
        if ms > ROLLUP_LIMIT_MS {
            return Absent(format!(
                "reading {path} would hold the memory lock for about {ms:.0} ms"
            ));
        }
        let text = view.host.text(&path);
        text.parse(&path, |text| amount(text, "AnonHugePages:", " kB").map(Bytes::from_kib))
    });
    walked.or_else(|| of_group(view))
}

/// The page size behind private memory as a whole: base pages, unless most of what is resident
/// lies in transparent huge pages.
pub(crate) fn heap_page(view: &DatabaseView, resident: &Reading<Bytes>) -> Reading<Bytes> {
    match (&view.memory.anon_huge_bytes, resident) {
        (Present(huge), Present(resident)) if huge.0 > 0 && huge.0 >= resident.0 / 2 => {
            view.facts.thp.as_ref().and_then(|thp| thp.pmd_bytes.clone())
        }
        (Present(_), _) => view.facts.base_page_bytes.clone(),
        (uncounted, _) => mapping_page(view, uncounted),
    }
}

/// The page size behind one private mapping, given what the process has in transparent huge
/// pages: nothing tells which of its mappings they are in.
pub(crate) fn mapping_page(view: &DatabaseView, anon_huge: &Reading<Bytes>) -> Reading<Bytes> {
    let base = view.facts.base_page_bytes.clone();
    let always = match &view.facts.thp {
        Present(thp) => thp.enabled == "always",
        // A kernel without them.
        Absent(_) => false,
        gap => return gap.as_ref().and_then(|_| base),
    };
    match anon_huge {
        Present(Bytes(0)) => base,
        Present(_) => Absent("partly in transparent huge pages".to_owned()),
        // Nobody counted them, but neither does anyone get them unasked.
        _ if !always || may_have(view) == Some(false) => base,
        gap => gap.as_ref().and_then(|_| base),
    }
}

fn may_have(view: &DatabaseView) -> Option<bool> {
    view.status.value()?.thp_enabled
}

/// The count of the control group: `anon_thp` in v2, `rss_huge` in v1.
fn of_group(view: &DatabaseView) -> Reading<Bytes> {
    own_group(view).and_then(|(directory, hierarchy)| {
        let key = if hierarchy == "memory" { "rss_huge " } else { "anon_thp " };
        let path = format!("{directory}/memory.stat");
        view.host.text(&path).parse(&path, |text| amount(text, key, "").map(Bytes))
    })
}

/// The directory of the control group that counts the database's memory, if it holds nothing else,
/// and the hierarchy that it is in.
pub(crate) fn own_group(view: &DatabaseView) -> Reading<(String, &'static str)> {
    view.cgroup.as_ref().and_then(|cgroup| {
        let group = ["memory", "unified"].into_iter().find_map(|hierarchy| {
            let layout = view.facts.cgroup.value()?;
            Some((directory(layout, hierarchy, cgroup.paths.get(hierarchy)?)?, hierarchy))
        });
        let Some((directory, hierarchy)) = group else {
            return Absent("the control groups do not count this process's memory".to_owned());
        };
        let processes = view.host.text(&format!("{directory}/cgroup.procs"));
        processes.and_then(|processes| {
            let own = |pid: &str| pid.parse().is_ok_and(|pid| view.members.contains(&pid));
            if processes.lines().all(own) {
                Present((directory, hierarchy))
            } else {
                Absent(format!("{directory} holds other processes too"))
            }
        })
    })
}

/// Where a group is mounted, when the whole hierarchy is visible.
fn directory(layout: &CgroupLayout, hierarchy: &str, path: &str) -> Option<String> {
    let holds = |controllers: &[String]| controllers.iter().any(|c| c == hierarchy);
    let mount = layout.mounts.iter().find(|m| m.root == "/" && holds(&m.controllers))?;
    (path != "/" && !path.contains("..")).then(|| format!("{}{path}", mount.path))
}

fn amount(text: &str, key: &str, unit: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix(unit)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_the_line_is_not_zero() {
        let rollup = |text| amount(text, "AnonHugePages:", " kB");
        assert_eq!(rollup("Rss: 4 kB\nAnonHugePages:   2048 kB\n"), Some(2048));
        assert_eq!(rollup("Rss: 4 kB\n"), None);
        assert_eq!(rollup("AnonHugePages: x kB\n"), None);
        assert_eq!(amount("anon 1\nanon_thp 4194304\n", "anon_thp ", ""), Some(4 << 20));
    }
}
