//! What was recorded of a host reads the same after it was written and opened again, and a capture
//! of a stranger reaches nothing outside of itself.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a helper of a test fails like the test, and looks at what was written"
)]

use std::fs;
use std::path::{Path, PathBuf};
use untax_core::Reading::{Absent, Denied, Failed, Present};
use untax_core::reading::Gap;
use untax_host::{Capture, CaptureError, Host, Record, facts, fuzz};

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Writes one record as both moments of a capture and opens it.
fn round_trip(path: &Path, record: &Record) -> Host {
    Capture::write(path, record, record).unwrap();
    Capture::open(path).unwrap().start
}

#[test]
fn facts_of_this_machine_replay_from_a_folder_and_an_archive() {
    let live = Host::recording();
    let recorded = facts::read_all(&live);
    let record = live.into_record();
    let scratch = scratch();
    for name in ["capture", "capture.tar.gz", "capture.tgz"] {
        let replayed = round_trip(&scratch.path().join(name), &record);
        assert!(!replayed.is_live());
        assert_eq!(facts::read_all(&replayed), recorded, "{name}");
    }
    assert_eq!(facts::read_all(&Host::from_record(record)), recorded, "in memory");
}

#[test]
fn processes_and_groups_of_this_machine_replay() {
    let live = Host::recording();
    let recorded = fuzz::read_everything(&live, std::process::id());
    let replayed = round_trip(&scratch().path().join("capture.tar.gz"), &live.into_record());
    assert_eq!(fuzz::read_everything(&replayed, std::process::id()), recorded);
}

#[test]
fn start_and_end_are_kept_apart() {
    let folder = scratch();
    let at = |text| Record::default().with_file("/proc/uptime", text);
    let path = folder.path().join("capture");
    Capture::write(&path, &at("1\n"), &at("2\n")).unwrap();
    let capture = Capture::open(&path).unwrap();
    assert_eq!(capture.start.text("/proc/uptime"), Present("1\n".to_owned()));
    assert_eq!(capture.end.text("/proc/uptime"), Present("2\n".to_owned()));
}

#[test]
fn gaps_links_answers_and_empty_directories_are_kept() {
    let mut record = Record::default()
        .with_file("/proc/7/stat", "7\n")
        .with_link("/proc/7/exe", "/usr/bin/postgres (deleted)")
        .with_answer("version", &Denied::<String>("the socket".to_owned()))
        .with_answer("pages", &Present(3_u64));
    let denied = Gap::Denied("/proc/8/maps".to_owned());
    record.gaps.insert("/proc/8/maps".to_owned(), denied);
    record.gaps.insert("/proc/9/stat".to_owned(), Gap::Absent("/proc/9/stat: ended".to_owned()));
    record.gaps.insert("/sys/broken".to_owned(), Gap::Failed("garbage".to_owned()));
    let host = round_trip(&scratch().path().join("capture.tar.gz"), &record);

    assert_eq!(host.link("/proc/7/exe"), Present("/usr/bin/postgres (deleted)".to_owned()));
    assert_eq!(host.observe("version", || Present(String::new())), Denied("the socket".to_owned()));
    assert_eq!(host.observe("pages", || Present(0_u64)), Present(3));
    assert!(matches!(host.observe("other", || Present(0_u64)), Absent(_)));
    assert_eq!(host.text("/proc/8/maps"), Denied("/proc/8/maps".to_owned()));
    assert_eq!(host.text("/proc/9/stat"), Absent("/proc/9/stat: ended".to_owned()));
    assert_eq!(host.text("/sys/broken"), Failed("garbage".to_owned()));
    assert!(matches!(host.text("/proc/7/never/read"), Absent(_)));
    // What ended is not listed, what was denied is.
    assert_eq!(host.names("/proc"), Present(vec!["7".to_owned(), "8".to_owned()]));
    assert_eq!(host.names("/proc/7"), Present(vec!["exe".to_owned(), "stat".to_owned()]));
}

#[test]
fn an_empty_directory_stays_one_and_a_missing_one_missing() {
    let live = Host::recording();
    let empty = scratch();
    let path = empty.path().to_str().unwrap().to_owned();
    let missing = format!("{path}/missing");
    assert_eq!(live.names(&path), Present(Vec::new()));
    assert!(matches!(live.names(&missing), Absent(_)));
    let folder = scratch();
    let host = round_trip(&folder.path().join("capture"), &live.into_record());
    assert_eq!(host.names(&path), Present(Vec::new()));
    assert!(matches!(host.names(&missing), Absent(_)));
}

#[test]
fn the_first_reading_of_a_moment_counts() {
    let folder = scratch();
    let file = folder.path().join("file");
    let path = file.to_str().unwrap();
    fs::write(&file, "secret=1\nkept=1\n").unwrap();
    let live = Host::recording();
    let kept = live.filter_lines(path, |line| line.starts_with("kept").then(|| line.to_owned()));
    assert_eq!(kept, Present("kept=1\n".to_owned()));
    fs::write(&file, "kept=2\n").unwrap();
    assert_eq!(live.text(path), Present("kept=1\n".to_owned()));
    fs::remove_file(&file).unwrap();
    assert_eq!(live.text(path), Present("kept=1\n".to_owned()));
    let host = round_trip(&folder.path().join("capture"), &live.into_record());
    assert_eq!(host.text(path), Present("kept=1\n".to_owned()));
}

