//! Compiles the BPF program of the `sched_ext` backend. The object is part of the binary.

#![expect(clippy::disallowed_methods, reason = "what cargo tells a build script is there alone")]

use libbpf_cargo::SkeletonBuilder;
use std::path::PathBuf;

const FOLDER: &str = "src/bpf";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    // Where Debian and its kin keep <asm/types.h>; others have it where clang looks by itself.
    let asm = format!("-I/usr/include/{}-linux-gnu", std::env::var("CARGO_CFG_TARGET_ARCH")?);
    SkeletonBuilder::new()
        .source(format!("{FOLDER}/soft.bpf.c"))
        .obj(out.join("soft.bpf.o"))
        .clang_args(["-Wall", "-Werror", &asm])
        .build()?;
    println!("cargo:rerun-if-changed={FOLDER}");
    Ok(())
}
