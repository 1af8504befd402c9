#!/bin/bash
# Makes an image of the agent as docker saves it: the program, stripped, and the libraries that it is linked
# to, and nothing else.
#
#   tests/kubernetes/agent-image.sh UNTAX FILE.tar
set -euo pipefail

untax=$1 to=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{usr/bin,etc,proc,sys,tmp,var/lib/untax,var/log/pods,sys/fs/cgroup,sys/kernel/tracing}
strip -o "$root/usr/bin/untax" "$untax"
chmod 755 "$root/usr/bin/untax"
# Of a line, the path of a library: "name => PATH (address)" or "PATH (address)".
ldd "$untax" | sed -n 's/^[^/]*\(\/[^ ]*\) (.*/\1/p' | while read -r library; do
    install -D -m 755 "$library" "$root$library"
done
mkdir "$work/out"
tar --create --file "$work/out/layer.tar" --directory "$root" --owner 0 --group 0 .
digest=$(sha256sum "$work/out/layer.tar" | cut -d' ' -f1)
case $(uname -m) in x86_64) architecture=amd64 ;; *) architecture=arm64 ;; esac
echo '{"architecture": "'$architecture'", "os": "linux", "config": {},' \
    '"rootfs": {"type": "layers", "diff_ids": ["sha256:'"$digest"'"]}}' >"$work/out/config.json"
echo '[{"Config": "config.json", "RepoTags": ["docker.io/library/untax:latest"],' \
    '"Layers": ["layer.tar"]}]' >"$work/out/manifest.json"
tar --create --file "$to" --directory "$work/out" manifest.json config.json layer.tar
