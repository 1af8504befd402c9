//! What a guest is made of, and the words for its emulator and its kernel.

use anyhow::{Context, Result, bail};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What every guest's kernel is told: where its root is, to trust the emulated clock, and to leave
/// out what protects a machine but takes an emulated one half of its time.
const KERNEL_WORDS: &str = "root=untax rootfstype=virtiofs ro console=ttyS0 panic=-1 \
    tsc=reliable lpj=4000000 rcupdate.rcu_expedited=1 \
    mitigations=off nokaslr nosmap nosmep init_on_alloc=0 lsm= audit=0";

/// The suite of Debian with the newest kernel.
const NEWEST: &str = "trixie-backports";

/// A kernel, and what belongs to it.
pub(super) struct Kernel {
    pub(super) image: PathBuf,
    /// For a kernel whose drivers for its root are modules.
    pub(super) initramfs: Option<PathBuf>,
}

/// What the guest is made of, and what runs in it.
#[derive(Debug, Args)]
pub struct Run {
    /// Processors, divided among the nodes.
    #[arg(long, default_value_t = 4)]
    pub(super) cpus: u32,
    /// Memory in MiB, divided among the nodes.
    #[arg(long, default_value_t = 2048, value_name = "MIB")]
    pub(super) memory: u32,
    /// NUMA nodes.
    #[arg(long, default_value_t = 2, value_name = "NODES")]
    pub(super) numa: u32,
    /// Huge pages of 1 GiB to reserve at boot, beyond --memory.
    #[arg(long, default_value_t = 0, value_name = "PAGES")]
    pub(super) hugepages_1g: u32,
    /// More words for the kernel's command line.
    #[arg(long, default_value = "", value_name = "WORDS")]
    pub(super) cmdline: String,
    /// The suite of Debian whose cloud kernel is fetched: bookworm, trixie or trixie-backports.
    #[arg(long, default_value = NEWEST, value_name = "SUITE")]
    pub(super) suite: String,
    /// A kernel to boot instead of the fetched one.
    #[arg(long, value_name = "FILE")]
    pub(super) kernel: Option<PathBuf>,
    /// Seconds after which the guest is stopped.
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    pub(super) timeout: u64,
    /// Show all that the guest's kernel says, also when it ends well.
    #[arg(long)]
    pub(super) console: bool,
    /// The command; its files are those of this machine.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

impl Run {
    pub(super) fn check(&self) -> Result<()> {
        if !rustix::process::geteuid().is_root() {
            bail!("sharing the root with a guest needs root: run as root");
        }
        if self.numa == 0 || self.cpus == 0 || !self.cpus.is_multiple_of(self.numa) {
            bail!("--cpus {} cannot be divided among --numa {}", self.cpus, self.numa);
        }
        Ok(())
    }

    pub(super) fn kernel(&self) -> Result<Kernel> {
        if let Some(image) = &self.kernel {
            return Ok(Kernel { image: image.clone(), initramfs: None });
        }
        let script = crate::paths::root().join("scripts/vm-kernel.sh");
        let out = Command::new(&script)
            .arg(crate::paths::cache()?)
            .arg(&self.suite)
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot run {}", script.display()))?;
        let path = String::from_utf8_lossy(&out.stdout);
        let image = PathBuf::from(path.trim());
        if image.as_os_str().is_empty() {
            bail!("no kernel of {} for the guest: name one with --kernel", self.suite);
        }
        let initramfs = Some(image.with_file_name("initrd")).filter(|file| file.exists());
        Ok(Kernel { image, initramfs })
    }

    /// The kernel's command line; `init` is given `directory` as its argument, and in its
    /// environment where the modules of `kernel` are.
    pub(super) fn kernel_words(&self, kernel: &Kernel, directory: &str) -> String {
        let pages = match self.hugepages_1g {
            0 => String::new(),
            n => format!("hugepagesz=1G hugepages={n}"),
        };
        let more = &self.cmdline;
        let modules = kernel.image.with_file_name("modules");
        let modules = modules.display();
        format!(
            "{KERNEL_WORDS} {pages} {more} UNTAX_MODULES={modules} init={directory}/init -- \
             {directory}"
        )
    }

    /// Processors and memory, a node at a time.
    pub(super) fn machine_words(&self) -> Vec<String> {
        let (cores, memory) = (self.cpus / self.numa, self.memory + 1024 * self.hugepages_1g);
        let mut words = vec![
            format!("-m {memory}M"),
            format!("-smp {},sockets={},cores={cores}", self.cpus, self.numa),
        ];
        let mut left = memory;
        for node in 0..self.numa {
            let size = left / (self.numa - node);
            left -= size;
            let (first, last) = (node * cores, node * cores + cores - 1);
            words.push(format!("-object memory-backend-memfd,id=m{node},size={size}M,share=on"));
            words.push(format!("-numa node,nodeid={node},memdev=m{node},cpus={first}-{last}"));
        }
        words
    }
}