#[test]
fn a_path_that_climbs_is_neither_written_nor_read() {
    let folder = scratch();
    fs::write(folder.path().join("outside"), "outside").unwrap();
    let climbing = "/../../../outside";
    let record = Record::default().with_file(climbing, "overwritten").with_file("/inside", "in");
    let host = round_trip(&folder.path().join("capture"), &record);
    assert!(matches!(host.text(climbing), Failed(_)));
    assert!(matches!(host.names("/.."), Failed(_)));
    assert!(matches!(host.link("/a/../../b"), Failed(_)));
    assert_eq!(fs::read(folder.path().join("outside")).unwrap(), b"outside");
}

#[test]
fn a_link_in_a_folder_leads_nowhere() {
    let folder = scratch();
    let capture = folder.path().join("capture");
    let record = Record::default().with_file("/etc/real", "real");
    Capture::write(&capture, &record, &record).unwrap();
    let root = capture.join("start/fs");
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, root.join(name)).unwrap();
    };
    link("/etc/hostname", "file");
    link("/etc", "directory");
    link("etc/real", "inner");
    let host = Capture::open(&capture).unwrap().start;
    assert!(matches!(host.text("/file"), Failed(_)));
    assert!(matches!(host.text("/directory/hostname"), Failed(_)));
    assert!(matches!(host.names("/directory"), Failed(_) | Absent(_)));
    assert!(matches!(host.text("/inner"), Failed(_)));
    // What it says is data all the same, for captures that are made by hand.
    assert_eq!(host.link("/file"), Present("/etc/hostname".to_owned()));
    assert_eq!(host.text("/etc/real"), Present("real".to_owned()));
}

#[test]
fn only_files_of_a_capture_are_read() {
    let folder = scratch();
    let capture = folder.path().join("capture");
    let record = Record::default().with_file("/a/b", "b");
    Capture::write(&capture, &record, &record).unwrap();
    let fifo = capture.join("start/fs/fifo");
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let host = Capture::open(&capture).unwrap().start;
    assert!(matches!(host.text("/fifo"), Failed(_)), "and is not waited for");
    assert!(matches!(host.text("/a"), Failed(_)));
    assert!(host.exists("/a/b") && host.exists("/a") && !host.exists("/a/c"));
}

/// An archive with one entry beside those of an empty capture.
fn archive(folder: &Path, add: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> PathBuf {
    let capture = folder.join("capture");
    Capture::write(&capture, &Record::default(), &Record::default()).unwrap();
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_dir_all(".", &capture).unwrap();
    add(&mut tar);
    let path = folder.join("made.tar.gz");
    let file = fs::File::create(&path).unwrap();
    let mut zipped = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    std::io::Write::write_all(&mut zipped, &tar.into_inner().unwrap()).unwrap();
    zipped.finish().unwrap();
    path
}

fn refused(path: &Path) -> CaptureError {
    Capture::open(path).err().unwrap()
}

#[test]
fn an_archive_with_links_or_climbing_names_is_refused() {
    use tar::EntryType::{Block, Fifo, Link, Symlink};
    for kind in [Symlink, Link, Fifo, Block] {
        let folder = scratch();
        let path = archive(folder.path(), |tar| {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(0);
            tar.append_link(&mut header, "start/fs/etc", "/etc").unwrap();
        });
        assert!(matches!(refused(&path), CaptureError::Entry { .. }), "{kind:?}");
    }
    let folder = scratch();
    let path = archive(folder.path(), |tar| {
        let mut header = tar::Header::new_gnu();
        header.set_size(3);
        // The library refuses to write such a name.
        header.as_old_mut().name[..7].copy_from_slice(b"../evil");
        header.set_cksum();
        tar.append(&header, &b"bad"[..]).unwrap();
    });
    assert!(matches!(refused(&path), CaptureError::Entry { .. }));
}

#[test]
fn an_archive_that_grows_without_end_is_refused() {
    let folder = scratch();
    let path = archive(folder.path(), |tar| {
        let mut header = tar::Header::new_gnu();
        header.set_size(2 << 30);
        header.set_path("start/fs/big").unwrap();
        header.set_cksum();
        // The size that is claimed counts: nothing of it is unpacked.
        tar.append(&header, &b"short"[..]).unwrap();
    });
    assert!(matches!(refused(&path), CaptureError::TooLarge));
}

#[test]
fn what_is_no_capture_is_said_to_be_none() {
    let folder = scratch();
    let path = folder.path().join("x.tar.gz");
    fs::write(&path, "not gzip").unwrap();
    assert!(matches!(refused(&path), CaptureError::Io { .. }));
    assert!(matches!(refused(&folder.path().join("none")), CaptureError::Io { .. }));

    let capture = folder.path().join("capture");
    Capture::write(&capture, &Record::default(), &Record::default()).unwrap();
    assert!(Capture::is_capture(&capture) && !Capture::is_capture(folder.path()));
    fs::write(capture.join("capture.json"), "{\"schema\":\"untax.capture/9\"}").unwrap();
    assert!(matches!(refused(&capture), CaptureError::Schema { found } if found.ends_with("/9")));
    fs::write(capture.join("capture.json"), "{").unwrap();
    assert!(matches!(refused(&capture), CaptureError::Form { .. }));
    let again = Capture::write(&capture, &Record::default(), &Record::default());
    assert!(matches!(again, Err(CaptureError::Exists { .. })));
}

#[test]
fn an_unpacked_archive_lives_as_long_as_a_host_that_reads_it() {
    let folder = scratch();
    let path = folder.path().join("capture.tgz");
    let record = Record::default().with_file("/etc/os-release", "ID=debian\n");
    Capture::write(&path, &record, &record).unwrap();
    let Capture { end, .. } = Capture::open(&path).unwrap();
    assert_eq!(end.text("/etc/os-release"), Present("ID=debian\n".to_owned()));
}
