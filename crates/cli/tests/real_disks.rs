//! The disks as `untax` sees them, against `fio`'s own report and a PostgreSQL that commits.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use serde_json::Value;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, fchown, symlink};
use std::path::Path;
use std::process::Command;
use support::Untax;
use untax_scenes::{Pgbench, Postgres, Runtime, SceneError};

/// A file on a loop device with ext4, gone when dropped, whatever happened.
struct Disk {
    folder: tempfile::TempDir,
    device: String,
}

fn run(program: &str, arguments: &[&str]) -> Result<String, SceneError> {
    let output =
        Command::new(program).args(arguments).output().map_err(|_| SceneError::Missing {
            program: program.to_owned(),
            package: "fio e2fsprogs util-linux".to_owned(),
        })?;
    let output_end = String::from_utf8_lossy(&output.stderr).into_owned();
    let status = output.status.to_string();
    if !output.status.success() {
        return Err(SceneError::Failed { program: program.to_owned(), status, output_end });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Disk {
    fn new() -> Result<Self, SceneError> {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        fs::File::create(&image).unwrap().set_len(512 << 20).unwrap();
        let image = image.to_str().unwrap();
        run("mkfs.ext4", &["-q", "-F", image])?;
        let device =
            run("losetup", &["--find", "--show", "--direct-io=on", image])?.trim().to_owned();
        let disk = Self { folder, device };
        fs::create_dir(disk.mount()).unwrap();
        run("mount", &[&disk.device, disk.mount().to_str().unwrap()])?;
        Ok(disk)
    }

    fn mount(&self) -> std::path::PathBuf {
        self.folder.path().join("mount")
    }

    fn name(&self) -> &str {
        self.device.trim_start_matches("/dev/")
    }

    /// Reads that ended and the seconds that they took, as the kernel counts them for the device.
    fn reads(&self) -> (f64, f64) {
        let stat = fs::read_to_string(format!("/sys/block/{}/stat", self.name())).unwrap();
        let fields: Vec<f64> =
            stat.split_whitespace().map(|field| field.parse().unwrap()).collect();
        (fields[0], fields[3] / 1000.0)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        for (program, argument) in
            [("umount", self.mount().to_str().unwrap()), ("losetup", self.device.as_str())]
        {
            let detach = (program == "losetup").then_some("--detach");
            let _ = Command::new(program).args(detach).arg(argument).output();
        }
    }
}

/// What the disks did while `meanwhile` ran, from a capture around it.
fn watched(meanwhile: impl FnOnce(), pid: u32) -> Value {
    let untax = Untax::new();
    let capture = untax.path("capture");
    let (pid, path) = (pid.to_string(), capture.to_str().unwrap().to_owned());
    let arguments =
        ["capture", path.as_str(), "--pid", &pid, "--window", "12s", "--no-calibration"];
    let captured = untax.run_watching(&arguments, || {
        // The first of its programs watches; the last one does a moment later.
        std::thread::sleep(std::time::Duration::from_secs(2));
        meanwhile();
    });
    assert_eq!(captured.code, 0, "{}", captured.stderr);
    observed(&capture)["io"].take()
}

fn observed(capture: &Path) -> Value {
    let text = fs::read_to_string(capture.join("end/observed.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["answers"].take()
}

fn flow<'a>(io: &'a Value, device: &str, is: &[(&str, &str)]) -> &'a Value {
    let flows = io["flows"].as_array().unwrap_or_else(|| panic!("{}", io["flows"]));
    let found = flows
        .iter()
        .find(|flow| flow["device"] == device && is.iter().all(|(name, is)| flow[*name] == **is));
    found.unwrap_or_else(|| panic!("no {is:?} on {device} in {flows:#?}"))
}

fn near(what: &str, seen: f64, told: f64, off: f64) {
    assert!((seen / told - 1.0).abs() <= off, "{what}: {seen} seen, {told} told");
}

#[test]
#[ignore = "long: up to three windows beside fio, on a machine that is quiet"]
fn requests_and_latencies_are_those_that_fio_reports() {
    support::real(|| {
        let disk = Disk::new()?;
        let file = disk.mount().join("file");
        let file = format!("--filename={}", file.display());
        // The file is laid out before, so that no request but those of the test goes to it.
        let layout = ["--name=x", &file, "--size=64m", "--rw=write", "--bs=1m", "--end_fsync=1"];
        run("fio", &layout)?;
        // What fio waited for a CPU is in its report alone: on a busy machine that may be more than
        // is forgiven here.
        support::one_of(3, || reads_agree(&disk, &file));
        Ok(())
    });
}

/// One run of random reads: what was seen of them, fio's own report, and what the kernel counts.
fn reads_agree(disk: &Disk, file: &str) -> Result<(), String> {
    let (mut report, mut counted) = (Value::Null, (0.0, 0.0));
    let job = [
        // What it waits for a CPU is no latency of the disk.
        "--adjustment=-20",
        "fio",
        "--name=x",
        file,
        "--size=64m",
        "--rw=randread",
        "--bs=8k",
        "--direct=1",
        // It looks until the request is done: who sleeps counts the time until it ran again, too.
        "--ioengine=libaio",
        "--userspace_reap",
        "--iodepth=1",
        "--iodepth_batch_complete_min=0",
        "--runtime=3",
        "--time_based",
        "--output-format=json",
    ];
    let io = watched(
        || {
            let before = disk.reads();
            report = serde_json::from_str(&run("nice", &job).unwrap()).unwrap();
            let after = disk.reads();
            counted = (after.0 - before.0, after.1 - before.1);
        },
        std::process::id(),
    );
    let told = &report["jobs"][0]["read"];
    let number = |value: &Value| value.as_f64().unwrap();
    let flow = flow(&io, disk.name(), &[("direction", "read")]);
    let requests = number(&told["total_ios"]);
    near("requests", number(&flow["requests"]), requests, 0.01);
    near("bytes", number(&flow["bytes"]), requests * 8192.0, 0.01);
    let mean_s = number(&flow["latency"]["mean_s"]) + number(&flow["queued_s"]);
    let counted_s = counted.1 / counted.0;
    // The kernel counts from where it makes the request: some microseconds as well.
    assert!((counted_s - mean_s).abs() <= 0.05 * counted_s + 10e-6, "{mean_s} {counted_s}");
    assert!(number(&flow["sequential"]) < 0.05, "random");
    let devices = io["devices"].as_array().unwrap().iter();
    let mut own = devices.filter(|device| device["name"] == disk.name());
    assert_eq!(own.next().unwrap()["behind"], "loop");
    // fio's latency holds the system call as well: some microseconds.
    let told_s = number(&told["lat_ns"]["mean"]) / 1e9;
    println!("mean: {mean_s} s seen, {counted_s} s counted, {told_s} s told; {flow:#}");
    assert!(mean_s <= told_s, "{mean_s} seen, {told_s} told by fio");
    support::demand(told_s - mean_s <= 0.05 * told_s + 20e-6, || {
        format!("{mean_s} s seen, {told_s} s told by fio")
    })
}

#[test]
fn the_log_of_a_postgres_that_commits_is_written_in_sequence() {
    support::real(|| {
        let settings = [("fsync", "on"), ("synchronous_commit", "on"), ("full_page_writes", "on")];
        let postgres = Postgres::start(Runtime::Host, &settings)?;
        postgres.pgbench_fill(2, 100)?;
        let load =
            postgres.pgbench(&Pgbench { seconds: 20, writes: true, ..Pgbench::default() })?;
        let before = wal_written(&postgres)?;
        let io = watched(|| {}, postgres.pid().unwrap());
        let written = wal_written(&postgres)? - before;
        drop(load);
        let place = &io["places"][0];
        assert_eq!(place["directory"], postgres.data_directory());
        let device = place["filesystem"]["device"].as_str().unwrap();
        let log = flow(&io, device, &[("role", "log"), ("direction", "write")]);
        assert!(log["database"].as_str().unwrap().starts_with("postgres:"));
        assert!(log["sequential"].as_f64().unwrap() > 0.9, "{log:#}");
        let bytes = log["bytes"].as_f64().unwrap();
        // Each flush writes the whole of a block that is not full, so a little more than the log;
        // the watching began a little after the first look and ended before the last.
        println!("{bytes} bytes of log requests, {written} bytes of log; {log:#}");
        assert!(bytes > 0.3 * written && bytes < 5.0 * written, "{bytes} against {written}");
        Ok(())
    });
}

/// The kernel splits what it writes where a device takes no more at once.
#[test]
fn all_requests_of_a_split_write_are_those_of_the_file() {
    const BYTES: usize = 32 << 20;
    support::real(|| {
        let disk = Disk::new()?;
        // Three pages: pieces begin at any of them.
        fs::write(format!("/sys/block/{}/queue/max_sectors_kb", disk.name()), "12").unwrap();
        let postgres = Postgres::start(Runtime::Host, &[])?;
        let owner = fs::metadata(postgres.data_directory()).unwrap().uid();
        let space = Path::new(&postgres.data_directory()).join("pg_tblspc/1");
        symlink(disk.mount(), space).unwrap();
        // By other programs than the database, so that the file alone tells whose it is.
        let file = |name: &str| {
            let path = disk.mount().join(name);
            let file = fs::File::create(&path).unwrap();
            fchown(&file, Some(owner), None).unwrap();
            (path, file)
        };
        let through_the_cache = || {
            let (_, mut file) = file("cached");
            (0..BYTES / 4096).for_each(|_| file.write_all(&[1; 4096]).unwrap());
            file.sync_all().unwrap();
        };
        let past_it = || {
            let to = format!("of={}", file("direct").0.display());
            let sizes = ["bs=64k", "count=512", "oflag=direct", "conv=notrunc"];
            run("dd", &[&["if=/dev/zero", to.as_str()][..], &sizes].concat()).unwrap();
        };
        for writes in [&through_the_cache as &dyn Fn(), &past_it] {
            let io = watched(writes, postgres.pid().unwrap());
            let data = flow(&io, disk.name(), &[("role", "data"), ("direction", "write")]);
            assert!(data["database"].as_str().unwrap().starts_with("postgres:"));
            let [bytes, pieces] = ["bytes", "requests"].map(|what| data[what].as_f64().unwrap());
            println!("{bytes} of {BYTES} bytes; {data:#}");
            assert!(pieces > BYTES as f64 / 16384.0, "{pieces}: it was not split");
            assert!(bytes > 0.95 * BYTES as f64, "{bytes} of {BYTES} bytes");
        }
        Ok(())
    });
}

/// Who changes a file has its filesystem write a journal: that is of no other program.
#[test]
fn a_journal_is_the_filesystems_own() {
    const APPENDS: u64 = 300;
    support::real(|| {
        let disk = Disk::new()?;
        let appends = || {
            let mut file = fs::File::create(disk.mount().join("file")).unwrap();
            (0..APPENDS).for_each(|_| {
                file.write_all(&[1; 4096]).unwrap();
                file.sync_all().unwrap();
            });
        };
        let io = watched(appends, std::process::id());
        let writes = |role| flow(&io, disk.name(), &[("role", role), ("direction", "write")]);
        let (file, journal) = (writes("other"), writes("filesystem"));
        println!("{file:#?} {journal:#?}");
        assert!(file["database"].is_string() && journal["database"].is_null());
        // One page of the file each time; of the journal a descriptor, blocks and a commit.
        let [file, journal] = [file, journal].map(|flow| flow["requests"].as_u64().unwrap());
        assert!((APPENDS..2 * APPENDS).contains(&file), "{file}");
        assert!(journal >= APPENDS, "{journal}");
        Ok(())
    });
}

fn wal_written(postgres: &Postgres) -> Result<f64, SceneError> {
    Ok(postgres.sql("SELECT pg_current_wal_insert_lsn() - '0/0'")?.trim().parse().unwrap())
}
