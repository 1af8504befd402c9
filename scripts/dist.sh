#!/bin/bash
# Builds untax as one static file that needs nothing of the system that it runs on.
#
#   scripts/dist.sh [ARCHITECTURE]      x86_64, or aarch64 (cross-built); default: this machine's
#
# The file holds its BPF programs, libbpf, libelf, zlib and the C library. The same commit gives the same
# bytes, in whichever directory it is built: no path and no time of the build is in the file.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "dist.sh: $1" >&2
    exit "${2:-2}"
}

architecture=${1:-$(uname -m)}
case $architecture in
x86_64 | aarch64) ;;
*) fail "no build for '$architecture': name x86_64 or aarch64" 3 ;;
esac
triple=$architecture-unknown-linux-gnu
scripts/needs.sh build
tools=
[ "$architecture" = "$(uname -m)" ] || tools=$architecture-linux-gnu-

root=$(pwd -P)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
cargo_home=$(realpath -m "${CARGO_HOME:-$HOME/.cargo}")
out=$root/target/dist
mkdir -p "$out"

commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
if [ "$commit" != unknown ] && [ -n "$(git status --porcelain --untracked-files=no)" ]; then
    commit=$commit-changed
fi
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH
export UNTAX_COMMIT=$commit

# Where sources and products lie is replaced in what rustc and the C compiler write.
flags=(-C target-feature=+crt-static)
# Relocations of a position-independent program in a twentieth of the room, and functions of the same code once;
# the linker that comes with Rust for x86_64 can do both.
[ "$architecture" != x86_64 ] || flags+=(-C link-arg=-Wl,-z,pack-relative-relocs -C link-arg=-Wl,--icf=all)
c_flags=
for map in "$target=/target" "$cargo_home=/cargo" "$root=/untax"; do
    flags+=("--remap-path-prefix=$map")
    c_flags+=" -ffile-prefix-map=$map"
done
CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f'; printf '%s' "${flags[*]}")
export CARGO_ENCODED_RUSTFLAGS
export CFLAGS="${CFLAGS:-}$c_flags"
export LIBBPF_SYS_LIBRARY_PATH=/usr/lib/$architecture-linux-gnu
if [ -n "$tools" ]; then
    [ "$architecture" = aarch64 ] || fail "only aarch64 is cross-built"
    for need in "${tools}gcc" "${tools}strip"; do
        command -v "$need" >/dev/null || fail "no $need: apt install gcc-aarch64-linux-gnu"
    done
    cross=$(scripts/cross.sh "${UNTAX_CACHE:-$HOME/.cache/untax}" arm64)
    export LIBBPF_SYS_LIBRARY_PATH=$cross/lib/$architecture-linux-gnu
    export LIBBPF_SYS_EXTRA_CFLAGS=-I$cross/include
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=${tools}gcc CC_aarch64_unknown_linux_gnu=${tools}gcc
fi
export CARGO_INCREMENTAL=0

cargo build --locked --quiet --profile dist --package untax --features static --target "$triple"

# The C library would look up names by modules of the host, which a static program must not load.
built=$target/$triple/dist/untax
if names=$("${tools}nm" "$built" | grep -E ' (__nss_lookup|__nss_module_load|gethostbyname_r)$'); then
    fail "the program looks up names by modules of the host: $names"
fi
if "${tools}readelf" --program-headers --dynamic "$built" | grep -E 'INTERP|NEEDED'; then
    fail "the program is not static"
fi

file=$out/untax-linux-$architecture
"${tools}strip" --strip-all -o "$file" "$built"
touch --date "@$SOURCE_DATE_EPOCH" "$file"
echo "$file: $(stat --format %s "$file") bytes, sha256 $(sha256sum "$file" | cut -d' ' -f1)"
