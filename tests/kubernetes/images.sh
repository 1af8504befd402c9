#!/bin/bash
# Makes the two images of the cluster, in the form that docker saves.
#
#   tests/kubernetes/images.sh DIRECTORY
#
# pause keeps a pod's network and other namespaces, and does nothing. host is a root with little
# more than places for the machine's own /usr, so that a pod which mounts that runs what is
# installed here.
set -euo pipefail

to=${1:?usage: tests/kubernetes/images.sh DIRECTORY}
mkdir -p "$to"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# image NAME: of what is in $work/NAME.
image() {
    local out=$work/$1.out config
    mkdir "$out"
    tar --create --file "$out/layer.tar" --directory "$work/$1" --owner 0 --group 0 --sort name \
        --mtime @0 .
    config='{"architecture": "'$architecture'", "os": "linux", "config": {"Cmd": ["/pause"]},'
    config+=' "rootfs": {"type": "layers", "diff_ids": ["sha256:'
    config+=$(sha256sum "$out/layer.tar" | cut -d' ' -f1)'"]}}'
    echo "$config" >"$out/config.json"
    echo '[{"Config": "config.json", "RepoTags": ["untax.invalid/'"$1"':1"],' \
        '"Layers": ["layer.tar"]}]' >"$out/manifest.json"
    tar --create --file "$to/$1.tar" --directory "$out" manifest.json config.json layer.tar
}

case $(uname -m) in
x86_64) architecture=amd64 ;;
aarch64) architecture=arm64 ;;
*) architecture=$(uname -m) ;;
esac

mkdir -p "$work/pause"
echo '#include <unistd.h>
int main(void) { for (;;) pause(); }' | cc -x c -O2 -static -o "$work/pause/pause" -
image pause

mkdir -p "$work/host"/{dev,etc,proc,sys,usr,var}
mkdir --mode 1777 "$work/host/tmp" "$work/host/run"
for name in bin lib lib64 sbin; do
    [ ! -e "/usr/$name" ] || ln -s "usr/$name" "$work/host/$name"
done
printf 'root:x:0:0::/:/bin/sh\npostgres:x:70:70::/tmp:/bin/sh\n' >"$work/host/etc/passwd"
printf 'root:x:0:\npostgres:x:70:\n' >"$work/host/etc/group"
image host
