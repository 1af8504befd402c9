//! Compiles the BPF programs. The object is part of the binary: nothing is needed at run time.

#![expect(clippy::disallowed_methods, reason = "what cargo tells a build script is there alone")]

use libbpf_cargo::SkeletonBuilder;
use std::path::PathBuf;

const FOLDER: &str = "src/bpf";
const PROGRAMS: [&str; 2] = ["disks", "threads"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    // Where Debian and its kin keep <asm/types.h>; others have it where clang looks by itself.
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH")?;
    let asm = format!("-I/usr/include/{arch}-linux-gnu");
    let cross = format!("-I/usr/{arch}-linux-gnu/include");
    // Where the sources are must not be in the object: the same commit gives the same bytes.
    let here = format!("-ffile-prefix-map={}=.", std::env::var("CARGO_MANIFEST_DIR")?);
    for program in PROGRAMS {
        SkeletonBuilder::new()
            .source(format!("{FOLDER}/{program}.bpf.c"))
            .obj(out.join(format!("{program}.bpf.o")))
            .clang_args(["-Wall", "-Werror", &asm, &cross, &here])
            .build()?;
    }
    println!("cargo:rerun-if-changed={FOLDER}");
    Ok(())
}
